package play

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testneeds"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

const (
	jointDim     = 2
	jointWidth   = 6
	jointLeaf    = 4
	jointHorizon = 240
	jointRho     = 5000 // so that a record counts beside the noise
)

// A clinic is a Contextual under joint privacy with a store, and a model of both that keeps every
// record. The curator is that of real records, whose noise nobody knows: what a line adds to the
// records is noise, and what it adds to the noise of the line that it grew from is one node's.
type clinic struct {
	twin   string
	rng    *rand.Rand
	live   *Contextual
	epochs uint64

	lines [][]byte
	state ContextualState

	now      int64
	tickets  []Ticket
	rewards  map[Ticket]float64
	durable  map[Ticket]float64
	vectors  map[Ticket][]float64
	released int
	handed   [][]float64

	truth []float64         // of the records that were released, in units
	noise map[int][]float64 // by leaves, of lines
	fresh []float64         // noise of each node over its scale
	sums  map[int][]int64   // of twins: what a curator was given, by its first decision
}

func jointPolicy(rho float64) *linear.LinUCB {
	p, err := linear.NewLinUCB(jointDim, jointHorizon, privacy.ZCDP{Rho: rho}, linear.LinUCBOptions{Lambda: 0.5,
		Risk: 0.01, Noise: linear.GramTree, Step: release.ExactStep, Leaf: jointLeaf})
	if err != nil {
		panic(err)
	}
	return p
}

// A pupil says what it learns.
type pupil struct {
	*linear.LinUCB
	learn func(privacy.ReleasedVector)
}

func (p pupil) Learn(r privacy.ReleasedVector) {
	p.learn(r)
	p.LinUCB.Learn(r)
}

// A liar has a curator of its own under it, and tells its ledger of the mechanism.
type liar struct {
	release.KeptCurator
	ledger *privacy.Ledger
	m      privacy.Mechanism
}

func (c *liar) Ledger() *privacy.Ledger { return c.ledger }

func (c *liar) Release(slot int) (privacy.ReleasedVector, error) {
	r, err := c.KeptCurator.Release(slot)
	if err != nil {
		return r, err
	}
	v := privacy.Vector{N: r.N(), Value: make([]float64, r.Len())}
	for i := range v.Value {
		v.Value[i] = r.At(i)
	}
	return c.ledger.ReleaseVector(0, c.m, &v)
}

// A forgetful liar draws shown noise again after a restart: it keeps the sums alone.
type forgetful struct {
	liar
	h *clinic
}

func (c *forgetful) AddSteps(slot, n int, sums []int64) error {
	c.h.sums[c.h.released] = slices.Clone(sums)
	return c.KeptCurator.AddSteps(slot, n, sums)
}

func (c *forgetful) State(int) ([]byte, error) { return []byte("{}"), nil }

func (c *forgetful) Restore(_ int, state []byte, _ privacy.ReleasedVector) error {
	for n := 0; n < c.h.released && state != nil; n += jointLeaf {
		if err := c.KeptCurator.AddSteps(0, jointLeaf, c.h.sums[n]); err != nil {
			return err
		}
	}
	return nil
}

// Of a twofold one a leaf has a record of the leaf before.
type twofold struct {
	release.KeptCurator
	h *clinic
}

func (c *twofold) AddSteps(slot, n int, sums []int64) error {
	c.h.sums[c.h.released] = slices.Clone(sums)
	all := slices.Clone(sums)
	for i, x := range c.h.sums[c.h.released-jointLeaf] {
		all[i] += x / jointLeaf // their mean is as good as any
	}
	return c.KeptCurator.AddSteps(slot, n, all)
}

