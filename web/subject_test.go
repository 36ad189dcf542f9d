package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/web"
)

// loggedIn is the user that a test's application has authenticated.
func loggedIn(r *http.Request) string { return r.Header.Get("X-User") }

func byUser(c *web.Config) { c.Subject = loggedIn }

func as(user string) func(*http.Request) { return header("X-User", user) }

func TestSubjectOfKeyedRoutes(t *testing.T) {
	t.Parallel()
	cookie := header("Cookie", "idem=AAAAAAAAAAAAAAAAAAAAAA")
	for name, c := range map[string]struct {
		users   bool
		options []web.Option
		who     []func(*http.Request)
		code    string
	}{
		"nobody":                           {code: web.SubjectMissing},
		"nobody, application with log-ins": {users: true, code: web.SubjectMissing},
		"a cookie":                         {who: []func(*http.Request){cookie}},
		"a cookie that we did not make":    {who: []func(*http.Request){header("Cookie", "idem=admin")}, code: web.SubjectMissing},
		"a cookie of 15 bytes":             {who: []func(*http.Request){header("Cookie", "idem=AAAAAAAAAAAAAAAAAAAA")}, code: web.SubjectMissing},
		"the other scheme's cookie":        {who: []func(*http.Request){header("Cookie", "__Host-idem=AAAAAAAAAAAAAAAAAAAAAA")}, code: web.SubjectMissing},
		"a cookie where there are log-ins": {users: true, who: []func(*http.Request){cookie}, code: web.SubjectMissing},
		"a user":                           {users: true, who: []func(*http.Request){as("ann")}},
		"nobody, allowed":                  {options: []web.Option{web.Anonymous()}},
		"nobody, log-ins, allowed":         {users: true, options: []web.Option{web.Anonymous()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *web.Config) {
				if c.users {
					byUser(config)
				}
			})
			h := &work{}
			rec := f.do(f.guard.Key("transfer", web.HeaderKey("Idempotency-Key"), c.options...)(h), keyed("", "", append(c.who, header("Idempotency-Key", "k"))...))
			if rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("a key-guarded route set %q", rec.Header().Get("Set-Cookie"))
			}
			if c.code == "" {
				executed(t, rec, 201)
				return
			}
			refused(t, rec, 401, c.code)
			if rec.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("header %v", rec.Header())
			}
			h.ran(t, 0)
		})
	}
}

// Whose record a key is: the caller's own from a header, the tenant's from the payload.
func TestScopeOfKeys(t *testing.T) {
	t.Parallel()
	const own, replay, taken = "own", "replay", "taken"
	for name, c := range map[string]struct {
		key     web.KeyFunc
		options []web.Option
		second  []func(*http.Request)
		want    string
	}{
		"header, same caller":     {key: web.HeaderKey("Idempotency-Key"), second: []func(*http.Request){as("ann")}, want: replay},
		"header, other caller":    {key: web.HeaderKey("Idempotency-Key"), second: []func(*http.Request){as("bob")}, want: own},
		"header, other tenant":    {key: web.HeaderKey("Idempotency-Key"), second: []func(*http.Request){as("ann"), header("X-Shop", "2")}, want: own},
		"joined with a header":    {key: web.Join(web.JSONKey("no"), web.HeaderKey("Idempotency-Key")), second: []func(*http.Request){as("bob")}, want: own},
		"payload, same caller":    {key: web.JSONKey("no"), second: []func(*http.Request){as("ann")}, want: replay},
		"payload, other caller":   {key: web.JSONKey("no"), second: []func(*http.Request){as("bob")}, want: taken},
		"payload, other tenant":   {key: web.JSONKey("no"), second: []func(*http.Request){as("ann"), header("X-Shop", "2")}, want: own},
		"shared, other caller":    {key: web.JSONKey("no"), options: []web.Option{web.Shared()}, second: []func(*http.Request){as("bob")}, want: replay},
		"shared, other tenant":    {key: web.JSONKey("no"), options: []web.Option{web.Shared()}, second: []func(*http.Request){as("bob"), header("X-Shop", "2")}, want: own},
		"anonymous, nobody":       {key: web.JSONKey("no"), options: []web.Option{web.Anonymous()}, want: taken},
		"anonymous, header, none": {key: web.HeaderKey("Idempotency-Key"), options: []web.Option{web.Anonymous()}, want: own},
	} {
		for _, stores := range []string{"both", "store", "ledger"} {
			t.Run(name+"/"+stores, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, only(stores), byUser, func(c *web.Config) { c.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") } })
				h := &work{}
				guarded := f.guard.Key("refund", c.key, c.options...)(h)
				send := func(who ...func(*http.Request)) *httptest.ResponseRecorder {
					return f.do(guarded, keyed("application/json", `{"no":"7"}`, append(who, header("Idempotency-Key", "k"))...))
				}
				first := send(as("ann"))
				executed(t, first, 201)
				second := send(c.second...)
				switch c.want {
				case own:
					executed(t, second, 201)
					h.ran(t, 2)
				case replay:
					repeats(t, second, first)
				case taken:
					refused(t, second, 409, web.KeyTaken)
				}
			})
		}
	}
}

