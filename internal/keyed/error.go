package keyed

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSpec is matched by every error in the experiment itself: its file, or what a program has filled
// in.
var ErrSpec = errors.New("invalid experiment")

// A Pos is a place in a file. Lines and columns count from 1; Line 0 is no place.
type Pos struct {
	File         string
	Line, Column int
}

// String is file:line:column.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// An Error is what is wrong with an experiment. It matches ErrSpec.
type Error struct {
	Field   string // such as policies[1].alpha; empty for the file as a whole
	Pos     Pos    // where it is written, if it came from a file
	Snippet string // that line with a mark below, or empty
	Err     error  // what is wrong
}

// Error is one line, "file:line:column: field: what is wrong", and then the snippet.
func (e *Error) Error() string {
	var b strings.Builder
	if pos := e.Pos.String(); pos != "" {
		b.WriteString(pos + ": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Err.Error())
	if e.Snippet != "" {
		b.WriteString("\n" + e.Snippet)
	}
	return b.String()
}

// Is matches ErrSpec.
func (e *Error) Is(target error) bool { return target == ErrSpec }

// Unwrap is what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Source is the text an experiment came from, and where each of its fields is written.
type Source struct {
	file  string
	lines []string
	At    map[string]Pos // by field
}

// wrap places an error at a field: at the field itself if the file has it, else at the
// nearest one around it.
func (s *Source) Wrap(field string, err error) *Error {
	if s == nil {
		return &Error{Field: field, Err: err}
	}
	for f := field; ; {
		if pos, ok := s.At[f]; ok {
			return s.wrapAt(pos, field, err)
		}
		cut := strings.LastIndexAny(f, ".[")
		if cut < 0 {
			return &Error{Field: field, Pos: Pos{File: s.file}, Err: err}
		}
		f = f[:cut]
	}
}

func (s *Source) wrapAt(pos Pos, field string, err error) *Error {
	e := &Error{Field: field, Pos: pos, Err: err}
	if pos.Line >= 1 && pos.Line <= len(s.lines) && len(s.lines[pos.Line-1]) <= 300 {
		line := s.lines[pos.Line-1]
		// The mark goes below the column; tabs stay tabs, so that it does on any terminal.
		var pad strings.Builder
		n := 1
		for _, r := range line {
			if n >= pos.Column {
				break
			}
			if r != '\t' {
				r = ' '
			}
			pad.WriteRune(r)
			n++
		}
		number := fmt.Sprintf("%4d", pos.Line)
		e.Snippet = fmt.Sprintf("%s | %s\n%s | %s^", number, line, strings.Repeat(" ", len(number)),
			pad.String())
	}
	return e
}
