//go:build browser

// Run with: go test -tags browser ./demo/shop (needs Chromium; CHROMIUM names it, otherwise it is looked for).
package shop_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

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

// doubleClick is a person's: two clicks by the mouse at one place, the second marked as such.
func doubleClick(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'});
		const r = e.getBoundingClientRect(); return [r.x + r.width/2, r.y + r.height/2] })()`, selector))
	must(t, chromedp.Do(ctx, chromedp.MouseClickXY(at[0], at[1]), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2))))
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
