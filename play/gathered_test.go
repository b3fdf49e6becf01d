package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// toldAll is a gathered curator that is told of each row of decisions when it is counted.
type toldAll struct{ *release.Gathered }

func (c toldAll) AddSteps(arm, n int, steps int64) error {
	if err := c.Gathered.AddSteps(arm, n, steps); err != nil {
		return err
	}
	return c.AddNoisy(arm, n, int64(n)<<19)
}

// gatheredLines are the lines of a play of some policy under a trust model.
func gatheredLines(t *testing.T, cfg Config) [][]byte {
	t.Helper()
	cfg.Epoch = Epoch{1}
	cfg.Curator = func(c release.Config) (release.Curator, error) {
		g, err := release.RealGathered(c, cfg.Gathering)
		return toldAll{g}, err
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for now := int64(0); len(lines) < 4; now++ {
		if _, err := l.Decide(Decision{Arm: l.Arm()}, now); err != nil {
			t.Fatal(err)
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		lines = append(lines, c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// A transcript of sums that were gathered is replayed with the trust model that it was made under,
// and with no other; what it costs is what central trust does.
func TestReplayGathered(t *testing.T) {
	models := []release.Gathering{{Trust: privacy.TrustTwoServer}, {Trust: privacy.TrustLocal},
		{Trust: privacy.TrustSecAgg, Users: 5}}
	for _, g := range models {
		cfg := func(g release.Gathering) Config {
			return Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 20, Gathering: g}
		}
		lines := gatheredLines(t, cfg(g))
		r, err := Replay(cfg(g), each(lines))
		if err != nil {
			t.Fatalf("%s: %v", g.Trust, err)
		}
		if m, ok := r.Noise.(privacy.Aggregated); !ok || m.Trust != g.Trust {
			t.Errorf("%s: the noise is %v", g.Trust, r.Noise)
		}
		if scale := privacy.ScaleOf(cfg(g).Policy.Mechanism()); r.Ledger.Total().Pure() > 1/scale {
			t.Errorf("%s: it has cost %v, must be at most %v", g.Trust, r.Ledger.Total().Pure(), 1/scale)
		}
		for _, other := range append(models, release.Gathering{}, release.Gathering{Trust: privacy.TrustSecAgg,
			Users: 4}) {
			if other == g {
				continue
			}
			if _, err := Replay(cfg(other), each(lines)); !errors.Is(err, ErrState) {
				t.Errorf("%s is replayed as %v: %v", g.Trust, other, err)
			}
		}
		for old, new := range map[string]string{`"num":`: `"num":1`, `"invited":`: `"invited":1`,
			`"sigma":`: `"sigma":1`} {
			twin := append([][]byte{bytes.Replace(lines[0], []byte(old), []byte(new), 1)}, lines[1:]...)
			if _, err := Replay(cfg(g), each(twin)); err == nil {
				t.Errorf("%s: a line with %s is replayed", g.Trust, new)
			}
		}
	}
}

// What cannot be gathered is refused.
func TestGatheringIsChecked(t *testing.T) {
	g := release.Gathering{Trust: privacy.TrustTwoServer}
	for want, change := range map[string]func(*Config){
		"there are metrics": func(c *Config) { *c = withMetric(*c) },
		"drop is true":      func(c *Config) { c.Drop = true },
		"users is 3":        func(c *Config) { c.Gathering.Users = 3 },
	} {
		cfg := Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 20, Gathering: g, Epoch: Epoch{1}}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// believed is one server that sees the rewards and adds, as told, the noise that two have added. It
// says of its noise what an outline says.
type believed struct {
	release.Curator // nil: the rest is not called
	ledger          *privacy.Ledger
	outline         *release.Outline
	n               map[int]int
	steps           map[int]int64
	noise           func(arm int) int64
}

func (c *believed) Ledger() *privacy.Ledger { return c.ledger }

func (c *believed) AddSteps(arm, n int, steps int64) error {
	c.n[arm] += n
	c.steps[arm] += steps
	return c.outline.Play(arm, n)
}

func (c *believed) Release(arms []int) (privacy.Released, error) {
	form, err := c.outline.Release(arms)
	if err != nil {
		return privacy.Released{}, err
	}
	v := privacy.Values{N: form.N, Tail: form.Tail}
	for _, a := range arms {
		v.Sum = append(v.Sum, float64(c.steps[a]+c.noise(a))*release.ExactStep)
		c.n[a], c.steps[a] = 0, 0
	}
	return c.ledger.ReleaseAll(form.Slots, form.Mechanism, &v)
}

// twoServers plays a policy between two servers, and beside it on one that is believed and adds
// the sum of their noises, on the same rewards, of which some do not come. It returns after how
// many rounds the two decide differently, 0 if they do not. What the one server says of its
// noise is outline's.
func twoServers(t *testing.T, build func() policy.Policy, seed uint64,
	outline func(release.Config) (*release.Outline, error)) int {
	t.Helper()
	src := rand.New(rand.NewPCG(seed, 1))
	arms := armsOf(build())
	g := release.Gathering{Trust: privacy.TrustTwoServer}
	cfg := Config{Policy: build(), Arms: arms, Window: 20, Default: 0.25, Gathering: g, Epoch: Epoch{1}}
	two, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	noise := map[int]int64{}
	cfg.Gathering, cfg.Policy = release.Gathering{}, build()
	cfg.Curator = func(c release.Config) (release.Curator, error) {
		o, err := outline(c)
		return &believed{ledger: c.Ledger, outline: o, n: map[int]int{}, steps: map[int]int64{},
			noise: func(arm int) int64 { return noise[arm] }}, err
	}
	one, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	one.cfg.Gathering = g // nothing is ahead, as between two
	law, err := release.NoiseOf(cfg.Policy.Mechanism())
	if err != nil {
		t.Fatal(err)
	}
	rewards := make([]map[int]int64, arms) // in steps, by number
	for a := range rewards {
		rewards[a] = map[int]int64{}
	}
	const missing = 1 << 18
	var lines [][]byte
	defer func() { // who has the lines alone knows what is to be played
		again := Config{Policy: build(), Arms: arms, Window: 20, Default: 0.25, Gathering: g}
		r, err := Replay(again, each(lines))
		if err != nil {
			t.Fatal(err)
		}
		lost, loss := r.Ledger.Total().String(), two.Ledger().Total().String()
		if two.pending == nil && !slices.Equal(r.Out, two.s.Batch) || lost != loss {
			t.Errorf("the lines say that %v is to be played, at %v; it is %v, at %v", r.Out, lost, two.s.Batch, loss)
		}
	}()
	for now := int64(0); now < 3000; now++ {
		if rows, due := two.Slots(now); due {
			var sums []Sum
			whole := map[int]int64{} // without noise, with what is missing
			for _, row := range rows {
				helper, err := law.Draw()
				if err != nil {
					t.Fatal(err)
				}
				s := Sum{Taken: row, Steps: helper}
				for i := row.Start; i < row.End; i++ {
					if y, came := rewards[row.Arm][i]; came {
						s.Answers, s.Steps, whole[row.Arm] = s.Answers+1, s.Steps+y, whole[row.Arm]+y
					} else {
						whole[row.Arm] += missing
					}
				}
				sums = append(sums, s)
			}
			a, err := two.CloseGathered(now, sums)
			if err != nil {
				t.Fatal(err)
			}
			var text struct {
				Release struct {
					Sum []float64
					N   []int
				}
			}
			if err := json.Unmarshal(a.Line, &text); err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				noise[row.Arm] = int64(math.Round(text.Release.Sum[i]/release.ExactStep)) - whole[row.Arm]
			}
			lines = append(lines, slices.Clone(a.Line))
			b, err := one.Close(now)
			if err != nil {
				t.Fatal(err)
			}
			if b == nil || !slices.Equal(a.Taken, b.Taken) {
				return int(now)
			}
			if err := errors.Join(two.Commit(a), one.Commit(b)); err != nil {
				t.Fatal(err)
			}
		}
		if two.Stopped() || one.Stopped() {
			if two.Stopped() != one.Stopped() {
				return int(now)
			}
			return 0
		}
		arm := two.Arm()
		if one.Arm() != arm {
			return int(now)
		}
		ticket, err := two.Decide(Decision{Arm: arm}, now)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := one.Decide(Decision{Arm: arm}, now); err != nil || again != ticket {
			t.Fatalf("two servers decide %v, one %v: %v", ticket, again, err)
		}
		if src.IntN(5) == 0 {
			continue // does not come: the default counts
		}
		y := 0.0
		if src.Float64() < 0.3+0.4*float64(arm)/float64(arms-1) {
			y = 1
		}
		rewards[arm][ticket.Number] = int64(y * (1 << 20))
		if _, err := two.Settle(ticket, 0, now); err != nil { // the service does not see it
			t.Fatal(err)
		}
		if _, err := one.Settle(ticket, y, now); err != nil {
			t.Fatal(err)
		}
	}
	return 0
}

// Every live policy that is proved for the noise of two servers decides between them as it does on
// one server that is believed and adds the sum of their noises, decision by decision.
func TestDecisionsAreThoseOfOneServer(t *testing.T) {
	testkit.OneGoroutine(t)
	ok := func(p policy.Policy, err error) policy.Policy {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	g := release.Gathering{Trust: privacy.TrustTwoServer}
	same := func(c release.Config) (*release.Outline, error) { return release.NewGatheredOutline(c, g) }
	other := func(c release.Config) (*release.Outline, error) { return release.NewOutline(c, true) }
	wide := 0 // policies that decide otherwise if they are told of one noise
	for name, build := range map[string]func() policy.Policy{
		"dp-klucb-j":      func() policy.Policy { return ok(policy.NewDPKLUCBJ(3, 1, 1.5, 2)) },
		"dp-imed-j":       func() policy.Policy { return ok(policy.NewDPIMEDJ(3, 1, 1.5, 2)) },
		"dp-window-klucb": func() policy.Policy { return ok(policy.NewDPWindowKLUCB(3, 1, 500, 8)) },
		"adap-ucb":        func() policy.Policy { return ok(policy.NewAdaPUCB(3, 1, 3.1)) },
		"adap-klucb":      func() policy.Policy { return ok(policy.NewAdaPKLUCB(3, 1, 3.1)) },
		"adac-ucb": func() policy.Policy {
			return ok(policy.NewAdaCUCB(3, privacy.ZCDP{Rho: 0.5}, 3.1))
		},
		"zcdp-imed": func() policy.Policy {
			return ok(policy.NewZCDPIMED(3, privacy.ZCDP{Rho: 0.5}, 1.5, 2))
		},
		"dp-ts":         func() policy.Policy { return ok(policy.NewDPTS(3, privacy.Pure{Epsilon: 1}, 2)) },
		"dp-ts, normal": func() policy.Policy { return ok(policy.NewDPTS(3, privacy.ZCDP{Rho: 0.5}, 2)) },
		"dp-se":         func() policy.Policy { return ok(policy.NewDPSE(3, 8, 0.3)) },
		"batch-se": func() policy.Policy {
			return ok(policy.NewBatchSE(3, privacy.Pure{Epsilon: 1}, 0.3, 2))
		},
		"dp-tt": func() policy.Policy {
			return ok(identify.NewDPTT(3, privacy.Pure{Epsilon: 1}, 0.2))
		},
		"adap-tt": func() policy.Policy {
			return ok(identify.NewAdaPTT(3, privacy.Pure{Epsilon: 1}, 0.2))
		},
		"adap-tt-star": func() policy.Policy {
			return ok(identify.NewAdaPTTStar(3, privacy.Pure{Epsilon: 1}, 0.2))
		},
	} {
		for seed := range uint64(3) {
			if at := twoServers(t, build, seed, same); at != 0 {
				t.Errorf("%s: after %d rounds two servers and one decide differently", name, at)
			}
			if twoServers(t, build, seed, other) != 0 {
				wide++
			}
		}
	}
	if wide < 6 { // of 33 plays 20 ± 2 differ
		t.Errorf("told of one noise, %d plays differ: nothing depends on what a release says of "+
			"its noise", wide)
	}
}
