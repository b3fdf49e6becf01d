package bandit

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/noise"
)

func TestReadLinearCSV(t *testing.T) {
	in, err := ReadLinearCSV(strings.NewReader("\ufeffx1,x2,reward\r\n1,0,1\r\n0,-0.5,-1\r\n\r\n1.0,-0,0\r\n0,-0.5,-1"), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Actions) != 2 || !slices.Equal(in.Actions[0], []float64{1, 0}) ||
		!slices.Equal(in.Actions[1], []float64{0, -0.5}) ||
		!slices.Equal(in.Means(), []float64{0.5, -1}) || in.Theta != nil {
		t.Errorf("%v %v", in.Actions, in)
	}
	in, err = ReadLinearCSV(strings.NewReader("x1,x2,reward\n3,4,1\n0,1,3\n"), true)
	if err != nil || !slices.Equal(in.Actions[0], []float64{0.6, 0.8}) ||
		!slices.Equal(in.Actions[1], []float64{0, 0.2}) || in.Means()[1] != 3 {
		t.Errorf("normalised: %v %v", in.Actions, err)
	}
	mixed, err := ReadLinearCSV(strings.NewReader("reward,day,x2,x1\n1,mon,0,1\n-1,tue,-0.5,0\n"), false)
	if err != nil || !slices.Equal(mixed.Actions[1], []float64{0, -0.5}) || mixed.Means()[1] != -1 {
		t.Errorf("other columns, in another order: %v %v", mixed.Actions, err)
	}
	same, err := ReadLinearCSV(strings.NewReader("x1,x2,reward\n0.5,0,1\n0,0.5,0\n"), true)
	if err != nil || same.Actions[0][0] != 0.5 {
		t.Errorf("short vectors stay: %v %v", same.Actions, err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "linear rewards: the file is empty: the first line must be a header"},
		{"header only", "x1,reward\n", "a header but no rewards"},
		{"no features", "reward\n1\n",
			`line 1: there is no column "x1" among the 1 of the header: features are x1, x2, … without a gap`},
		{"other names", "x1,x3,reward\n1,1,1\n", `line 1: there is no column "x2" among the 3 of the header`},
		{"from zero", "x0,x1,reward\n1,1,1\n", `line 1: there is no column "x2"`},
		{"no header", "1,0,1\n0,1,0\n", `line 1: there is no column "reward" among the 3 of the header`},
		{"long header", strings.Repeat("y", 300) + "\n", "among the 1 of the header"},
		{"too wide", wide(1025) + "reward\n", "the header has 1025 features, must have at most 1024"},
		{"ragged", "x1,x2,reward\n1,0,1\n0,1\n", "line 3: the row has 2 fields, must have 3 as the header has"},
		{"NaN", "x1,x2,reward\n1,0,1\n0,NaN,1\n", "line 3, column x2: must be a finite decimal number"},
		{"empty feature", "x1,x2,reward\n,0,1\n", "line 2, column x1: must"},
		{"reward", "x1,x2,reward\n1,0,good\n", "line 2, column reward: must"},
		{"large", "x1,reward\n1e101,0\n", "line 2, column x1: must"},
		{"one action", "x1,reward\n1,0\n1,1\n", "all rewards are of one feature vector, must be of at " +
			"least 2 actions"},
		{"norm", "x1,x2,reward\n1,0,1\n1,1,1\n3,4,1\n0,1,0\n", "line 4: the norm of the features " +
			"must be at most 1 (or normalise: true)"},
		{"open quote", "x1,reward\n1,1\n\"2,0\n", "line 3"},
	} {
		in, err := ReadLinearCSV(strings.NewReader(c.in), false)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || in.Actions != nil {
			t.Errorf("%s: %v, error %v; want %q", c.name, in, err, c.want)
		}
	}
	if _, err := ReadLinearCSV(strings.NewReader("x1,reward\n1e100,1\n1e-300,1\n-1e-300,0\n"),
		true); err == nil || !strings.Contains(err.Error(), "actions 2 and 3 are the same") {
		t.Errorf("two actions that scaling makes one: %v", err)
	}
}

// wide is a header of n features.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d,", i+1)
	}
	return b.String()
}

// TestReadLinearCSVStreams reads 8 MB and looks at the memory in use at the end of the file.
func TestReadLinearCSVStreams(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var end uint64
	log := &longLog{block: bytes.Repeat([]byte("0.25,0.5,1\n0.5,-0.5,0\n"), 400), left: 1000,
		rest: []byte("x1,x2,reward\n"), after: func() {
			end = heap()
		}}
	start := heap()
	in, err := ReadLinearCSV(log, false)
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(end) - int64(start); grown > 1<<20 {
		t.Errorf("%d bytes are held at the end of the file", grown)
	}
	if s := in.Arms[1].String(); !strings.HasPrefix(s, "empirical(n=400000,") {
		t.Error(s)
	}
}

