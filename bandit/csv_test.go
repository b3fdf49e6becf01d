package bandit

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestReadCSV(t *testing.T) {
	for _, c := range []struct {
		name, in string
		arms     []string
		means    []float64
	}{
		{"names by first appearance", "arm,reward\nred,1\nblue,0.5\nred,0\nblue,1\n", []string{"red", "blue"}, []float64{0.5, 0.75}},
		{"integers by number", "arm,reward\n10,1\n2,0\n-1,0.5\n", []string{"-1", "2", "10"}, []float64{0.5, 0, 1}},
		{"a name among integers", "arm,reward\n10,1\nx,0\n2,0.5\n", []string{"10", "x", "2"}, []float64{1, 0, 0.5}},
		{"no last newline, CRLF, empty lines, mark", "\ufeffarm,reward\r\n1,1\r\n\r\n2,0", []string{"1", "2"}, []float64{1, 0}},
		{"quoted", "arm,reward\n\"a,b\",1\n\"say \"\"no\"\"\",0\n", []string{"a,b", `say "no"`}, []float64{1, 0}},
		{"unbounded rewards", "arm,reward\na,-3e2\nb,+4.5\n", []string{"a", "b"}, []float64{-300, 4.5}},
	} {
		in, names, err := ReadCSV(strings.NewReader(c.in))
		if err != nil || !slices.Equal(names, c.arms) || !slices.Equal(in.Means(), c.means) {
			t.Errorf("%s: %v %v %v", c.name, in, names, err)
		}
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "the file is empty: want the header arm,reward"},
		{"header only", "arm,reward\n", "a header but no rewards"},
		{"wrong header", "action,reward\n1,1\n", `line 1: the header is "action,reward": want arm,reward`},
		{"no header", "1,1\n2,0\n", `line 1: the header is "1,1"`},
		{"other case", "Arm,Reward\n1,1\n", "line 1"},
		{"three fields", "arm,reward\n1,1\n2,0,5\n", `line 3: the row "2,0,5" has 3 fields: want 2`},
		{"one field", "arm,reward\n1\n", `line 2: the row "1" has 1 fields`},
		{"text", "arm,reward\n1,1\n2,good\n", `line 3, column reward: the value "good" must be a finite decimal number`},
		{"empty reward", "arm,reward\n1,\n", `line 2, column reward: the value ""`},
		{"space", "arm,reward\n1, 1\n", `line 2, column reward: the value " 1"`},
		{"NaN", "arm,reward\n1,NaN\n", `line 2, column reward: the value "NaN"`},
		{"Inf", "arm,reward\n1,-Inf\n", `line 2, column reward: the value "-Inf"`},
		{"large", "arm,reward\n1,1e400\n", `line 2, column reward: the value "1e400"`},
		{"hex", "arm,reward\n1,0x1p0\n", `line 2, column reward: the value "0x1p0"`},
		{"empty arm", "arm,reward\n,1\n", `line 2, column arm: the value "" must not be empty`},
		{"arm with a space", "arm,reward\na ,1\n", `line 2, column arm: the value "a " must have no spaces`},
		{"arm not UTF-8", "arm,reward\n\xff,1\n", `line 2, column arm: the value "\xff" must be UTF-8`},
		{"arm with a line end", "arm,reward\n\"a\nb\",1\n", `line 2, column arm: the value "a\nb" must have no control characters`},
		{"long arm", "arm,reward\n" + strings.Repeat("a", 201) + ",1\n", "at most 200 bytes"},
		{"one arm", "arm,reward\n1,1\n1,0\n", `all rewards are of one arm, "1": want at least 2 arms`},
		{"one number twice", "arm,reward\n1,1\n01,0\n", `"1" and "01" are the same number`},
		{"open quote", "arm,reward\n1,1\n\"2,0\n", "line 3"},
	} {
		in, names, err := ReadCSV(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || in.Arms != nil || names != nil {
			t.Errorf("%s: %v %v, error %v; want %q", c.name, in, names, err, c.want)
		}
	}
}

func TestEmpiricalKey(t *testing.T) {
	a, _, err := ReadCSV(strings.NewReader("arm,reward\n1,1\n1,0\n1,1\n2,0.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := ReadCSV(strings.NewReader("arm,reward\n2,0.50\n1,1.0\n1,1\n1,-0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Errorf("the same rewards in another order and writing: %v and %v", a, b)
	}
	c, _, err := ReadCSV(strings.NewReader("arm,reward\n2,0.5\n1,1\n1,1\n1,0\n1,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a.String() == c.String() {
		t.Errorf("other rewards, the same key %v", a)
	}
}

// A long log is a header and then a block of rows many times.
type longLog struct {
	block []byte
	left  int
	rest  []byte
	after func()
}

func (l *longLog) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.left == 0 {
			l.after()
			return 0, io.EOF
		}
		l.left--
		l.rest = l.block
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// TestReadCSVStreams reads 8 MB and looks at the memory in use at the end of the file.
func TestReadCSVStreams(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var end uint64
	log := &longLog{block: bytes.Repeat([]byte("control,1\ntreated,0\n"), 400), left: 1000, rest: []byte("arm,reward\n"), after: func() { end = heap() }}
	start := heap()
	in, _, err := ReadCSV(log)
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(end) - int64(start); grown > 1<<20 {
		t.Errorf("%d bytes are held at the end of the file", grown)
	}
	if s := in.String(); !strings.HasPrefix(s, "[empirical(n=400000,") {
		t.Error(s)
	}
}

func FuzzReadCSV(f *testing.F) {
	for _, s := range []string{"arm,reward\n1,0.5\n2,1\n", "arm,reward\na,1\nb,0\na,0.25\n", "arm,reward\n", "", "arm,reward\n\"x\n", "\ufeffarm,reward\r\n1,1\r\n2,-0\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		in, names, err := ReadCSV(bytes.NewReader(log))
		if err != nil {
			return
		}
		if len(names) < 2 || len(names) != len(in.Arms) || in.Validate() != nil {
			t.Fatalf("%q: %v %v", log, names, in)
		}
		if s := slices.Sorted(slices.Values(names)); len(slices.Compact(s)) != len(names) {
			t.Fatalf("%q: names %v", log, names)
		}
		for _, l := range in.Arms {
			sane(t, l)
		}
	})
}
