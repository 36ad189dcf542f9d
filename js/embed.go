// Package js holds the browser client, idem-client.js, with what is needed to serve it. The client has no build step: what is
// embedded is what is read here and what runs. Its interface is described in idem-client.d.ts.
package js

import (
	"crypto/sha256"
	"crypto/sha512"
	_ "embed" // the client is part of the program
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"
)

// Embedding fills package variables only. A string cannot be changed through what Load hands out.
//
//go:embed idem-client.js
var client string

// Asset is a static file and the names to serve it under.
type Asset struct {
	Source     []byte // what is served, exactly; the holder's own copy
	Name       string // such as "idem-client.js": the newest version, to be revalidated
	HashedName string // such as "idem-client.0f1e2d3c4b5a.js": this version for ever, to be cached as immutable
	Integrity  string // Subresource Integrity, "sha384-..."
	ETag       string // strong, with its quotes (RFC 9110, section 8.8.3)
}

// Load returns the browser client.
func Load() Asset { return NewAsset("idem-client.js", client) }

// NewAsset names a file by its content. The hash in name and ETag is 12 and 32 hexadecimal characters of SHA-256: names need to
// differ between versions, Integrity is what an attacker meets.
func NewAsset(name, source string) Asset {
	content := []byte(source)
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	strong := sha512.Sum384(content)
	ext := path.Ext(name)
	return Asset{
		Source:     content,
		Name:       name,
		HashedName: strings.TrimSuffix(name, ext) + "." + digest[:12] + ext,
		Integrity:  "sha384-" + base64.StdEncoding.EncodeToString(strong[:]),
		ETag:       `"` + digest[:32] + `"`,
	}
}
