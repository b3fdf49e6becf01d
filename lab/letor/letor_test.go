package letor

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/logged"
)

func rows(t testing.TB, text string, features int) ([]Row, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), features)
	if err != nil {
		return nil, err
	}
	var out []Row
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		row.Features = append([]float32(nil), row.Features...)
		out = append(out, row)
	}
}

func TestReader(t *testing.T) {
	got, err := rows(t, "2 qid:10 1:0.5 2:-3 3:1e-3 # a page\r\n\n# only a comment\n0 qid:11 "+
		"3:7\n4  qid:11\t1:12345.25", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{2 10 [0.5 -3 0.001]} {0 11 [0 0 7]} {4 11 [12345.25 0 0]}]"
	if fmt.Sprint(got) != want {
		t.Errorf("rows are %v, want %v", got, want)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := io.WriteString(w, "1 qid:1 1:2\n"); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if got, err := rows(t, z.String(), 4); err != nil || fmt.Sprint(got) != "[{1 1 [2 0 0 0]}]" {
		t.Errorf("compressed: %v, %v", got, err)
	}
}

func TestReaderErrors(t *testing.T) {
	long := "1 qid:1 1:" + strings.Repeat("1", maxLine)
	for _, c := range []struct {
		text     string
		features int
		want     string
	}{
		{"1 qid:1 1:2\n5 qid:1 1:2\n",
			0, `letor: not in the LETOR form: line 2: the rating must be a whole number from 0 to 4`},
		{"x qid:1 1:2", 0, `line 1: the rating must be`},
		{"-1 qid:1 1:2", 0, `line 1: the rating must be`},
		{"1.5 qid:1 1:2", 0, `line 1: the rating must be`},
		{"1 1:2", 0, `the second field must be qid:NUMBER`},
		{"1", 0, `the second field must be`},
		{"1 qid:a 1:2", 0, `the query must be a whole number`},
		{"1 qid:1 1:2 1:3", 0, `feature 1 comes after feature 1, must rise`},
		{"1 qid:1 3:2 2:3", 0, `feature 2 comes after feature 3`},
		{"1 qid:1 0:2", 0, `the feature's number in field 3 must be from 1 to 65536`},
		{"1 qid:1 99999999:2", 0, `the feature's number in field 3 must be`},
		{"1 qid:1 1:2\n1 qid:1 2:2", 0, `line 2: feature 2, must be at most 1`},
		{"1 qid:1 3:2", 2, `feature 3, must be at most 2`},
		{"1 qid:1 1:nan", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:inf", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:0x1p3", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:1_0", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:1e99", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1:.", 0, `feature 1 must be a finite number`},
		{"1 qid:1 1", 0, `field 3 has no colon, must be FEATURE:VALUE`},
		{"1 qid:1", 0, `the first row has no feature`},
		{long, 0, "is longer than"},
		{"\x1f\x8b nothing", 0, "gzip"},
		{"", -1, "features is -1, must be from 1 to 65536, or 0"},
	} {
		_, err := rows(t, c.text, c.features)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error is %v, want %q", c.text, err, c.want)
		}
	}
}

// What is read is what was written, whatever the numbers are.
func TestReaderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 20).Draw(t, "dim")
		var text strings.Builder
		var want []Row
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			row := Row{Rating: rapid.IntRange(0, 4).Draw(t, "rating"),
				Query:    rapid.IntRange(0, min(1<<50, math.MaxInt)).Draw(t, "query"),
				Features: make([]float32, dim)}
			fmt.Fprintf(&text, "%d qid:%d", row.Rating, row.Query)
			for i := range dim {
				if rapid.Bool().Draw(t, "there") {
					x := rapid.Float32().Filter(func(x float32) bool { return x-x == 0 }).Draw(t, "x")
					row.Features[i] = x
					fmt.Fprintf(&text, " %d:%s", i+1, strconv.FormatFloat(float64(x),
						rapid.SampledFrom([]byte{'g', 'e', 'f'}).Draw(t, "form"), -1, 32))
				}
			}
			text.WriteByte('\n')
			want = append(want, row)
		}
		r, err := NewReader(strings.NewReader(text.String()), dim)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			got, err := r.Next()
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want[i]) {
				t.Fatalf("row %d is %v, %v, want %v", i, got, err, want[i])
			}
		}
	})
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"2 qid:10 1:0.5 2:-3 3:1e-3 # a\n0 qid:11 3:7\n", "1 qid:1 1:2 1:3",
		"\x1f\x8b", "4 qid:9 2:1e38", "\r\n#\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data), 0)
		if err != nil {
			return
		}
		for range 1000 {
			row, err := r.Next()
			if err != nil {
				return
			}
			if row.Rating < 0 || row.Rating > MaxRating || len(row.Features) != r.Features() || row.Query < 0 {
				t.Fatalf("row is %+v of %d features", row, r.Features())
			}
			for _, x := range row.Features {
				if x-x != 0 {
					t.Fatalf("a feature is %v", x)
				}
			}
		}
	})
}

