package trial

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A chain writes lines of JSON objects, one a Write: each but the first begins with the SHA-256 of
// the line before it, so that what was changed, left out or put elsewhere afterwards is followed by
// a line that does not fit. It has no key: whoever rewrites all that follows can make it fit again.
type chain struct {
	w    io.Writer
	last string // hash of the line before, in hex; empty before the first
}

// Write implements io.Writer for a line with its end.
func (c *chain) Write(line []byte) (int, error) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	if c.last != "" {
		text = append([]byte(link(c.last)), text[1:]...)
	}
	if _, err := c.w.Write(append(bytes.Clone(text), '\n')); err != nil {
		return 0, err
	}
	c.last = hashOf(text)
	return len(line), nil
}

// link is what a line begins with.
func link(last string) string { return `{"after":"` + last + `",` }

func hashOf(line []byte) string {
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

var (
	errCut   = errors.New("the line is cut")
	errChain = errors.New("it does not follow the line before: a line was changed, left out, " +
		"added or moved, here or just before")
)

// A chainReader reads what a chain wrote, as it was given to it.
type chainReader struct {
	lines *bufio.Reader
	last  string
	at    int // number of the line that was read last
}

// next is the next line, or io.EOF.
func (c *chainReader) next() ([]byte, error) {
	c.at++
	text, err := c.lines.ReadBytes('\n')
	switch {
	case len(text) > 0 && errors.Is(err, io.EOF):
		return nil, errCut
	case err != nil:
		return nil, err
	}
	text = bytes.TrimSpace(text)
	last := c.last
	c.last = hashOf(text)
	if last == "" {
		return text, nil
	}
	rest, ok := bytes.CutPrefix(text, []byte(link(last)))
	if !ok {
		return nil, errChain
	}
	return append([]byte("{"), rest...), nil
}

// fail is an error about the line that was read last.
func (c *chainReader) fail(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: "+format, append([]any{ErrTranscript, c.at}, args...)...)
}
