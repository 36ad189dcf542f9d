package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/stores/memstore"
	"github.com/idemkit/idem/tokens"
	"github.com/idemkit/idem/web"
)

// forged submits every kind of field under a token that is none of ours.
const forged = `(() => {
	const form = Object.assign(document.createElement("form"), { method: "post", action: "/orders", enctype: "multipart/form-data" });
	form.innerHTML = '<input name="idempotent_token" value="forged"><input name="item" value="tea"><textarea name="note">with a lid\nand a spout</textarea>' +
		'<input type="password" name="password" value="hunter2"><input type="file" name="attachment">';
	document.body.append(form);
	form.submit();
	return 1;
})()`

// TestOwnPage: the page that the kit shows where the application gives no layout, in both of its languages.
func TestOwnPage(t *testing.T) {
	t.Parallel()
	d := start(t, embedded(t))
	shop := withoutLayout(t)
	for _, l := range looks() {
		for language, title := range map[string]string{"en": "Token not valid", "zh": "令牌无效"} {
			t.Run(l.name+", "+language, func(t *testing.T) {
				t.Parallel()
				p := sits(t, d, true)
				p.Look(l.width, l.height, l.scheme)
				p.speaks(language)
				p.Visit(shop + "/idem/problems/token_invalid")
				testkit.Eval[int](p.Browser, forged)
				p.until(`document.querySelector("[data-code=token_invalid] form") !== null`)
				p.fits("own page")
				if found := p.audit(); found != "" {
					t.Error(found)
				}
				p.hears(`heading "` + title + `" 1`)
				p.hears(`alert "` + title)
				p.shoot("refusal-own-page-" + language + "-" + l.name)
			})
		}
	}
}

func (p *person) speaks(language string) {
	p.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}})
		return err
	}))
}

// withoutLayout serves a guard that was given no page of the application's; it returns the address.
func withoutLayout(t *testing.T) string {
	t.Helper()
	key, err := tokens.HS256("test", make([]byte, tokens.MinSecret))
	must(t, err)
	issuer, err := tokens.New(tokens.Config{Keys: []tokens.Key{key}})
	must(t, err)
	guard, err := web.New(web.Config{Tokens: issuer, Store: memstore.New(memstore.Options{})})
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/idem/", guard.Routes())
	mux.Handle("POST /orders", guard.Token("order.create")(http.NotFoundHandler()))
	served := httptest.NewServer(server.Headers(mux))
	t.Cleanup(func() {
		served.Close()
		must(t, guard.Drain(context.WithoutCancel(t.Context())))
	})
	return served.URL
}
