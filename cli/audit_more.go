package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// auditMore are further readings of an audit. Each has games of its own, and its part of the
// error probability.
type auditMore struct {
	Deltas     string `help:"Audit ε at these δ too, all of them together: the (ε,δ) curve." placeholder:"δ,…" group:"Further readings, over which the confidence is split:"`
	GaussianDP bool   `name:"gaussian-dp" help:"Bound μ of Gaussian DP from below." group:"Further readings, over which the confidence is split:"`
}

// auditGuess is the reading that guesses a reward.
type auditGuess struct {
	Reconstruct experiment.Count `help:"Guess one reward, which is one of so many values from 0 to 1, from what is released." placeholder:"VALUES" group:"Further readings, over which the confidence is split:"`
}

// A readingRow is one bound of a further reading.
type readingRow struct {
	What    string
	Delta   float64 // NaN: none
	Claimed float64 // +Inf: no claim
	Low     float64
	Games   int
}

func (r readingRow) refuted() bool { return r.Low > r.Claimed }

func (r readingRow) verdict() string {
	switch {
	case math.IsInf(r.Claimed, 1):
		return "no claim"
	case r.refuted():
		return "refuted"
	}
	return "not refuted"
}

func (r readingRow) name() string {
	if math.IsNaN(r.Delta) {
		return r.What
	}
	return fmt.Sprintf("%s at δ = %v", r.What, r.Delta)
}

// readings are the rows as people read them.
func readings(rows []readingRow, level string) report.Grid {
	g := report.Grid{Title: "Further readings",
		Head: []string{"reading", "verdict", "δ", "claimed", "audited, at least", "games"}, Text: 2,
		Notes: []string{"Each reading by itself is right at confidence " + level +
			", and so are all of them and the audit above together at the audit's."}}
	group := report.GridGroup{Head: "lower bounds"}
	for _, r := range rows {
		delta, claimed := "–", "none"
		if !math.IsNaN(r.Delta) {
			delta = strconv.FormatFloat(r.Delta, 'g', 4, 64)
		}
		if !math.IsInf(r.Claimed, 1) {
			claimed = auditNumber(r.Claimed)
		}
		group.Rows = append(group.Rows, []string{r.What, r.verdict(), delta, claimed,
			auditNumber(r.Low), strconv.Itoa(r.Games)})
	}
	g.Groups = []report.GridGroup{group}
	return g
}

