// Package logged reads logged data: CSV files whose rows are about people, plain or compressed by
// gzip. Begin with NewTable.
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
	"bufio"
	"compress/gzip"
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

// A Dialect is how a CSV file is written. The zero value has commas between cells, and points in
// numbers.
type Dialect struct {
	Separator    string // what divides cells: , (or nothing) or ; or | or tab
	DecimalComma bool   // 0,5 is a half, and 0.5 no number
}

// separators are what may divide cells, with their names in errors.
var separators = []struct {
	text string
	char rune
	name string
}{{",", ',', "commas"}, {";", ';', "semicolons"}, {"|", '|', "bars"}, {"tab", '\t', "tabs"}}

// separator is the place of the dialect's among them.
func (d Dialect) separator() (int, error) {
	for i, s := range separators {
		if d.Separator == s.text || d.Separator == string(s.char) || d.Separator == "" && i == 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("separator is %q, must be , or ; or | or tab", d.Separator)
}

// Check says what of the dialect is not allowed.
func (d Dialect) Check() error {
	_, err := d.separator()
	return err
}

// A Table reads the rows of a CSV file with a header, one by one: columns are found by their
// names, in any order, and further ones are ignored. A byte order mark, Windows line ends, empty
// lines and compression by gzip are accepted.
type Table struct {
	rows      *csv.Reader
	columns   []string
	row       []string
	separator int // its place among separators
	comma     bool
}

// NewTable reads the header of a file in the usual dialect.
func NewTable(r io.Reader) (*Table, error) { return Dialect{}.NewTable(r) }

// NewTable reads the header.
func (d Dialect) NewTable(r io.Reader) (*Table, error) {
	at, err := d.separator()
	if err != nil {
		return nil, err
	}
	if r, err = uncompressed(r); err != nil {
		return nil, err
	}
	rows := csv.NewReader(r)
	rows.Comma = separators[at].char
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
	columns[0] = strings.TrimPrefix(columns[0], "\ufeff")
	return &Table{rows: rows, columns: columns, separator: at, comma: d.DecimalComma}, nil
}

// foreign are beginnings of files that are no CSV.
var foreign = []struct{ begin, what string }{
	{"\xff\xfe", "UTF-16, must be UTF-8: save it as CSV in UTF-8"},
	{"\xfe\xff", "UTF-16, must be UTF-8: save it as CSV in UTF-8"},
	{"PAR1", "Parquet, must be CSV"},
	{"PK\x03\x04", "a ZIP archive, as workbooks are: save it as CSV"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd, must be CSV, plain or compressed by gzip"},
	{"\xfd7zXZ", "compressed by xz, must be CSV, plain or compressed by gzip"},
	{"BZh91AY&SY", "compressed by bzip2, must be CSV, plain or compressed by gzip"},
}

// uncompressed is a file without its compression.
func uncompressed(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	begin, _ := in.Peek(10) // an error comes again with the first line
	if strings.HasPrefix(string(begin), "\x1f\x8b") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, errDamaged
		}
		in = bufio.NewReader(unzipped{z})
		begin, _ = in.Peek(10)
	}
	for _, f := range foreign {
		if strings.HasPrefix(string(begin), f.begin) {
			return nil, fmt.Errorf("the file is %s", f.what)
		}
	}
	return in, nil
}

var errDamaged = errors.New("the file is compressed by gzip, and is damaged or cut off")

// unzipped reads what was compressed. That a file is cut off inside is no end of it.
type unzipped struct{ *gzip.Reader }

func (u unzipped) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errDamaged
	}
	return n, err
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
	case at < 0 && len(t.columns) == 1 && t.other() != "":
		return 0, fmt.Errorf("line 1: there is no column %q: columns must be divided by %s, and this "+
			"header has %s", name, separators[t.separator].name, t.other())
	case at < 0:
		return 0, fmt.Errorf("line 1: there is no column %q among the %d of the header", name, len(t.columns))
	case slices.Contains(t.columns[at+1:], name):
		return 0, fmt.Errorf("line 1: there are several columns %q", name)
	}
	return at, nil
}

// other is what seems to divide the cells of a header that is one cell, and what reads it.
func (t *Table) other() string {
	for _, s := range separators {
		if strings.ContainsRune(t.columns[0], s.char) {
			return fmt.Sprintf("%s: --separator '%s' reads it, in an experiment separator: '%[2]s'", s.name, s.text)
		}
	}
	return ""
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

// Number is a cell that holds a finite decimal number. Zero has no sign.
func (t *Table) Number(column int) (float64, error) {
	text := t.row[column]
	if t.comma && !strings.Contains(text, ".") {
		text = strings.Replace(text, ",", ".", 1)
	} else if t.comma {
		text = "" // no number
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(x) <= MaxAbs) || strings.ContainsAny(text, "xX_") {
		return 0, t.Errorf(column, "must be a finite decimal number, at most %v in absolute value%s", MaxAbs,
			t.instead(t.row[column]))
	}
	if x == 0 {
		return 0, nil
	}
	return x, nil
}

// instead says what kind of cell there is where a number should be, and what to do; it tells nothing
// else of the cell.
func (t *Table) instead(text string) string {
	word := strings.TrimSpace(text)
	switch {
	case slices.ContainsFunc([]string{"true", "false", "yes", "no", "t", "f", "y", "n", "on", "off"},
		func(s string) bool { return strings.EqualFold(s, word) }):
		return "; this is a word for yes or no: write 1 and 0"
	case strings.ContainsFunc(word, func(r rune) bool { return r == '%' || unicode.Is(unicode.Sc, r) }):
		return "; this has a sign of a currency or of per cent: write the number alone"
	case strings.Trim(word, "+-.,0123456789 eE") != "" || word == "":
		return "" // anything else
	case !t.comma && strings.Contains(word, ","):
		return "; this has a comma: numbers have a decimal point and none between thousands; " +
			"--decimal-comma reads 0,5 as a half, in an experiment decimal_comma: true"
	case t.comma && strings.Contains(word, "."):
		return "; this has a point: with --decimal-comma numbers have a decimal comma, and none between thousands"
	case word != text:
		return "; this has spaces around it"
	}
	return ""
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

// Cell is a cell as it is, good until the next row. No error may quote it.
func (t *Table) Cell(column int) string { return t.row[column] }

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
