package testkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Browser is a private Chromium with one page, headless, with a profile of its own. Its back-forward cache is on, as people have it.
type Browser struct {
	testing.TB
	page context.Context
}

// Chromium starts a browser for the test. All loopback traffic; nothing is fetched from elsewhere.
func Chromium(t testing.TB) Browser {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(Binary(t, "chromium", "chromium")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-back-forward-cache", false), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return Browser{t, ctx}
}

// Do runs steps without a time limit: the context of the first one owns the browser.
func (b Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.page, steps...); err != nil {
		b.Fatal(err)
	}
}

// Visit opens an address and waits until it has loaded.
func (b Browser) Visit(url string) {
	b.Helper()
	b.Do(chromedp.Navigate(url))
}

// Eval is the value of an expression in the page, awaited where it is a promise.
func Eval[T any](b Browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.page, 30*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Check compares the value of an expression in the page.
func Check[T comparable](b Browser, expression string, want T) {
	b.Helper()
	if got := Eval[T](b, expression); got != want {
		b.Errorf("%s is %v, want %v", expression, got, want)
	}
}

// Until polls an expression in the page until it is true.
func (b Browser) Until(expression string) {
	b.Helper()
	Eventually(b, 30*time.Second, expression, func() bool { return Eval[bool](b, expression) })
}

// Click is a real one, by the mouse, that waits for nothing.
func (b Browser) Click(selector string) {
	b.Helper()
	at := b.centre(selector)
	b.Do(chromedp.MouseClickXY(at[0], at[1]))
}

// DoubleClick is a person's: two clicks by the mouse at one place, the second marked as such.
func (b Browser) DoubleClick(selector string) {
	b.Helper()
	at := b.centre(selector)
	b.Do(chromedp.MouseClickXY(at[0], at[1]), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
}

func (b Browser) centre(selector string) []float64 {
	b.Helper()
	return Eval[[]float64](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector))
}

// WithoutScripts switches JavaScript off in the pages to come.
func (b Browser) WithoutScripts() {
	b.Helper()
	off := emulation.SetScriptExecutionDisabledParams{Value: true}
	b.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, off)
		return err
	}))
}

// Look is a window and the colours that its owner likes: "light" or "dark".
func (b Browser) Look(width, height int64, scheme string) {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	b.Do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// Picture is a screenshot of the whole page, as PNG.
func (b Browser) Picture() []byte {
	b.Helper()
	picture, err := chromedp.Run(b.page, chromedp.FullScreenshot(100))
	if err != nil {
		b.Fatal(err)
	}
	return picture
}
