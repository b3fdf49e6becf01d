package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// clinic is a small experiment under joint privacy. Its noise is little, so that a test sees records.
const clinic = `
name: news
contextual:
  context: {device: {values: [phone, desktop]}}
  action: {topic: {values: [war, sport]}, length: {range: [0, 8]}}
  cross: [{of: [device, topic]}]
  actions: 8
  protect: joint
policy: {policy: lin-ucb, leaf: 10, greed: 1}
horizon: 1000
budget: {rho: 1e5}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 10s
floor: 0.2
`

// keptSums are what curators of real records were given, in all processes.
type keptSums struct {
	mu   sync.Mutex
	sums []int64
}

type toldKept struct {
	release.KeptCurator
	to *keptSums
}

func (s *keptSums) curator(c release.FeatureConfig) (release.FeatureCurator, error) {
	cur, err := release.RealFeatures(c)
	if err != nil {
		return nil, err
	}
	return toldKept{cur.(release.KeptCurator), s}, nil
}

func (c toldKept) AddSteps(slot, n int, sums []int64) error {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	if c.to.sums == nil {
		c.to.sums = make([]int64, len(sums))
	}
	for i, x := range sums {
		c.to.sums[i] += x
	}
	return c.KeptCurator.AddSteps(slot, n, sums)
}

// grams are the sums that a release of these decisions has.
func grams(all []newsDecision) (sums []int64) {
	for _, d := range all {
		z, at := append(slices.Clone(d.vector), 2*float64(d.steps)/(1<<20)-1), 0
		sums = append(sums, make([]int64, len(z)*(len(z)+1)/2-len(sums))...)
		for i, x := range z {
			for _, y := range z[i:] {
				sums[at] += int64(math.Round(x * y * (1 << 20)))
				at++
			}
		}
	}
	return sums
}

// lastMatrix is what the last line of a transcript releases.
func lastMatrix(lines []string) (n int, out []float64) {
	for _, line := range lines {
		var in struct {
			Release *struct {
				N      int
				Vector []float64
			}
		}
		if err := json.Unmarshal([]byte(line), &in); err == nil && in.Release != nil {
			n, out = in.Release.N, in.Release.Vector
		}
	}
	return n, out
}

