package play

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Which policies take an arm while they are played, by name; whoever adds one decides here.
func TestAddsArms(t *testing.T) {
	s := noise.NewFast(1, 2)
	for name, c := range map[string]struct {
		build func() (policy.Policy, error)
		why   string // empty: it takes one
	}{
		"dp-klucb":       {func() (policy.Policy, error) { return policy.NewDPKLUCB(2, 1, 2, 0) }, ""},
		"dp-klucb-j":     {func() (policy.Policy, error) { return policy.NewDPKLUCBJ(2, 1, 2, 0) }, ""},
		"dp-imed":        {func() (policy.Policy, error) { return policy.NewDPIMED(2, 1, 2, 0) }, ""},
		"dp-imed-j":      {func() (policy.Policy, error) { return policy.NewDPIMEDJ(2, 1, 2, 0) }, ""},
		"zcdp-imed":      {func() (policy.Policy, error) { return policy.NewZCDPIMED(2, privacy.ZCDP{Rho: 1}, 2, 0) }, ""},
		"dp-ucb-anytime": {func() (policy.Policy, error) { return policy.NewDPUCBDoubling(2, 1, 1.5, 0) }, ""},
		"dp-ts":          {func() (policy.Policy, error) { return policy.NewDPTS(2, privacy.Pure{Epsilon: 1}, 0) }, ""},
		"split": {func() (policy.Policy, error) {
			return policy.NewSplit([]float64{0.5, 0.5}, privacy.Pure{Epsilon: 1}, 0, 0)
		}, ""},
		"dp-window": {func() (policy.Policy, error) { return policy.NewDPWindowKLUCB(2, 1, 1000, 0) }, ""},
		"dp-se": {func() (policy.Policy, error) { return policy.NewDPSE(2, 1, 0.1) },
			"it drops arms by comparing equal numbers of rewards of all"},
		"batch-se": {func() (policy.Policy, error) { return policy.NewBatchSE(2, privacy.Pure{Epsilon: 1}, 0.1, 2) },
			"it drops arms by comparing equal numbers of rewards of all"},
		"adap-klucb": {func() (policy.Policy, error) { return policy.NewAdaPKLUCB(2, 1, 3.1) },
			"nothing is proved of it with an arm that comes later"},
		"adap-ucb": {func() (policy.Policy, error) { return policy.NewAdaPUCB(2, 1, 3.1) },
			"nothing is proved of it with an arm that comes later"},
		"adac-ucb": {func() (policy.Policy, error) { return policy.NewAdaCUCB(2, privacy.ZCDP{Rho: 1}, 3.1) },
			"nothing is proved of it with an arm that comes later"},
		"lazy-dp-ts": {func() (policy.Policy, error) { return policy.NewLazyDPTS(2, 1, &s) },
			"nothing is proved of it with an arm that comes later"},
		"dp-tt": {func() (policy.Policy, error) { return identify.NewDPTT(2, privacy.Pure{Epsilon: 1}, 0.1) },
			"nothing is proved of it with an arm that comes later"},
	} {
		p, err := c.build()
		if err != nil {
			t.Fatal(name, err)
		}
		switch err := AddsArms(p); {
		case c.why == "" && err != nil, c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: got %v, want %q", name, err, c.why)
		}
	}
}

