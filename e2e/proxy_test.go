package e2e_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idemkit/idem"
)

// ingress is a reverse proxy that ends TLS and, like many, puts an X-Request-Id of its own on every request, even on one that has one.
type ingress struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

// before starts an ingress, and a demo behind it.
func before(t *testing.T, b *backend, keepsHost bool) (*ingress, *demo) {
	t.Helper()
	in := &ingress{}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(in.target.Load())
			r.SetXForwarded()
			r.Out.Header.Set("X-Request-Id", idem.NewOwner())
			if keepsHost {
				r.Out.Host = r.In.Host
			}
		},
	}
	in.Server = httptest.NewTLSServer(proxy)
	t.Cleanup(in.Close)
	d := start(t, b, "IDEM_PUBLIC_URL="+in.URL)
	target, err := url.Parse(d.url())
	must(t, err)
	in.target.Store(target)
	return in, d
}

// through is a person who sees nothing but the ingress.
func (in *ingress) through(t *testing.T, d *demo) *visitor {
	t.Helper()
	v := visit(t, d)
	v.base = in.URL
	v.client.Transport = &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: in.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
	}
	return v
}

// fromItself is what a browser says of a form that its own origin's page sends.
func (in *ingress) fromItself() []string {
	return []string{"Origin", in.URL, "Sec-Fetch-Site", "same-origin"}
}

func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	for name, keepsHost := range map[string]bool{"that keeps the host": true, "that changes the host": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, made := range map[string]func(t *testing.T) *backend{"memory and SQLite": embedded, "Redis and Postgres": redisAndPostgres} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					in, d := before(t, made(t), keepsHost)
					v := in.through(t, d)
					orderedThrough(v, in)
					strangersRefused(v, in)
				})
			}
		})
	}
}

// orderedThrough: page, token, redirect, receipt; the second submission comes to the same receipt.
func orderedThrough(v *visitor, in *ingress) {
	page := v.get("/form")
	v.want(page, http.StatusOK)
	cookies := page.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-idem" || !cookies[0].Secure || !cookies[0].HttpOnly ||
		cookies[0].Path != "/" || cookies[0].Domain != "" || cookies[0].SameSite != http.SameSiteLaxMode {
		v.Errorf("the cookies are %v", page.Header.Values("Set-Cookie"))
	}
	item := v.item()
	fields := url.Values{"idempotent_token": {v.formToken(page)}, "item": {item}, "quantity": {"3"}, "then": {"receipt"}}
	first := v.do(v.encoded("/form", fields, in.fromItself()...))
	second := v.do(v.encoded("/form", fields, in.fromItself()...))
	for _, a := range []answer{first, second} {
		v.want(a, http.StatusSeeOther)
		if a.Header.Get("X-Request-Id") != "" {
			v.Errorf("X-Request-Id is answered: %v", a.Header)
		}
	}
	if first.Header.Get("Location") != second.Header.Get("Location") || replayed(first) || !replayed(second) {
		v.Errorf("to %q, then to %q", first.Header.Get("Location"), second.Header.Get("Location"))
	}
	receipt := v.get(second.Header.Get("Location"))
	v.want(receipt, http.StatusOK)
	if !strings.Contains(receipt.body, "by everybody: 1.") {
		v.Errorf("the receipt is %s", receipt.body)
	}
	v.wantOrders(item, 1)
	v.wantFirst(v.submit(v.token(), "", one(v.item())), 1)
}

// strangersRefused: a page of another origin cannot submit, whatever token it has found.
func strangersRefused(v *visitor, in *ingress) {
	fields := url.Values{"idempotent_token": {v.formToken(v.get("/form"))}, "item": {v.item()}, "quantity": {"3"}}
	for _, header := range [][]string{
		{"Origin", "https://attacker.example", "Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://attacker.example"},
		{"Origin", "null", "Sec-Fetch-Site", "cross-site"},
	} {
		a := v.do(v.encoded("/form", fields, append(header, "Accept", "application/json")...))
		v.wantRefused(a, http.StatusForbidden, "cross_origin")
	}
	v.wantOrders(fields.Get("item"), 0)
	v.want(v.do(v.encoded("/form", fields, in.fromItself()...)), http.StatusSeeOther)
}
