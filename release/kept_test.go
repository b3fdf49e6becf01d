package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

const keptWidth, keptLeaf, keptLeaves = 6, 3, 50

// A keptWorld is a service on a tree of leaves, with a store that crashes leave as it is: the lines
// and the state, written at once. It knows each node's noise, and holds each line against it.
type keptWorld struct {
	twin  string
	below func(n int) int // a choice
	src   *rand.Rand

	// the store
	lines     [][]byte
	states    [][]byte
	committed int // leaves
	store     map[node][keptWidth]int64

	leaves [][keptWidth]int64 // all, whoever has them

	// the process
	g      *gramFeatures[int64]
	line   bytes.Buffer
	drawn  [][keptWidth]int64 // since its last commit
	failAt int                // numbers that are drawn until one fails
}

// start is a process on what the store has.
func (w *keptWorld) start() error {
	w.line.Reset()
	ledger := privacy.NewLedger(privacy.WithTranscript(&w.line))
	f, err := exactFeatures(FeatureConfig{Dim: 2, Slots: 1, Ledger: ledger,
		Mechanism: privacy.GramTree{Sigma: 1, Horizon: keptLeaf*keptLeaves + 1, Leaf: keptLeaf}},
		rand.NewPCG(1, 2))
	if err != nil {
		return err
	}
	w.g, w.drawn, w.failAt = f.(*gramFeatures[int64]), nil, 0
	var before [keptWidth]int64
	*nodeOf(w.g.noise[0]) = func(dst []int64) error {
		var x [keptWidth]int64
		for i := range x {
			if w.failAt > 0 {
				if w.failAt--; w.failAt == 0 {
					return errDraw
				}
			}
			x[i] = int64(w.src.Uint64() >> 24)
		}
		w.drawn = append(w.drawn, x)
		switch {
		case w.twin == "half the noise":
			for i := range x {
				x[i] /= 2
			}
		case w.twin == "noise shared between nodes" && before != [keptWidth]int64{}:
			x = before
		}
		before = x
		for i, y := range x {
			dst[i] += y
		}
		return nil
	}
	var last privacy.ReleasedVector
	for _, text := range w.lines {
		if last, err = ledger.RestoreVector(text); err != nil {
			return err
		}
	}
	var state []byte
	if len(w.states) > 0 {
		state = w.states[len(w.states)-1]
	}
	switch w.twin {
	case "a state of one line ago":
		if len(w.states) < 2 {
			break
		}
		state = w.states[len(w.states)-2]
		if err := w.g.Restore(0, state, last); !errors.Is(err, ErrKept) {
			return fmt.Errorf("it is taken back: %v", err)
		}
		// As if nobody looked.
		var s kept
		if err := json.Unmarshal(state, &s); err != nil {
			return err
		}
		tree := w.g.noise[0].(*vectorTree[int64])
		tree.t = uint64(s.N / keptLeaf)
		copy(tree.stack[keptWidth:], s.Noise)
		copy(w.g.sum, s.Sum)
		w.g.n[0], w.g.shown[0], w.g.id[0] = s.N, s.N, s.Slot
		return nil
	case "shown noise drawn again":
		if err := w.g.Restore(0, state, last); err != nil {
			return err
		}
		w.g.noise[0].(*vectorTree[int64]).t = 0
		return nil
	}
	return w.g.Restore(0, state, last)
}

// step adds some leaves, releases them, and commits or crashes.
func (w *keptWorld) step() error {
	more := 1 + w.below(min(5, keptLeaves-w.committed))
	for i := w.committed; i < w.committed+more; i++ {
		sums := make([]int64, keptWidth)
		for range keptLeaf {
			a := []float64{float64(w.src.IntN(1<<19)-1<<18) / (1 << 19),
				float64(w.src.IntN(1<<19)-1<<18) / (1 << 19)}
			w.g.Products(sums, a, w.src.Float64()-0.5)
		}
		if i < len(w.leaves) { // a crash before: the records come again
			copy(sums, w.leaves[i][:])
		} else {
			w.leaves = append(w.leaves, [keptWidth]int64(sums))
		}
		if w.twin == "a record in two leaves" && i > 0 {
			for k, x := range w.leaves[i-1] {
				sums[k] += x / keptLeaf
			}
		}
		if err := w.g.AddSteps(0, keptLeaf, sums); err != nil {
			return err
		}
	}
	if _, err := w.g.State(0); err == nil {
		return errors.New("there is a state of records that were not released")
	}
	w.failAt = w.below(20)
	w.line.Reset()
	_, err := w.g.Release(0)
	for errors.Is(err, errDraw) {
		if w.below(2) == 0 {
			return w.start()
		}
		w.failAt = 0
		_, err = w.g.Release(0)
	}
	if err != nil {
		return fmt.Errorf("release after %d leaves: %w", w.committed+more, err)
	}
	state, err := w.g.State(0)
	if err != nil {
		return err
	}
	if w.below(3) == 0 { // nobody has seen it
		return w.start()
	}
	w.lines, w.states = append(w.lines, bytes.Clone(w.line.Bytes())), append(w.states, state)
	w.committed += more
	if err := w.look(); err != nil {
		return err
	}
	w.drawn = nil
	if w.below(3) == 0 {
		return w.start()
	}
	return nil
}