// An arm that is added is a line, which its play is restored and replayed by; the batch that was out is
// withdrawn, what was decided for it stays, and the new arm is played first.
func TestAddArm(t *testing.T) {
	build := func(e Epoch) Config {
		p, err := policy.NewDPIMED(2, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		return Config{Policy: p, Arms: 2, Window: 10, Epoch: e, Metrics: withMetric(Config{}).Metrics}
	}
	l, err := New(build(Epoch{1}))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	var lines [][]byte
	now := int64(0)
	decide := func(arm int) Ticket {
		t.Helper()
		k, err := l.Decide(Decision{Arm: arm}, now)
		must(err)
		return k
	}
	commit := func(c *Commit, err error) {
		t.Helper()
		must(err)
		if c == nil {
			t.Fatal("there is nothing to commit")
		}
		lines = append(lines, c.Line)
		must(l.Commit(c))
	}
	for range 6 {
		decide(l.Arm())
	}
	now = 20
	commit(l.Close(now))
	out := l.Arm()
	decide(out)
	commit(l.AddArm(0, []byte(`{"name":"c"}`)))
	if got := string(lines[1]); got != `{"add":2,"change":{"name":"c"}}`+"\n" {
		t.Errorf("the line is %s", got)
	}
	if got := l.Out(); !slices.Equal(got, []policy.Play{{Arm: 2, Rounds: 3, Release: true}}) {
		t.Errorf("the batch is %v", got)
	}
	if q := l.Queue(out, 0); q.Issued-q.Head != 1 {
		t.Errorf("of a batch that is withdrawn %d decisions stay, must be 1", q.Issued-q.Head)
	}
	for range 3 {
		if l.Arm() != 2 {
			t.Fatalf("arm %d is played", l.Arm())
		}
		k := decide(2)
		if s, err := l.Settle(k, 1, now); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
	}
	l, err = Restore(build(Epoch{2}), listed(lines), l.State())
	must(err)
	now = 40
	commit(l.Close(now))
	again, err := Replay(build(Epoch{}), listed(lines))
	must(err)
	if !slices.Equal(again.Released, []int{3, 3, 3}) || again.Batches != 4 || len(again.Metrics[0]) != 3 ||
		!slices.Equal(again.Out, l.Out()) {
		t.Errorf("replayed %+v", again)
	}
	// lines that no play writes
	for _, bad := range []string{`{"add":3}`, `{"add":1}`, `{"off":0,"add":2}`,
		`{"plays":[{"arm":0,"rounds":3,"release":true}],"add":2}`} {
		if _, err := Replay(build(Epoch{}), listed([][]byte{lines[0], []byte(bad)})); !errors.Is(err, ErrState) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	l.Finish()
	if _, err := l.AddArm(0, nil); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

// What cannot be added says why, and changes nothing.
func TestAddArmRefused(t *testing.T) {
	one := func(cfg Config) error {
		t.Helper()
		cfg.Window, cfg.Epoch = 10, Epoch{1}
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		before := l.State()
		_, err = l.AddArm(0, nil)
		if got := l.State(); len(got.Arms) != len(before.Arms) || l.Arm() < 0 && cfg.Contexts == nil || l.ready() != nil {
			t.Errorf("after %v the play is another", err)
		}
		return err
	}
	s := noise.NewFast(1, 2)
	flat := flatConfig()
	flat.Contexts = flatPolicy()
	flat.Vectors = func(c release.FeatureConfig) (release.FeatureCurator, error) { return release.SimulatedFeatures(c, &s) }
	flat.Curator = func(c release.Config) (release.Curator, error) { return release.Simulated(c, &s) }
	window := func() policy.Policy { p, _ := policy.NewDPWindowKLUCB(3, 1, 13, 2); return p }()
	for want, cfg := range map[string]Config{
		"decisions with contexts bring their actions":               flat,
		"nothing is proved of it with an arm that comes later":      {Policy: policies(t)["adap-klucb"](), Arms: 2},
		"it drops arms by comparing equal numbers of rewards":       {Policy: policies(t)["batch-se"](), Arms: 3},
		"window is 13, must be at least 16 for one arm more":        {Policy: window, Arms: 3},
		"*play.jointly takes no arm while it is played: nothing is": {Policy: &jointly{}, Arms: 3},
	} {
		if err := one(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// An arm that joins an A/B test is in no row that was open or out when it came, and in all later ones, with its
// share of them; the others keep theirs of the rest. So each line is of one row, before or after, whatever was
// restored when, and a replay has the same. A play that tosses by the new shares at once is told from that.
func TestArmJoinsRows(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4} {
		if err := joinedRows(t, seed, false); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if err := joinedRows(t, seed, true); err == nil {
			t.Errorf("seed %d: arms that join at once are not caught", seed)
		}
	}
}

// joinedRows plays an A/B test to which two arms are added; at once tosses by the shares after all rows.
func joinedRows(t *testing.T, seed uint64, atOnce bool) error {
	src := rand.New(rand.NewPCG(seed, 1))
	build := func(epoch byte) Config {
		p, err := policy.NewSplit([]float64{0.75, 0.25}, privacy.Pure{Epsilon: 1}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return Config{Policy: p, Arms: 2, Window: 60, Epoch: Epoch{epoch}, Metrics: withMetric(Config{}).Metrics}
	}
	l, err := New(build(1))
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	var from []int64
	var arms []int // of each decision, in their order
	epoch := byte(1)
	place, next := map[[2]int]int{}, 0
	commit := func(c *Commit) line {
		t.Helper()
		in, err := readLine(c.Line)
		if lines = append(lines, c.Line); err != nil || l.Commit(c) != nil {
			t.Fatalf("%s: %v", c.Line, err)
		}
		return in
	}
	for now := range int64(3000) {
		shares := l.Shares()
		if atOnce {
			shares = l.rows.at(maxTime, len(l.s.Arms))
		}
		arm, at := 0, src.Float64()
		for arm < len(shares)-1 && at >= shares[arm] {
			at, arm = at-shares[arm], arm+1
		}
		k, err := l.Decide(Decision{Arm: arm}, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Settle(k, float64(arm%2), now); err != nil {
			t.Fatal(err)
		}
		place[[2]int{arm, k.Number}] = len(arms)
		arms = append(arms, arm)
		if n := 2 + len(from); n < 4 && src.IntN(300) == 0 {
			c, err := l.AddArm([]float64{0.2, 0}[n-2], nil)
			if err != nil {
				t.Fatal(err)
			}
			in := commit(c)
			if from = append(from, in.From); in.From < int64(len(arms)) || in.Share != []float64{0.2, 1. / 4}[n-2] {
				t.Fatalf("after %d decisions: %s", len(arms), c.Line)
			}
			if _, err := Replay(build(0), listed(append(slices.Clone(lines[:len(lines)-1]),
				[]byte(strings.Replace(string(c.Line), `,"share"`, `0,"share"`, 1))))); !errors.Is(err, ErrState) {
				t.Errorf("an arm that begins within a row: %v", err)
			}
		}
		if src.IntN(100) == 0 {
			epoch++
			if l, err = Restore(build(epoch), listed(lines), l.State()); err != nil {
				return err
			}
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		commit(c)
		first, n := next, 0
		for _, r := range c.Taken {
			for i := r.Start; i < r.End; i++ {
				next, n = max(next, place[[2]int{r.Arm, i}]+1), n+1
			}
		}
		if next-first != n || slices.ContainsFunc(from, func(at int64) bool { return int(at) > first && int(at) < next }) {
			return fmt.Errorf("a line has %d of the decisions %d to %d, and arms join at %v", n, first, next-1, from)
		}
	}
	again, err := Replay(build(0), listed(lines))
	if err != nil {
		return err
	}
	if len(from) != 2 || len(again.Released) != 4 || again.Released[3] == 0 {
		return fmt.Errorf("arms join at %v, and %v were released", from, again.Released)
	}
	for a := range 2 {
		if first := slices.Index(arms, 2+a); int64(first) < from[a] {
			return fmt.Errorf("decision %d is of arm %d, which joins at %d", first, 2+a, from[a])
		}
	}
	// 3/4 of those of the first two, .2 of what is then, and a quarter: in the mean, within 5 deviations
	count := func(of ...int) (n int) {
		for i, a := range arms {
			if i >= int(from[1]) && slices.Contains(of, a) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct{ n, of, share float64 }{
		{float64(count(0)), float64(count(0, 1)), 0.75},
		{float64(count(2)), float64(count(0, 1, 2)), 0.2},
		{float64(count(3)), float64(count(0, 1, 2, 3)), 0.25},
	} {
		if sd := math.Sqrt(c.of * c.share * (1 - c.share)); c.of < 500 || math.Abs(c.n-c.of*c.share) > 5*sd {
			return fmt.Errorf("%v of %v decisions, must be about %v", c.n, c.of, c.of*c.share)
		}
	}
	return nil
}
