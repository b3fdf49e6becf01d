// Package logged reads logged data: CSV files whose rows are about people.
//
// A Table reads any such file by the names of its columns; a Format says which of them are arm,
// reward and person, and reads rewards.
//
// An error names the line and the column, and never what is in a cell: that may be somebody's
// reward, and so may a header that is none. Files are read to their end before anything is made of
// them, so that a cell that cannot be read stops nothing half-way. That a file was refused, and
// where, is for whoever holds it: no guarantee of privacy covers it.
package logged

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxAbs is the largest absolute value of a number in a file.
const MaxAbs = 1e100

// MaxName is the largest length in bytes of a name: of an arm, or of a person.
const MaxName = 200

// A Table reads the rows of a CSV file with a header, one by one: columns are found by their
// names, in any order, and further ones are ignored. A byte order mark, Windows line ends and
// empty lines are accepted.
type Table struct {
	rows    *csv.Reader
	columns []string
	row     []string
}

// NewTable reads the header.
func NewTable(r io.Reader) (*Table, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	rows.FieldsPerRecord = -1 // counted in Next: with a better message
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: the first line must be a header with the " +
			"names of the columns")
	}
	if err != nil {
		return nil, placed(err)
	}
	columns := slices.Clone(header)
	if mark := columns[0]; strings.HasPrefix(mark, "\xff\xfe") || strings.HasPrefix(mark, "\xfe\xff") {
		return nil, errors.New("the file is UTF-16, must be UTF-8: save it as CSV in UTF-8")
	}
	columns[0] = strings.TrimPrefix(columns[0], "\ufeff")
	return &Table{rows: rows, columns: columns}, nil
}

// Columns are the names of the columns. They may be somebody's data, in a file without a header,
// and so belong in no error.
func (t *Table) Columns() []string { return slices.Clone(t.columns) }

// Column is where the column of this name is.
func (t *Table) Column(name string) (int, error) {
	at := slices.Index(t.columns, name)
	alike := func(column string) bool {
		return strings.EqualFold(strings.TrimSpace(column), strings.TrimSpace(name))
	}
	switch {
	case at < 0 && slices.ContainsFunc(t.columns, alike):
		return 0, fmt.Errorf("line 1: there is no column %q, but one that differs from it in "+
			"capitals or in spaces around it", name)
	case at < 0 && len(t.columns) == 1 && strings.ContainsAny(t.columns[0], ";\t"):
		return 0, fmt.Errorf("line 1: there is no column %q: columns must be divided by commas, "+
			"not by semicolons or tabs", name)
	case at < 0:
		return 0, fmt.Errorf("line 1: there is no column %q among the %d of the header", name, len(t.columns))
	case slices.Contains(t.columns[at+1:], name):
		return 0, fmt.Errorf("line 1: there are several columns %q", name)
	}
	return at, nil
}

// Next reads a row, which has as many fields as the header. It returns io.EOF after the last.
func (t *Table) Next() error {
	var err error
	if t.row, err = t.rows.Read(); err != nil {
		return placed(err)
	}
	if len(t.row) != len(t.columns) {
		return fmt.Errorf("line %d: the row has %d fields, must have %d as the header has",
			t.Line(), len(t.row), len(t.columns))
	}
	return nil
}

// placed leaves an error of the reader its line, but not its place in the line, which tells how
// long the cells before are.
func placed(err error) error {
	var at *csv.ParseError
	if errors.As(err, &at) {
		return fmt.Errorf("line %d: %w", at.Line, at.Err)
	}
	return err
}

// Line is where the row begins.
func (t *Table) Line() int {
	line, _ := t.rows.FieldPos(0)
	return line
}

// Errorf places an error at a cell of the row. It must not quote the cell.
func (t *Table) Errorf(column int, format string, args ...any) error {
	line, _ := t.rows.FieldPos(column)
	return fmt.Errorf("line %d, column %s: "+format, append([]any{line, t.columns[column]}, args...)...)
}

// Text is a cell of the row. It is good until the next row: strings.Clone keeps it.
func (t *Table) Text(column int) string { return t.row[column] }

// Number is a cell that holds a finite decimal number. Zero has no sign.
func (t *Table) Number(column int) (float64, error) {
	x, err := strconv.ParseFloat(t.row[column], 64)
	if err != nil || !(math.Abs(x) <= MaxAbs) || strings.ContainsAny(t.row[column], "xX_") {
		return 0, t.Errorf(column, "must be a finite decimal number, at most %v in absolute value", MaxAbs)
	}
	if x == 0 {
		return 0, nil
	}
	return x, nil
}

// Integer is a cell that holds an integer.
func (t *Table) Integer(column int) (int64, error) {
	x, err := strconv.ParseInt(t.row[column], 10, 64)
	if err != nil {
		return 0, t.Errorf(column, "must be an integer")
	}
	return x, nil
}

// Missing says that a cell holds nothing: it is blank, or one of NA, N/A, NaN, null and None, in
// capitals or not.
func (t *Table) Missing(column int) bool {
	switch text := strings.TrimSpace(t.row[column]); len(text) {
	case 0:
		return true
	case 2, 3, 4:
		return slices.ContainsFunc([]string{"na", "n/a", "nan", "null", "none"}, func(s string) bool {
			return strings.EqualFold(s, text)
		})
	}
	return false
}

// Name is a cell that holds a name: of at most MaxName bytes of UTF-8, with no spaces around it and
// no control characters. It is good until the next row.
func (t *Table) Name(column int) (string, error) {
	name := t.row[column]
	switch {
	case name == "":
		return "", t.Errorf(column, "must not be empty")
	case len(name) > MaxName:
		return "", t.Errorf(column, "must be at most %d bytes long", MaxName)
	case !utf8.ValidString(name):
		return "", t.Errorf(column, "must be UTF-8")
	case strings.TrimSpace(name) != name:
		return "", t.Errorf(column, "must have no spaces around it")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", t.Errorf(column, "must have no control characters")
	}
	return name, nil
}