func (h *clinic) config() ContextualConfig {
	h.epochs++
	taught := 0
	cfg := ContextualConfig{Horizon: jointHorizon, Lo: -1, Hi: 3, Default: 0.5, Window: 20}
	binary.BigEndian.PutUint64(cfg.Epoch[:], h.epochs)
	cfg.Policy = pupil{jointPolicy(jointRho), func(r privacy.ReleasedVector) {
		got := []float64{float64(r.N())}
		for i := range r.Len() {
			got = append(got, r.At(i))
		}
		switch {
		case taught >= len(h.lines):
			panic(caught("release %d was handed out before it was durable", taught))
		case taught >= len(h.handed):
			h.handed = append(h.handed, got)
		case !slices.Equal(h.handed[taught], got):
			panic(caught("release %d was handed out as %v and as %v", taught, h.handed[taught], got))
		}
		taught++
	}}
	cfg.Curator = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
		honest := fc
		m := fc.Mechanism.(privacy.GramTree)
		switch h.twin {
		case "half the noise":
			m.Sigma /= 2
			fallthrough
		case "noise drawn again":
			fc.Mechanism, fc.Ledger = m, privacy.NewLedger()
		}
		c, err := release.RealFeatures(fc)
		if err != nil {
			return nil, err
		}
		kept := c.(release.KeptCurator)
		l := liar{kept, honest.Ledger, honest.Mechanism}
		switch h.twin {
		case "half the noise":
			return &l, nil
		case "noise drawn again":
			return &forgetful{l, h}, nil
		case "a record in two leaves":
			return &twofold{kept, h}, nil
		}
		return c, nil
	}
	return cfg
}

func newClinic(twin string, seed uint64) (*clinic, error) {
	h := &clinic{twin: twin, rng: rand.New(rand.NewPCG(seed, 9)), rewards: map[Ticket]float64{},
		durable: map[Ticket]float64{}, vectors: map[Ticket][]float64{}, sums: map[int][]int64{}, truth: make([]float64, jointWidth),
		noise: map[int][]float64{0: make([]float64, jointWidth)}}
	var err error
	if h.live, err = NewContextual(h.config()); err != nil {
		return nil, err
	}
	h.write()
	return h, nil
}

func (h *clinic) write() { h.state, h.durable = h.live.State(), maps.Clone(h.rewards) }

func (h *clinic) decide() error {
	actions := make([]float64, 3*jointDim)
	for i := range actions {
		actions[i] = float64(h.rng.IntN(1<<20)-1<<19) / (1 << 20)
	}
	best := h.live.Best(actions)
	// What is played is what the lines alone say.
	if h.live.pending == nil && h.rng.IntN(10) == 0 {
		p := jointPolicy(jointRho)
		cfg := h.config()
		cfg.Policy = p
		c, err := buildContextual(cfg)
		if err == nil {
			past := c.past()
			err = follow(h.written(), past.add, &past.lines)
		}
		if err != nil {
			return err
		}
		if want := p.Best(actions); want != best {
			return caught("plays %d, and what was released says %d", best, want)
		}
	}
	a := actions[best*jointDim:][:jointDim]
	number := h.live.s.Queue.Issued
	t, err := h.live.Decide(a, nil, h.now)
	if (number >= jointHorizon) != errors.Is(err, ErrStopped) {
		return caught("decision %d: %v", number, err)
	}
	if err != nil {
		return err
	}
	h.tickets = append(h.tickets, t)
	h.vectors[t] = slices.Clone(a)
	for _, s := range h.live.s.Queue.Segments {
		if s.Start%jointLeaf != 0 || s.End != 0 && s.End != s.Start+jointLeaf {
			return caught("a segment from %d to %d", s.Start, s.End)
		}
	}
	return nil
}

func (h *clinic) settle(back int, reward float64) error {
	if len(h.tickets) == 0 {
		return nil
	}
	t := h.tickets[len(h.tickets)-1-min(back, len(h.tickets)-1)]
	got, err := h.live.Settle(t, reward, h.now)
	if err != nil {
		return err
	}
	if _, again := h.rewards[t]; got == Accepted && !again {
		h.rewards[t] = reward
	}
	return nil
}

func (h *clinic) written() func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		for _, line := range h.lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

func (h *clinic) crash() (err error) {
	h.rewards = maps.Clone(h.durable)
	for t := range h.vectors {
		if t.Number >= h.state.Queue.Issued {
			delete(h.rewards, t)
			delete(h.vectors, t)
		}
	}
	if h.live, err = RestoreContextual(h.config(), h.written(), h.state); err != nil {
		return err
	}
	a, b := h.live.State(), h.state
	a.Queue.Runs, b.Queue.Runs = nil, nil
	if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
		return caught("restored\n%s, stored was\n%s", x, y)
	}
	return nil
}

