package web

import (
	"net/http"
	"path"
	"strings"

	"github.com/idemkit/idem/js"
)

// Routes serves the token service, the calls of other services, the browser client, the style sheet and the pages that explain codes. It answers by the
// last segments of the path, and so under any prefix that it is mounted at.
//
// The calls of other services are consume, extend, complete and fail: JSON in, JSON out, refusals included, with one of Config.ServiceKeys. They belong to the
// tenant that Config.Tenant finds in them. A browser's cookie means nothing to them, and so they may come from anywhere.
func (g *Guard) Routes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := path.Base(r.URL.Path)
		switch {
		case path.Base(path.Dir(r.URL.Path)) == "problems":
			g.only(w, r, http.MethodGet, func() { g.explain(w, r, last) })
		case last == "token" && g.config.Tokens != nil:
			g.only(w, r, http.MethodPost, func() { g.hand(w, r) })
		case g.serviceCall(last) != nil:
			g.only(w, r, http.MethodPost, func() { g.answerService(w, r, g.serviceCall(last)) })
		case last == g.assets.Script.Name, last == g.assets.Script.HashedName:
			g.only(w, r, http.MethodGet, func() { serve(w, r, g.assets.Script, "text/javascript; charset=utf-8", last) })
		case last == g.assets.Style.Name, last == g.assets.Style.HashedName:
			g.only(w, r, http.MethodGet, func() { serve(w, r, g.assets.Style, "text/css; charset=utf-8", last) })
		default:
			http.NotFound(w, r)
		}
	})
}

// only answers one method, HEAD with GET, and preflights of allowed origins.
func (g *Guard) only(w http.ResponseWriter, r *http.Request, method string, answer func()) {
	g.expose(w, r)
	switch {
	case r.Method == method, r.Method == http.MethodHead && method == http.MethodGet:
		answer()
	case r.Method == http.MethodOptions && w.Header().Get("Access-Control-Allow-Origin") != "":
		w.Header().Set("Access-Control-Allow-Methods", method)
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, "+tokenHeader+", "+g.config.RequestIDHeader)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", method)
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
	}
}

// serve sends an asset: under its hashed name for ever, under its plain one to be asked again.
func serve(w http.ResponseWriter, r *http.Request, asset js.Asset, contentType, name string) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Etag", asset.ETag)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache")
	if name == asset.HashedName {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if condition := r.Header.Get("If-None-Match"); condition == "*" || strings.Contains(condition, asset.ETag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(asset.Source)
	}
}

// explain is the page that a problem's type names.
func (g *Guard) explain(w http.ResponseWriter, r *http.Request, code string) {
	if statusOf(code) == 0 {
		http.NotFound(w, r)
		return
	}
	p := g.problem(r, &refusal{code: code}, nil, "")
	if strings.Contains(r.Header.Get("Accept"), "json") && wanted(r) == asJSON {
		g.head(w, r, Problem{Language: p.Language}, "application/json")
		writeJSON(w, p)
		return
	}
	body := g.render(r, p, g.props(p))
	if body == nil {
		http.NotFound(w, r)
		return
	}
	g.head(w, r, Problem{Language: p.Language}, "text/html; charset=utf-8")
	_, _ = w.Write(body)
}