func opener(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// Planted groups are found: the tallies of ratings are those of the groups, row by row of the file;
// the same seed gives the same arms. Half as many clusters are worse.
func TestClusterFindsGroups(t *testing.T) {
	const n, dim, k = 3000, 12, 8
	var text bytes.Buffer
	var group []int
	if err := writeSample(&text, n, dim, k, 5, func(g int) { group = append(group, g) }); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 500} {
		o := Options{Clusters: k, Seed: 3, Sample: size}
		a, err := Cluster(context.Background(), opener(text.String()), o)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for c := range a.Counts {
			total += a.Len(c)
			if m := a.Mean(c); !(m >= 0 && m <= 1) {
				t.Errorf("mean of arm %d is %v", c+1, m)
			}
		}
		if total != n || a.Rows != n || a.Dim != dim || a.Queries != n/20+1 {
			t.Errorf("%d rows, %+v", total, a)
		}
		// Which cluster a row is in is not kept: the ratings' tallies must be those of the groups.
		var want [k][MaxRating + 1]int
		all, err := rows(t, text.String(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range all {
			want[group[i]][row.Rating]++
		}
		found := map[[MaxRating + 1]int]int{}
		for _, c := range a.Counts {
			found[c]++
		}
		same := 0
		for _, c := range want {
			same += found[c]
		}
		if same < k {
			t.Errorf("sample of %d: %d of %d groups are clusters:\n%v\n%v", size, same, k, a.Counts, want)
		}
		again, err := Cluster(context.Background(), opener(text.String()), o)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(a) {
			t.Errorf("the same seed gives other arms: %v, %v", again, err)
		}
		fewer, err := Cluster(context.Background(), opener(text.String()), Options{Clusters: k / 2, Seed: 3})
		if err != nil || fewer.Inertia < 2*a.Inertia {
			t.Errorf("half the clusters have inertia %v, all %v, %v", fewer.Inertia, a.Inertia, err)
		}
	}
}

// By hand: rows at 0, 1, 10, 11 with ratings 0, 4, 2, 2 make two clusters of means ½ and ½,
// distances ¼ each.
func TestClusterByHand(t *testing.T) {
	text := "0 qid:1 1:0\n4 qid:1 1:1\n2 qid:2 1:10\n2 qid:2 1:11\n"
	a, err := Cluster(context.Background(), opener(text), Options{Clusters: 2, Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.Inertia != 0.25 || a.Len(0) != 2 || a.Len(1) != 2 || a.Mean(0) != 0.5 ||
		a.Mean(1) != 0.5 || a.Queries != 2 {
		t.Errorf("%+v", a)
	}
	var csv bytes.Buffer
	if err := a.WriteCSV(&csv); err != nil {
		t.Fatal(err)
	}
	in, summary, err := bandit.ReadCSV(&csv, logged.Format{})
	if err != nil || len(summary.Names) != 2 || in.Arms[0].Mean() != 0.5 || in.Arms[1].Mean() != 0.5 {
		t.Errorf("%v, %v, %v", in, summary, err)
	}
}

func TestClusterErrors(t *testing.T) {
	four := "0 qid:1 1:0\n4 qid:1 1:1\n2 qid:2 1:10\n2 qid:2 1:10\n"
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		text string
		o    Options
		want string
	}{
		{nil, four, Options{Clusters: 1}, "clusters is 1, must be at least 2"},
		{nil, four, Options{Clusters: 5}, "the file has 4 rows, must have at least as many as clusters, 5"},
		{nil, four, Options{Clusters: 4}, "only 3 different feature vectors, must have at least " +
			"as many as clusters, 4"},
		{nil, four, Options{Clusters: 3, Sample: 2}, "sample is 2, must be at least the number of clusters, 3"},
		{nil, four, Options{Clusters: 2, Steps: -1}, "steps is -1, must be at least 1"},
		{nil, four, Options{Clusters: 2, Starts: -1}, "starts is -1, must be at least 1"},
		{nil, "", Options{Clusters: 2}, "the file has no row"},
		{nil, four + "7 qid:1 1:1\n", Options{Clusters: 2}, `line 5: the rating`},
		{nil, "0 qid:1 1:1e30\n0 qid:1 1:2e30\n0 qid:1 1:5e30\n", Options{Clusters: 2, Raw: true},
			"squared distances overflow"},
		{ctx, four, Options{Clusters: 2}, "context canceled"},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		if _, err := Cluster(c.ctx, opener(c.text), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error is %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := Cluster(context.Background(), func() (io.ReadCloser, error) {
		return nil, errors.New("gone")
	}, Options{Clusters: 2}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error is %v", err)
	}
	if err := WriteSample(io.Discard, 0, 1, 1, 0); err == nil {
		t.Error("a sample of no rows")
	}
}

// The log has each row once, and in an order that says nothing: a trial plays an arm's rewards
// one after another, so the first of them must have the arm's mean too. 400 of 4000 drawn
// without replacement miss it by less than 6 standard errors; a log in the order of the
// ratings, by more than 17.
func TestWriteCSVOrder(t *testing.T) {
	a := Arms{Counts: [][MaxRating + 1]int{{1000, 1000, 1000, 500, 500}, {2000, 500, 500, 500, 500}}, Seed: 1}
	var one, again, other bytes.Buffer
	for _, c := range []struct {
		seed uint64
		to   *bytes.Buffer
	}{{1, &one}, {1, &again}, {2, &other}} {
		a.Seed = c.seed
		if err := a.WriteCSV(c.to); err != nil {
			t.Fatal(err)
		}
	}
	if one.String() != again.String() || one.String() == other.String() {
		t.Error("the order is not that of the seed")
	}
	log, err := logged.Format{InOrder: true}.Read(&one)
	if err != nil || len(log.Names) != 2 {
		t.Fatal(log.Names, err)
	}
	for arm, rewards := range log.Rewards {
		var counts [MaxRating + 1]int
		first, square := 0.0, 0.0
		for i, x := range rewards {
			counts[int(x*MaxRating)]++
			square += (x - a.Mean(arm)) * (x - a.Mean(arm))
			if i < 400 {
				first += x / 400
			}
		}
		if counts != a.Counts[arm] {
			t.Errorf("arm %d: the log has %v, want %v", arm+1, counts, a.Counts[arm])
		}
		se := math.Sqrt(square / float64(len(rewards)) / 400 * 0.9)
		if z := (first - a.Mean(arm)) / se; math.Abs(z) > 6 {
			t.Errorf("arm %d: its first 400 rewards have mean %v, all of them %v: %.1f standard "+
				"errors", arm+1, first, a.Mean(arm), z)
		}
	}
}

// k-means++ never takes a row twice while others are left, and Lloyd's steps never make things
// worse: the inertia of the centres is at most that at the start.
func TestLloydDescends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(4, 60).Draw(t, "n"), rapid.IntRange(2, 4).Draw(t, "k")
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "%d qid:1 1:%d 2:%d\n", i%5, rapid.IntRange(0, 9).Draw(t, "x"), i)
		}
		last := math.Inf(1)
		for _, steps := range []int{1, 2, 5, 100} {
			a, err := Cluster(context.Background(), opener(text.String()),
				Options{Clusters: k, Steps: steps, Seed: 7, Starts: 1})
			if err != nil {
				t.Fatal(err)
			}
			if a.Inertia > last*(1+1e-5) {
				t.Fatalf("inertia rises from %v to %v with %d steps", last, a.Inertia, steps)
			}
			last = a.Inertia
		}
	})
}