// keptPlan is what a store has of its only experiment's plan.
func keptPlan(t *testing.T, open func(context.Context) (store.Store, error)) batchOut {
	t.Helper()
	s, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.Load(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := readPlan(stored.Plan)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Under joint privacy, over restarts: batches by count, each line all records up to then with the
// noise of its nodes, and nothing else of a vector. What is secret of the noise goes with its line,
// and is gone at the end.
func TestJoint(t *testing.T) { testJoint(t, clinic, 330, 33) }

// segments is clinic on disjoint segments of 10 decisions. A unit has one device and one topic, so that vectors are
// not even in all directions, which the test proves within 600 decisions: a tree goes on.
var segments = strings.Replace(clinic, "lin-ucb, leaf: 10, greed: 1",
	"jdp-greedy, first: 10, growth: 2, leaf: 10, diversity: 1, risk: 0.9", 1)

// The same of segments, until there is a tree and after it.
func TestJointBySegments(t *testing.T) {
	testJoint(t, segments, 330, 33)
	testJoint(t, segments, 700, 70)
}

func testJoint(t *testing.T, text string, decisions, releases int) {
	c, got, mem := newClock(), &keptSums{}, store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now, VectorCurator: got.curator}
	e := open(t, cfg)
	begin(t, e, text)
	var all []newsDecision
	for i := range decisions {
		settle(t, e, c, 100*time.Millisecond, 1)
		d := decideNews(t, e, newsAsk(i))
		if i%3 == 0 {
			if s, err := e.RewardEvent(t.Context(), "news", d.ranking.Event, 0.75); s != Accepted || err != nil {
				t.Fatal(s, err)
			}
			d.steps = 3 << 18
		}
		if all = append(all, d); i%37 == 36 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
	}
	settle(t, e, c, time.Second, 12)
	info, err := e.Get(t.Context(), "news")
	in, near := info.Contextual, 1e-6
	if text == segments { // two 64ths of a step of noise are more there
		near = 1e-4
	}
	if err != nil || info.State != Running || in.Decisions != decisions || in.Released != decisions ||
		in.Releases != releases || math.Abs(info.Spent.ZCDP()/1e5-1) > near {
		t.Fatalf("%s, %s, %+v, %v, %v", info.State, info.Reason, in, info.Spent, err)
	}
	want := grams(all)
	if !slices.Equal(got.sums, want) {
		t.Errorf("released %v, must be %v", got.sums, want)
	}
	lines := newsTranscript(t, e)
	n, matrix := lastMatrix(lines)
	tree := strings.Contains(lines[len(lines)-1], "gram-tree")
	if tree != (n > 10) || tree != (text == clinic || decisions > 600) {
		t.Errorf("after %d decisions the last line has %d: %v", decisions, n, tree)
	}
	// 8 standard deviations of its nodes on 7 levels: a record that is missing, or there twice, is more.
	want = grams(all[decisions-n:])
	nodes := float64(bits.OnesCount(uint(n / 10)))
	for i, x := range matrix {
		if off := math.Abs(x - float64(want[i])/(1<<20)); off > 8*math.Sqrt2*math.Sqrt(nodes)*2*math.Sqrt(7/2e5) {
			t.Errorf("number %d of %d records is off by %v", i, n, off)
		}
	}
	for _, line := range lines[1:] {
		for _, word := range []string{"gram\"", "weights", "phone", `"a1"`} {
			if strings.Contains(line, word) {
				t.Errorf("the transcript tells %s: %s", word, line)
			}
		}
	}
	r, err := Replay(strings.NewReader(strings.Join(lines, "\n")+"\n"), catalog.Catalog{})
	if err != nil || r.Contextual.Released != decisions || r.Contextual.Releases != releases ||
		r.Spent.String() != info.Spent.String() {
		t.Errorf("replayed: %+v, %v", r, err)
	}
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := keptPlan(t, mem.Open); (len(p.Kept) > 0) != tree || p.Tip != info.Tip {
		t.Errorf("the plan has %d bytes of the curator's", len(p.Kept))
	}
	if err := e.Stop(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if p := keptPlan(t, mem.Open); len(p.Kept) > 0 {
		t.Error("what has ended keeps its noise")
	}
}

// Whether a decision is met may follow from what was given, and counts would tell.
func TestJointCountsAtOnce(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, clinic)
	ask := newsAsk(0)
	ask.Deferred = true
	var wrong *keyed.Error
	if _, err := e.Rank(t.Context(), "news", ask); !errors.As(err, &wrong) || wrong.Field != "deferred" {
		t.Errorf("deferred: %v", err)
	}
	info, err := e.Get(t.Context(), "news")
	if err != nil || info.Contextual.Decisions != 0 {
		t.Errorf("%+v, %v", info.Contextual, err)
	}
}

// A keptStore says of the plan what it was before, or that there is nothing of the curator's.
type keptStore struct {
	store.Store
	kept []byte
}

func (s keptStore) Load(ctx context.Context, id int64) (store.Stored, error) {
	out, err := s.Store.Load(ctx, id)
	if err != nil {
		return out, err
	}
	p, err := readPlan(out.Plan)
	if err != nil {
		return out, err
	}
	p.Kept = s.kept
	out.Plan, err = json.Marshal(p)
	return out, err
}

// A curator's state of another line is not gone on with: nothing is drawn, and the rest stands.
func TestJointGoesNotBack(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, clinic)
	var states [][]byte
	for i := range 60 {
		settle(t, e, c, time.Second, 1)
		decideNews(t, e, newsAsk(i))
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := keptPlan(t, mem.Open)
		if n := len(states); len(p.Kept) > 0 && (n == 0 || !slices.Equal(states[n-1], p.Kept)) {
			states = append(states, p.Kept)
		}
	}
	if len(states) < 3 {
		t.Fatalf("%d states", len(states))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	lines := func() (n int) {
		t.Helper()
		s, err := mem.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for line, err := range s.Lines(t.Context(), 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(line), `"release"`) {
				n++
			}
		}
		return n
	}
	before := lines()
	for name, kept := range map[string][]byte{"one line ago": states[len(states)-2], "none": nil, "no JSON": {7}} {
		bad := cfg
		bad.Store = func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return keptStore{s, kept}, err
		}
		e := open(t, bad)
		info, err := e.Get(t.Context(), "news")
		if err != nil || info.State != Failed || name != "no JSON" &&
			!strings.Contains(info.Reason, "not that of the last release") {
			t.Errorf("%s: it is %s, %s, %v", name, info.State, info.Reason, err)
		}
		settle(t, e, c, time.Second, 15)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if after := lines(); after != before {
			t.Errorf("%s: %d releases became %d", name, before, after)
		}
	}
}

