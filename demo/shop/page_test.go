package shop_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// wantStrict: nothing inline, nothing from elsewhere, and the policy that forbids it.
func (s *site) wantStrict(a answer) {
	s.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			s.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		s.Errorf("policy %q", policy)
	}
	for _, e := range page(s.T, a.body) {
		if e.name == "style" || (e.name == "script" && (e.attrs["src"] == "" || strings.TrimSpace(e.text) != "")) {
			s.Errorf("<%s> stands in the page", e.name)
		}
		for name, value := range e.attrs {
			if name == "style" || strings.HasPrefix(name, "on") || strings.HasPrefix(value, "javascript:") {
				s.Errorf("<%s %s=%q>", e.name, name, value)
			}
			if slices.Contains([]string{"src", "href", "action"}, name) && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#") {
				s.Errorf("<%s %s=%q> leads elsewhere", e.name, name, value)
			}
		}
	}
}

// wantUsable: what a page needs for people who do not see it.
func (s *site) wantUsable(a answer) {
	s.Helper()
	all := page(s.T, a.body)
	if lang := all[0].attrs["lang"]; all[0].name != "html" || lang != "en" {
		s.Errorf("<%s lang=%q>", all[0].name, lang)
	}
	count, ids, labels := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, e := range all {
		count[e.name]++
		if id := e.attrs["id"]; id != "" {
			if ids[id] {
				s.Errorf("id %q stands there twice", id)
			}
			ids[id] = true
		}
		labels[e.attrs["for"]] = true
	}
	for _, name := range []string{"title", "h1", "main", "header", "nav"} {
		if count[name] != 1 {
			s.Errorf("%d <%s>, want one", count[name], name)
		}
	}
	for _, e := range all {
		field := e.name == "select" || e.name == "textarea" || (e.name == "input" && e.attrs["type"] != "hidden")
		if field && !labels[e.attrs["id"]] {
			s.Errorf("<%s name=%q> has no label", e.name, e.attrs["name"])
		}
		for _, reference := range []string{"aria-labelledby", "aria-describedby"} {
			if id := e.attrs[reference]; id != "" && !ids[id] {
				s.Errorf("%s=%q leads nowhere", reference, id)
			}
		}
		if e.name == "button" && strings.TrimSpace(e.text) == "" {
			s.Error("a button has no name")
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	receipt := s.order(s.token(), "", one(item())).Header.Get("Location")
	for path, c := range map[string]struct {
		status  int
		tokens  int
		heading string
	}{
		"/":                    {200, 0, "Submitting twice is harmless here."},
		"/form":                {200, 1, "Order something"},
		"/spa":                 {200, 1, "An order over fetch"},
		"/double-click":        {200, 1, "Double-click both buttons."},
		receipt:                {200, 0, "1 × teapot"},
		"/orders/o-nothing":    {404, 0, "Not Found"},
		"/orders/%00":          {404, 0, "Not Found"},
		"/nothing":             {404, 0, "Not Found"},
		"/unguarded/form":      {405, 0, "Method Not Allowed"},
		"/form?delay=for+ever": {400, 0, "Bad Request"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			a := s.get(path)
			s.want(a, c.status)
			s.wantStrict(a)
			s.wantUsable(a)
			if got := a.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			if got := find(t, a.body, "h1").text; !strings.Contains(got, c.heading) {
				t.Errorf("heading %q, want %q", got, c.heading)
			}
			tokens := 0
			for _, e := range page(t, a.body) {
				if e.attrs["name"] == "idempotent_token" || e.attrs["name"] == "idem-token" {
					tokens++
				}
			}
			if tokens != c.tokens || (tokens > 0) != (len(a.Cookies()) > 0) {
				t.Errorf("%d tokens, cookies %v; want %d tokens", tokens, a.Cookies(), c.tokens)
			}
			if tokens > 0 && a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control %q", a.Header.Get("Cache-Control"))
			}
		})
	}
}

// The guard's own pages are sent with the same policy.
func TestPagesOfTheGuard(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	s.wantStrict(s.get("/idem/problems/payload_mismatch"))
	r := s.request(http.MethodPost, "/form", "item=cup", "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")
	a := s.do(r)
	s.want(a, http.StatusBadRequest)
	s.wantStrict(a)
	s.wantUsable(a)
	if got := find(t, a.body, "section", "data-code", "token_missing").text; got == "" {
		t.Error("the refusal says nothing")
	}
}

