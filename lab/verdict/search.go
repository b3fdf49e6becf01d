package verdict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Settings are those of every audit.
type Settings struct {
	Gamma   float64 // 1 − the confidence of all of it
	Games   int     // of the test
	Seed    uint64
	Workers int
	Figures bool // draw them: from games of their own
	// Until, if not 0, ends the games once ε is known to be above it: of a policy.
	Until float64
	// Claim replaces the ledger's, if it is not nil.
	Claim *float64
}

// key is where the randomness of an audit comes from.
func (s Settings) key(what, cell string) noise.Key {
	return noise.Key{Seed: s.Seed, Experiment: "audit " + what, Cell: cell}
}

// claimText says what is claimed.
func (s Settings) claimText(l privacy.Loss, delta float64) string {
	if s.Claim != nil {
		return fmt.Sprintf("ε = %v at δ = %v, given on the command line", *s.Claim, delta)
	}
	return fmt.Sprintf("the ledger's, at δ = %v: %v", delta, l)
}

// replaced is the finding with the claim that replaces the ledger's.
func (s Settings) replaced(f audit.Finding) audit.Finding {
	if s.Claim != nil {
		f.Claimed, f.Refuted = *s.Claim, f.Low > *s.Claim
	}
	return f
}

// errNoClaim is the error of a claim that says nothing at δ = 0.
func errNoClaim(what string) error {
	return fmt.Errorf("delta is 0, must be above 0: %s claims no ε at δ = 0", what)
}

// deltaFor is the δ of an audit: the one that is given, else 0 where ε-DP is claimed, and 0.01.
func (s Settings) deltaFor(given *float64, m privacy.Mechanism) (float64, error) {
	delta, pure := 0.0, !math.IsInf(m.Loss().Pure(), 1)
	switch {
	case given != nil:
		delta = *given
	case !pure:
		delta = 0.01
	}
	if delta == 0 && !pure && s.Claim == nil {
		return 0, errNoClaim(m.Kind())
	}
	return delta, nil
}

// A Searched is an audit that looks for its adversary, ready to be run.
type Searched struct {
	Settings
	page   *Page
	search audit.Search
}

func (s Settings) searched(p *Page, x audit.Search) *Searched {
	p.Gamma, p.Seed, p.Level = s.Gamma, s.Seed, Level(x.Gamma)
	f := x.Further
	if n := f.Parts(); n > 1 {
		p.fact("further readings", "%d, each with games of its own; the error probability is split "+
			"over them and the audit", n-1)
	}
	if f.OneRun {
		p.fact("one run", "games are read as the canaries of one run of as many sums, which have "+
			"nothing to do with each other; δ counts for each canary, so above 0 fewer games may "+
			"show more")
	}
	if f.Values > 0 {
		p.fact("reconstruction", "the reward of the challenge is one of %d values from 0 to 1; "+
			"without the transcript %.4g %% of guesses are right", f.Values, 100/float64(f.Values))
	}
	return &Searched{s, p, x}
}

// fact adds one to what was tested.
func (p *Page) fact(name, format string, args ...any) {
	p.Tested = append(p.Tested, report.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
}

// Run plays the audit, and draws what it found from games of their own.
func (s *Searched) Run(ctx context.Context) (*Page, error) {
	p, x := s.page, s.search
	f, err := x.Run(ctx)
	if err != nil {
		return nil, err
	}
	f = s.replaced(f)
	p.Rows = rowsOf(f)
	if f.Claimed == 0 && s.Claim == nil {
		p.Warnings = append(p.Warnings, "The ledger was charged nothing: no reward was in a "+
			"release. Play longer.")
	}
	adversaries := words.Counted(x.Adversaries, "adversary", "adversaries")
	if s.Until > 0 {
		p.fact("searched", "%s, each of them neighbours and a continuation; every game counts, whoever it was "+
			"against", adversaries)
		p.Notes = append(p.Notes, anytime)
		if f.Low <= s.Until {
			p.Warnings = append(p.Warnings, fmt.Sprintf("ε is not known to be above %v after %s: more --games may "+
				"show it, if it is so.", s.Until, words.Counted(f.Games, "game", "games")))
		}
	} else {
		p.fact("searched", "%s, each of them neighbours and a continuation, with %s each and more with "+
			"the best; the test has games of its own", adversaries, words.Counted(x.Pilot, "game", "games"))
	}
	p.fact("worst adversary found", "%s: %s", f.Model, f.Against)
	p.Cannot = append(p.Cannot, "The adversaries are a list that was searched, not all there are.")
	if p.Readings, err = x.Readings(ctx, f, s.Claim != nil); err != nil {
		return nil, err
	}
	if s.Figures {
		if err := s.draw(ctx, f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// anytime says what bounds that hold at any time are.
const anytime = "Lower ends hold at any number of games, so that games may end when enough is known. For Laplace " +
	"noise of ε = 1 and 10⁴ to 10⁵ games this puts the bound 1.2 to 1.3 times as far below the truth at " +
	"confidence 0.95 as one test of as many games, and no farther at 0.999999."

// draw adds the figures of the adversary that was found.
func (s *Searched) draw(ctx context.Context, f audit.Finding) error {
	games := min(s.search.Games, 200_000)
	scores, ok, loss, err := s.search.Scores(ctx, "figure", f, games)
	if err != nil || !ok {
		return err
	}
	claimed := func(delta float64) (float64, error) {
		if s.Claim != nil {
			return math.Inf(1), nil
		}
		return min(loss.Approx(delta), loss.Pure()), nil
	}
	roc, err := rocPlot{id: "roc", title: "The attack that did best",
		all: []namedScores{{f.Attack, scores}}, claim: f.Claimed, delta: f.Delta, low: f.Low,
		gamma: s.Gamma, curve: claimed}.figure()
	if err != nil {
		return err
	}
	roc.Note += fmt.Sprintf(" %s games of its own.", words.Whole(games))
	return s.page.draw(roc, scores, 1, s.Gamma, claimed)
}

// breaks sets the curator of an audit. Possible are the faults that show, if not nil.
func (p *Page) breaks(a audit.PolicyAudit, fault audit.Fault, real bool,
	possible []audit.Fault) (audit.PolicyAudit, error) {
	curator := "simulated noise"
	var err error
	switch {
	case fault != audit.NoFault && real:
		return a, errors.New("the curator of real rewards cannot be broken")
	case real:
		a.Subject = a.Subject.Real()
		curator = "that of real rewards, with noise of its own that no seed repeats"
	case fault != audit.NoFault:
		if a, err = a.Break(fault, possible); err != nil {
			return a, err
		}
		curator = "broken on purpose: " + fault.String()
		p.Broken = true
	}
	p.fact("curator", "%s", curator)
	if !real {
		p.Cannot = append(p.Cannot, simulatedOnly)
	} else {
		p.Cannot = append(p.Cannot, "The curator of real rewards was attacked through its "+
			"releases alone. Timing, memory and the randomness of the machine are not in it.")
	}
	return a, nil
}

func join(names []string, by string) string { return strings.Join(names, by) }

// rowsOf are rows of what nobody broke.
func rowsOf(f ...audit.Finding) []Row {
	var out []Row
	for i := range f {
		out = append(out, Row{Finding: f[i]})
	}
	return out
}