// Two worlds in which some contexts and rewards differ have the same releases at the same times, of
// as many decisions each, and until the first of them the same answers for all others. Where
// contexts are public they need not: segments end by vectors there.
func TestJointTwoWorlds(t *testing.T) {
	const changed = 15
	world := func(text string, other bool) (answers, times []string) {
		c := newClock()
		e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
		begin(t, e, strings.Replace(text, "floor: 0.2", "floor: 0", 1))
		for i := range 160 {
			settle(t, e, c, 100*time.Millisecond, 1)
			ask := newsAsk(i)
			if i < changed && other {
				ask.Context = map[string]any{}
				for _, a := range ask.Actions {
					clear(a.Features)
				}
			}
			r, err := e.Rank(t.Context(), "news", ask)
			if err != nil {
				t.Fatal(err)
			}
			if reward := 0.0; i%3 == 0 {
				if i < changed && other {
					reward = 1
				}
				if _, err := e.RewardEvent(t.Context(), "news", r.Event, reward); err != nil {
					t.Fatal(err)
				}
			}
			info, err := e.Get(t.Context(), "news")
			if err != nil {
				t.Fatal(err)
			}
			if info.Lines > 1 {
				continue
			}
			seen, err := json.Marshal([]any{info.Contextual, info.State, info.Wait, info.Until})
			if err != nil {
				t.Fatal(err)
			}
			if answers = append(answers, string(seen)); i >= changed {
				answers = append(answers, r.Action)
			}
		}
		settle(t, e, c, time.Second, 15)
		for _, line := range newsTranscript(t, e)[1:] {
			var in struct {
				At string
				N  int
			}
			if err := json.Unmarshal([]byte(line), &in); err != nil {
				t.Fatal(err)
			}
			times = append(times, fmt.Sprint(in.At, " of ", in.N))
		}
		return answers, times
	}
	one, first := world(clinic, false)
	two, second := world(clinic, true)
	if !slices.Equal(one, two) || !slices.Equal(first, second) || len(first) != 16 {
		t.Errorf("others see\n%v\n%v\nand\n%v\n%v", one, first, two, second)
	}
	three, third := world(segments, false)
	four, fourth := world(segments, true)
	if !slices.Equal(three, four) || !slices.Equal(third, fourth) || len(third) != 16 {
		t.Errorf("by segments others see\n%v\n%v\nand\n%v\n%v", three, third, four, fourth)
	}
	five, fifth := world(strings.Replace(tallied, "first: 10", "first: 10, draws: 1, alpha: 0", 1), false)
	six, sixth := world(strings.Replace(tallied, "first: 10", "first: 10, draws: 1, alpha: 0", 1), true)
	if !slices.Equal(five, six) || !slices.Equal(fifth, sixth) || len(fifth) != 7 {
		t.Errorf("by counts others see\n%v\n%v\nand\n%v\n%v", five, fifth, six, sixth)
	}
	open := strings.Replace(strings.Replace(clinic, "  protect: joint\n", "", 1), "lin-ucb, leaf: 10", "adac-oful", 1)
	_, first = world(open, false)
	if _, second = world(open, true); slices.Equal(first, second) {
		t.Errorf("the test cannot fail: %v", first)
	}
}
