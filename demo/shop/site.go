package shop

import (
	"embed"
	"net/http"
	"path"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/idemkit/idem/js"
	"github.com/idemkit/idem/templates"
	"github.com/idemkit/idem/web"
)

// Embedding fills package variables only.
//
//go:embed assets
var files embed.FS

// site is what every page links to.
type site struct {
	style, doubleClick, single, icon js.Asset
	guard                            templates.Assets
}

func newSite() site {
	return site{
		style: asset("shop.css"), doubleClick: asset("double-click.js"), single: asset("spa.js"), icon: asset("icon.svg"),
		guard: templates.NewAssets(web.DefaultPrefix),
	}
}

// asset reads one of the embedded files; a name that is not there is a mistake in this package.
func asset(name string) js.Asset {
	content, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return js.NewAsset(name, string(content))
}

func assetURL(a js.Asset) string { return "/assets/" + a.HashedName }

// serve sends a file: under its hashed name for ever, under its plain one to be asked again.
func (s site) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "name")
	for _, a := range []js.Asset{s.style, s.doubleClick, s.single, s.icon} {
		if name != a.Name && name != a.HashedName {
			continue
		}
		header := w.Header()
		header.Set("Content-Type", mediaType(a.Name))
		header.Set("Etag", a.ETag)
		header.Set("Cache-Control", "no-cache")
		if name == a.HashedName {
			header.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if strings.Contains(r.Header.Get("If-None-Match"), a.ETag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(a.Source)
		return
	}
	http.NotFound(w, r)
}

// mediaType does not ask the operating system, whose answers differ.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	}
	return "image/svg+xml"
}

// ErrorPage puts the guard's refusals into the shop's layout: it is for Config.ErrorPage of package web.
func ErrorPage() func(*http.Request, web.Problem, templ.Component) templ.Component {
	s := newSite()
	return func(_ *http.Request, p web.Problem, content templ.Component) templ.Component {
		return refusalPage(s, p.Title, content)
	}
}

// page renders before it writes: a component that fails must not leave half a page.
func (s *shop) page(w http.ResponseWriter, r *http.Request, status int, content templ.Component) {
	var body strings.Builder
	if err := content.Render(r.Context(), &body); err != nil {
		s.log.ErrorContext(r.Context(), "shop: a page failed", "path", r.URL.Path, "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", htmlType)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body.String()))
}