func (h *clinic) close(crash int) error {
	before := h.live.State()
	c, err := h.live.Close(h.now)
	if err != nil || c == nil {
		return err
	}
	if crash == beforeWrite { // nobody has seen what was drawn
		return h.crash()
	}
	if err := h.judge(c); err != nil {
		return err
	}
	h.lines = append(h.lines, c.Line)
	h.write()
	if h.twin == "its state put back one line" {
		h.state.Kept = before.Kept
	}
	if crash == afterWrite {
		return h.crash()
	}
	if err := h.live.Commit(c); err != nil {
		return err
	}
	if crash == afterCommit {
		return h.crash()
	}
	return nil
}

// judge holds a line that becomes durable against the records, and keeps its noise.
func (h *clinic) judge(c *Commit) error {
	var line contextualLine
	if err := readLine(c.Line, &line); err != nil {
		return err
	}
	if line.Gram != nil || line.Rules != nil || line.N != jointLeaf {
		return caught("a line tells %s", c.Line)
	}
	took := c.Taken[0]
	if took.Start != h.released || took.End != h.released+jointLeaf {
		return caught("%+v was taken after %d", took, h.released)
	}
	h.released = took.End
	for t, a := range h.vectors {
		if t.Number < took.Start || t.Number >= took.End {
			continue
		}
		if h.now < t.Deadline {
			return caught("released at %d, before the deadline of %+v", h.now, t)
		}
		r, came := h.rewards[t]
		if !came {
			r = 0.5
		}
		if r != r {
			r = -1
		}
		z := append(slices.Clone(a), (min(max(r, -1), 3)+1)/2-1)
		at := 0
		for i := range z {
			for j := i; j < len(z); j++ {
				h.truth[at] += math.Round(z[i]*z[j]*(1<<20)) / (1 << 20)
				at++
			}
		}
	}
	var text struct {
		N      int
		Vector []float64
	}
	if err := json.Unmarshal(line.Release, &text); err != nil {
		return err
	}
	leaves := h.released / jointLeaf
	if text.N != h.released {
		return caught("a release of %d records after %d", text.N, h.released)
	}
	noise := slices.Clone(text.Vector)
	m := jointPolicy(jointRho).Mechanism().(privacy.GramTree)
	for i := range noise {
		noise[i] -= h.truth[i]
		scale := m.Sigma
		if i == 0 || i == 3 || i == 5 {
			scale *= math.Sqrt2
		}
		// the line that it has all but one node from
		h.fresh = append(h.fresh, (noise[i]-h.noise[leaves&(leaves-1)][i])/scale)
	}
	h.noise[leaves] = noise
	if got := h.live.Ledger().Total().ZCDP(); math.Abs(got-jointRho) > 1e-6*jointRho {
		return caught("the ledger has %v, must have %v", got, jointRho)
	}
	return nil
}

func (h *clinic) step(pick choice) error {
	switch pick(10, "what") {
	case 0, 1, 2, 3:
		return h.decide()
	case 4, 5, 6:
		return h.settle(pick(30, "back"), []float64{-1, 3, 0.25, -3, 7, math.NaN()}[pick(6, "reward")])
	case 7:
		h.write()
		if pick(3, "crash") == 0 {
			return h.crash()
		}
	case 8, 9:
		h.now += int64(pick(8, "time"))
		return h.close(pick(places, "place"))
	}
	return nil
}

func (h *clinic) play(steps int, pick choice) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok || !errors.Is(e, errCaught) {
				panic(r)
			}
			err = e
		}
	}()
	for i := range steps {
		if err := h.step(pick); err != nil && !errors.Is(err, ErrStopped) {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// clinics plays long runs, and says what is wrong with them; the noises are those of all.
func clinics(twin string, seeds, steps int) (noises []float64, lines int, err error) {
	for seed := range uint64(seeds) {
		h, err := newClinic(twin, seed)
		if err != nil {
			return nil, 0, err
		}
		src := rand.New(rand.NewPCG(seed, 3))
		if err := h.play(steps, func(n int, _ string) int { return src.IntN(n) }); err != nil {
			return nil, 0, fmt.Errorf("seed %d: %w", seed, err)
		}
		noises, lines = append(noises, h.fresh...), lines+len(h.lines)
	}
	return noises, lines, nil
}

// Under joint privacy, whatever happens in whatever order, with crashes at every point: batches end
// by count, each line has all records up to its batch and the noise of its nodes, each of which was
// drawn once, a restart later too, and it costs the budget. Noise is that of its law, but for one
// run in a million.
func TestJointContextualIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, err := newClinic("", rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.play(rapid.IntRange(1, 150).Draw(t, "steps"), func(n int, what string) int {
			return rapid.IntRange(0, n-1).Draw(t, what)
		}); err != nil {
			t.Fatal(err)
		}
	})
	noises, lines, err := clinics("", testneeds.Size(2, 20), 600)
	if err != nil {
		t.Fatal(err)
	}
	if lines < 30 || !loud(noises) {
		t.Errorf("%d lines, and noise that is not that of its law", lines)
	}
	for _, twin := range []string{"half the noise", "noise drawn again", "its state put back one line",
		"a record in two leaves"} {
		noises, _, err := clinics(twin, 2, 600)
		if err == nil && loud(noises) {
			t.Errorf("%s: not found out", twin)
		}
		t.Logf("%s: %v, %d noises", twin, err, len(noises))
	}
}

