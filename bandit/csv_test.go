package bandit

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/logged"
)

// A reading is an instance of a file, whose format package logged tests.
func TestReadCSV(t *testing.T) {
	in, s, err := ReadCSV(strings.NewReader("who,version,sent\n1,10,1\n2,2,0\n3,-1,0.5\n3,-1,-3e2\n4,2,NA\n"),
		logged.Format{Arm: "version", Reward: "sent", User: "who", Lo: 0, Hi: 1, SkipMissing: true})
	if err != nil || !slices.Equal(s.Names, []string{"-1", "2", "10"}) ||
		!slices.Equal(in.Means(), []float64{0.25, 0, 1}) || s.Skipped != 1 || s.People != 3 {
		t.Errorf("%v %+v %v", in, s, err)
	}
	// The arms of people are a function of the file.
	var log strings.Builder
	log.WriteString("arm,reward,user\n")
	for i := range 400 {
		fmt.Fprintf(&log, "%d,%d,%d\n", i%2, i/2%2, i/4)
	}
	f := logged.Format{User: "user", Hi: 1}
	a, _, err := ReadCSV(strings.NewReader(log.String()), f)
	b, _, err2 := ReadCSV(strings.NewReader(log.String()), f)
	if err != nil || err2 != nil || a.String() != b.String() {
		t.Errorf("two readings of one file: %v %v, %v %v", a, b, err, err2)
	}
	if in, s, err := ReadCSV(strings.NewReader("arm,reward\na,0.731x\n"),
		logged.Format{}); err == nil || in.Arms != nil || s.Names != nil ||
		!strings.HasPrefix(err.Error(), "rewards: line 2, column reward: ") ||
		strings.Contains(err.Error(), "731") {
		t.Errorf("%v %v %v", in, s, err)
	}
}

func TestEmpiricalKey(t *testing.T) {
	a, _, err := ReadCSV(strings.NewReader("arm,reward\n1,1\n1,0\n1,1\n2,0.5\n"), logged.Format{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := ReadCSV(strings.NewReader("arm,reward\n2,0.50\n1,1.0\n1,1\n1,-0\n"), logged.Format{})
	if err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Errorf("the same rewards in another order and writing: %v and %v", a, b)
	}
	c, _, err := ReadCSV(strings.NewReader("arm,reward\n2,0.5\n1,1\n1,1\n1,0\n1,1\n"), logged.Format{})
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
	log := &longLog{block: bytes.Repeat([]byte("control,1\ntreated,0\n"), 400), left: 1000,
		rest: []byte("arm,reward\n"), after: func() {
			end = heap()
		}}
	start := heap()
	in, _, err := ReadCSV(log, logged.Format{})
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
	for _, s := range []string{"arm,reward\n1,0.5\n2,1\n", "arm,reward\na,1\nb,0\na,0.25\n",
		"arm,reward\n", "", "arm,reward\n\"x\n", "\ufeffarm,reward\r\n1,1\r\n2,-0\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		in, s, err := ReadCSV(bytes.NewReader(log), logged.Format{})
		if err != nil {
			return
		}
		if len(s.Names) < 2 || len(s.Names) != len(in.Arms) || in.Validate() != nil {
			t.Fatalf("%q: %v %v", log, s, in)
		}
		for _, l := range in.Arms {
			sane(t, l)
		}
	})
}