// deltas reads the list.
func (m *auditMore) deltas() ([]float64, error) {
	if m.Deltas == "" {
		return nil, nil
	}
	var out []float64
	for _, text := range strings.Split(m.Deltas, ",") {
		d, err := zeroDelta("deltas", strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// parts is over how many readings, the audit included, the error probability is split.
func (m *auditMore) parts() int {
	n := 1
	if m.Deltas != "" || m.GaussianDP { // one region gives both
		n++
	}
	return n
}

// readScores reads scores of games that nothing was chosen on. Claim is the claimed ε at each δ,
// and mu the claimed μ; +Inf is none.
func (m *auditMore) readScores(s audit.Scores, gamma, delta float64, claim func(float64) float64,
	mu float64) ([]readingRow, error) {
	deltas, err := m.deltas()
	if err != nil || deltas == nil && !m.GaussianDP {
		return nil, err
	}
	games := len(s.In) + len(s.Out)
	region, err := s.RegionByRank(gamma)
	if err != nil {
		return nil, err
	}
	var rows []readingRow
	bounds, err := region.Curve(deltas)
	if err != nil {
		return nil, err
	}
	for i, b := range bounds {
		rows = append(rows, readingRow{"ε", deltas[i], claim(deltas[i]), b.Epsilon, games})
	}
	if m.GaussianDP {
		rows = append(rows, readingRow{"Gaussian DP: μ", math.NaN(), mu, region.Mu(), games})
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
			rows = append(rows, readingRow{"Gaussian DP: ε", d, claimed, eps, games})
		}
	}
	return rows, nil
}

// untied breaks ties of scores at random, which tells nothing and makes any number of
// guesses possible.
func untied(s audit.Scores, k noise.Key) audit.Scores {
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
func oneRun(s audit.Scores, gamma, delta, claimed, mu float64) ([]readingRow, error) {
	n := len(s.In) + len(s.Out)
	var guesses []int
	for _, part := range []int{200, 50, 10, 3} {
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
	return []readingRow{{fmt.Sprintf("one run, %d of %d guesses right: ε", at.Correct, at.Guesses),
		delta, claimed, eps, n},
		{"one run, Gaussian DP: μ", math.NaN(), mu, best, n}}, nil
}

// A searched audit is one that looks for the adversary: of a policy, or of something that is
// not played as one.
type searched struct {
	run         func(context.Context) (audit.Finding, error)
	adversaries int
	pilot       int
	games       int
	mu          float64 // claimed μ of Gaussian DP; +Inf: none
	oneRun      bool    // asked for
	gamma       float64 // of a further reading
	key         noise.Key
	delta       float64
	values      int // of a reward to be guessed; 0: none
	// again plays games of their own with what was found. Not ok: there are no scores.
	again func(ctx context.Context, role string, f audit.Finding, games int) (s audit.Scores,
		ok bool, l privacy.Loss, err error)
	// nil: there is no such game
	guess func(ctx context.Context, f audit.Finding, values int) (audit.Guesses, error)
	auditMore
}

// searchedPolicy is the audit of a policy or a mechanism.
func searchedPolicy(p audit.PolicyAudit, workers int) searched {
	x := searched{run: p.Run, adversaries: len(p.Adversaries), pilot: p.Pilot, games: p.Games,
		mu: math.Inf(1), delta: p.Delta, key: p.Key}
	find := func(f audit.Finding) (audit.Adversary, error) {
		for _, a := range p.Adversaries {
			if a.Name == f.Against && a.Model.String() == f.Model {
				return a, nil
			}
		}
		return audit.Adversary{}, fmt.Errorf("there is no adversary %q", f.Against)
	}
	x.again = func(ctx context.Context, role string, f audit.Finding, games int) (audit.Scores,
		bool, privacy.Loss, error) {
		a, err := find(f)
		if err != nil {
			return audit.Scores{}, false, privacy.Loss{}, err
		}
		k := p.Key
		k.Role = noise.Role("audit " + role)
		all, loss, err := audit.Transcripts(ctx, p.Subject, a, p.Sees, games, workers, k)
		if err != nil {
			return audit.Scores{}, false, loss, err
		}
		for i, name := range audit.Attacks(p.Sees) {
			// a table of plays is no score
			if name == f.Attack && all[i].Validate() == nil && !(p.Sees == audit.Plays && i == len(all)-1) {
				return all[i], true, loss, nil
			}
		}
		return audit.Scores{}, false, loss, nil
	}
	x.guess = func(ctx context.Context, f audit.Finding, values int) (audit.Guesses, error) {
		a, err := find(f)
		if err != nil {
			return audit.Guesses{}, err
		}
		k := p.Key
		k.Role = "audit reconstruction"
		r, err := audit.Reconstruct(p.Subject, a, values, p.Games, workers, k)
		if err != nil {
			return audit.Guesses{}, err
		}
		return r.Play(ctx)
	}
	return x
}

// searchedDirect is the audit of something else.
func searchedDirect(d audit.Direct) searched {
	return searched{run: d.Run, adversaries: len(d.Adversaries()), pilot: d.Pilot, games: d.Games,
		mu: math.Inf(1), delta: d.Delta, key: d.Key,
		again: func(ctx context.Context, role string, f audit.Finding, games int) (audit.Scores,
			bool, privacy.Loss, error) {
			d := d
			d.Key.Role = noise.Role("audit " + role)
			s, ok, err := d.Scores(ctx, f.Against, games)
			return s, ok && s.Validate() == nil, d.Claim(), err
		}}
}

// more does the further readings.
func (x searched) more(ctx context.Context, f audit.Finding, says string) ([]readingRow, error) {
	var rows []readingRow
	claim := func(l privacy.Loss) func(float64) float64 {
		return func(delta float64) float64 {
			switch {
			case says != "" && delta == x.delta:
				return f.Claimed
			case says != "":
				return math.Inf(1)
			case delta == 0:
				return l.Pure()
			}
			return min(l.Approx(delta), l.Pure())
		}
	}
	scores := func(role string, games int) (audit.Scores, func(float64) float64, error) {
		s, ok, l, err := x.again(ctx, role, f, games)
		if err == nil && !ok {
			err = fmt.Errorf("%w: the attack that did best, %s, has no scores that differ: there "+
				"is nothing for a further reading", errUsage, f.Attack)
		}
		return s, claim(l), err
	}
	if x.auditMore.parts() > 1 {
		s, c, err := scores("readings", x.games)
		if err != nil {
			return nil, err
		}
		if rows, err = x.readScores(s, x.gamma, x.delta, c, x.mu); err != nil {
			return nil, err
		}
	}
	if x.oneRun {
		s, c, err := scores("one run", min(x.games, 100_000))
		if err != nil {
			return nil, err
		}
		r, err := oneRun(untied(s, x.key), x.gamma, x.delta, c(x.delta), x.mu)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	if x.values > 0 {
		g, err := x.guess(ctx, f, x.values)
		if err != nil {
			return nil, err
		}
		eps, err := g.Epsilon(x.gamma, x.delta)
		if err != nil {
			return nil, err
		}
		rows = append(rows, readingRow{fmt.Sprintf("reconstruction, %d of %d right among %d "+
			"values: ε", g.Correct, g.Games, g.Values), x.delta, f.Claimed, eps, g.Games})
	}
	return rows, nil
}

// split gives the audit and each of its readings a part of γ, and says so.
func (x *searched) split(o *outcome, gamma float64, guess auditGuess, more auditMore,
	one bool) (float64, error) {
	if _, err := more.deltas(); err != nil {
		return 0, err
	}
	x.auditMore, x.oneRun, x.values = more, one, int(guess.Reconstruct)
	if guess.Reconstruct != 0 && (x.values < 2 || x.values > 1_000_000) {
		return 0, fmt.Errorf("--reconstruct is %d, must be from 2 to 1000000", x.values)
	}
	if x.values > 0 && x.guess == nil {
		return 0, errors.New("--reconstruct is for sums and for policies of K arms")
	}
	parts := more.parts()
	if one {
		parts++
	}
	if x.values > 0 {
		parts++
	}
	x.gamma = gamma / float64(parts)
	if parts > 1 {
		o.tested = append(o.tested, report.Fact{Name: "further readings",
			Value: fmt.Sprintf("%d, each with games of its own; the error probability is split "+
				"over them and the audit", parts-1)})
	}
	if one {
		o.tested = append(o.tested, report.Fact{Name: "one run", Value: "games are read as the " +
			"canaries of one run of as many sums, which have nothing to do with each other; δ " +
			"counts for each canary, so above 0 fewer games may show more"})
	}
	if x.values > 0 {
		o.tested = append(o.tested, report.Fact{Name: "reconstruction",
			Value: fmt.Sprintf("the reward of the challenge is one of %d values from 0 to 1; "+
				"without the transcript %.4g %% of guesses are right", x.values, 100/float64(x.values))})
	}
	return x.gamma, nil
}
