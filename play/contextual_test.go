package play

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

	"github.com/sotto-dp/sotto/internal/testneeds"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Whatever happens in whatever order, with crashes at every point: segments end where det V says,
// each accepted reward is in exactly one release, after the last deadline of its segment, whose
// sums are those of accepted rewards and defaults, and which is handed out once; and what is played
// follows from the lines alone.
func TestContextualIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, err := newFlat(none, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.play(rapid.IntRange(1, 150).Draw(t, "steps"), func(n int, what string) int {
			return rapid.IntRange(0, n-1).Draw(t, what)
		}); err != nil {
			t.Fatal(err)
		}
	})
	lines, seeds := 0, testneeds.Size(3, 30)
	var noises []float64
	for seed := range uint64(seeds) {
		h, err := flatRun(none, seed, 1500)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		lines += len(h.lines)
		noises = append(noises, h.noises...)
	}
	if lines < 5*seeds {
		t.Errorf("%d lines in all: nothing was tested", lines)
	}
	if !loud(noises) {
		t.Errorf("%d noises are not those that are charged", len(noises))
	}
}

// Each broken twin is found by the same play, within a few seeds, by the model or by the machine
// itself, which survives them all when it is whole.
func TestContextualTwinsAreCaught(t *testing.T) {
	for f, name := range map[fault]string{countsTwice: "counts twice", closesEarly: "closes early",
		handsOut: "hands out", drawsAgain: "draws again", sameEpoch: "same epoch",
		countsLate: "counts late", keepsSegment: "keeps the segment", unclipped: "a weight is not clipped",
		looksAhead: "looks ahead", otherDefault: "another default"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				if _, err := flatRun(f, seed, 1500); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("not caught")
		})
	}
	// A rule without noise, and half the noise.
	var noises []float64
	for seed := range uint64(3) {
		h, err := flatRun(halfNoise, seed, 1500)
		if err != nil {
			t.Fatal(err)
		}
		noises = append(noises, h.noises...)
	}
	if len(noises) < 200 || loud(noises) {
		t.Errorf("half the noise is not found in %d", len(noises))
	}
	h, err := flatRun(silentRule, 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range h.quiet {
		if math.Abs(x) > 1e-6 {
			t.Fatal("the twin is not one")
		}
	}
	whole, err := flatRun(none, 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	still := 0
	for _, x := range whole.quiet {
		if math.Abs(x) < 1e-4 { // of Lap(5) and N(0,9) with probability below 3e-5 each
			still++
		}
	}
	if len(whole.quiet) < 20 || still > 2 {
		t.Errorf("%d of %d sums of rules have no noise", still, len(whole.quiet))
	}
}

// flatWorld plays a fixed traffic in which one unit, the one of decision 40, reports as she will,
// and writes down all that anybody sees until her reward is released.
func flatWorld(t *testing.T, twin fault, hers []report) string {
	t.Helper()
	const unit = 40
	s := noise.NewFast(1, 2)
	cfg := flatConfig()
	cfg.Policy, cfg.Epoch, cfg.Window = flatPolicy(), Epoch{1}, 50
	cfg.Curator = func(c release.FeatureConfig) (release.FeatureCurator, error) {
		return release.SimulatedFeatures(c, &s)
	}
	cfg.Sums = func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) }
	c, err := NewContextual(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	src := rand.New(rand.NewPCG(5, 6)) // of the traffic
	h := &flat{rng: src}
	var tickets []Ticket
	var mine Ticket
	settle := func(who string, k Ticket, reward float64, now int64) {
		s := c.s.Queue.find(k.Number)
		came := s != nil && s.Came.Has(k.Number-s.Start)
		status, err := c.Settle(k, reward, now)
		if twin == countsTwice && came { // this twin says so
			status = Late
		}
		if who != "" {
			fmt.Fprintln(&out, who, k, status, err)
		}
	}
	for now := int64(0); now < 2000; now++ {
		if src.IntN(3) > 0 {
			actions := h.set(5)
			best := c.Best(actions)
			weight := 5.0
			if src.IntN(5) == 0 {
				best, weight = src.IntN(5), 0
			}
			k, err := c.Decide(actions[best*flatDim:][:flatDim], []float64{weight, 2 * weight}, now)
			fmt.Fprintln(&out, now, "decides", best, k, err)
			if tickets = append(tickets, k); len(tickets) == unit+1 {
				mine = k
			}
		}
		for i, k := range tickets[max(0, len(tickets)-60):] {
			if src.IntN(4) == 0 && k != mine {
				settle("another", k, float64(i%2), now)
			}
		}
		if len(tickets) > unit {
			for _, r := range hers {
				if now == mine.Deadline-50+r.after {
					settle("", mine, r.reward, now)
				}
			}
			// somebody who knows her ticket, when she has had her say
			if src.IntN(3) == 0 && now >= mine.Deadline-20 {
				settle("observer", mine, 0, now)
			}
		}
		at, ok := c.Due(now)
		fmt.Fprintln(&out, "due", at, ok, c.Stopped(), c.Rules())
		when := now
		if g := c.s.Queue.Segments; twin == closesEarly && ok && g[0].Came.Len() == g[0].End-g[0].Start {
			when = at
		}
		commit, err := c.Close(when)
		if commit == nil {
			fmt.Fprintln(&out, "open", err)
			continue
		}
		if r := commit.Taken[0]; len(tickets) > unit && mine.Number >= r.Start && mine.Number < r.End {
			fmt.Fprintln(&out, "released at", now, commit.Taken)
			return out.String()
		}
		fmt.Fprintf(&out, "%s", commit.Line)
		if err := c.Commit(commit); err != nil {
			t.Fatal(err)
		}
		public := c.State()
		for i := range public.Queue.Segments {
			public.Queue.Segments[i].More, public.Queue.Segments[i].Came = nil, nil
		}
		fmt.Fprintf(&out, "%+v\n", public)
	}
	t.Fatal("her reward was never released")
	return ""
}

