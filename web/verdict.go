package web

import (
	"context"
	"net/http"

	"github.com/idemkit/idem"
)

type verdictKey struct{}

// verdict is what a handler says of its own outcome, over its status.
type verdict struct{ state idem.State }

// Reject says that nothing happened, whatever the status: a form shown again with 200, a redirect with a message. The same
// token may be sent again, with another payload, and a window with ReopenOnFailure opens. Outside of guarded work it does nothing.
func Reject(ctx context.Context) { overrule(ctx, idem.Failed) }

// Unknown says that it may have happened: a gateway timed out. The payload stays bound, and a Resolver, where there is one, is
// asked before any further attempt. Outside of guarded work it does nothing.
func Unknown(ctx context.Context) { overrule(ctx, idem.Processing) }

// of is the outcome by status, unless the handler overruled it.
func (v *verdict) of(status int) idem.State {
	switch {
	case v.state != "":
		return v.state
	case status < http.StatusBadRequest:
		return idem.Succeeded
	}
	return idem.Failed
}

func overrule(ctx context.Context, state idem.State) {
	if v, ok := ctx.Value(verdictKey{}).(*verdict); ok {
		v.state = state
	}
}