// The answer about another's key tells nothing of its state or payload.
func TestKeyTakenIsTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, stores := range []string{"both", "store", "ledger"} {
		t.Run(stores, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, only(stores), byUser)
			h := held()
			code := 201
			h.then = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
			guarded := f.guard.Key("refund", web.JSONKey("no"))(h)
			var answers []string
			spy := func(state string) {
				for _, payload := range []string{`{"no":"7"}`, `{"no":"7","amount":5}`} {
					rec := f.do(guarded, keyed("application/json", payload, as("bob")))
					refused(t, rec, 409, web.KeyTaken)
					head := strings.Builder{}
					_ = rec.Header().Write(&head)
					answers = append(answers, rec.Body.String()+head.String())
					if answers[0] != answers[len(answers)-1] {
						t.Errorf("%s: %q, before %q", state, answers[len(answers)-1], answers[0])
					}
				}
			}
			done := make(chan *httptest.ResponseRecorder)
			for _, code = range []int{422, 500, 201} {
				go func() { done <- f.do(guarded, keyed("application/json", `{"no":"7"}`, as("ann"))) }()
				<-h.started
				spy("running")
				h.release <- struct{}{}
				<-done
				spy(http.StatusText(code))
			}
			f.clock.advance(25 * time.Hour)
			spy("result forgotten")
			h.ran(t, 3)
		})
	}
}

func TestLoginBetweenPageAndSubmit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, byUser)
	h := &work{}
	guarded := f.guard.Token("order.create")(h)
	token := f.token("order.create").Token // as the browser
	refused(t, f.do(guarded, f.order(token, as("ann"))), 403, web.TokenWrongSubject)
	executed(t, f.do(guarded, f.order(token)), 201)
	anns := f.do(f.routes, f.request("/idem/token", "", `{"action":"order.create"}`))
	if len(anns.Result().Cookies()) != 0 {
		t.Errorf("a known browser got %v", anns.Result().Cookies())
	}
	h.ran(t, 1)
}

// A cookie is the client's to set: no value of it becomes a user.
func TestForgedCookieIsNoUser(t *testing.T) {
	t.Parallel()
	const user = "AAAAAAAAAAAAAAAAAAAAAA" // an id that looks like a cookie
	f := newFixture(t, byUser)
	r := f.request("/idem/token", "", `{"action":"order.create"}`)
	r.Header.Set("X-User", user)
	rec := f.do(f.routes, r)
	if rec.Code != 201 || rec.Header().Get("Set-Cookie") != "" {
		t.Fatalf("answered %d %v", rec.Code, rec.Header())
	}
	token := strings.Split(strings.Split(rec.Body.String(), `"token":"`)[1], `"`)[0]
	h := &work{}
	guarded := f.guard.Token("order.create")(h)
	for _, cookie := range []string{"idem=" + user, "idem=\x00user\x00" + user, "__Host-idem=" + user} {
		forged := f.order(token)
		forged.Header.Set("Cookie", cookie)
		refused(t, f.do(guarded, forged), 403, web.TokenWrongSubject)
	}
	executed(t, f.do(guarded, f.order(token, as(user))), 201)
}

// Equal request ids of two subjects, and of two tenants, are two operations.
func TestRequestIDsOfTwoSubjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t, byUser, func(c *web.Config) { c.Tenant = func(r *http.Request) string { return r.Header.Get("X-Shop") } })
	h := &work{}
	guarded := f.guard.Token("order.create")(h)
	n := 0
	for _, user := range []string{"ann", "bob"} {
		for _, shop := range []string{"1", "2"} {
			r := f.request("/idem/token", "", `{"action":"order.create","requestId":"request-0001"}`)
			as(user)(r)
			header("X-Shop", shop)(r)
			token := strings.Split(strings.Split(f.do(f.routes, r).Body.String(), `"token":"`)[1], `"`)[0]
			refused(t, f.do(guarded, f.order(token, as(user), header("X-Shop", "3"))), 403, web.TokenWrongSubject)
			executed(t, f.do(guarded, f.order(token, as(user), header("X-Shop", shop))), 201)
			n++
		}
	}
	h.ran(t, n)
}

func TestCookie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*web.Config)
		tls    bool
		name   string
		age    int
	}{
		"plain":             {name: "idem", age: 30 * 24 * 3600},
		"TLS":               {tls: true, name: "__Host-idem", age: 30 * 24 * 3600},
		"TLS ends in front": {change: func(c *web.Config) { c.TLS = true }, name: "__Host-idem", age: 30 * 24 * 3600},
		"odd retention":     {change: func(c *web.Config) { c.Retention = time.Hour + time.Millisecond }, name: "idem", age: 3601},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(*web.Config) {}
			if c.change != nil {
				change = c.change
			}
			f := newFixture(t, change)
			target := "http://shop.example/idem/token"
			if c.tls {
				target = "https://shop.example/idem/token"
			}
			rec := f.do(f.routes, httptest.NewRequest(http.MethodPost, target, nil))
			cookies := rec.Result().Cookies()
			if len(cookies) != 1 {
				t.Fatalf("cookies %v", cookies)
			}
			got := cookies[0]
			secure := c.name != "idem"
			if got.Name != c.name || len(got.Value) != 22 || got.Secure != secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode ||
				got.Path != "/" || got.Domain != "" || got.MaxAge != c.age {
				t.Errorf("cookie %s", got)
			}
			again := f.do(f.routes, httptest.NewRequest(http.MethodPost, target, nil)).Result().Cookies()
			if again[0].Value == got.Value {
				t.Error("two browsers got one value")
			}
		})
	}
}

// The cookie lives as long as the route that remembers longest.
func TestCookieOutlivesTheLongestRetention(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.guard.Token("a", web.Retention(800*time.Hour))
	f.guard.Key("b", web.HeaderKey("Idempotency-Key"), web.Retention(900*time.Hour))
	f.guard.Token("c", web.Retention(time.Hour))
	rec := f.do(f.routes, httptest.NewRequest(http.MethodPost, "/idem/token", nil))
	if cookies := rec.Result().Cookies(); len(cookies) != 1 || cookies[0].MaxAge != 900*3600 {
		t.Errorf("cookies %v", cookies)
	}
}
