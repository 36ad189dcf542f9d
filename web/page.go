package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/tokens"
)

// page signs the tokens that components of one answer embed, and stores them together.
type page struct {
	*Guard
	w       http.ResponseWriter
	r       *http.Request
	caller  caller
	header  http.Header                // of the answer that embeds the tokens
	current func(action string) string // the request id that a form shown again keeps; nil: a plain page
	mu      sync.Mutex
	queue   []idem.Token
}

func (g *Guard) newPage(w http.ResponseWriter, r *http.Request, c caller) *page {
	return &page{Guard: g, w: w, r: r, caller: c, header: w.Header()}
}

// Forms lets the pages below embed tokens: it makes the browser known and the page uncacheable up front, and stores the page's tokens in
// one round trip before the end of the answer leaves.
func (g *Guard) Forms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.config.Tokens == nil {
			panic("web: Forms needs Config.Tokens")
		}
		w.Header().Set("Cache-Control", "no-store")
		p := g.newPage(w, r, g.introduce(w, r))
		rec := newRecorder(w, g.config.ResponseLimit)
		p.attach(rec)
		next.ServeHTTP(rec, r.WithContext(p.in(r.Context())))
		p.finish(rec)
	})
}

// attach makes the recorder store the page's tokens before bytes leave.
func (p *page) attach(rec *recorder) {
	p.header, rec.before = rec.header, p.store
}

func (p *page) finish(rec *recorder) {
	err := rec.prepare()
	if err == nil {
		_ = rec.finish() // a client that left is nobody's error
		return
	}
	if rec.left {
		panic(http.ErrAbortHandler)
	}
	p.refuse(p.w, p.r, refuse(StoreUnavailable).because(err))
}

// in is the context of components that embed tokens.
func (p *page) in(ctx context.Context) context.Context {
	return templates.WithPage(ctx, templates.Page{Issuer: p, Assets: p.assets, RequestID: p.current})
}

// Token signs a token for a component; an empty request id becomes a fresh one. It is stored with the page's other tokens.
func (p *page) Token(_ context.Context, action, requestID string) (templates.Token, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.caller.subject == "" && p.current == nil { // the page of a refusal that came before anybody asked whose request it is
		p.caller = p.introduce(p.w, p.r)
	}
	issued, err := p.config.Tokens.Issue(tokens.Grant{Action: action, RequestID: requestID, Subject: p.caller.subject})
	if err != nil {
		return templates.Token{}, err
	}
	p.header.Set("Cache-Control", "no-store")
	p.queue = append(p.queue, p.stored(issued, p.caller.tenant))
	return templates.Token{Value: issued.Token, RequestID: issued.RequestID, Action: issued.Action, ExpiresAt: issued.ExpiresAt}, nil
}

// store writes what was signed since the last time, in one round trip.
func (p *page) store() error {
	p.mu.Lock()
	queue := p.queue
	p.queue = nil
	p.mu.Unlock()
	if len(queue) == 0 {
		return nil
	}
	p.header.Set("Cache-Control", "no-store") // http.Error removes it
	return p.issue(context.WithoutCancel(p.r.Context()), queue)
}

// issueLimit bounds the one round trip that a page, or the token service's caller, waits for.
const issueLimit = 5 * time.Second

// issue stores tokens. Behind a ledger the signature alone vouches for them where the store is away.
func (g *Guard) issue(ctx context.Context, queue []idem.Token) error {
	if g.config.Store == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, issueLimit)
	defer cancel()
	err := g.config.Store.Issue(bounded, queue)
	if err != nil && g.config.Ledger != nil {
		g.config.Logger.WarnContext(ctx, "idem: tokens are issued without the store", "error", err)
		return nil
	}
	return err
}

// stored is what the store keeps of a token.
func (g *Guard) stored(issued tokens.Issued, tenant string) idem.Token {
	return idem.Token{
		ID: issued.ID, Key: issued.Key(tenant), TTL: issued.Life,
		Retention: g.entranceFor(g.config.Retention, g.config.ResultRetention),
	}
}

// entranceFor is how long the entrance keeps a record: beside a ledger as long as it can be of use, alone as long as it must.
func (g *Guard) entranceFor(retention, keep time.Duration) time.Duration {
	if g.config.Ledger == nil {
		return retention
	}
	return max(g.config.Tokens.TTL()+time.Second, min(keep, retention))
}
