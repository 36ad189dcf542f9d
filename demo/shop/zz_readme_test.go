//go:build browser

package shop_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestReadme(t *testing.T) {
	s, ctx := open(t, onSQLite(t)), chromium(t)
	visit(t, ctx, s.url+"/double-click")
	must(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 800)))
	doubleClick(t, ctx, "[data-side=unguarded] button")
	doubleClick(t, ctx, "[data-side=guarded] button")
	until(t, ctx, settled)
	must(t, chromedp.Do(ctx, chromedp.MouseClickXY(600, 20)))
	eval[int](t, ctx, `(document.activeElement.blur(), scrollTo(0,0), 1)`)
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	must(t, err)
	must(t, os.WriteFile("/work/main/docs/double-click.png", png, 0o644))
}