// look holds the last line against all leaves and all nodes, each of which has the noise that it
// was shown with first.
func (w *keptWorld) look() error {
	var want [keptWidth]int64
	for _, x := range w.leaves[:w.committed] {
		for i, y := range x {
			want[i] += y
		}
	}
	fresh := 0
	for _, x := range treeNodes(1, uint64(w.committed), 6) {
		if _, ok := w.store[x]; !ok {
			if fresh == len(w.drawn) {
				return fmt.Errorf("node %v was not drawn", x)
			}
			w.store[x] = w.drawn[fresh]
			fresh++
		}
		for i, y := range w.store[x] {
			want[i] += y
		}
	}
	if fresh != len(w.drawn) {
		return fmt.Errorf("%d nodes were drawn, must be %d", len(w.drawn), fresh)
	}
	var line struct {
		Slot   int
		N      int
		Vector []float64
	}
	if err := json.Unmarshal(w.lines[len(w.lines)-1], &line); err != nil {
		return err
	}
	if line.Slot != 0 || line.N != w.committed*keptLeaf {
		return fmt.Errorf("slot %d with %d records, must be 0 with %d", line.Slot, line.N, w.committed*keptLeaf)
	}
	for i, x := range line.Vector {
		if x*gridSteps != float64(want[i]) {
			return fmt.Errorf("after %d leaves number %d is %v steps, must be %d", w.committed, i, x*gridSteps,
				want[i])
		}
	}
	if total, one := w.g.ledger.Total().ZCDP(), w.g.charge.Loss().ZCDP(); total != one {
		return fmt.Errorf("it costs %v, must be %v: all prefixes once", total, one)
	}
	return nil
}

// play runs until all leaves are out.
func (w *keptWorld) play() error {
	w.store = map[node][keptWidth]int64{}
	if err := w.start(); err != nil {
		return err
	}
	for w.committed < keptLeaves {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// A restart, after a crash before the commit of a draw or after it, releases what one process would
// have: each node's noise is drawn once, and each release has all of its nodes and all records.
func TestKeptNoiseSurvives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &keptWorld{below: func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "choice") },
			src: rand.New(rand.NewPCG(1, rapid.Uint64().Draw(r, "seed")))}
		if err := w.play(); err != nil {
			r.Fatal(err)
		}
	})
	for _, twin := range []string{"half the noise", "noise shared between nodes", "a state of one line ago",
		"shown noise drawn again", "a record in two leaves"} {
		found := ""
		for seed := range uint64(20) {
			src := rand.New(rand.NewPCG(2, seed))
			w := &keptWorld{twin: twin, below: src.IntN, src: src}
			if err := w.play(); err != nil {
				found = err.Error()
				break
			}
		}
		if found == "" || strings.Contains(found, "taken back") {
			t.Errorf("%s: not found out: %q", twin, found)
		}
		t.Logf("%s: %s", twin, found)
	}
}