func TestReadContextualCSV(t *testing.T) {
	const text = "round,x1,x2,reward\n-3,1,0,0.5\n-3,0,1,-1\n7,0.5,0.5,0\n8,0,0,1\n8,1,0,1\n8,0,-1,0.25\n"
	l, err := ReadContextualCSV(strings.NewReader(text), false)
	if err != nil {
		t.Fatal(err)
	}
	if l.Rounds() != 3 || l.Dim() != 2 || l.MaxActions() != 3 || !l.Bounded() || l.Redrawn() ||
		!strings.HasPrefix(l.String(), "context-log(rounds=3,dim=2,sha256=") {
		t.Errorf("%v", l)
	}
	in := testkit.Must(l.Contextual(nil))
	s := noise.NewFast(1, 2)
	var a, m []float64
	rounds := make([]float64, 30_000)
	for i := range rounds {
		a, m = in.Round(a, m, &s)
		rounds[i] = float64(len(m))
		want, means := []float64{1, 0, 0, 1}, []float64{0.5, -1}
		switch len(m) {
		case 1:
			want, means = []float64{0.5, 0.5}, []float64{0}
		case 3:
			want, means = []float64{0, 0, 1, 0, 0, -1}, []float64{1, 1, 0.25}
		}
		if !slices.Equal(a, want) || !slices.Equal(m, means) {
			t.Fatalf("%v %v", a, m)
		}
		if in.Reward(m[0], nil) != m[0] {
			t.Fatal("another reward than was logged")
		}
	}
	if err := goodness(rounds, func(x float64) float64 { return min(max(math.Floor(x)/3, 0), 1) }); err != nil {
		t.Errorf("rounds are not drawn uniformly: %v", err)
	}
	other := testkit.Must(ReadContextualCSV(strings.NewReader(strings.Replace(text, "7,0.5", "8,0.5", 1)), false))
	if other.String() == l.String() {
		t.Error("other rounds, the same key")
	}
	scaled, err := ReadContextualCSV(strings.NewReader("round,x1,x2,reward\n1,3,4,2\n1,0,1,0\n"), true)
	if err != nil || scaled.Bounded() || !slices.Equal(scaled.x, []float64{0.6, 0.8, 0, 0.2}) {
		t.Errorf("%v %v", scaled.x, err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "logged rounds: the file is empty: the first line must be a header"},
		{"header only", "round,x1,reward\n", "a header but no rounds"},
		{"no round", "x1,reward\n1,1\n", `line 1: there is no column "round" among the 2 of the header`},
		{"no features", "round,reward\n1,1\n", `line 1: there is no column "x1"`},
		{"round", "round,x1,reward\n1.5,1,1\n", "line 2, column round: must be an integer"},
		{"order", "round,x1,reward\n2,1,1\n2,0,1\n1,0,0\n", "line 4, column round: comes after a " +
			"larger one: rounds must increase"},
		{"apart", "round,x1,reward\n1,1,1\n2,0,1\n1,0,0\n", "line 4, column round: comes after"},
		{"ragged", "round,x1,reward\n1,1\n", "line 2: the row has 2 fields, must have 3"},
		{"NaN", "round,x1,reward\n1,NaN,1\n", "line 2, column x1: must"},
		{"reward", "round,x1,reward\n1,1,\n", "line 2, column reward: must"},
		{"norm", "round,x1,x2,reward\n1,1,0,1\n1,1,1,1\n", "line 3: the norm of the features " +
			"must be at most 1 (or normalise: true)"},
		{"one action each", "round,x1,reward\n1,1,1\n2,0,1\n", "every round has one action"},
	} {
		l, err := ReadContextualCSV(strings.NewReader(c.in), false)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || l != nil {
			t.Errorf("%s: %v, error %v; want %q", c.name, l, err, c.want)
		}
	}
}

func FuzzReadLinearCSV(f *testing.F) {
	for _, s := range []string{"x1,reward\n0.5,1\n1,1\n", "x1,x2,reward\n3,4,1\n0,-0,0\n3,4,0.25\n",
		"x1,reward\n", "", "x1,reward\n\"x\n", "\ufeffx1,reward\r\n1,1\r\n2,-0\r\n"} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, log []byte, normalise bool) {
		in, err := ReadLinearCSV(bytes.NewReader(log), normalise)
		if err != nil {
			return
		}
		if err := in.Validate(); err != nil || len(in.Actions) < 2 {
			t.Fatalf("%q: %v %v", log, in, err)
		}
		for _, l := range in.Arms {
			sane(t, l)
		}
	})
}

func FuzzReadContextualCSV(f *testing.F) {
	for _, s := range []string{"round,x1,reward\n1,0.5,1\n1,1,1\n2,0,0\n",
		"round,x1,x2,reward\n-1,3,4,1\n-1,0,-0,0\n", "round,x1,reward\n", "", "round,x1,reward\n\"x\n",
		"\ufeffround,x1,reward\r\n1,1,1\r\n1,2,-0\r\n"} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, log []byte, normalise bool) {
		l, err := ReadContextualCSV(bytes.NewReader(log), normalise)
		if err != nil {
			return
		}
		s := noise.NewFast(1, 2)
		var a, m []float64
		for range 10 {
			a, m = l.Round(a, m, &s)
			if len(m) == 0 || len(m) > l.MaxActions() || len(a) != len(m)*l.Dim() {
				t.Fatalf("%q: %v %v", log, a, m)
			}
			for i := range m {
				if q := norm(a[i*l.Dim() : (i+1)*l.Dim()]); !(q <= 1+2*unitball.Slack) {
					t.Fatalf("%q: norm %v", log, q)
				}
				if !(math.Abs(m[i]) <= MaxAbs) || l.Bounded() && math.Abs(m[i]) > 1 {
					t.Fatalf("%q: reward %v", log, m[i])
				}
			}
		}
	})
}
