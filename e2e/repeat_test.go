package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
)

// lossy is a person's way to the shop, a proxy that carries a submission out and loses its answer. Chromium, Firefox and others then send it again by
// themselves where the connection was used before (RFC 9110, section 9.2.2), although it is a POST.
type lossy struct {
	*httptest.Server
	lose  atomic.Bool // the next answer to a submission
	keeps atomic.Bool // takes from pages that they must not be stored, as some proxies do: browsers then keep them as they were left
}

func through(t *testing.T, d *demo, instead http.HandlerFunc) *lossy {
	t.Helper()
	target, err := url.Parse(d.url())
	must(t, err)
	l := &lossy{}
	shop := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: func(response *http.Response) error {
			if l.keeps.Load() {
				response.Header.Del("Cache-Control")
			}
			return nil
		},
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path != "/idem/token" && l.lose.CompareAndSwap(true, false) {
			shop.ServeHTTP(httptest.NewRecorder(), r)
			instead(w, r)
			return
		}
		shop.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

// losses are what the browser sees in place of the answer.
func losses() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"connection closed": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"answered 408":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestTimeout) }, // ky#233
	}
}

// TestBrowserRepeats: two submissions arrive, of which the person knows nothing, and one order is made.
func TestBrowserRepeats(t *testing.T) {
	t.Parallel()
	for name, instead := range losses() {
		for how, scripts := range map[string]bool{"form": true, "form without JavaScript": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				p := sits(t, start(t, embedded(t)), scripts)
				l := through(t, p.demo, instead)
				item := p.item()
				p.Visit(l.URL + "/form")
				p.enter("item", item)
				l.lose.Store(true)
				p.Click("button.primary")
				p.until(receipt)
				p.arrived("/form", 2)
				p.wantOrders(item, 1)
			})
		}
		t.Run(name+", fetch", func(t *testing.T) {
			t.Parallel()
			p := sits(t, start(t, embedded(t)), true)
			l := through(t, p.demo, instead)
			item := p.item()
			p.Visit(l.URL + "/spa")
			p.enter("item", item)
			l.lose.Store(true)
			p.Click("#order button.primary")
			p.until(`document.getElementById("pill").textContent.startsWith("Done")`)
			p.arrived("/api/orders", 2)
			p.wantOrders(item, 1)
		})
	}
}

// arrived waits for the log, which is written after an answer.
func (v *visitor) arrived(path string, n int) {
	v.Helper()
	posts := func() int { return strings.Count(v.demo.process.Output(), "method=POST path="+path+" ") }
	testkit.Eventually(v, 10*time.Second, "the submissions are logged", func() bool { return posts() >= n })
	if got := posts(); got != n {
		v.Errorf("%d submissions have arrived, want %d", got, n)
	}
}
