package templates

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNoPage says that a component that needs a token is rendered outside of a guarded page.
var ErrNoPage = errors.New("idem: page is not behind guard.Forms")

// Token is a signed one-time permission, as a page embeds it.
type Token struct {
	Value     string    // the compact JWS
	RequestID string    // the intention that it belongs to
	Action    string    // what it permits
	ExpiresAt time.Time // to the second
}

// Issuer signs tokens while a page renders. An empty requestID asks for a new intention; one that is given is renewed.
// It may put off writing the token to a store until the page is complete, and must be safe for concurrent use.
type Issuer interface {
	Token(ctx context.Context, action, requestID string) (Token, error)
}

// Page is what components need to know of the request that they are rendered for.
type Page struct {
	Issuer Issuer // required by components that embed a token
	Assets Assets // required by Script, Style and Meta
	Nonce  string // of the script tag, where the policy asks for one; empty: templ.GetNonce
	// RequestID tells the request id that this request came with for an action, and was not done under; empty: none. It lets a form that is
	// shown again keep its intention. The first form of that action on the page gets it, for two forms are two intentions. May be nil.
	RequestID func(action string) string
}

type pageKey struct{}

// rendering is one page with what it has given out so far; templ may render parts concurrently.
type rendering struct {
	Page
	mu   sync.Mutex
	kept map[string]bool // request ids that a form of this page has already
}

// WithPage returns a context in which components find the page. Call it once for each answer.
func WithPage(ctx context.Context, p Page) context.Context {
	return context.WithValue(ctx, pageKey{}, &rendering{Page: p, kept: make(map[string]bool)})
}

// PageFrom returns the page of the context, or ErrNoPage.
func PageFrom(ctx context.Context) (Page, error) {
	r, err := renderingFrom(ctx)
	if err != nil {
		return Page{}, err
	}
	return r.Page, nil
}

func renderingFrom(ctx context.Context) (*rendering, error) {
	r, ok := ctx.Value(pageKey{}).(*rendering)
	if !ok {
		return nil, ErrNoPage
	}
	return r, nil
}

// intention is the request id that the next form of an action has; empty: a new one.
func (r *rendering) intention(action, preset string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if preset == "" && r.RequestID != nil {
		if id := r.RequestID(action); !r.kept[id] {
			preset = id
		}
	}
	r.kept[preset] = preset != ""
	return preset
}

func (f TokenField) issue(ctx context.Context) (Token, error) {
	if f.Value != "" {
		return Token{Value: f.Value, RequestID: f.RequestID, Action: f.Action}, nil
	}
	r, err := renderingFrom(ctx)
	if err != nil {
		return Token{}, err
	}
	if r.Issuer == nil {
		return Token{}, fmt.Errorf("%w: it has no issuer", ErrNoPage)
	}
	token, err := r.Issuer.Token(ctx, f.Action, r.intention(f.Action, f.RequestID))
	if err != nil {
		return Token{}, fmt.Errorf("idem: no token for %q: %w", f.Action, err)
	}
	return token, nil
}
