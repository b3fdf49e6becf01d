package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// One reward, replaced by another, moves a rule's sum by at most a step's worth of 1, whatever its
// weight, and the vector's sums by at most 2 and its rounding in ℓ2.
func TestContextualSensitivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		weights := []float64{rapid.Float64Range(0, math.MaxFloat64).Draw(t, "w"), rng.Float64() * 30}
		vector := decisionSet(rng, 1)
		if rng.IntN(2) == 0 {
			vector = []float64{0, -1, 0}
		}
		var sums [2][]int64
		for i := range sums {
			cfg := flatConfig()
			cfg.Contexts, cfg.Epoch = flatPolicy(), Epoch{1}
			c, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			k, err := c.Decide(Decision{Vector: vector, Weights: weights}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Settle(k, rapid.Float64().Draw(t, "reward"), 1); err != nil {
				t.Fatal(err)
			}
			s, _ := c.Segment(0, k.Number)
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
	c, err := New(Config{Contexts: p, Window: 10, Lo: 0, Hi: 10, Default: 5, Epoch: Epoch{1},
		Rules: []Rule{{Name: "other", Clip: 4, Mechanism: privacy.Gaussian{Sigma: 0}}},
		Vectors: func(f release.FeatureConfig) (release.FeatureCurator, error) {
			return release.SimulatedFeatures(f, &s)
		},
		Curator: func(f release.Config) (release.Curator, error) { return release.Simulated(f, &s) }})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(x, w float64, now int64) Ticket {
		t.Helper()
		k, err := c.Decide(Decision{Vector: []float64{x}, Weights: []float64{w}}, now)
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
	if g, ok := c.Segment(0, 1); !ok || !slices.Equal(g.More, []int64{-3 << 18, 5 << 18}) || g.End != 2 {
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
	cfg := func(f func(*Config)) Config {
		c := flatConfig()
		c.Contexts, c.Epoch = flatPolicy(), Epoch{1}
		f(&c)
		return c
	}
	for want, c := range map[string]Config{
		"play: policy is missing":          cfg(func(c *Config) { c.Contexts = nil }),
		"play: epoch is missing":           cfg(func(c *Config) { c.Epoch = Epoch{} }),
		"play: horizon is -1":              cfg(func(c *Config) { c.Horizon = -1 }),
		"play: default is NaN":             cfg(func(c *Config) { c.Default = math.NaN() }),
		"play: default is 4":               cfg(func(c *Config) { c.Default = 4 }),
		"play: window is 0":                cfg(func(c *Config) { c.Window = 0 }),
		"range is [-Inf, 3]":               cfg(func(c *Config) { c.Lo = math.Inf(-1) }),
		"play: rules[1]: clip is NaN":      cfg(func(c *Config) { c.Rules[1].Clip = math.NaN() }),
		"play: rules[0]: clip is 0.5":      cfg(func(c *Config) { c.Rules[0].Clip = 0.5 }),
		"play: rules[0]: clip is +Inf":     cfg(func(c *Config) { c.Rules[0].Clip = math.Inf(1) }),
		`play: rules[1]: name is "always"`: cfg(func(c *Config) { c.Rules[1].Name = "always" }),
		"play: rules[0]: mechanism is <nil>, must be Laplace or Gaussian": cfg(func(c *Config) {
			c.Rules[0].Mechanism = nil
		}),
		"play: contexts are given, must not be beside": cfg(func(c *Config) { c.Policy = asks(1) }),
		"must be none with contexts":                   cfg(func(c *Config) { c.Arms = 2 }),
		"cannot be played live: the noise of its mechanism, gaussian-vector-tree, outlives a release": cfg(
			func(c *Config) {
				c.Contexts = noisePolicy{flatPolicy(), privacy.GaussianVectorTree{Sigma: 1, Horizon: 8}}
			}),
		"cannot be played live: the noise of its mechanism, vector-laplace, is of a kind that live play has no": cfg(
			func(c *Config) { c.Contexts = noisePolicy{flatPolicy(), privacy.VectorLaplace{Scale: 1}} }),
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c, err := New(cfg(func(*Config) {}))
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
		if _, err := c.DecideUntil(Decision{Vector: x.vector, Weights: x.weights}, x.now, x.deadline); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if s := c.State(); s.Arms[0].Issued != 0 || len(s.Events) != 0 {
		t.Errorf("what is refused was decided: %+v", s)
	}
	if err := c.Commit(&Commit{}); err == nil {
		t.Error("committed what was not closed")
	}
	if _, err := c.Note(nil); err == nil {
		t.Error("noted nothing")
	}
	if err := c.SetWindow(-1, 0); err == nil {
		t.Error("a window of -1")
	}
}

// What is of arms alone, or of contexts alone, is refused or nothing with the other.
func TestOfOneSideAlone(t *testing.T) {
	arms, err := New(Config{Policy: asks(5), Arms: 2, Window: 160, Epoch: Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := flatConfig()
	cfg.Contexts, cfg.Epoch = flatPolicy(), Epoch{1}
	contexts, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Decision{{Vector: []float64{0}}, {Weights: []float64{1}}} {
		if _, err := arms.Decide(d, 0); err == nil || !strings.Contains(err.Error(), "must be none without") {
			t.Errorf("%+v is decided of arms: %v", d, err)
		}
	}
	if _, err := contexts.Decide(Decision{Arm: 1, Vector: make([]float64, flatDim)}, 0); err == nil {
		t.Error("arm 1 is decided of contexts")
	}
	for _, has := range []func(*State){func(s *State) { s.Events = []Event{{}} },
		func(s *State) { s.Kept = []byte{1} }} {
		s := arms.State()
		has(&s)
		if _, err := Restore(Config{Policy: asks(5), Arms: 2, Window: 160, Epoch: Epoch{2}}, listed(nil),
			s); !errors.Is(err, ErrState) {
			t.Errorf("arms are restored with vectors: %v", err)
		}
	}
	if arms.Best([]float64{1}) != -1 || arms.Kept() != nil || arms.Rules() != nil {
		t.Error("arms have a vector's choice, a state that is kept or rules")
	}
	if contexts.Arm() != -1 || contexts.Offer() != -1 || contexts.Out() != nil {
		t.Error("contexts have an arm or a batch")
	}
	k, err := contexts.Decide(Decision{Vector: make([]float64, flatDim), Weights: []float64{1, 1}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Withdraw(k, 0); !errors.Is(err, ErrExact) {
		t.Errorf("a decision with a context is withdrawn: %v", err)
	}
	if _, err := contexts.TakeOff(0); err == nil || !strings.Contains(err.Error(), "no arm can be taken off") {
		t.Errorf("contexts are taken off: %v", err)
	}
	if _, err := contexts.CloseGathered(90, nil); err == nil || !strings.Contains(err.Error(), "gathered sums") {
		t.Errorf("contexts are gathered: %v", err)
	}
	if err := contexts.SetWindow(40, 1); err != nil {
		t.Fatal(err)
	}
	if at, ok := contexts.Due(20); ok || contexts.s.Arms[0].Segments[0].End != 0 {
		t.Errorf("the clock has cut a segment with contexts, which is due at %d", at)
	}
}

// noisePolicy has another mechanism.
type noisePolicy struct {
	*linear.OFUL
	m privacy.Mechanism
}

func (p noisePolicy) Mechanism() privacy.Mechanism { return p.m }

// realRun plays a run with the curators for real rewards.
func realRun(t testing.TB, n int) (*Live, Config, [][]byte) {
	t.Helper()
	cfg := flatConfig()
	cfg.Contexts, cfg.Epoch, cfg.Horizon = flatPolicy(), Epoch{1}, n
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	var lines [][]byte
	for now := int64(0); !c.Stopped() || len(c.s.Arms[0].Segments) > 0; now++ {
		if !c.Stopped() {
			a := decisionSet(rng, 3)
			k, err := c.Decide(Decision{Vector: a[c.Best(a)*flatDim:][:flatDim],
				Weights: []float64{1, float64(now % 2)}}, now)
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
	cfg.Contexts = flatPolicy()
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
func TestReplayContexts(t *testing.T) {
	c, cfg, lines := realRun(t, 400)
	r, err := Replay(cfg, listed(lines))
	if err != nil {
		t.Fatal(err)
	}
	if r.Released[0] != 400 || r.Lines != len(lines) || r.Batches < 5 || r.Batches >= r.Lines ||
		r.Batches != r.Releases[0] || !r.Stopped || c.Batches() != r.Batches ||
		!slices.Equal(r.Rules, c.Rules()) || r.Ledger.Total().ZCDP() != c.Ledger().Total().ZCDP() {
		t.Errorf("replayed %+v, the ledger has %v, the rules are %v", r, c.Ledger().Total(), c.Rules())
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for range 100 {
		if a := decisionSet(rng, 7); cfg.Contexts.Best(a) != c.Best(a) {
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
	var l line
	if err := json.Unmarshal(lines[at], &l); err != nil {
		t.Fatal(err)
	}
	count := fmt.Sprintf(`"n":%d`, l.N)
	slot := fmt.Sprintf(`"slot":%d`, r.Batches-2)
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
		"a line of arms":   edit(at, `"rules"`, `"metrics":[],"rules"`),
		"no line":          {[]byte("null")},
	} {
		cfg.Contexts = flatPolicy()
		if _, err := Replay(cfg, listed(twin)); err == nil {
			t.Errorf("%s: no error", name)
		} else if !errors.Is(err, ErrState) && name != "no line" {
			t.Errorf("%s: %v does not match ErrState", name, err)
		}
	}
	// Half the noise is another mechanism.
	cfg.Contexts = flatPolicy()
	cfg.Rules = slices.Clone(cfg.Rules)
	cfg.Rules[0].Mechanism = privacy.Gaussian{Sigma: 1.5}
	if _, err := Replay(cfg, listed(lines)); !errors.Is(err, ErrState) {
		t.Errorf("half a rule's noise: %v", err)
	}
}

// States that do not belong to their lines, or to no Contextual at all, are refused.
func TestStates(t *testing.T) {
	cfg := flatConfig()
	cfg.Contexts, cfg.Epoch = flatPolicy(), Epoch{1}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	for now := range int64(30) {
		k, err := c.Decide(Decision{Vector: decisionSet(rng, 1), Weights: []float64{1, 1}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Settle(k, 3, now); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.s.Arms[0].Segments); n < 3 || c.s.Arms[0].last().End != 0 {
		t.Fatalf("%d segments", n)
	}
	cfg.Epoch = Epoch{2}
	for name, spoil := range map[string]func(*State){
		"":               func(*State) {},
		"terms":          func(s *State) { s.Hi = 4 },
		"rules":          func(s *State) { s.Sums += "x" },
		"lines":          func(s *State) { s.Lines = 1 },
		"head":           func(s *State) { s.Arms[0].Head = 1 },
		"an event less":  func(s *State) { s.Events = s.Events[1:] },
		"events swapped": func(s *State) { s.Events[0], s.Events[1] = s.Events[1], s.Events[0] },
		"another vector": func(s *State) { s.Events[3].Vector = []float64{0, 0, 0} },
		"a long vector":  func(s *State) { s.Events[3].Vector = []float64{1, 1, 0} },
		"weights":        func(s *State) { s.Events[3].Weights = nil },
		"end":            func(s *State) { s.Arms[0].Segments[0].End++; s.Arms[0].Segments[1].Start++ },
		"cut":            func(s *State) { s.Arms[0].last().End = s.Arms[0].Issued },
		"end ahead":      func(s *State) { s.Arms[0].last().End = s.Arms[0].Issued + 1 },
		"sum":            func(s *State) { s.Arms[0].Segments[0].More[0] = 1 << 40 },
		"rule's sum":     func(s *State) { s.Arms[0].Segments[0].More[flatDim] = -1 },
		"sums":           func(s *State) { s.Arms[0].Segments[0].More = []int64{0} },
		"reward's sum":   func(s *State) { s.Arms[0].Segments[0].Sum = 1 },
		"gone":           func(s *State) { s.Arms[0].Segments[0].Gone = Set{1} },
		"off":            func(s *State) { s.Arms[0].Asked = 1 },
		"a batch":        func(s *State) { s.Batch = []policy.Play{} },
		"queues":         func(s *State) { s.Arms = append(s.Arms, Queue{}) },
		"settles":        func(s *State) { s.Arms[0].Segments[0].Settles = math.MaxInt64 },
		"runs":           func(s *State) { s.Arms[0].Runs = nil },
		"epoch":          func(s *State) { s.Arms[0].Runs[0].Epoch = Epoch{2} },
	} {
		cfg.Contexts = flatPolicy()
		s := c.State()
		spoil(&s)
		_, err := Restore(cfg, listed(nil), s)
		if (err == nil) != (name == "") || err != nil && name != "epoch" && !errors.Is(err, ErrState) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever a transcript has, it is replayed or refused, and what it costs is what its lines say.
func FuzzReplayContexts(f *testing.F) {
	_, cfg, lines := realRun(f, 60)
	f.Add(bytes.Join(lines, nil))
	f.Add(lines[0])
	f.Add([]byte(`{"change":{"window":5}}` + "\n" + `{"n":1,"gram":[0,0,0,0,0,0]}`))
	f.Add([]byte(`{"n":4194305,"gram":[-1],"release":null,"rules":[{"weights":1,"squares":-9,"release":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := cfg
		cfg.Contexts = flatPolicy()
		r, err := Replay(cfg, listed(bytes.Split(bytes.TrimSpace(text), []byte("\n"))))
		if err != nil {
			return
		}
		if r.Released[0] > 60 || r.Releases[0] > r.Lines || len(r.Rules) != len(cfg.Rules) {
			t.Errorf("replayed %+v", r)
		}
		for _, e := range r.Rules {
			if e.N != r.Released[0] || e.Releases != r.Releases[0] || e.Squares > e.Weights+1e-9 {
				t.Errorf("earned %+v of %d decisions", e, r.Released[0])
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
		c, err := New(Config{Contexts: flatPolicy(), Window: 10, Epoch: Epoch{1},
			Horizon: flatHorizon, Vectors: func(f release.FeatureConfig) (release.FeatureCurator, error) {
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
			k, err := c.Decide(Decision{Vector: a}, 0)
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

// Nor does what is allocated: a segment to which no reward came has no sums yet.
func TestContextualAllocatesAlike(t *testing.T) {
	allocated := func(rewards int) uint64 {
		c, err := New(Config{Contexts: flatPolicy(), Window: 10, Epoch: Epoch{1}, Horizon: flatHorizon})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			if _, ok := c.Due(0); ok {
				break
			}
			k, err := c.Decide(Decision{Vector: make([]float64, flatDim)}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if i < rewards {
				if _, err := c.Settle(k, 1, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.side.head()
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	least := func(rewards int) uint64 { // the runtime allocates too, now and then
		n := allocated(rewards)
		for range 9 {
			n = min(n, allocated(rewards))
		}
		return n
	}
	if none, some := least(0), least(5); none != some {
		t.Errorf("%d allocations for a segment without a reward, %d with five", none, some)
	}
}
