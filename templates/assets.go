package templates

import (
	_ "embed" // the style sheet is part of the program
	"strings"

	"github.com/idemkit/idem/js"
)

// Embedding fills package variables only.
//
//go:embed idem.css
var stylesheet string

// Stylesheet returns the style sheet of the problem pages.
func Stylesheet() js.Asset { return js.NewAsset("idem.css", stylesheet) }

// Assets are the files that pages link to, and where they are served. The zero value links to the root; use NewAssets.
type Assets struct {
	Prefix string   // where the guard's routes are mounted, such as "/idem", without a slash at its end
	Script js.Asset // served at Prefix/Script.HashedName, and the others like it
	HTMX   js.Asset
	Turbo  js.Asset
	Style  js.Asset
}

// NewAssets returns the client and the style sheet of this version, served under prefix.
func NewAssets(prefix string) Assets {
	return Assets{Prefix: strings.TrimRight(prefix, "/"), Script: js.Load(), HTMX: js.HTMX(), Turbo: js.Turbo(), Style: Stylesheet()}
}

// ScriptURL is where the client of exactly this version is served.
func (a Assets) ScriptURL() string { return a.url(a.Script) }

// StyleURL is where the style sheet of exactly this version is served.
func (a Assets) StyleURL() string { return a.url(a.Style) }

func (a Assets) url(asset js.Asset) string { return a.Prefix + "/" + asset.HashedName }

// Find returns the file that is served under a name, hashed or plain, without the prefix.
func (a Assets) Find(name string) (js.Asset, bool) {
	for _, asset := range []js.Asset{a.Script, a.HTMX, a.Turbo, a.Style} {
		if name != "" && (name == asset.Name || name == asset.HashedName) {
			return asset, true
		}
	}
	return js.Asset{}, false
}

// TokenURL is where the client asks for tokens.
func (a Assets) TokenURL() string { return a.Prefix + "/token" }
