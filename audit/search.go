package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A Reading is one more lower bound of an audit, on games of its own.
type Reading struct {
	What    string
	Delta   float64 // NaN: none
	Claimed float64 // +Inf: no claim
	Low     float64
	Games   int
}

// Refuted says that the bound is above the claim.
func (r Reading) Refuted() bool { return r.Low > r.Claimed }

// Verdict says it in a word or two.
func (r Reading) Verdict() string {
	switch {
	case math.IsInf(r.Claimed, 1):
		return "no claim"
	case r.Refuted():
		return "refuted"
	}
	return "not refuted"
}

// Name is what was read, and at which δ.
func (r Reading) Name() string {
	if math.IsNaN(r.Delta) {
		return r.What
	}
	return fmt.Sprintf("%s at δ = %v", r.What, r.Delta)
}

// Further says which readings an audit has beside its finding. Each has its part of the error
// probability.
type Further struct {
	Deltas     []float64 // ε at these δ, all of them together
	GaussianDP bool      // μ of Gaussian DP
	OneRun     bool      // ε and μ from the games as canaries of a single run
	// Values is how many values a reward may have that is guessed from what is released, at least
	// 2; 0 is no such reading.
	Values int
}

// Parts is over how many the error probability is split: the readings, and the audit itself.
func (f Further) Parts() int {
	n := 1
	for _, asked := range []bool{f.Deltas != nil || f.GaussianDP, f.OneRun, f.Values > 0} {
		if asked { // one region gives ε and μ
			n++
		}
	}
	return n
}

// Region reads Deltas and GaussianDP off scores of games that nothing was chosen on, of an audit at
// δ. Claim is the claimed ε at each δ, and mu the claimed μ; +Inf is none.
func (f Further) Region(s Scores, gamma, delta float64, claim func(float64) float64,
	mu float64) ([]Reading, error) {
	deltas := f.Deltas
	if deltas == nil && !f.GaussianDP {
		return nil, nil
	}
	games := len(s.In) + len(s.Out)
	region, err := s.RegionByRank(gamma)
	if err != nil {
		return nil, err
	}
	var rows []Reading
	bounds, err := region.Curve(deltas)
	if err != nil {
		return nil, err
	}
	for i, b := range bounds {
		rows = append(rows, Reading{"ε", deltas[i], claim(deltas[i]), b.Epsilon, games})
	}
	if f.GaussianDP {
		rows = append(rows, Reading{"Gaussian DP: μ", math.NaN(), mu, region.Mu(), games})
		if !slices.Contains(deltas, delta) {
			deltas = append([]float64{delta}, deltas...)
		}
		for _, d := range deltas {
			if d == 0 {
				continue // ε is infinite on every Gaussian curve
			}
			eps, err := region.GaussianEpsilon(d)
			if err != nil {
				return nil, err
			}
			claimed := math.Inf(1) // only a claim of Gaussian DP is refuted by its fit
			if !math.IsInf(mu, 1) {
				claimed = claim(d)
			}
			rows = append(rows, Reading{"Gaussian DP: ε", d, claimed, eps, games})
		}
	}
	return rows, nil
}

// untied breaks ties of scores at random, which tells nothing and makes any number of
// guesses possible.
func untied(s Scores, k noise.Key) Scores {
	k.Role = "audit ties"
	src := &k.Fast(1)[0]
	for _, x := range [][]float64{s.In, s.Out} {
		for i := range x {
			x[i] += float64(1e-9 * src.Float64())
		}
	}
	return s
}

// oneRun reads scores as those of the canaries of one run. How many are guessed is
// fixed: a part of them.
func oneRun(s Scores, gamma, delta, claimed, mu float64) ([]Reading, error) {
	n := len(s.In) + len(s.Out)
	var guesses []int
	for _, part := range []int{200, 50, 10, 3, 1} {
		guesses = append(guesses, max(1, n/part))
	}
	eps, at, err := s.OneRunEpsilon(gamma/2, delta, guesses...)
	if err != nil {
		return nil, err
	}
	best := 0.0
	for _, g := range guesses {
		o, err := s.OneRun(g)
		if err != nil {
			return nil, err
		}
		x, err := o.Mu(gamma / float64(2*len(guesses)))
		if err != nil {
			return nil, err
		}
		best = max(best, x)
	}
	rows := []Reading{{fmt.Sprintf("one run, %d of %d guesses right: ε", at.Correct, at.Guesses),
		delta, claimed, eps, n},
		{"one run, Gaussian DP: μ", math.NaN(), mu, best, n}}
	if delta > 0 && best > 0 {
		if math.IsInf(mu, 1) {
			claimed = mu // only a claim of Gaussian DP is refuted by its fit
		}
		rows = append(rows, Reading{"one run, Gaussian DP: ε", delta, claimed,
			privacy.GaussianEpsilon(best, delta), n})
	}
	return rows, nil
}

// A Search is an audit that looks for the adversary, of a policy or of something that is not played
// as one, with its further readings. PolicyAudit.Search and Direct.Search make one.
type Search struct {
	// Run is the audit itself, with its part of the error probability.
	Run         func(context.Context) (Finding, error)
	Adversaries int // that are searched
	Pilot       int // games of the search with each
	Games       int // of the test, and of each reading
	Further     Further
	Gamma       float64 // of each reading
	Mu          float64 // claimed μ of Gaussian DP; +Inf: none

	key   noise.Key
	delta float64
	again func(ctx context.Context, role string, f Finding, games int) (s Scores, ok bool,
		l privacy.Loss, err error)
	// nil: there is no such game
	guess func(ctx context.Context, f Finding, values int) (Guesses, error)
}