// Two runs that differ in one unit's reward, or in whether, how often or when she reports, are the
// same to everybody until her reward is released.
func TestContextualTwoWorlds(t *testing.T) {
	worlds := map[string][]report{
		"lowest": {{3, -1}}, "highest": {{3, 3}}, "later": {{28, 3}}, "twice": {{3, 1}, {4, 1}},
		"two rewards": {{3, 0}, {9, 1}}, "late": {{50, 1}}, "none": {{7, math.NaN()}},
		"out of range": {{1, 1e300}}, "thrice and late": {{1, 1}, {2, 1}, {49, 0}, {70, 1}},
	}
	silent := flatWorld(t, none, nil)
	if n := strings.Count(silent, "observer"); n < 3 {
		t.Errorf("the observer asked %d times", n)
	}
	if n := strings.Count(silent, `{"n":`); n < 3 {
		t.Errorf("there were %d releases before", n)
	}
	for name, hers := range worlds {
		if got := flatWorld(t, none, hers); got != silent {
			t.Errorf("%s: somebody sees it:\n%s", name, firstDifference(got, silent))
		}
	}
	for _, twin := range []fault{countsTwice, closesEarly} {
		base, same := flatWorld(t, twin, nil), true
		for _, hers := range worlds {
			same = same && flatWorld(t, twin, hers) == base
		}
		if same {
			t.Errorf("twin %d is not caught", twin)
		}
	}
}

// One reward, replaced by another, moves a rule's sum by at most a step's worth of 1, whatever its
// weight, and the vector's sums by at most 2 and its rounding in ℓ2.
func TestContextualSensitivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		weights := []float64{rapid.Float64Range(0, math.MaxFloat64).Draw(t, "w"), rng.Float64() * 30}
		vector := (&flat{rng: rng}).set(1)
		if rng.IntN(2) == 0 {
			vector = []float64{0, -1, 0}
		}
		var sums [2][]int64
		for i := range sums {
			cfg := flatConfig()
			cfg.Policy, cfg.Epoch = flatPolicy(), Epoch{1}
			c, err := NewContextual(cfg)
			if err != nil {
				t.Fatal(err)
			}
			k, err := c.Decide(vector, weights, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Settle(k, rapid.Float64().Draw(t, "reward"), 1); err != nil {
				t.Fatal(err)
			}
			s, _ := c.Segment(k.Number)
			sums[i] = s.More
		}
		var q float64
		for i := range flatDim {
			d := float64(sums[0][i]-sums[1][i]) / (1 << 20)
			q += d * d
		}
		if math.Sqrt(q) > 2+2e-9+math.Sqrt(flatDim)/(1<<20) {
			t.Fatalf("the vector's sums move by %v", math.Sqrt(q))
		}
		for i := flatDim; i < flatDim+2; i++ {
			if d := sums[0][i] - sums[1][i]; d > 1<<20 || d < -1<<20 {
				t.Fatalf("a rule's sum moves by %v", float64(d)/(1<<20))
			}
		}
	})
}

