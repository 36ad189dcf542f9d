package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem/web"
)

// rights is an application's authorisation: middleware in front of the guard, whose answer changes while records stand.
type rights struct {
	mu      sync.Mutex
	revoked map[string]bool
}

func (a *rights) revoke(user string, revoked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revoked == nil {
		a.revoked = map[string]bool{}
	}
	a.revoked[user] = revoked
}

func (a *rights) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		revoked := a.revoked[loggedIn(r)]
		a.mu.Unlock()
		if revoked {
			http.Error(w, "no longer yours", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// margince#5315: what was done with a right was replayed after it was revoked. Authorisation stands in front of the guard and so is asked for each
// duplicate, before any store is. Only the application can know: the guard is asked nothing.
func TestNoReplayAfterTheRightWasRevoked(t *testing.T) {
	t.Parallel()
	routes := map[string]func(f *fixture) (http.Handler, func() *http.Request){
		"token": func(f *fixture) (http.Handler, func() *http.Request) {
			r := f.request("/idem/token", "application/json", `{"action":"order.create"}`)
			as("ann")(r)
			token := strings.Split(strings.Split(f.do(f.routes, r).Body.String(), `"token":"`)[1], `"`)[0]
			return f.guard.Token("order.create")(f.handler), func() *http.Request { return f.order(token, as("ann")) }
		},
		"key of the header": func(f *fixture) (http.Handler, func() *http.Request) {
			return f.guard.Key("transfer", web.HeaderKey("Idempotency-Key"))(f.handler), func() *http.Request {
				return keyed("application/json", `{}`, as("ann"), header("Idempotency-Key", "k"))
			}
		},
		"key of the payload": func(f *fixture) (http.Handler, func() *http.Request) {
			return f.guard.Key("refund", web.JSONKey("no"))(f.handler), func() *http.Request {
				return keyed("application/json", `{"no":"7"}`, as("ann"))
			}
		},
	}
	for name, made := range routes {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f, application := newFixture(t, only(stores), byUser), &rights{}
				guard, request := made(f)
				guarded := application.middleware(guard)
				first := f.do(guarded, request())
				executed(t, first, 201)
				repeats(t, f.do(guarded, request()), first)
				f.settle()

				application.revoke("ann", true)
				asked := f.store.all() + f.ledger.all()
				unauthorised(t, f.do(guarded, request()), first)
				if got := f.store.all() + f.ledger.all(); got != asked {
					t.Errorf("%d calls of stores", got-asked)
				}

				application.revoke("ann", false)
				repeats(t, f.do(guarded, request()), first)
				f.handler.ran(t, 1)
			})
		}
	}
}

// unauthorised is the application's answer, with nothing of the first one's.
func unauthorised(t *testing.T, rec, first *httptest.ResponseRecorder) {
	t.Helper()
	if rec.Code != http.StatusForbidden || rec.Header().Get(replayed) != "" || rec.Header().Get("Location") != "" || strings.Contains(rec.Body.String(), first.Body.String()) {
		t.Errorf("answered %d %q %v", rec.Code, rec.Body, rec.Header())
	}
}

// A subject that is no longer anybody's - logged out, deleted - gets nothing of what it did, whatever cookie or token is left to the browser.
func TestNoReplayAfterTheSessionEnded(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), byUser)
			guarded := f.guard.Key("refund", web.JSONKey("no"))(f.handler)
			first := f.do(guarded, keyed("application/json", `{"no":"7"}`, as("ann")))
			executed(t, first, 201)
			refused(t, f.do(guarded, keyed("application/json", `{"no":"7"}`)), 401, web.SubjectMissing)
			refused(t, f.do(guarded, keyed("application/json", `{"no":"7"}`, header("Cookie", "idem=AAAAAAAAAAAAAAAAAAAAAA"))), 401, web.SubjectMissing)
			f.handler.ran(t, 1)
		})
	}
}