// ErrNoGuess is the error of Further.Values where no reward can be guessed.
var ErrNoGuess = errors.New("reconstruction is for sums and for policies of K arms")

// Search is the audit with further readings, over all of which p.Gamma is split.
func (p PolicyAudit) Search(f Further) Search {
	p.Gamma /= float64(f.Parts())
	x := Search{Run: p.Run, Adversaries: len(p.Adversaries), Pilot: p.Pilot, Games: p.Games,
		Further: f, Gamma: p.Gamma, Mu: math.Inf(1), delta: p.Delta, key: p.Key}
	find := func(f Finding) (Adversary, error) {
		for _, a := range p.Adversaries {
			if a.Name == f.Against && a.Model.String() == f.Model {
				return a, nil
			}
		}
		return Adversary{}, fmt.Errorf("there is no adversary %q", f.Against)
	}
	x.again = func(ctx context.Context, role string, f Finding, games int) (Scores,
		bool, privacy.Loss, error) {
		a, err := find(f)
		if err != nil {
			return Scores{}, false, privacy.Loss{}, err
		}
		k := p.Key
		k.Role = noise.Role("audit " + role)
		all, loss, err := Transcripts(ctx, p.Subject, a, p.Sees, games, p.Workers, k)
		if err != nil {
			return Scores{}, false, loss, err
		}
		for i, name := range Attacks(p.Sees) {
			// a table of plays is no score
			if name == f.Attack && all[i].Validate() == nil && !(p.Sees == Plays && i == len(all)-1) {
				return all[i], true, loss, nil
			}
		}
		return Scores{}, false, loss, nil
	}
	x.guess = func(ctx context.Context, f Finding, values int) (Guesses, error) {
		a, err := find(f)
		if err != nil {
			return Guesses{}, err
		}
		k := p.Key
		k.Role = "audit reconstruction"
		r, err := Reconstruct(p.Subject, a, values, p.Games, p.Workers, k)
		if err != nil {
			return Guesses{}, err
		}
		return r.Play(ctx)
	}
	return x
}

// Search is the audit with further readings, over all of which d.Gamma is split. There is no reward
// to guess: the error matches ErrNoGuess.
func (d Direct) Search(f Further) (Search, error) {
	if f.Values > 0 {
		return Search{}, ErrNoGuess
	}
	d.Gamma /= float64(f.Parts())
	return Search{Run: d.Run, Adversaries: len(d.Adversaries()), Pilot: d.Pilot, Games: d.Games,
		Further: f, Gamma: d.Gamma, Mu: math.Inf(1), delta: d.Delta, key: d.Key,
		again: func(ctx context.Context, role string, f Finding, games int) (Scores, bool,
			privacy.Loss, error) {
			d := d
			d.Key.Role = noise.Role("audit " + role)
			s, ok, err := d.Scores(ctx, f.Against, games)
			return s, ok && s.Validate() == nil, d.Claim(), err
		}}, nil
}

// Scores plays games of their own, named by a role, against the adversary that was found, and
// returns the scores of the attack that did best and what the ledger says. Not ok: it has none that
// differ.
func (x Search) Scores(ctx context.Context, role string, f Finding, games int) (s Scores, ok bool,
	l privacy.Loss, err error) {
	return x.again(ctx, role, f, games)
}

// Readings does the further readings of a finding. Replaced says that the finding's claim is not
// the ledger's: then nothing is claimed at another δ.
func (x Search) Readings(ctx context.Context, f Finding, replaced bool) ([]Reading, error) {
	var rows []Reading
	claim := func(l privacy.Loss) func(float64) float64 {
		return func(delta float64) float64 {
			switch {
			case replaced && delta == x.delta:
				return f.Claimed
			case replaced:
				return math.Inf(1)
			case delta == 0:
				return l.Pure()
			}
			return min(l.Approx(delta), l.Pure())
		}
	}
	scores := func(role string, games int) (Scores, func(float64) float64, error) {
		s, ok, l, err := x.again(ctx, role, f, games)
		if err == nil && !ok {
			err = fmt.Errorf("%w: the attack that did best, %s, has no scores that differ: there "+
				"is nothing for a further reading", ErrConstantScore, f.Attack)
		}
		return s, claim(l), err
	}
	if x.Further.Deltas != nil || x.Further.GaussianDP {
		s, c, err := scores("readings", x.Games)
		if err != nil {
			return nil, err
		}
		if rows, err = x.Further.Region(s, x.Gamma, x.delta, c, x.Mu); err != nil {
			return nil, err
		}
	}
	if x.Further.OneRun {
		s, c, err := scores("one run", min(x.Games, 100_000))
		if err != nil {
			return nil, err
		}
		r, err := oneRun(untied(s, x.key), x.Gamma, x.delta, c(x.delta), x.Mu)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	if x.Further.Values > 0 {
		g, err := x.guess(ctx, f, x.Further.Values)
		if err != nil {
			return nil, err
		}
		eps, err := g.Epsilon(x.Gamma, x.delta)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Reading{fmt.Sprintf("reconstruction, %d of %d right among %d "+
			"values: ε", g.Correct, g.Games, g.Values), x.delta, f.Claimed, eps, g.Games})
	}
	return rows, nil
}
