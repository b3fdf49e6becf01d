package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// DefaultCap is the number of plays at which a simulated trial is given up if nothing else is said.
const DefaultCap = 100_000_000

// A Simulation is trials of one rule on laws, with fast noise: it protects nobody.
type Simulation struct {
	Rule   Rule
	Source bandit.Source // of the arms; drawn anew for each run if it is Redrawn
	Runs   int
	Seed   uint64
	Cap    int // plays of a run; 0 for DefaultCap
	// declared range of rewards, both 0 for [0,1]; rewards outside are clipped, and means are those
	// of the clipped laws
	Lo, Hi float64
	// Workers is how many runs are played at a time, 0 for one a processor. Results do
	// not depend on it.
	Workers int

	lower *float64 // of all runs, if it is known
}

// An Outcome is one simulated trial.
type Outcome struct {
	Answer   int  // −1 if the cap was reached
	Wrong    bool // there is an answer, and another arm has a larger mean
	Tau      int  // plays; the cap if it was reached
	Plays    []int
	Batches  int
	Releases int
	Means    []Mean // private
	True     []float64
	// no rule with this guarantee needs fewer plays in the mean, for Bernoulli arms of these means;
	// NaN if several are best
	Lower float64
	Loss  privacy.Loss
}

// A Study is what many simulated trials say of a rule.
type Study struct {
	Outcomes []Outcome
	Cap      int

	Wrong, Capped    int
	WrongLo, WrongHi float64 // 95 % Clopper–Pearson interval of the probability of a wrong answer
	// Of the plays of all runs, with a capped one at the cap: so where there are such runs the
	// truth is larger.
	TauMean, TauSE, Tau50, Tau90, TauMax float64
	Share                                []float64 // mean share of each arm
	BatchesMean, BatchesMax              float64   // rounds of adaptivity
	// of the outcomes' lower bounds: mean and median; NaN if one has none
	LowerMean, Lower50 float64
}

func (s *Simulation) check() error {
	switch {
	case s.Source == nil:
		return errors.New("trial: source is missing")
	case s.Runs < 1:
		return fmt.Errorf("trial: runs is %d, must be at least 1", s.Runs)
	case s.Cap < 0:
		return fmt.Errorf("trial: cap is %d, must be at least 1, or 0 for %d", s.Cap, DefaultCap)
	case s.Workers < 0:
		return fmt.Errorf("trial: workers is %d, must be at least 1, or 0 for one a processor", s.Workers)
	}
	s.Lo, s.Hi = release.Range(s.Lo, s.Hi)
	if s.Cap == 0 {
		s.Cap = DefaultCap
	}
	if err := checkRange(s.Lo, s.Hi); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	return nil
}

// Run plays every run. The streams of a run depend on the seed, the arms, the rule and the run's
// number only: rules on the same arms have the same rewards.
func (s Simulation) Run(ctx context.Context) (*Study, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	out := &Study{Outcomes: make([]Outcome, s.Runs), Cap: s.Cap}
	// The first run says what is wrong, and knows the lower bound of the others.
	var err error
	if out.Outcomes[0], err = s.Play(ctx, 0, nil); err != nil {
		return nil, err
	}
	if !s.Source.Redrawn() {
		s.lower = &out.Outcomes[0].Lower
	}
	if err := pool.Run(ctx, s.Workers, s.Runs-1, func() func(context.Context, int) error {
		return func(ctx context.Context, i int) (err error) {
			out.Outcomes[i+1], err = s.Play(ctx, i+1, nil)
			return err
		}
	}); err != nil {
		return nil, err
	}
	return out, out.summarise()
}

