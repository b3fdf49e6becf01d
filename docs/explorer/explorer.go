// Package explorer has the files of the explorer's page, as any static host can serve them: this
// directory. `make explorer` makes those that are made.
package explorer

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.json *.gz wasm_exec.LICENSE look
var files embed.FS

// Files are the page's, index.html first of all.
func Files() fs.FS { return files }
