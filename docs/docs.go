// Package docs has the documents as they are in the repository, for programs that show them where there is no network.
package docs

import "embed"

// Files are the documents, in Markdown, by the names that links between them have.
//
//go:embed *.md
var Files embed.FS
