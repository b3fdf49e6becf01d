// Package browser has Sotto's library for pages whose rewards nobody sees: sotto-private.js, one
// module of TypeScript (src) that stands alone. It asks a leader for decisions, and of each sends
// one report at a time that was fixed before: of two servers, in two shares sealed to each (as
// package secagg/dap); of local trust, with its noise.
//
// Whoever serves the script is trusted with the rewards: the page's own server or the helper, and
// never the leader alone. Integrity is what a page pins.
package browser

import (
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"io/fs"
)

//go:embed sotto-private.js sotto-private.d.ts
var files embed.FS

// Name is that of the library in FS.
const Name = "sotto-private.js"

// FS has the library and its types, sotto-private.d.ts, to be served as they are.
func FS() fs.FS { return files }

// Integrity is the hash of the library, as a page says it in integrity="…" (Subresource Integrity).
func Integrity() string {
	script, err := files.ReadFile(Name)
	if err != nil {
		return "" // it is embedded
	}
	sum := sha512.Sum384(script)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}
