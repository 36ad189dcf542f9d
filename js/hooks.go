package js

import _ "embed" // the hooks are part of the program

// Embedding fills package variables only. A string cannot be changed through what HTMX and Turbo hand out.
var (
	//go:embed htmx.js
	htmx string
	//go:embed turbo.js
	turbo string
)

// HTMX returns the hook for htmx 2 and 4, a module that is loaded beside the client: what htmx sends of a form marked data-idem is one submission at a
// time, a form that stays in the page gets a fresh token after it, and refusals are shown.
func HTMX() Asset { return NewAsset("idem-htmx.js", htmx) }

// Turbo returns the hook for Turbo 8, which does the same there.
func Turbo() Asset { return NewAsset("idem-turbo.js", turbo) }