func ExampleCluster() {
	var file bytes.Buffer
	if err := WriteSample(&file, 600, 8, 3, 1); err != nil {
		fmt.Println(err)
		return
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	arms, err := Cluster(context.Background(), open, Options{Clusters: 3, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for a := range arms.Counts {
		fmt.Printf("arm %d: %d rows, mean reward %.2f\n", a+1, arms.Len(a), arms.Mean(a))
	}
	// Output:
	// arm 1: 194 rows, mean reward 0.26
	// arm 2: 213 rows, mean reward 0.34
	// arm 3: 193 rows, mean reward 0.58
}

func BenchmarkReader(b *testing.B) {
	var text bytes.Buffer
	if err := WriteSample(&text, 1000, 136, 10, 1); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(text.Bytes()), 0)
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkCluster(b *testing.B) {
	var text bytes.Buffer
	if err := WriteSample(&text, 10_000, 136, 60, 1); err != nil {
		b.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	for b.Loop() {
		if _, err := Cluster(context.Background(), open, Options{Clusters: 50}); err != nil {
			b.Fatal(err)
		}
	}
}

var update = flag.Bool("update", false, "write examples/letor-sample.txt and letor-arms.csv anew")

// The sample in examples is what WriteSample makes, and the arms are those of sotto letor,
// on every machine.
func TestShippedSample(t *testing.T) {
	const path = "../../examples/letor-sample.txt"
	var want bytes.Buffer
	if err := WriteSample(&want, 2000, 12, 60, 1); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what WriteSample makes: go test ./lab/letor -run ShippedSample -update "+
			"writes it anew", path)
	}

	const armsPath = "../../examples/letor-arms.csv"
	a, err := Cluster(context.Background(), opener(want.String()), Options{Clusters: 50, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var arms bytes.Buffer
	if err := a.WriteCSV(&arms); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(armsPath, arms.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err = os.ReadFile(armsPath); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, arms.Bytes()) {
		t.Errorf("%s is not what sotto letor makes of the sample: -update writes it anew", armsPath)
	}
}