// What is public of a transcript is enough to play it again, and no other line fits.
func TestJointReplay(t *testing.T) {
	h, err := newClinic("", 5)
	if err != nil {
		t.Fatal(err)
	}
	src := rand.New(rand.NewPCG(5, 3))
	if err := h.play(600, func(n int, _ string) int { return src.IntN(n) }); err != nil {
		t.Fatal(err)
	}
	replay := func(lines [][]byte) (*ContextualReplayed, error) {
		cfg := h.config()
		cfg.Policy, cfg.Curator = jointPolicy(jointRho), nil
		return ReplayContextual(cfg, func(yield func([]byte, error) bool) {
			for _, l := range lines {
				if !yield(l, nil) {
					return
				}
			}
		})
	}
	r, err := replay(h.lines)
	if err != nil || r.Decisions != h.released || r.Releases != len(h.lines) ||
		math.Abs(r.Ledger.Total().ZCDP()-jointRho) > 1e-6*jointRho {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := replay(slices.Delete(slices.Clone(h.lines), 1, 2)); !errors.Is(err, ErrState) {
		t.Errorf("without a line: %v", err)
	}
	for old, other := range map[string]string{`"slot":0`: `"slot":1`, `"n":8`: `"n":12`, `"sigma":`: `"sigma":1`,
		`"leaf":4`: `"leaf":2`, `{"n":4`: `{"n":4,"gram":[1,2,3]`} {
		lines := slices.Clone(h.lines)
		lines[1] = bytes.Replace(lines[1], []byte(old), []byte(other), 1)
		if _, err := replay(lines); err == nil || bytes.Equal(lines[1], h.lines[1]) {
			t.Errorf("%s for %s is taken: %v", other, old, err)
		}
	}
}

func TestJointErrors(t *testing.T) {
	good := func() ContextualConfig {
		return ContextualConfig{Policy: jointPolicy(1), Horizon: jointHorizon, Window: 9, Epoch: Epoch{1}}
	}
	for says, change := range map[string]func(*ContextualConfig){
		"horizon is 0, must be a multiple of 4": func(c *ContextualConfig) { c.Horizon = 0 },
		"horizon is 239":                        func(c *ContextualConfig) { c.Horizon = 239 },
		"horizon is 244":                        func(c *ContextualConfig) { c.Horizon = 244 },
		"rules has 1, must have none": func(c *ContextualConfig) {
			c.Rules = []Rule{{Name: "a", Clip: 2, Mechanism: privacy.Gaussian{Sigma: 1}}}
		},
		"must be one that is kept": func(c *ContextualConfig) {
			c.Curator = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
				r, err := release.RealFeatures(fc)
				return struct{ release.StepFeatureCurator }{r.(release.StepFeatureCurator)}, err
			}
		},
	} {
		cfg := good()
		change(&cfg)
		if _, err := NewContextual(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	c, err := NewContextual(good())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range [][]float64{{0.7312894561, 0}, {2, 0}, {math.NaN(), 0}, {1, 1}, {0.5}} {
		if _, err := c.Decide(a, nil, 0); !errors.Is(err, errPrivate) || err.Error() != errPrivate.Error() {
			t.Errorf("an error tells of a vector: %v", err)
		}
	}
	s := c.State()
	s.Kept = []byte("{}")
	if _, err := RestoreContextual(good(), func(func([]byte, error) bool) {}, s); !errors.Is(err, ErrState) {
		t.Errorf("a curator's state without a line: %v", err)
	}
}
