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

// A PolicyAudit looks for the adversary and the attack that hurt a policy most, and then bounds its
// ε from below on games of their own.
//
// The search plays Pilot games with each adversary, then eight times as many with the best few, and
// chooses adversary and score. On other games these answer as Scores.Odds does, with the last of the
// search as pilot: one test is left, which has all of Gamma.
type PolicyAudit struct {
	Subject     Subject
	Adversaries []Adversary // nil: Adversaries of the subject, of all models
	Sees        Sees
	Delta       float64 // δ at which ε is bounded
	Gamma       float64 // 1 − confidence
	Games       int     // of the test; with Until at most so many, search and all
	// Until, if it is not 0, ends the games as soon as ε is known to be above it. Nothing is lost by
	// looking at any time, by many adversaries or by many attacks: see sequential.go.
	Until   float64
	Pilot   int // of the search, for each adversary; 0: 512
	Workers int // ≤ 0: all processors; with Until one is used
	Key     noise.Key
}

// A Finding is the outcome of one audit.
type Finding struct {
	Name    string
	Claimed float64 // ε at δ, as the ledger says
	Delta   float64
	Gamma   float64
	// Low is the lower bound on ε, at confidence 1 − Gamma. Estimate and High are the ε of the same
	// test, without a correction and with the errors at their other ends; High is no upper bound on
	// the subject's ε, which no audit gives.
	Low, Estimate, High float64
	// Refuted says that Low is above Claimed.
	Refuted bool
	Attack  string // the score that did best
	// Against is the adversary, and Model what it may do.
	Against string
	Model   string
	Games   int
	Seconds float64
}

// Tightness is Low/Claimed: 1 if the audit finds all that is claimed. It is NaN if the
// claim is infinite.
func (f Finding) Tightness() float64 {
	if math.IsInf(f.Claimed, 1) {
		return math.NaN()
	}
	return f.Low / f.Claimed
}

// Verdict says it in a word.
func (f Finding) Verdict() string {
	if f.Refuted {
		return "refuted"
	}
	return "not refuted"
}

// claimOf is a ledger's ε at δ.
func claimOf(l privacy.Loss, delta float64) float64 {
	if delta == 0 {
		return l.Pure()
	}
	return l.Approx(delta)
}

// found is the outcome of a test of a claim. The pilot is other games.
func found(pilot, s Scores, gamma, delta, claimed float64) (Finding, error) {
	f := Finding{Claimed: claimed, Delta: delta, Gamma: gamma, Games: len(s.In) + len(s.Out)}
	err := s.Validate()
	if errors.Is(err, ErrConstantScore) {
		// Nothing tells the worlds apart: the test that always says "out" shows ε ≥ 0 only.
		f.High = math.Inf(1)
		return f, nil
	}
	if err != nil {
		return f, err
	}
	var a Answers
	f.Low, _, a = odds(pilot, s, gamma, delta)
	f.Estimate, f.High = a.between(gamma, delta)
	f.Refuted = f.Low > claimed
	return f, nil
}

// A plan is what a search has chosen.
type chosen struct {
	adversary int
	score     int
	value     float64             // ε, with less confidence
	table     map[float64]float64 // of the score that needs one
	pilot     Scores              // the games that it was chosen by
}

// promising is the ε(δ) of the best threshold by Wilson's bounds, twice as wide as those of a test.
func promising(s Scores, gamma, delta float64) float64 {
	if s.Validate() != nil {
		return math.Inf(-1)
	}
	z := -2 * quantile(gamma/2)
	value := math.Inf(-1)
	in, out := len(s.In), len(s.Out)
	s.candidates(1.1, func(_ float64, _, fp, fn int, _ bool) {
		value = max(value, rawEpsilon(wilson(fp, out, z), wilson(fn, in, z), delta))
	})
	return value
}

// table turns numbers that stand for transcripts into log-ratios of how often they happened with
// the target and without it.
func table(s Scores) map[float64]float64 {
	t := map[float64][2]float64{}
	for _, x := range s.In {
		c := t[x]
		c[1]++
		t[x] = c
	}
	for _, x := range s.Out {
		c := t[x]
		c[0]++
		t[x] = c
	}
	out := make(map[float64]float64, len(t))
	for x, c := range t {
		out[x] = math.Log((c[1]+0.5)/(c[0]+0.5)) - math.Log((float64(len(s.In))+1)/(float64(len(s.Out))+1))
	}
	return out
}

