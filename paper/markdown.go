package paper

import "io"

// WriteMarkdown writes what was found, for docs/reproduction.md.
func (r *Reproduction) WriteMarkdown(w io.Writer) error { return nil }
