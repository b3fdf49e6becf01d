// Package chain links the lines of a journal: each is a JSON object, and each but the first begins
// with the SHA-256 of the line before it, so that a line that is altered, dropped, added or moved
// is followed by one that does not fit. The last line has none behind it: its hash, the tip, is for
// whoever keeps it elsewhere. A chain has no key: who rewrites all that follows makes it fit again,
// and is found by the tip alone.
package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

var (
	// ErrBroken is matched by the error for a line that does not follow the one before it.
	ErrBroken = errors.New("it does not follow the line before: a line was changed, left out, " +
		"added or moved, here or just before")
	// ErrCut is matched by the error for a last line without its end.
	ErrCut = errors.New("the line is cut")
)

// Link is the line that an object becomes behind the line whose hash is tip, with its end of line,
// and the tip then; the tip is empty before the first line. The object has at least one field.
func Link(tip string, object []byte) (line []byte, next string) {
	text := bytes.TrimSuffix(object, []byte("\n"))
	if tip != "" {
		text = append([]byte(before(tip)), text[1:]...)
	}
	return append(bytes.Clone(text), '\n'), hashOf(text)
}

// Unlink is the object of a line behind the line whose hash is tip, without an end of line, and the
// tip then. An error matches ErrBroken; next is then the line's own all the same.
func Unlink(tip string, line []byte) (object []byte, next string, err error) {
	text := bytes.TrimSpace(line)
	next = hashOf(text)
	if tip == "" {
		if bytes.HasPrefix(text, []byte(`{"after":`)) { // those before it are gone
			return nil, next, ErrBroken
		}
		return text, next, nil
	}
	rest, ok := bytes.CutPrefix(text, []byte(before(tip)))
	if !ok {
		return nil, next, ErrBroken
	}
	return append([]byte("{"), rest...), next, nil
}

// Object is the object of a line that is known to follow those before it.
func Object(line []byte) []byte {
	text := bytes.TrimSpace(line)
	if rest := len(before("")) + 2*sha256.Size; len(text) > rest && bytes.HasPrefix(text, []byte(`{"after":`)) {
		return append([]byte("{"), text[rest:]...)
	}
	return text
}

// before is what a line begins with.
func before(tip string) string { return `{"after":"` + tip + `",` }

func hashOf(line []byte) string {
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

// A Writer links lines as they are written: one object, with its end, a Write.
type Writer struct {
	W   io.Writer
	tip string
}

// Write implements io.Writer.
func (c *Writer) Write(object []byte) (int, error) {
	line, next := Link(c.tip, object)
	if _, err := c.W.Write(line); err != nil {
		return 0, err
	}
	c.tip = next
	return len(object), nil
}

// A Reader reads the objects of a journal.
type Reader struct {
	lines *bufio.Reader
	tip   string
	at    int
}

// NewReader returns a Reader of what is in r.
func NewReader(r io.Reader) *Reader { return &Reader{lines: bufio.NewReader(r)} }

// At is the number of the line that was read last, 1 for the first.
func (c *Reader) At() int { return c.at }

// Tip is the hash of the line that was read last, in hex.
func (c *Reader) Tip() string { return c.tip }

// Next is the next object, or io.EOF. Other errors match ErrBroken or ErrCut, or are the reader's.
func (c *Reader) Next() ([]byte, error) {
	c.at++
	text, err := c.lines.ReadBytes('\n')
	switch {
	case len(text) > 0 && errors.Is(err, io.EOF):
		return nil, ErrCut
	case err != nil:
		return nil, err
	}
	object, next, err := Unlink(c.tip, text)
	c.tip = next
	return object, err
}
