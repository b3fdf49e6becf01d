package stopping

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Column is a stream of the numbers in one column of a CSV file with a header.
type Column struct {
	name string
	at   int
	rows *csv.Reader
	held error // what ended the stream
}

// NewColumn reads the header and returns the stream of the column of this name. Rows are read when they are asked for, so that the rest of a
// file is never looked at once a rule has stopped. Every row has as many fields as the header, and a finite decimal number in the
// column; an error names the line. A byte order mark, Windows line ends and empty lines are accepted.
func NewColumn(r io.Reader, name string) (*Column, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	rows.FieldsPerRecord = -1 // counted below: with a better message
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("samples: the file is empty: want a header with the names of the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	at := slices.Index(header, name)
	switch {
	case at < 0:
		return nil, fmt.Errorf("samples: line 1: there is no column %q; the columns are %q", name, header)
	case slices.Contains(header[at+1:], name):
		return nil, fmt.Errorf("samples: line 1: there are several columns %q", name)
	}
	rows.FieldsPerRecord = len(header)
	return &Column{name: name, at: at, rows: rows}, nil
}

// Next implements Stream.
func (c *Column) Next() (float64, error) {
	if c.held != nil {
		return 0, c.held
	}
	x, err := c.next()
	c.held = err
	return x, err
}

func (c *Column) next() (float64, error) {
	row, err := c.rows.Read()
	if errors.Is(err, csv.ErrFieldCount) {
		line, _ := c.rows.FieldPos(0)
		return 0, fmt.Errorf("line %d: the row has %d fields: want %d, as in the header", line, len(row), c.rows.FieldsPerRecord)
	}
	if err != nil { // io.EOF, or it names the line
		return 0, err
	}
	text := row[c.at]
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x-x != 0 || strings.ContainsAny(text, "xX_") {
		line, _ := c.rows.FieldPos(c.at)
		return 0, fmt.Errorf("line %d, column %s: the value %q must be a finite decimal number", line, c.name, text)
	}
	return x, nil
}