// A state is taken where its line is the last, and nowhere else.
func TestKeptErrors(t *testing.T) {
	w := &keptWorld{below: rand.New(rand.NewPCG(3, 1)).IntN, src: rand.New(rand.NewPCG(3, 2))}
	if err := w.play(); err != nil {
		t.Fatal(err)
	}
	of := func(m privacy.GramTree, lines int) (*gramFeatures[int64], privacy.ReleasedVector) {
		l := privacy.NewLedger()
		f, err := exactFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: m, Ledger: l}, rand.NewPCG(1, 2))
		must(t, err)
		var last privacy.ReleasedVector
		for _, text := range w.lines[:lines] {
			last, err = l.RestoreVector(text)
			must(t, err)
		}
		return f.(*gramFeatures[int64]), last
	}
	m := privacy.GramTree{Sigma: 1, Horizon: keptLeaf*keptLeaves + 1, Leaf: keptLeaf}
	all := len(w.lines)
	good := w.states[all-1]
	change := func(f func(s *kept)) []byte {
		var s kept
		must(t, json.Unmarshal(good, &s))
		f(&s)
		out, err := json.Marshal(s)
		must(t, err)
		return out
	}
	for name, c := range map[string]struct {
		m     privacy.GramTree
		lines int
		state []byte
		ok    bool
	}{
		"it":                  {m, all, good, true},
		"nothing yet":         {m, 0, nil, true},
		"no state":            {m, all, nil, false},
		"no line":             {m, 0, good, false},
		"the state before":    {m, all, w.states[all-2], false},
		"the line before":     {m, all - 1, good, false},
		"more noise":          {privacy.GramTree{Sigma: 2, Horizon: m.Horizon, Leaf: m.Leaf}, all, good, false},
		"other leaves":        {privacy.GramTree{Sigma: 1, Horizon: m.Horizon}, all, good, false},
		"half of it":          {m, all, good[:len(good)/2], false},
		"another field":       {m, all, slices.Concat([]byte(`{"more":1,`), good[1:]), false},
		"a sum too few":       {m, all, change(func(s *kept) { s.Sum = s.Sum[1:] }), false},
		"another sum":         {m, all, change(func(s *kept) { s.Sum[2]++ }), false},
		"other noise":         {m, all, change(func(s *kept) { s.Noise[len(s.Noise)-1]-- }), false},
		"no noise":            {m, all, change(func(s *kept) { s.Noise = nil }), false},
		"no records":          {m, all, change(func(s *kept) { s.N = 0 }), false},
		"half a leaf":         {m, all, change(func(s *kept) { s.N-- }), false},
		"too many records":    {m, all, change(func(s *kept) { s.N += keptLeaf }), false},
		"a slot that is none": {m, all, change(func(s *kept) { s.Slot = -1 }), false},
	} {
		g, last := of(c.m, c.lines)
		err := g.Restore(0, c.state, last)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrKept) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (g.n[0] != 0 || slices.ContainsFunc(g.sum, func(x int64) bool { return x != 0 })) {
			t.Errorf("%s: it is refused, and taken", name)
		}
		if again, err := g.State(0); c.ok && (err != nil || !bytes.Equal(again, c.state)) {
			t.Errorf("%s: it is another after the restart: %v", name, err)
		}
	}
	g, last := of(m, all)
	must(t, g.Restore(0, good, last))
	if err := g.Restore(0, good, last); err == nil {
		t.Error("a slot is put back twice")
	}
	if _, err := g.State(1); err == nil {
		t.Error("a slot that is not there has a state")
	}
	if err := g.Restore(-1, good, last); err == nil {
		t.Error("a slot that is not there has a state")
	}
	fast := buildFast(t)
	if _, err := fast.State(0); err == nil {
		t.Error("simulated noise has a state")
	}
	if err := fast.Restore(0, nil, last); err == nil {
		t.Error("simulated noise has a state")
	}
}

func buildFast(t *testing.T) *gramFeatures[float64] {
	t.Helper()
	c, err := buildGram(gramCase{m: privacy.GramTree{Sigma: 1, Horizon: 9}, square: true}, 1)
	must(t, err)
	return c
}