func TestIndexListsWhatThereIs(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	index := s.get("/")
	for _, e := range page(t, index.body) {
		if link := e.attrs["href"]; e.name == "a" && strings.HasPrefix(link, "/") {
			s.want(s.get(link), http.StatusOK)
		}
		method, path, isRoute := strings.Cut(strings.TrimSpace(e.text), " ")
		if e.name != "code" || !isRoute {
			continue
		}
		path, _, _ = strings.Cut(path, "?")
		if a := s.do(s.request(method, path, "{}")); a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", method, path, a.StatusCode)
		}
	}
}

func TestViewsOfDoubleClickAreApart(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	seen := map[string]bool{}
	for range 2 {
		a := s.get("/double-click")
		for _, side := range []string{"guarded", "unguarded"} {
			item := find(t, a.body, "section", "data-side", side).attrs["data-item"]
			if seen[item] {
				t.Errorf("%q stands on two buttons", item)
			}
			seen[item] = true
			s.wantOrders(item, 0)
		}
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	links := map[string]string{}
	for _, path := range []string{"/", "/spa", "/double-click"} {
		for _, e := range page(t, s.get(path).body) {
			for _, name := range []string{"src", "href"} {
				if link := e.attrs[name]; (e.name == "link" || e.name == "script") && link != "" {
					links[link] = e.attrs["integrity"]
				}
			}
		}
	}
	if len(links) != 5 { // style, icon, two scripts, and the client
		t.Errorf("links %v", links)
	}
	for link, integrity := range links {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			a := s.get(link)
			s.want(a, http.StatusOK)
			if got := a.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
				t.Errorf("Cache-Control %q", got)
			}
			if integrity == "" && !strings.HasSuffix(link, ".svg") {
				t.Error("linked without integrity")
			}
			s.want(s.do(s.request(http.MethodGet, link, "", "If-None-Match", a.Header.Get("Etag"))), http.StatusNotModified)
		})
	}
	for path, status := range map[string]int{"/assets/shop.css": 200, "/assets/shop.0.css": 404, "/assets/shop.go": 404, "/assets/": 404, "/assets/..%2Fshop.go": 404} {
		a := s.get(path)
		s.want(a, status)
		if status == http.StatusOK && a.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: Cache-Control %q", path, a.Header.Get("Cache-Control"))
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := open(t, onSQLite(t))
	for name, c := range map[string]struct {
		method, path, allow string
		status              int
	}{
		"HEAD of a page":      {http.MethodHead, "/", "", 200},
		"HEAD of the form":    {http.MethodHead, "/form", "", 200},
		"PUT to orders":       {http.MethodPut, "/api/orders", "GET, POST", 405},
		"GET of refunds":      {http.MethodGet, "/api/refunds", "POST", 405},
		"GET of payments":     {http.MethodGet, "/api/payments", "POST", 405},
		"GET of stock":        {http.MethodGet, "/api/stock", "POST", 405},
		"POST to accounts":    {http.MethodPost, "/api/accounts", "GET", 405},
		"DELETE of the form":  {http.MethodDelete, "/form", "GET, POST", 405},
		"GET of no API":       {http.MethodGet, "/api/nothing", "", 404},
		"GET of the token":    {http.MethodGet, "/api/idempotent/token", "POST", 405},
		"POST to a problem":   {http.MethodPost, "/idem/problems/token_used", "GET", 405},
		"the client":          {http.MethodGet, "/idem/idem-client.js", "", 200},
		"the client, twice":   {http.MethodGet, "/api/idempotent/idem-client.js", "", 200},
		"an unknown problem":  {http.MethodGet, "/idem/problems/nothing", "", 404},
		"an order's receipt?": {http.MethodPost, "/orders/o-1", "GET", 405},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			a := s.do(s.request(c.method, c.path, ""))
			s.want(a, c.status)
			if got := strings.Join(a.Header.Values("Allow"), ", "); got != c.allow {
				t.Errorf("Allow %q, want %q", got, c.allow)
			}
			if strings.HasPrefix(c.path, "/api/") && !strings.HasPrefix(c.path, "/api/idempotent") && a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("Content-Type %q", a.Header.Get("Content-Type"))
			}
		})
	}
}
