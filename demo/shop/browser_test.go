//go:build browser

// Run with: go test -tags browser ./demo/shop (needs Chromium; CHROMIUM names it, otherwise it is looked for).
package shop_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// chromium is a browser of one test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if path := os.Getenv("CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

func visit(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	must(t, chromedp.Do(ctx, chromedp.Navigate(url)))
}

func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// pace of a person's double click. At a machine's, the browser gives the first submission up before it has sent it.
const pace = 120 * time.Millisecond

// doubleClick is a person's: two clicks by the mouse at one place, the second marked as such.
func doubleClick(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'});
		const r = e.getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2] })()`, selector))
	must(t, chromedp.Do(ctx, chromedp.MouseClickXY(at[0], at[1]), chromedp.Sleep(pace), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2))))
}

// until polls an expression in the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !eval[bool](t, ctx, expression); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", expression)
		}
	}
}

// counts are the orders that each button of /double-click made, as the shop counts them.
func counts(t *testing.T, ctx context.Context, s *site) (unguarded, guarded int) {
	t.Helper()
	item := func(side string) string {
		return eval[string](t, ctx, `document.querySelector('[data-side=`+side+`]').dataset.item`)
	}
	return s.ordered(item("unguarded")), s.ordered(item("guarded"))
}

const settled = `document.querySelectorAll('li.new, li.same').length >= 4 && !document.querySelector('.waiting')`

func TestDoubleClick(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, onSQLite(t)), chromium(t)
	visit(t, ctx, s.url+"/double-click")
	doubleClick(t, ctx, "[data-side=unguarded] button")
	doubleClick(t, ctx, "[data-side=guarded] button")
	until(t, ctx, settled)
	if unguarded, guarded := counts(t, ctx, s); unguarded != 2 || guarded != 1 {
		t.Errorf("%d unguarded orders, %d guarded ones; want 2 and 1", unguarded, guarded)
	}
	for expression, want := range map[string]string{
		`document.querySelector('[data-side=unguarded] [data-orders]').textContent`:                        "2",
		`document.querySelector('[data-side=guarded] [data-orders]').textContent`:                          "1",
		`[...document.querySelectorAll('[data-side=guarded] [data-log] li')].map(l => l.className).join()`: "new,same",
		`document.getElementById('verdict').textContent`: "2 clicks without a guard made 2 orders; " +
			"2 clicks with idem made 1 order, and every click got its receipt.",
	} {
		if got := eval[string](t, ctx, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	doubleClick(t, ctx, "[data-side=guarded] button") // after it was done: replays
	until(t, ctx, `document.querySelectorAll('[data-side=guarded] li.same').length === 3`)
	if _, guarded := counts(t, ctx, s); guarded != 1 {
		t.Errorf("%d guarded orders after four clicks", guarded)
	}
}

func TestDoubleClickWithoutJavaScript(t *testing.T) {
	t.Parallel()
	for side, want := range map[string]string{"unguarded": "twice", "guarded": "once"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(t, onSQLite(t)), chromium(t)
			visit(t, ctx, "about:blank")
			off := emulation.SetScriptExecutionDisabledParams{Value: true}
			must(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, off)
				return err
			})))
			visit(t, ctx, s.url+"/double-click")
			doubleClick(t, ctx, "[data-side="+side+"] button")
			until(t, ctx, `document.querySelector('.total') !== null`)
			if got := eval[string](t, ctx, `document.querySelector('.total b').textContent`); got != want {
				t.Errorf("ordered %s, want %s", got, want)
			}
		})
	}
}

func TestSinglePage(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, onSQLite(t)), chromium(t)
	says := func(text string) {
		t.Helper()
		until(t, ctx, fmt.Sprintf(`document.getElementById('pill').textContent === %q`, text))
	}
	set := func(id, value string) {
		t.Helper()
		eval[string](t, ctx, fmt.Sprintf(`document.getElementById(%q).value = %q`, id, value))
	}
	press := func(selector string) {
		t.Helper()
		must(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))))
	}
	wanted := item()
	visit(t, ctx, s.url+"/spa")
	set("item", wanted)
	set("quantity", "100")
	press("button.primary")
	says("Refused: 422")
	set("quantity", "2")
	set("trouble", "?fail=500")
	press("button.primary") // attempt 2 already: the refusal was the first
	says("Done")
	press("button.primary")
	says("Done before")
	s.wantOrders(wanted, 1)
	set("quantity", "3")
	press("button.primary")
	says("Refused: 422")
	press("#next")
	press("button.primary")
	says("Refused: 500")
	press("button.primary")
	says("Done")
	s.wantOrders(wanted, 2)
	press("#next")
	set("trouble", "?delay=5s")
	press("button.primary")
	says("Sending…")
	press("#stop")
	says("No answer")
	press("button.primary") // the same intention: it meets the first, which goes on, if that has left the browser
	until(t, ctx, `document.getElementById('pill').textContent.startsWith('Done')`)
	s.wantOrders(wanted, 3)
}