// through looks scores up; what never happened is 0.
func through(t map[float64]float64, s Scores) Scores {
	out := Scores{make([]float64, len(s.In)), make([]float64, len(s.Out))}
	for i, x := range s.In {
		out.In[i] = t[x]
	}
	for i, x := range s.Out {
		out.Out[i] = t[x]
	}
	return out
}

func half(s Scores, i int) Scores {
	pick := func(x []float64) []float64 {
		if i == 0 {
			return x[:len(x)/2]
		}
		return x[len(x)/2:]
	}
	return Scores{pick(s.In), pick(s.Out)}
}

// choose picks the best score of some games.
func choose(all []Scores, from []int, gamma, delta float64) chosen {
	c := chosen{value: math.Inf(-1)}
	for _, i := range from {
		s := all[i]
		var t map[float64]float64
		if i == scoreHash {
			t = table(half(s, 0))
			s = through(t, half(s, 1))
		}
		if value := promising(s, gamma, delta); value > c.value {
			c = chosen{score: i, value: value, table: t, pilot: s}
		}
	}
	return c
}

const (
	defaultPilot = 512
	kept         = 4 // adversaries that are looked at again
	again        = 8 // times as many games then
)

func (p *PolicyAudit) check() error {
	if err := checkGamma(p.Gamma); err != nil {
		return err
	}
	if err := checkDelta(p.Delta); err != nil {
		return err
	}
	if p.Games < 1 {
		return fmt.Errorf("audit: %w: games is %d, must be at least 1", ErrNoGames, p.Games)
	}
	if p.Pilot < 0 {
		return fmt.Errorf("audit: pilot is %d, must not be negative", p.Pilot)
	}
	if !(p.Until >= 0) || math.IsInf(p.Until, 1) {
		return fmt.Errorf("audit: until is %v, must be above 0 and finite, or 0 for no such end", p.Until)
	}
	return nil
}

// Run searches, and tests what was found.
func (p PolicyAudit) Run(ctx context.Context) (Finding, error) {
	if err := p.check(); err != nil {
		return Finding{}, err
	}
	if err := p.Subject.try(); err != nil {
		return Finding{}, err
	}
	if p.Until > 0 {
		return p.race(ctx)
	}
	adversaries := p.adversaries()
	games := func(role string, a Adversary, n int) ([]Scores, privacy.Loss, error) {
		k := p.Key
		k.Role = noise.Role("audit " + role + " " + a.Name)
		return transcripts(ctx, p.Subject, a, n, p.Workers, k)
	}
	c, err := search(len(adversaries), p.pilot(), func(i, n int, role string) ([]Scores, error) {
		all, _, err := games(role, adversaries[i], n)
		return all, err
	}, seen(p.Sees), p.Gamma, p.Delta)
	if err != nil {
		return Finding{}, err
	}
	a := adversaries[c.adversary]
	all, loss, err := games("test", a, p.Games)
	if err != nil {
		return Finding{}, err
	}
	s := all[c.score]
	if c.table != nil {
		s = through(c.table, s)
	}
	f, err := found(c.pilot, s, p.Gamma, p.Delta, claimOf(loss, p.Delta))
	f.Name, f.Attack, f.Against, f.Model = p.Subject.Name, scoreNames[c.score], a.Name, a.Model.String()
	return f, err
}

func (p *PolicyAudit) adversaries() []Adversary {
	if p.Adversaries == nil {
		return Adversaries(p.Subject.Arms, p.Subject.Horizon, Models()...)
	}
	return p.Adversaries
}

// race plays until ε is known to be above Until, or above the claim if that is 0.
func (p *PolicyAudit) race(ctx context.Context) (Finding, error) {
	c := contest{name: p.Subject.Name, width: scores, from: seen(p.Sees), table: p.Sees == Plays,
		attacks: Attacks(p.Sees)}
	all := p.adversaries()
	for i := range all {
		if err := all[i].check(p.Subject); err != nil {
			return Finding{}, err
		}
		c.adversaries, c.models = append(c.adversaries, all[i].Name), append(c.models, all[i].Model.String())
	}
	var players []*player
	c.world = func(i int) func(bool, *noise.Fast, []float64) error {
		w := newWorld(p.Subject, &all[i])
		players = append(players, w)
		return w.game
	}
	c.claim = func() (loss privacy.Loss) {
		for _, w := range players {
			loss = loss.Max(w.claimed())
		}
		return loss
	}
	return c.run(ctx, p.Delta, p.Gamma, p.Until, p.Games, p.Key)
}

