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
	Script js.Asset // served at Prefix/Script.HashedName
	Style  js.Asset // served at Prefix/Style.HashedName
}

// NewAssets returns the client and the style sheet of this version, served under prefix.
func NewAssets(prefix string) Assets {
	return Assets{Prefix: strings.TrimRight(prefix, "/"), Script: js.Load(), Style: Stylesheet()}
}

// ScriptURL is where the client of exactly this version is served.
func (a Assets) ScriptURL() string { return a.Prefix + "/" + a.Script.HashedName }

// StyleURL is where the style sheet of exactly this version is served.
func (a Assets) StyleURL() string { return a.Prefix + "/" + a.Style.HashedName }

// TokenURL is where the client asks for tokens.
func (a Assets) TokenURL() string { return a.Prefix + "/token" }