// Play plays run i, whatever the number of runs, and writes its transcript, if there is where to.
func (s Simulation) Play(ctx context.Context, i int, transcript io.Writer) (Outcome, error) {
	if err := s.check(); err != nil {
		return Outcome{}, err
	}
	key := noise.Key{Seed: s.Seed, Experiment: fmt.Sprintf("%v range=[%s,%s]", s.Source,
		number(s.Lo), number(s.Hi)), Run: i}
	shared := key
	if shared.Role = noise.RoleInstance; !s.Source.Redrawn() {
		shared.Run = -1
	}
	stream := shared.Fast(1)
	in, err := s.Source.Instance(&stream[0])
	if err != nil {
		return Outcome{}, err
	}
	arms := len(in.Arms)
	if arms != s.Rule.arms {
		return Outcome{}, fmt.Errorf("trial: the rule is for %d arms and there are %d", s.Rule.arms, arms)
	}
	if s.Cap < arms {
		return Outcome{}, fmt.Errorf("trial: cap is %d, must be at least the number of arms, %d", s.Cap, arms)
	}
	out := Outcome{True: make([]float64, arms)}
	for a, law := range in.Arms {
		if out.True[a], err = bandit.ClippedMean(law, s.Lo, s.Hi); err != nil {
			return Outcome{}, fmt.Errorf("trial: arm %d: %w", a+1, err)
		}
	}
	key.Role = noise.RoleReward
	rewards := key.Fast(arms)
	key.Cell, key.Role = s.Rule.String(), noise.RoleNoise
	privately := key.Fast(1)
	key.Role = noise.RolePolicy
	coins := key.Fast(1)
	p, err := s.Rule.policy(sim.NewCoins(&coins[0]))
	if err != nil {
		return Outcome{}, err
	}
	options := []privacy.Option{privacy.Covering(identify.Output)}
	if transcript != nil {
		transcript = &chain.Writer{W: transcript}
		options = append(options, privacy.WithTranscript(transcript))
		names := make([]string, arms)
		for a := range names {
			names[a] = strconv.Itoa(a + 1)
		}
		if err := writeHeader(transcript, s.Rule, names, s.Lo, s.Hi, true); err != nil {
			return Outcome{}, err
		}
	}
	rec := newRecorder(p, arms, transcript)
	var r sim.IdentifyResult
	err = sim.Identify(ctx, sim.IdentifyConfig{Policy: rec, Instance: in, Cap: s.Cap, Lo: s.Lo,
		Hi: s.Hi, Rewards: rewards, Noise: &privately[0],
		Ledger: privacy.NewLedger(options...)}, &r)
	if err == nil {
		err = rec.err
	}
	if err != nil {
		return Outcome{}, err
	}
	if transcript != nil {
		end := endLine{End: endAnswer, Answer: r.Answer, Tau: r.Tau, Total: r.Plays}
		if r.Answer < 0 {
			end.End = endCap
		}
		if err := writeLine(transcript, end); err != nil {
			return Outcome{}, err
		}
	}
	out.Answer, out.Tau, out.Plays, out.Batches, out.Releases, out.Loss = r.Answer, r.Tau, r.Plays,
		r.Batches, r.Releases, r.Loss
	out.Wrong = r.Answer >= 0 && out.True[r.Answer] < slices.Max(out.True)
	out.Means = rec.means(s.Lo, s.Hi)
	if s.lower != nil {
		out.Lower = *s.lower
	} else if out.Lower, err = s.Rule.LowerBound(out.True, s.Lo, s.Hi); err != nil && !errors.Is(err, ErrTie) {
		return Outcome{}, err
	}
	return out, nil
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func (s *Study) summarise() error {
	var tau, batches, lower []float64
	s.Share = make([]float64, len(s.Outcomes[0].Plays))
	for _, o := range s.Outcomes {
		if o.Answer < 0 {
			s.Capped++
		}
		if o.Wrong {
			s.Wrong++
		}
		tau, batches, lower = append(tau, float64(o.Tau)), append(batches, float64(o.Batches)),
			append(lower, o.Lower)
		for a, n := range o.Plays {
			s.Share[a] += float64(n) / float64(o.Tau) / float64(len(s.Outcomes))
		}
	}
	var err error
	if s.WrongLo, s.WrongHi, err = stats.ClopperPearson(s.Wrong, len(s.Outcomes), 0.95); err != nil {
		return err
	}
	s.TauMean, _, s.TauSE = stats.Mean(tau)
	q := stats.Quantiles(tau, 0.5, 0.9)
	s.Tau50, s.Tau90, s.TauMax = q[0], q[1], slices.Max(tau)
	s.BatchesMean, _, _ = stats.Mean(batches)
	s.BatchesMax = slices.Max(batches)
	s.LowerMean, _, _ = stats.Mean(lower)
	s.Lower50 = stats.Quantiles(lower, 0.5)[0]
	return nil
}