func (p *PolicyAudit) pilot() int {
	if p.Pilot == 0 {
		return defaultPilot
	}
	return p.Pilot
}

// search plays n games with each of some adversaries, more with the best, and says what to test.
func search(adversaries, n int, games func(i, n int, role string) ([]Scores, error), from []int,
	gamma, delta float64) (chosen, error) {
	// A search may be less sure than the test: it only chooses.
	gamma = max(gamma, 0.05)
	var all []chosen
	for i := range adversaries {
		s, err := games(i, n, "search")
		if err != nil {
			return chosen{}, err
		}
		c := choose(s, from, gamma, delta)
		c.adversary = i
		all = append(all, c)
	}
	if len(all) == 0 {
		return chosen{}, errors.New("audit: no adversaries, must be at least 1")
	}
	slices.SortStableFunc(all, func(a, b chosen) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return 0
	})
	top := chosen{value: math.Inf(-1), adversary: all[0].adversary, score: from[0]}
	for _, a := range all[:min(kept, len(all))] {
		s, err := games(a.adversary, again*n, "search again")
		if err != nil {
			return chosen{}, err
		}
		if c := choose(s, from, gamma, delta); c.value > top.value {
			top, top.adversary = c, a.adversary
		}
	}
	return top, nil
}

// Adversaries are the neighbours and continuations that are searched for K arms and T rounds, of
// these models: the challenge early, in the middle and late; before it and after it everything pays
// nothing, or all, or one arm does; under Continual the adversary draws the policy to the arm of
// the challenge or away from it; under Interactive it plays one arm whatever the policy recommends.
func Adversaries(arms, horizon int, models ...Model) []Adversary {
	all := func(x float64) []float64 {
		v := make([]float64, arms)
		for i := range v {
			v[i] = x
		}
		return v
	}
	one := func(arm int, x, y float64) []float64 {
		v := all(y)
		v[arm] = x
		return v
	}
	rounds := []int{1}
	far := []int{arms, arms + 1, 2*arms + 1, 4*arms + 1, horizon / 4}
	if horizon >= 1<<12 { // for policies that use their first rewards up or throw them away
		far = append(far, 3*(horizon/8), horizon/2)
	}
	for _, t := range far {
		if t > rounds[len(rounds)-1] && t < horizon {
			rounds = append(rounds, t)
		}
	}
	var out []Adversary
	add := func(a Adversary, format string, args ...any) {
		a.Name = fmt.Sprintf("round %d, ", a.Round) + fmt.Sprintf(format, args...)
		out = append(out, a)
	}
	for _, t := range rounds {
		for _, m := range models {
			base := Adversary{Model: m, Round: t, Low: all(0), High: all(1), Before: all(0), After: all(0)}
			switch m {
			case View:
				for _, pay := range [][2]float64{{0, 0}, {1, 1}, {0, 1}, {1, 0}} {
					a := base
					a.Before, a.After = all(pay[0]), all(pay[1])
					add(a, "list of %v, then %v", pay[0], pay[1])
				}
			case Table:
				if arms < 2 {
					continue
				}
				first := (t - 1) % arms
				for _, x := range []float64{0, 1} {
					a := base
					a.Before, a.After = one(first, x, 1-x), one(first, x, 1-x)
					add(a, "table: arm %d pays %v, the others %v", first, x, 1-x)
				}
				a := base
				a.Low, a.High = one(first, 0, 1), one(first, 1, 0)
				add(a, "table of 0, the row turned round")
			case Continual:
				if arms < 2 {
					continue
				}
				for _, x := range []float64{0, 1} {
					a := base
					a.Feed = func(h *History, pay []float64) {
						for i := range pay {
							pay[i] = 1 - x
							if h.Arm < 0 {
								pay[i] = 0
							}
						}
						if h.Arm >= 0 {
							pay[h.Arm] = x
						}
					}
					add(a, "feeds the arm %v, the others %v", x, 1-x)
				}
			case Interactive:
				if arms < 2 {
					continue
				}
				for q := range min(arms, 2) {
					a := base
					a.Query = func(*History) int { return q }
					add(a, "plays arm %d whatever is recommended", q)
				}
			}
		}
	}
	return out
}
