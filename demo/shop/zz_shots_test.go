//go:build browser

package shop_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestShots(t *testing.T) {
	s := open(t, onSQLite(t))
	tok := s.token()
	rec := s.order(tok, "", `{"item":"teapot","quantity":3}`)
	_ = rec
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			ctx := chromium(t)
			height := int64(800)
			if width == 390 {
				height = 844
			}
			run := func(steps ...chromedp.Action[chromedp.Void]) {
				t.Helper()
				if err := chromedp.Do(ctx, steps...); err != nil {
					t.Fatal(err)
				}
			}
			run(chromedp.Navigate(s.url), chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return err
			}))
			shot := func(name string) {
				t.Helper()
				png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				if err != nil {
					t.Fatal(err)
				}
				os.MkdirAll("/tmp/shopshots", 0o755)
				os.WriteFile(fmt.Sprintf("/tmp/shopshots/%s-%s-%d.png", name, scheme, width), png, 0o644)
			}
			want := os.Getenv("PAGES")
			for _, p := range []string{"/", "/form", "/spa", "/double-click", "/orders/" + strings.TrimPrefix(rec.Header.Get("Location"), "/orders/"), "/nothing"} {
				name := strings.ReplaceAll(strings.Trim(p, "/"), "/", "_")
				if strings.HasPrefix(name, "orders") {
					name = "receipt"
				}
				if name == "" {
					name = "index"
				}
				if want != "" && !strings.Contains(want, name) {
					continue
				}
				run(chromedp.Navigate(s.url + p))
				switch name {
				case "double-click":
					doubleClick(t, ctx, "[data-side=unguarded] button")
					doubleClick(t, ctx, "[data-side=guarded] button")
					until(t, ctx, `document.querySelectorAll('li.new, li.same').length === 4 && !document.querySelector('.waiting')`)
				case "spa":
					run(chromedp.Click(chromedp.CSS("button.primary")))
					until(t, ctx, `document.querySelector('#pill').textContent === 'Done'`)
					run(chromedp.Click(chromedp.CSS("button.primary")))
					until(t, ctx, `document.querySelector('#pill').textContent === 'Done before'`)
				case "form":
					shot("form-empty")
					eval[int](t, ctx, `(document.querySelector('#item').value='Teapot', document.querySelector('#quantity').value='100', document.querySelector('form').requestSubmit(document.querySelector('button.primary')), 1)`)
					until(t, ctx, `document.querySelector('.says') !== null`)
				}
				time.Sleep(150 * time.Millisecond)
				shot(name)
			}
		}
	}
}
