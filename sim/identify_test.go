package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

func identifyConfig(t testing.TB, p identify.Identifier, run, most int, means ...float64) IdentifyConfig {
	t.Helper()
	in, err := bandit.BernoulliInstance(means...)
	if err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 11, Experiment: "identify", Run: run, Role: noise.RoleReward}
	rewards := key.Fast(len(means))
	key.Role = noise.RoleNoise
	streams := key.Fast(1)
	return IdentifyConfig{Policy: p, Instance: in, Cap: most, Rewards: rewards, Noise: &streams[0]}
}

// A script plays its batches and then stops.
type script struct {
	batches []policy.Batch
	next    int
	answer  int
}

func (s *script) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 2} }
func (s *script) Answer() int                  { return s.answer }
func (s *script) Next(privacy.Released) *policy.Batch {
	if s.next == len(s.batches) {
		return nil
	}
	s.next++
	return &s.batches[s.next-1]
}

func plays(rounds ...int) policy.Batch {
	var b policy.Batch
	for a, n := range rounds {
		if n > 0 {
			b.Plays = append(b.Plays, policy.Play{Arm: a, Rounds: n, Release: true})
		}
	}
	return b
}

// Where the run ends: by the policy, by the cap in the middle of a batch, or by the cap at its end,
// whose release may still bring an answer.
func TestIdentifyEnds(t *testing.T) {
	for _, c := range []struct {
		name             string
		batches          []policy.Batch
		cap              int
		answer, tau      int
		releases, rounds int
	}{
		{"by itself", []policy.Batch{plays(5, 5), plays(3)}, 100, 1, 13, 2, 2},
		{"cut", []policy.Batch{plays(5, 5), plays(3)}, 12, -1, 12, 1, 2},
		{"at the cap, with an answer", []policy.Batch{plays(5, 5), plays(3)}, 13, 1, 13, 2, 2},
		{"at the cap, without", []policy.Batch{plays(5, 5), plays(3), plays(1, 1)}, 13, -1, 13, 2, 2},
		{"for ever", []policy.Batch{plays(5, 5), plays(policy.Forever)}, 1000, -1, 1000, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out IdentifyResult
			var trace Trace
			cfg := identifyConfig(t, &script{batches: c.batches, answer: 1}, 0, c.cap, 0.5, 0.6)
			cfg.Trace = &trace
			if err := Identify(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if out.Answer != c.answer || out.Tau != c.tau || out.Releases != c.releases ||
				out.Batches != c.rounds {
				t.Errorf("answer %d, τ %d, %d releases, %d batches", out.Answer, out.Tau,
					out.Releases, out.Batches)
			}
			if out.Plays[0]+out.Plays[1] != out.Tau {
				t.Errorf("plays %v, τ %d", out.Plays, out.Tau)
			}
			count := make([]int, 2)
			trace.Plays(out.Tau, count)
			if count[0] != out.Plays[0] || count[1] != out.Plays[1] {
				t.Errorf("trace %v, plays %v", count, out.Plays)
			}
			if got := out.Loss.Pure(); got != 0.5 {
				t.Errorf("the ledger has ε = %v", got)
			}
		})
	}
}

// A run is paid for as its policy says, its answer is the policy's, and the same streams
// give the same run.
func TestIdentifyRuns(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func() (identify.Identifier, error)
		loss  float64
	}{
		{"dp-se", func() (identify.Identifier, error) {
			return identify.NewDPSE(3, privacy.Pure{Epsilon: 0.7}, 0.05)
		}, 0.7},
		{"dp-se at none", func() (identify.Identifier, error) {
			return identify.NewDPSE(3, privacy.None{}, 0.05)
		}, math.Inf(1)},
		{"se", func() (identify.Identifier, error) { return identify.NewSE(3, 0.05) }, math.Inf(1)},
		{"lucb", func() (identify.Identifier, error) { return identify.NewLUCB(3, 0.05) }, math.Inf(1)},
		{"track-and-stop", func() (identify.Identifier, error) {
			return identify.NewTrackAndStop(3, 0.05, identify.Bernoulli)
		}, math.Inf(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var outs [2]IdentifyResult
			for i := range outs {
				p, err := c.build()
				if err != nil {
					t.Fatal(err)
				}
				if err := Identify(context.Background(),
					identifyConfig(t, p, 4, 1e6, 0.4, 0.8, 0.5), &outs[i]); err != nil {
					t.Fatal(err)
				}
			}
			a, b := outs[0], outs[1]
			if a.Answer != 1 || a.Tau != b.Tau || a.Plays[0] != b.Plays[0] {
				t.Errorf("runs %+v and %+v", a, b)
			}
			if got := a.Loss.Pure(); !(math.Abs(got-c.loss) <= 1e-9 || got == c.loss) {
				t.Errorf("ε = %v, want %v", got, c.loss)
			}
		})
	}
}

func TestIdentifyErrors(t *testing.T) {
	good := func() IdentifyConfig { return identifyConfig(t, &script{answer: 0}, 0, 10, 0.5, 0.6) }
	for want, change := range map[string]func(*IdentifyConfig){
		"policy is missing":  func(c *IdentifyConfig) { c.Policy = nil },
		"1 arms":             func(c *IdentifyConfig) { c.Instance.Arms = c.Instance.Arms[:1] },
		"cap is 1":           func(c *IdentifyConfig) { c.Cap = 1 },
		"1 reward streams":   func(c *IdentifyConfig) { c.Rewards = c.Rewards[:1] },
		"noise stream":       func(c *IdentifyConfig) { c.Noise = nil },
		"with the answer -1": func(c *IdentifyConfig) { c.Policy = &script{answer: -1} },
		"with the answer 2":  func(c *IdentifyConfig) { c.Policy = &script{answer: 2} },
		"empty batch":        func(c *IdentifyConfig) { c.Policy = &script{batches: []policy.Batch{{}}} },
		"lo is +Inf":         func(c *IdentifyConfig) { c.Lo = math.Inf(1) },
	} {
		cfg := good()
		change(&cfg)
		err := Identify(context.Background(), cfg, &IdentifyResult{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Identify(ctx, good(), &IdentifyResult{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The ledger of a run says what its total covers.
func TestIdentifyLedgerCoversTheTranscript(t *testing.T) {
	if got := privacy.NewLedger().Covers(); got != "the releases and all that is computed from them" {
		t.Errorf("a ledger covers %q", got)
	}
	if got := privacy.NewLedger(privacy.Covering(identify.Output)).Covers(); got != "the whole transcript: plays, stopping time and answer" {
		t.Errorf("a ledger of a trial covers %q", got)
	}
}
