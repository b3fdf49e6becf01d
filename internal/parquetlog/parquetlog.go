// Package parquetlog reads Parquet files as the CSV files that they would be. Package logged reads
// these, and so compiles without what Parquet needs.
package parquetlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/sotto-dp/sotto/logged"
)

// magic is what a Parquet file begins with.
const magic = "PAR1"

// errDamaged does not say what the reader of the format says, which may tell a cell.
var errDamaged = errors.New("the file is Parquet, and is damaged, cut off or of a kind that is not read")

// AsCSV is a log as CSV: one that is Parquet is read into memory first, and any other is what it was.
// A row has one line, the header being line 1, so that errors place a row as in a CSV of it. Columns of
// lists, maps and groups are left out; true is 1, false is 0, and a null is a missing cell.
//
// A dialect is refused for Parquet, whose columns and numbers are what they are.
func AsCSV(r io.Reader, d logged.Dialect) (io.Reader, error) {
	in := bufio.NewReader(r)
	if begin, _ := in.Peek(len(magic)); string(begin) != magic { // an error comes again where it is read
		return in, nil
	}
	if d != (logged.Dialect{}) {
		return nil, errors.New("the file is Parquet, which has no separator and no decimal comma: " +
			"leave --separator and --decimal-comma out, in an experiment separator and decimal_comma")
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	return open(b)
}

// A lines reads the lines of the CSV.
type lines struct {
	columns []*column // by their place among the values of a row; nil of those that are left out
	groups  []parquet.RowGroup
	rows    parquet.Rows // of the group before them
	some    []parquet.Row
	text    bytes.Buffer // what is not read yet
}

// A column is one that has at most one value in a row.
type column struct {
	cell string // of the row that is being written
	text func(parquet.Value) string
}

func open(b []byte) (_ *lines, err error) {
	defer sound(&err)
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, errDamaged
	}
	l := &lines{groups: f.RowGroups(), some: make([]parquet.Row, 128)}
	some := false
	for _, path := range f.Schema().Columns() { // in the order of a row's values
		var c *column
		leaf, ok := f.Schema().Lookup(path...)
		if ok && len(path) == 1 && leaf.MaxRepetitionLevel == 0 {
			c, some = &column{path[0], textOf(leaf.Node.Type())}, true
		}
		l.columns = append(l.columns, c)
	}
	if !some {
		return nil, errors.New("the file is Parquet, and has no column of single values")
	}
	l.write() // the header
	return l, nil
}

// sound makes an error of a panic: the format's reader has them for files that are damaged.
func sound(err *error) {
	if recover() != nil {
		*err = errDamaged
	}
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (n int, err error) {
	defer sound(&err)
	for l.text.Len() == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	return l.text.Read(p)
}

// next writes some rows, or goes on to the next group.
func (l *lines) next() error {
	if l.rows == nil {
		if len(l.groups) == 0 {
			return io.EOF
		}
		l.rows, l.groups = l.groups[0].Rows(), l.groups[1:]
	}
	n, err := l.rows.ReadRows(l.some)
	for _, row := range l.some[:n] {
		for _, v := range row {
			if c := l.columns[v.Column()]; c != nil && !v.IsNull() {
				c.cell = c.text(v)
			}
		}
		l.write()
	}
	switch {
	case errors.Is(err, io.EOF):
		err, l.rows = l.rows.Close(), nil
	case err == nil && n == 0:
		return errDamaged
	}
	if err != nil {
		return errDamaged
	}
	return nil
}

// cells are as CSV has them in quotes, without the line ends in them: lines count rows.
var cells = strings.NewReplacer(`"`, `""`, "\n", "\v", "\r", "\v")

// write adds a line of the columns' cells, and empties these. Each cell is quoted: an empty line would
// be no row.
func (l *lines) write() {
	between := ""
	for _, c := range l.columns {
		if c == nil {
			continue
		}
		l.text.WriteString(between + `"` + cells.Replace(c.cell) + `"`)
		c.cell, between = "", ","
	}
	l.text.WriteByte('\n')
}

// textOf is how values of a type are written.
func textOf(t parquet.Type) func(parquet.Value) string {
	if logical := t.LogicalType(); logical != nil {
		switch d := logical.Value.(type) {
		case *format.DecimalType:
			return func(v parquet.Value) string { return decimal(v, int(d.Scale)) }
		case *format.UUIDType:
			return func(v parquet.Value) string { return fmt.Sprintf("%x", v.ByteArray()) }
		}
	}
	return func(v parquet.Value) string {
		switch v.Kind() {
		case parquet.Boolean:
			if v.Boolean() {
				return "1"
			}
			return "0"
		case parquet.Float:
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
		case parquet.Double:
			return strconv.FormatFloat(v.Double(), 'g', -1, 64)
		}
		return v.String()
	}
}

// maxScale is the most decimals that are written out: the format's writers have at most 76.
const maxScale = 100

// decimal is a whole number of 10^−scale.
func decimal(v parquet.Value, scale int) string {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default: // two's complement, the highest byte first
		b := v.ByteArray()
		n.SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	if scale < 0 || scale > maxScale {
		return n.String() + "e" + strconv.Itoa(-scale)
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(n, ten).FloatString(scale)
}
