package parquetlog_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sotto-dp/sotto/internal/parquetlog"
	"github.com/sotto-dp/sotto/logged"
)

type visit struct {
	Arm     string   `parquet:"arm,dict"`
	Reward  *float64 `parquet:"reward,optional,zstd"`
	Small   float32  `parquet:"small"`
	Sent    bool     `parquet:"sent"`
	Count   int64    `parquet:"count"`
	Price   int64    `parquet:"price,decimal(2:18)"`
	Who     [16]byte `parquet:"who,uuid"`
	Tags    []string `parquet:"tags,list"`
	Nested  nested   `parquet:"nested"`
	Comment string   `parquet:"comment,snappy"`
}

type nested struct {
	X float64 `parquet:"x"`
}

type lone struct {
	Reward *float64 `parquet:"reward,optional"`
}

// file is rows as Parquet, in groups of two.
func file[R any](t testing.TB, rows ...R) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[R](&b, parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func visits(t testing.TB) []byte {
	x, nan := 1.0/3, math.NaN()
	return file(t,
		visit{Arm: `a "b", c`, Reward: &x, Small: 0.1, Sent: true, Count: -3, Price: -1205,
			Tags: []string{"x", "y"}, Comment: "two\r\nlines"},
		visit{Arm: "b", Small: 1e-7, Price: 5, Who: [16]byte{15: 0xab}},
		visit{Arm: "b", Reward: &nan, Count: 1 << 60})
}

// Every value is written so that it is read again as itself, and a row is a line.
func TestAsCSV(t *testing.T) {
	r, err := parquetlog.AsCSV(bytes.NewReader(visits(t)), logged.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0", 30)
	want := `"arm","reward","small","sent","count","price","who","comment"
"a ""b"", c","0.3333333333333333","0.1","1","-3","-12.05","` + zeros + "00\",\"two\v\vlines\"" + `
"b","","1e-07","0","0","0.05","` + zeros + `ab",""
"b","NaN","0","0","1152921504606846976","0.00","` + zeros + `00",""
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A log is read from Parquet as from its CSV, and what is wrong is placed as there.
func TestRead(t *testing.T) {
	read := func(f logged.Format) (logged.Log, error) {
		r, err := parquetlog.AsCSV(bytes.NewReader(visits(t)), f.Dialect)
		if err != nil {
			return logged.Log{}, err
		}
		return f.Read(r)
	}
	log, err := read(logged.Format{Reward: "sent", InOrder: true})
	if err != nil || fmt.Sprint(log.Names, log.Rewards) != `[a "b", c b] [[1] [0 0]]` {
		t.Errorf("%v, error %v", log, err)
	}
	for want, f := range map[string]logged.Format{
		"line 3, column reward: must be a finite decimal number": {},
		`there is no column "tags" among the 8 of the header`:    {Reward: "tags"},
		"which has no separator and no decimal comma":            {Dialect: logged.Dialect{DecimalComma: true}},
	} {
		if _, err := read(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	x := 0.5
	r, err := parquetlog.AsCSV(bytes.NewReader(file(t, lone{}, lone{&x})), logged.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if x, s, err := (logged.Format{SkipMissing: true}).Column(r); err != nil || len(x) != 1 || s.Skipped != 1 {
		t.Errorf("of one column: %v, %+v, error %v", x, s, err)
	}
}

// What is no Parquet is handed on as it was.
func TestOthers(t *testing.T) {
	for _, text := range []string{"", "PAR", "arm,reward\na,1\n"} {
		r, err := parquetlog.AsCSV(strings.NewReader(text), logged.Dialect{Separator: ";"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("%q becomes %q, error %v", text, got, err)
		}
	}
}

// A file that is damaged anywhere is an error that tells no cell, or is read; it never panics.
func FuzzAsCSV(f *testing.F) {
	whole := visits(f)
	for at := 0; at < len(whole); at += 7 {
		f.Add(whole, at, byte(0x80))
	}
	f.Add([]byte("PAR1731"), 0, byte(0))
	f.Add([]byte("PAR1PAR1"), 0, byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		b = bytes.Clone(b)
		if at >= 4 && at < len(b) {
			b[at] ^= flip
		}
		r, err := parquetlog.AsCSV(bytes.NewReader(b), logged.Dialect{})
		if err == nil {
			_, err = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "the file is Parquet, ") || strings.Contains(err.Error(), "731")) {
			t.Errorf("the error is %v", err)
		}
	})
}
