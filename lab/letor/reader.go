package letor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"compress/gzip"
)

// ErrFormat is matched by the error for a file that is not in the LETOR form.
var ErrFormat = errors.New("not in the LETOR form")

// MaxRating is the best rating: rewards are ratings over it.
const MaxRating = 4

// MaxFeatures is the largest number of features of a row.
const MaxFeatures = 1 << 16

// maxLine bounds a line, in bytes.
const maxLine = 1 << 22

// A Row is one line: how relevant a page is to a query. Features is the Reader's own, and holds
// until the next row.
type Row struct {
	Rating   int // 0 to MaxRating
	Query    int
	Features []float32
}

// A Reader streams rows of the form
//
//	2 qid:10032 1:0.056537 2:0.000000 … 136:0.000000 # comment
//
// Features that a row leaves out are 0; their numbers rise. Lines end in \n or \r\n; empty ones are
// skipped. It is for one goroutine.
type Reader struct {
	in   *bufio.Reader
	line int
	dim  int
	row  Row
}

// NewReader reads rows of so many features; 0 is as many as the first row's last has. Data
// compressed by gzip are known by their first bytes.
func NewReader(r io.Reader, features int) (*Reader, error) {
	if features < 0 || features > MaxFeatures {
		return nil, fmt.Errorf("letor: features is %d, must be from 1 to %d, or 0 for as many as "+
			"the first row has", features, MaxFeatures)
	}
	in := bufio.NewReaderSize(r, 1<<16)
	if head, err := in.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("letor: gzip: %w", err)
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	return &Reader{in: in, dim: features}, nil
}

// Features is how many features each row has; 0 before the first row if none were given.
func (r *Reader) Features() int { return r.dim }

// Line is the number of the line that was read last.
func (r *Reader) Line() int { return r.line }

// Next is the next row, or io.EOF. An error that matches ErrFormat names the line and the field by
// number, and nothing of what they hold: ratings are rewards.
func (r *Reader) Next() (Row, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return Row{}, err
		}
		text := line
		if i := bytes.IndexByte(text, '#'); i >= 0 {
			text = text[:i]
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := r.parse(text); err != nil {
			return Row{}, fmt.Errorf("letor: %w: line %d: %w", ErrFormat, r.line, err)
		}
		return r.row, nil
	}
}

// readLine is the next line without its end, in the buffer if it fits.
func (r *Reader) readLine() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxLine {
			line, err = r.in.ReadSlice('\n')
			long = append(long, line...)
		}
		if len(long) > maxLine {
			return nil, fmt.Errorf("letor: %w: line %d: is longer than %d bytes", ErrFormat, r.line+1, maxLine)
		}
		line = long
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("letor: line %d: %w", r.line+1, err)
	}
	r.line++
	return bytes.TrimRight(line, "\r\n"), nil
}

// parse reads the fields of a line into r.row.
func (r *Reader) parse(text []byte) error {
	word, rest := next(text)
	rating, ok := whole(word)
	if !ok || rating > MaxRating {
		return fmt.Errorf("the rating must be a whole number from 0 to %d", MaxRating)
	}
	r.row.Rating = rating
	word, rest = next(rest)
	number, ok := bytes.CutPrefix(word, []byte("qid:"))
	if !ok {
		return errors.New("the second field must be qid:NUMBER")
	}
	if r.row.Query, ok = whole(number); !ok {
		return errors.New("the query must be a whole number")
	}
	clear(r.row.Features)
	first, last := r.dim == 0, 0
	if first {
		r.row.Features = r.row.Features[:0]
	} else if r.row.Features == nil {
		r.row.Features = make([]float32, r.dim)
	}
	for field := 3; len(rest) > 0; field++ {
		word, rest = next(rest)
		if len(word) == 0 {
			break
		}
		colon := bytes.IndexByte(word, ':')
		if colon < 0 {
			return fmt.Errorf("field %d has no colon, must be FEATURE:VALUE", field)
		}
		i, ok := whole(word[:colon])
		switch {
		case !ok || i < 1 || i > MaxFeatures:
			return fmt.Errorf("the feature's number in field %d must be from 1 to %d", field, MaxFeatures)
		case i <= last:
			return fmt.Errorf("feature %d comes after feature %d, must rise", i, last)
		case !first && i > r.dim:
			return fmt.Errorf("feature %d, must be at most %d, as in the first row or as asked for", i, r.dim)
		}
		x, ok := float(word[colon+1:])
		if !ok {
			return fmt.Errorf("feature %d must be a finite number", i)
		}
		if first {
			for len(r.row.Features) < i {
				r.row.Features = append(r.row.Features, 0)
			}
		}
		r.row.Features[i-1], last = x, i
	}
	if first {
		if last == 0 {
			return errors.New("the first row has no feature, must have at least one, or their " +
				"number must be given")
		}
		r.dim = last
	}
	return nil
}

// next is the first word and what follows it.
func next(text []byte) (word, rest []byte) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for i, c := range text {
		if c == ' ' || c == '\t' {
			return text[:i], text[i+1:]
		}
	}
	return text, nil
}

// whole is a whole number of at most 18 digits that an int holds.
func whole(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxInt-9)/10 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// float is a finite number that fits a float32. Most have few digits and no exponent, and need no
// library: a quotient of two whole numbers that doubles hold exactly is the nearest double.
func float(b []byte) (float32, bool) {
	digits, point, minus := b, -1, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, minus = digits[1:], true
	}
	n, seen := uint64(0), 0
	for i, c := range digits {
		switch {
		case c >= '0' && c <= '9' && seen < 15:
			n = 10*n + uint64(c-'0')
			seen++
		case c == '.' && point < 0:
			point = i
		default:
			return slow(b)
		}
	}
	if seen == 0 {
		return 0, false
	}
	x := float64(n)
	if point >= 0 {
		x /= powers[len(digits)-point-1]
	}
	if minus {
		x = -x
	}
	return float32(x), true
}

var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

func slow(b []byte) (float32, bool) {
	if bytes.ContainsAny(b, "xX_") { // Go's numbers may be hexadecimal, this format's not
		return 0, false
	}
	x, err := strconv.ParseFloat(string(b), 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, false
	}
	return float32(x), true
}
