// Package explorer has the files of the explorer's page. `make explorer` adds those that a static host
// needs beside them.
package explorer

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js
var files embed.FS

// Files are the page's, index.html first of all.
func Files() fs.FS { return files }
