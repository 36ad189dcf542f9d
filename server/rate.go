package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
)

// Rate is a number of tokens in a time, over a sliding window. The zero value is no limit.
type Rate struct {
	Tokens int
	Per    time.Duration
}

const rateOff = "off"

// String is the form that UnmarshalText reads, such as "600/1m".
func (r Rate) String() string {
	if r.Tokens == 0 {
		return rateOff
	}
	return strconv.Itoa(r.Tokens) + "/" + short(r.Per)
}

// MarshalText is String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

const (
	mostTokens = 100_000_000 // ten times as many still fit into 32 bits
	mostPer    = 24 * time.Hour
)

// UnmarshalText reads "600/1m", "600/m" or "off": 1 to 100,000,000 tokens in 1 s to 24 h.
func (r *Rate) UnmarshalText(text []byte) error {
	if strings.EqualFold(string(text), rateOff) {
		*r = Rate{}
		return nil
	}
	number, per, ok := strings.Cut(string(text), "/")
	count, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil {
		return errors.New("is not a rate")
	}
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	window, err := time.ParseDuration(per)
	if err != nil {
		return errors.New("is not a rate")
	}
	if count < 1 || count > mostTokens || window < time.Second || window > mostPer {
		return errors.New("is out of range: 1 to 100000000 tokens, 1s to 24h")
	}
	*r = Rate{Tokens: int(count), Per: window}
	return nil
}

// addressShare is how many times a subject's tokens an address may have: many people share one.
const addressShare = 10

// limit is a web.Config.TokenLimit; nil where there is none. It counts tokens, not calls, in this process alone. A subject that is over its limit uses
// nothing of its address's.
func (r Rate) limit() func(*http.Request, string, int) time.Duration {
	if r.Tokens == 0 {
		return nil
	}
	subjects := httprate.NewRateLimiter(r.Tokens, r.Per, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	addresses := httprate.NewRateLimiter(r.Tokens*addressShare, r.Per, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	return func(req *http.Request, subject string, n int) time.Duration {
		// httprate takes the increment from the context, and writes no header where none is named.
		counted := req.WithContext(httprate.WithIncrement(context.WithoutCancel(req.Context()), n))
		if subject != "" && subjects.OnLimit(nil, counted, subject) {
			return r.Per
		}
		if addresses.OnLimit(nil, counted, address(req)) {
			return r.Per
		}
		return 0
	}
}

// address is the client's, as the middleware in front found it, otherwise the connection's; of IPv6 the /64, all of which one client has.
func address(r *http.Request) string {
	found := middleware.GetClientIP(r.Context())
	if found == "" {
		found, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	return httprate.CanonicalizeIP(found)
}