// Sums of products are those that Add makes of each record, of vectors and of matrices; and what no
// records have is refused.
func TestFeatureStepsAreTheRecords(t *testing.T) {
	for _, m := range []privacy.Mechanism{privacy.VectorGaussian{Sigma: 1}, privacy.GramGaussian{Sigma: 1},
		privacy.GramTree{Sigma: 1, Horizon: 60},
		privacy.GaussianVectorTree{Sigma: 1, Horizon: 60}} {
		rapid.Check(t, func(r *rapid.T) {
			const d = 3
			sumOf := func(c FeatureCurator) (n int, sum []int64) {
				switch c := c.(type) {
				case *features[int64]:
					return c.n[0], c.sum
				case *gramFeatures[int64]:
					return c.n[0], c.sum
				}
				panic("no such curator")
			}
			cfg := FeatureConfig{Dim: d, Slots: 1, Mechanism: m}
			one, err := RealFeatures(cfg)
			must(t, err)
			cfg.Ledger = nil
			real, err := RealFeatures(cfg)
			must(t, err)
			all := real.(StepFeatureCurator)
			sums := make([]int64, all.Width())
			n := rapid.IntRange(0, 60).Draw(r, "records")
			for range n {
				a, reward := recordOf(r, d)
				if rapid.IntRange(0, 9).Draw(r, "no number") == 0 {
					reward = math.NaN()
				}
				must(t, one.Add(0, a, reward))
				all.Products(sums, a, reward)
			}
			must(t, all.AddSteps(0, n, sums))
			gotN, got := sumOf(real)
			wantN, want := sumOf(one)
			if gotN != wantN || !slices.Equal(got, want) {
				r.Fatalf("%d records with %v, must be %d with %v", gotN, got, wantN, want)
			}
		})
		f, err := RealFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: m})
		must(t, err)
		c := f.(StepFeatureCurator)
		good := make([]int64, c.Width())
		square := c.Width() > 2
		for _, err := range []error{c.AddSteps(1, 1, good), c.AddSteps(-1, 1, good), c.AddSteps(0, -1, good),
			c.AddSteps(0, 1, good[1:]), c.AddSteps(0, math.MaxInt, good),
			c.AddSteps(0, 1, slices.Concat(good[1:], []int64{1<<20 + 1})),
			c.AddSteps(0, 1, slices.Concat(good[1:], []int64{-1<<20 - 1})),
			c.AddSteps(0, 0, slices.Concat(good[1:], []int64{1}))} {
			if err == nil {
				t.Errorf("%v: %v", m, err)
			}
		}
		for i := range good {
			good[i] = -1
			if err := c.AddSteps(0, 1, good); (err == nil) != (!square || i == 1 || i == 2 || i == 4) {
				t.Errorf("%v: −1 in number %d: %v", m, i, err)
			}
			good[i] = 0
		}
	}
	// A simulated curator takes steps as what they are a share of.
	fast := buildFast(t)
	sums := make([]int64, fast.Width())
	a := make([]float64, gramDim)
	a[0] = 0.5
	fast.Products(sums, a, -0.25)
	must(t, fast.AddSteps(1, 1, sums))
	if s := fast.sum[fast.width:]; fast.n[1] != 1 || s[0] != 0.25 || s[gramDim] != -0.125 ||
		s[fast.width-1] != 1.0/16 {
		t.Errorf("%d records with %v", fast.n[1], s)
	}
	fast.unclipped = true
	if fast.AddSteps(1, 1, sums) == nil {
		t.Error("an unclipped curator takes steps")
	}
}

// Releases are of whole leaves; a node has noise for a leaf, not for a record; bands hold.
func TestRealGramLeaves(t *testing.T) {
	g := realGram(t, 1, privacy.GramTree{Sigma: 1, Horizon: 13, Leaf: 4}, 0)
	draws := []int64{1, 20, 300}
	*nodeOf(g.noise[0]) = func(dst []int64) error {
		dst[0] += draws[0]
		draws = draws[1:]
		return nil
	}
	want := map[int]int64{4: 4*gridSteps + 1, 8: 8*gridSteps + 20, 12: 12*gridSteps + 320}
	for n := 1; n <= 13; n++ {
		must(t, g.Add(0, []float64{1}, 0))
		r, err := g.Release(0)
		if x, whole := want[n]; (err == nil) != whole || whole && inSteps(t, r)[0] != x {
			t.Errorf("after %d records: %v, must be %d steps", n, err, x)
		}
	}
	if err := g.Add(0, []float64{1}, 0); err == nil {
		t.Error("one more")
	}
	s := noise.NewFast(1, 2)
	fast, err := SimulatedFeatures(FeatureConfig{Dim: 1, Slots: 1,
		Mechanism: privacy.GramTree{Sigma: 1, Horizon: 13, Leaf: 4}}, &s)
	must(t, err)
	for n := 1; n <= 13; n++ {
		must(t, fast.Add(0, []float64{1}, 0))
		if _, err := fast.Release(0); (err == nil) != (n%4 == 0) {
			t.Errorf("simulated, after %d records: %v", n, err)
		}
	}
}