// By hand: d = 1, λ = 1, C = 1, one rule.
func TestContextualByHand(t *testing.T) {
	p, err := linear.NewOFUL(1, 100, privacy.None{}, linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	s := noise.NewFast(1, 2)
	c, err := NewContextual(ContextualConfig{Policy: p, Window: 10, Lo: 0, Hi: 10, Default: 5, Epoch: Epoch{1},
		Rules: []Rule{{Name: "other", Clip: 4, Mechanism: privacy.Gaussian{Sigma: 0}}},
		Curator: func(f release.FeatureConfig) (release.FeatureCurator, error) {
			return release.SimulatedFeatures(f, &s)
		},
		Sums: func(f release.Config) (release.Curator, error) { return release.Simulated(f, &s) }})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(x, w float64, now int64) Ticket {
		t.Helper()
		k, err := c.Decide([]float64{x}, []float64{w}, now)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	due := func(want int64, is bool) {
		t.Helper()
		if at, ok := c.Due(0); ok != is || ok && at != want {
			t.Errorf("due at %d, %t, want %d, %t", at, ok, want, is)
		}
	}
	if i := c.Best([]float64{0.5, -1}); i != 1 {
		t.Errorf("plays %d, want the longest", i)
	}
	first := decide(-1, 2, 0) // V = 2
	due(0, false)
	second := decide(0.5, 8, 3) // V = 2.25: more than twice 1
	due(13, true)
	decide(1, 0, 4) // of the next segment
	for _, r := range []struct {
		k      Ticket
		reward float64
		want   Status
	}{{first, 10, Accepted}, {first, 0, Accepted}, {Ticket{Number: 9}, 1, Void}, {second, 7.5, Accepted}} {
		if got, err := c.Settle(r.k, r.reward, 5); got != r.want || err != nil {
			t.Errorf("%+v: %v, %v, want %v", r.k, got, err, r.want)
		}
	}
	// −1·1 + 0.5·0.5 and (2·1 + 4·0.75)/4, in steps
	if g, ok := c.Segment(1); !ok || !slices.Equal(g.More, []int64{-3 << 18, 5 << 18}) || g.End != 2 {
		t.Errorf("the segment is %+v", g)
	}
	if out, err := c.Close(12); out != nil || err != nil {
		t.Errorf("closed before the deadline of the second: %v, %v", out, err)
	}
	out, err := c.Close(13)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"n":2,"gram":[1374389534720],"release":{"slot":0,"mechanism":{"mechanism":"vector-gaussian",` +
		`"sigma":0},"n":2,"vector":[-0.75]},"rules":[{"weights":1572864,"squares":1374389534720,"release":{` +
		`"slots":[0],"mechanism":{"mechanism":"gaussian","sigma":0},"n":[2],"sum":[1.25],` +
		`"tail":{"sigma":0,"h":0,"log":0}}}]}` + "\n"
	if string(out.Line) != want {
		t.Errorf("the line is %s, want %s", out.Line, want)
	}
	if _, err := c.Close(13); !errors.Is(err, ErrPending) {
		t.Errorf("closed again: %v", err)
	}
	if c.Rules()[0].N != 0 {
		t.Error("a release is told before its commit")
	}
	if err := c.Commit(out); err != nil {
		t.Fatal(err)
	}
	if theta, _ := p.Estimate(); math.Abs(theta[0]+0.75/2.25) > 1e-15 {
		t.Errorf("θ̃ is %v, want −1/3", theta)
	}
	// weights 2 and 8, clipped at 4; rewards 1 and 0.75 of the range
	e := c.Rules()[0]
	if e.N != 2 || e.Releases != 1 || e.Sum != 1.25 || e.Weights != 1.5 || e.Squares != 1.25 ||
		e.Mean() != 25 ||
		math.Abs(e.SelfNormalised()-10*1.25/1.5) > 1e-12 {
		t.Errorf("earned %+v: %v and %v", e, e.Mean(), e.SelfNormalised())
	}
	// The third counts as the default, 5 of 10, which is 0.
	decide(1, 1, 20) // V = 4.25
	decide(1, 1, 20) // V = 5.25
	due(30, true)
	if out, err = c.Close(30); err != nil || !strings.Contains(string(out.Line), `"vector":[0]`) {
		t.Errorf("the line of defaults is %s, %v", out.Line, err)
	}
}

func TestContextualErrors(t *testing.T) {
	cfg := func(f func(*ContextualConfig)) ContextualConfig {
		c := flatConfig()
		c.Policy, c.Epoch = flatPolicy(), Epoch{1}
		f(&c)
		return c
	}
	for want, c := range map[string]ContextualConfig{
		"play: policy is missing":          cfg(func(c *ContextualConfig) { c.Policy = nil }),
		"play: epoch is missing":           cfg(func(c *ContextualConfig) { c.Epoch = Epoch{} }),
		"play: horizon is -1":              cfg(func(c *ContextualConfig) { c.Horizon = -1 }),
		"play: default is NaN":             cfg(func(c *ContextualConfig) { c.Default = math.NaN() }),
		"play: default is 4":               cfg(func(c *ContextualConfig) { c.Default = 4 }),
		"play: window is 0":                cfg(func(c *ContextualConfig) { c.Window = 0 }),
		"range is [-Inf, 3]":               cfg(func(c *ContextualConfig) { c.Lo = math.Inf(-1) }),
		"play: rules[1]: clip is NaN":      cfg(func(c *ContextualConfig) { c.Rules[1].Clip = math.NaN() }),
		"play: rules[0]: clip is 0.5":      cfg(func(c *ContextualConfig) { c.Rules[0].Clip = 0.5 }),
		"play: rules[0]: clip is +Inf":     cfg(func(c *ContextualConfig) { c.Rules[0].Clip = math.Inf(1) }),
		`play: rules[1]: name is "always"`: cfg(func(c *ContextualConfig) { c.Rules[1].Name = "always" }),
		"play: rules[0]: mechanism is <nil>, must be Laplace or Gaussian": cfg(func(c *ContextualConfig) {
			c.Rules[0].Mechanism = nil
		}),
		"cannot be played live: the noise of its mechanism, gaussian-vector-tree, outlives a release": cfg(
			func(c *ContextualConfig) { c.Policy = treePolicy{flatPolicy()} }),
	} {
		if _, err := NewContextual(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c, err := NewContextual(cfg(func(*ContextualConfig) {}))
	if err != nil {
		t.Fatal(err)
	}
	inf, nan := math.Inf(1), math.NaN()
	for want, x := range map[string]struct {
		vector, weights []float64
		now, deadline   int64
	}{
		"play: the vector has 2 numbers, must have 3": {[]float64{0, 0}, []float64{1, 1}, 0, 1},
		"play: vector[1] is NaN, must be a multiple of 2^-20": {[]float64{0, nan, 0},
			[]float64{1, 1}, 0, 1},
		"play: vector[2] is +Inf, must be a multiple": {[]float64{0, 0, inf},
			[]float64{1, 1}, 0, 1},
		"play: vector[0] is 0.1, must be a multiple": {[]float64{0.1, 0, 0},
			[]float64{1, 1}, 0, 1},
		"play: vector[0] is 1.5, must be a multiple": {[]float64{1.5, 0, 0},
			[]float64{1, 1}, 0, 1},
		"play: the vector has norm 1.118": {[]float64{1, 0.5, 0},
			[]float64{1, 1}, 0, 1},
		"play: there are 1 weights, must be one for each of 2": {[]float64{1, 0, 0}, []float64{1}, 0, 1},
		"play: weights[1] is NaN, must be at least 0 and finite": {[]float64{1, 0, 0},
			[]float64{1, nan}, 0, 1},
		"play: weights[0] is -1, must be at least 0 and finite": {[]float64{1, 0, 0}, []float64{-1, 1}, 0, 1},
		"play: weights[0] is +Inf, must be at least 0 and finite": {[]float64{1, 0, 0},
			[]float64{inf, 1}, 0, 1},
		"play: the deadline is 7, must be after 7": {[]float64{1, 0, 0}, []float64{1, 1}, 7, 7},
		"play: the time is -4611686018427387904": {[]float64{1, 0, 0},
			[]float64{1, 1}, -1 << 62, 7},
	} {
		if _, err := c.DecideUntil(x.vector, x.weights, x.now, x.deadline); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if s := c.State(); s.Queue.Issued != 0 || len(s.Events) != 0 {
		t.Errorf("what is refused was decided: %+v", s)
	}
	if err := c.Commit(&Commit{}); err == nil {
		t.Error("committed what was not closed")
	}
	if _, err := c.Note(nil); err == nil {
		t.Error("noted nothing")
	}
	if err := c.SetWindow(-1); err == nil {
		t.Error("a window of -1")
	}
}

// treePolicy keeps secret noise from release to release.
type treePolicy struct{ *linear.OFUL }

func (treePolicy) Mechanism() privacy.Mechanism {
	return privacy.GaussianVectorTree{Sigma: 1, Horizon: 8}
}

// realRun plays a run with the curators for real rewards.
func realRun(t testing.TB, n int) (*Contextual, ContextualConfig, [][]byte) {
	t.Helper()
	cfg := flatConfig()
	cfg.Policy, cfg.Epoch, cfg.Horizon = flatPolicy(), Epoch{1}, n
	c, err := NewContextual(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &flat{rng: rand.New(rand.NewPCG(9, 9))}
	var lines [][]byte
	for now := int64(0); !c.Stopped() || len(c.s.Queue.Segments) > 0; now++ {
		if !c.Stopped() {
			a := h.set(3)
			k, err := c.Decide(a[c.Best(a)*flatDim:][:flatDim], []float64{1, float64(now % 2)}, now)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Settle(k, float64(now%4), now+1); err != nil {
				t.Fatal(err)
			}
		}
		out, err := c.Close(now)
		if err == nil && out == nil && now%20 == 7 && len(lines) < 6 {
			out, err = c.Note([]byte(`{"window":7}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		if out != nil {
			lines = append(lines, out.Line)
			if err := c.Commit(out); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg.Policy = flatPolicy()
	return c, cfg, lines
}

func listed(lines [][]byte) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// A transcript plays itself again, without a vector, and is refused where anything in it is other
// than the policy and the curators would have it.
func TestReplayContextual(t *testing.T) {
	c, cfg, lines := realRun(t, 400)
	r, err := ReplayContextual(cfg, listed(lines))
	if err != nil {
		t.Fatal(err)
	}
	if r.Decisions != 400 || r.Lines != len(lines) || r.Releases < 5 || r.Releases >= r.Lines ||
		!slices.Equal(r.Rules, c.Rules()) || r.Ledger.Total().ZCDP() != c.Ledger().Total().ZCDP() {
		t.Errorf("replayed %+v, the ledger has %v, the rules are %v", r, c.Ledger().Total(), c.Rules())
	}
	h := &flat{rng: rand.New(rand.NewPCG(1, 9))}
	for range 100 {
		if a := h.set(7); cfg.Policy.Best(a) != c.Best(a) {
			t.Fatal("what is played does not follow from the lines")
		}
	}
	edit := func(at int, old, by string) [][]byte {
		out := slices.Clone(lines)
		edited := strings.Replace(string(out[at]), old, by, 1)
		if edited == string(out[at]) {
			t.Errorf("line %d has no %s: %s", at, old, out[at])
		}
		out[at] = []byte(edited)
		return out
	}
	at := len(lines) - 2
	var l contextualLine
	if err := json.Unmarshal(lines[at], &l); err != nil {
		t.Fatal(err)
	}
	count := fmt.Sprintf(`"n":%d`, l.N)
	slot := fmt.Sprintf(`"slot":%d`, r.Releases-2)
	for name, twin := range map[string][][]byte{
		"a line less":      slices.Delete(slices.Clone(lines), at, at+1),
		"a line twice":     slices.Insert(slices.Clone(lines), at, lines[at]),
		"count":            edit(at, count, fmt.Sprintf(`"n":%d`, l.N+1)),
		"count of release": edit(at, count+`,"vector"`, fmt.Sprintf(`"n":%d,"vector"`, l.N+1)),
		"gram":             edit(at, `"gram":[`, `"gram":[-`),
		"short":            edit(at, `"gram":[`, `"gram":[0,`),
		"slot":             edit(at, slot, `"slot":0`),
		"mechanism":        edit(at, `"sigma":2`, `"sigma":3`),
		"a rule less":      edit(at, `,{"weights"`, `],"x":[{"weights"`),
		"weights":          edit(at, `"weights":`, `"weights":9999`),
		"squares":          edit(at, `"squares":`, `"squares":-`),
		"rule's slot":      edit(at, `"slots":[`, `"slots":[9`),
		"rule's mechanism": edit(at, `"mechanism":"laplace","scale":5`, `"mechanism":"laplace","scale":6`),
		"another field":    edit(at, `{"n"`, `{"m":1,"n"`),
		"a change besides": edit(at, `"rules"`, `"change":1,"rules"`),
		"spaces":           edit(at, `"rules":`, `"rules": `),
		"no line":          {[]byte("null")},
	} {
		cfg.Policy = flatPolicy()
		if _, err := ReplayContextual(cfg, listed(twin)); err == nil {
			t.Errorf("%s: no error", name)
		} else if !errors.Is(err, ErrState) && name != "no line" {
			t.Errorf("%s: %v does not match ErrState", name, err)
		}
	}
	// Half the noise is another mechanism.
	cfg.Policy = flatPolicy()
	cfg.Rules = slices.Clone(cfg.Rules)
	cfg.Rules[0].Mechanism = privacy.Gaussian{Sigma: 1.5}
	if _, err := ReplayContextual(cfg, listed(lines)); !errors.Is(err, ErrState) {
		t.Errorf("half a rule's noise: %v", err)
	}
}

// States that do not belong to their lines, or to no Contextual at all, are refused.
func TestContextualStates(t *testing.T) {
	cfg := flatConfig()
	cfg.Policy, cfg.Epoch = flatPolicy(), Epoch{1}
	c, err := NewContextual(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &flat{rng: rand.New(rand.NewPCG(9, 9))}
	for now := range int64(30) {
		k, err := c.Decide(h.set(1), []float64{1, 1}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Settle(k, 3, now); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.s.Queue.Segments); n < 3 || c.s.Queue.last().End != 0 {
		t.Fatalf("%d segments", n)
	}
	cfg.Epoch = Epoch{2}
	for name, spoil := range map[string]func(*ContextualState){
		"":               func(*ContextualState) {},
		"terms":          func(s *ContextualState) { s.Hi = 4 },
		"rules":          func(s *ContextualState) { s.Rules += "x" },
		"lines":          func(s *ContextualState) { s.Lines = 1 },
		"head":           func(s *ContextualState) { s.Queue.Head = 1 },
		"an event less":  func(s *ContextualState) { s.Events = s.Events[1:] },
		"events swapped": func(s *ContextualState) { s.Events[0], s.Events[1] = s.Events[1], s.Events[0] },
		"another vector": func(s *ContextualState) { s.Events[3].Vector = []float64{0, 0, 0} },
		"a long vector":  func(s *ContextualState) { s.Events[3].Vector = []float64{1, 1, 0} },
		"weights":        func(s *ContextualState) { s.Events[3].Weights = nil },
		"end":            func(s *ContextualState) { s.Queue.Segments[0].End++; s.Queue.Segments[1].Start++ },
		"cut":            func(s *ContextualState) { s.Queue.last().End = s.Queue.Issued },
		"end ahead":      func(s *ContextualState) { s.Queue.last().End = s.Queue.Issued + 1 },
		"sum":            func(s *ContextualState) { s.Queue.Segments[0].More[0] = 1 << 40 },
		"rule's sum":     func(s *ContextualState) { s.Queue.Segments[0].More[flatDim] = -1 },
		"sums":           func(s *ContextualState) { s.Queue.Segments[0].More = []int64{0} },
		"reward's sum":   func(s *ContextualState) { s.Queue.Segments[0].Sum = 1 },
		"gone":           func(s *ContextualState) { s.Queue.Segments[0].Gone = Set{1} },
		"off":            func(s *ContextualState) { s.Queue.Asked = 1 },
		"settles":        func(s *ContextualState) { s.Queue.Segments[0].Settles = math.MaxInt64 },
		"runs":           func(s *ContextualState) { s.Queue.Runs = nil },
		"epoch":          func(s *ContextualState) { s.Queue.Runs[0].Epoch = Epoch{2} },
	} {
		cfg.Policy = flatPolicy()
		s := c.State()
		spoil(&s)
		_, err := RestoreContextual(cfg, listed(nil), s)
		if (err == nil) != (name == "") || err != nil && name != "epoch" && !errors.Is(err, ErrState) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever a transcript has, it is replayed or refused, and what it costs is what its lines say.
func FuzzReplayContextual(f *testing.F) {
	_, cfg, lines := realRun(f, 60)
	f.Add(bytes.Join(lines, nil))
	f.Add(lines[0])
	f.Add([]byte(`{"change":{"window":5}}` + "\n" + `{"n":1,"gram":[0,0,0,0,0,0]}`))
	f.Add([]byte(`{"n":4194305,"gram":[-1],"release":null,"rules":[{"weights":1,"squares":-9,"release":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := cfg
		cfg.Policy = flatPolicy()
		r, err := ReplayContextual(cfg, listed(bytes.Split(bytes.TrimSpace(text), []byte("\n"))))
		if err != nil {
			return
		}
		if r.Decisions > 60 || r.Releases > r.Lines || len(r.Rules) != len(cfg.Rules) {
			t.Errorf("replayed %+v", r)
		}
		for _, e := range r.Rules {
			if e.N != r.Decisions || e.Releases != r.Releases || e.Squares > e.Weights+1e-9 {
				t.Errorf("earned %+v of %d decisions", e, r.Decisions)
			}
		}
	})
}

// A counting curator counts the products that it is asked for.
type counting struct {
	release.StepFeatureCurator
	n *int
}

func (c counting) Products(dst []int64, a []float64, reward float64) {
	*c.n++
	c.StepFeatureCurator.Products(dst, a, reward)
}

// How long others wait for a reward or for a release does not go by whose rewards came: each
// decision of a segment is added up once when it is released, and each reward once when it comes,
// the second of a decision as the first.
func TestContextualWorksAlike(t *testing.T) {
	work := func(each bool) (settling, closing int) {
		n, s := 0, noise.NewFast(1, 2)
		c, err := NewContextual(ContextualConfig{Policy: flatPolicy(), Window: 10, Epoch: Epoch{1},
			Horizon: flatHorizon, Curator: func(f release.FeatureConfig) (release.FeatureCurator, error) {
				real, err := release.SimulatedFeatures(f, &s)
				if err != nil {
					return nil, err
				}
				return counting{real.(release.StepFeatureCurator), &n}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		var all []Ticket
		for i := 0; ; i++ {
			if _, ok := c.Due(0); ok {
				break
			}
			a := make([]float64, flatDim)
			a[i%flatDim] = 1.0 / 16
			k, err := c.Decide(a, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, k)
		}
		for _, k := range all {
			if !each {
				k = all[0]
			}
			if _, err := c.Settle(k, 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		settling, n = n, 0
		if out, err := c.Close(10); out == nil || err != nil {
			t.Fatal(out, err)
		}
		if len(all) < 20 || n != len(all) {
			t.Errorf("%d of %d decisions are added up at the release", n, len(all))
		}
		return settling, n
	}
	all, closed := work(true)
	one, again := work(false)
	if all != one || closed != again {
		t.Errorf("%d and %d products with a reward each, %d and %d with all for one", all, closed, one, again)
	}
}
