package verdict

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/noise"
)

// Mean is an audit of a mean.
type Mean struct {
	Settings
	Audit   audit.MeanAudit // its Games, Workers and keys are those of Settings
	Delta   *float64        // nil: 0.01
	Further audit.Further   // no OneRun and no Values
}

// A PreparedMean is an audit of a mean, ready to be run.
type PreparedMean struct {
	Mean
	page         *Page
	game         *audit.MeanGame
	delta, claim float64
	mu           float64                              // claimed μ of Gaussian DP; +Inf: none
	curve        func(delta float64) (float64, error) // the claim at every δ
}

// Prepare checks the audit.
func (m Mean) Prepare() (*PreparedMean, error) {
	m.Audit.Games, m.Audit.Workers = m.Games, m.Workers
	m.Audit.Data, m.Audit.Key = m.key("mechanism", "mean data"), m.key("mechanism", "mean")
	m.Audit.Data.Role = noise.RoleInstance
	g, err := m.Audit.New()
	if err != nil {
		return nil, err
	}
	out := &PreparedMean{Mean: m, game: g, delta: 0.01, claim: g.Loss.Pure(), mu: g.Mu,
		curve: func(delta float64) (float64, error) { return g.Loss.Approx(delta), nil }}
	if m.Delta != nil {
		out.delta = *m.Delta
	}
	if out.delta > 0 {
		out.claim = g.Loss.Approx(out.delta)
	}
	a, rows := m.Audit, g.Mean.Rows()
	says := "none: without noise a mean promises nothing"
	if a.Noise > 0 {
		says = fmt.Sprintf("that of normal noise on points at most %.4g apart, at δ = %v", g.Apart, out.delta)
		if a.Sample > 0 && a.Sample < a.Rows {
			says += ", without what sub-sampling adds"
		}
	}
	if m.Claim != nil {
		out.claim, out.mu = *m.Claim, math.Inf(1)
		out.curve = func(float64) (float64, error) { return math.Inf(1), nil }
		says = fmt.Sprintf("given on the command line, at δ = %v", out.delta)
	}
	knows := "the law of the data"
	if a.References > 0 {
		knows = fmt.Sprintf("%d points of the data's law", a.References)
	}
	p := &Page{Title: "Audit of a mean", Description: "A membership game: a point is in the data " +
		"or not, by a fair coin, and attacks tell from the released mean which.",
		Gamma: m.Gamma, Seed: m.Seed,
		Cannot: []string{"The other points are drawn anew in each game, which hides the target " +
			"better than data that the adversary knows: the claim is about the worst data there are.",
			simulatedOnly}}
	out.page = p
	p.fact("mechanism", "mean of %d of %d points with %s; noise γ = %v, clipping %v (0: none)", rows,
		a.Rows, words.Counted(a.Columns, "column", "columns"), a.Noise, a.Clip)
	p.fact("data", "independent columns of 0 and 1, with means from 0.1 to 0.9")
	p.fact("neighbours", "one point replaced by the target [Azize 2024, Algorithms 5 and 12]")
	p.fact("target", "%s", map[string]string{
		audit.HardTarget:    "the point that is easiest to trace: in each column the rarer value",
		audit.EasyTarget:    "the point best hidden: in each column the more frequent value",
		audit.AverageTarget: "a new point of the data's law in each game"}[a.Target])
	p.fact("the claim", "%s", says)
	p.fact("adversary", "knows %s and the target, and sees the mean", knows)
	p.Tested = append(p.Tested, report.Fact{Name: "attacks", Value: join(g.Names, "; ")})
	if g.Note != "" {
		p.Warnings = append(p.Warnings, g.Note)
	}
	if a.Misspecified != 0 {
		p.fact("misspecified", "attacks have the target wrong in %s",
			words.Counted(a.Misspecified, "column", "columns"))
	}
	if g.Limit != nil {
		p.fact("leakage score m*", "%s", strconv.FormatFloat(g.Score, 'g', 4, 64))
		p.fact("advantage in the limit", "%s", strconv.FormatFloat(g.Limit.Advantage(), 'g', 4, 64))
	}
	return out, nil
}

// Run plays the audit.
func (m *PreparedMean) Run(ctx context.Context) (*Page, error) {
	p, g := m.page, m.game
	scores, err := g.Play(ctx)
	if err != nil {
		return nil, err
	}
	gamma := m.Gamma / float64(m.Further.Parts())
	f, best, err := audit.Judge(scores, g.Names, gamma, m.delta, m.claim)
	if err != nil {
		return nil, err
	}
	if m.Further.Parts() > 1 {
		own := g.Game
		own.Key.Role, own.Attacks = "audit readings", own.Attacks[best:best+1]
		again, err := own.Play(ctx)
		if err != nil {
			return nil, err
		}
		p.Level = Level(gamma)
		if p.Readings, err = m.Further.Region(again[0], gamma, m.delta, m.claimAt, m.mu); err != nil {
			return nil, err
		}
	}
	f.Name, f.Against = "mean", m.Audit.Target+" target"
	p.Rows = rowsOf(f)
	if !m.Figures {
		return p, nil
	}
	var all []namedScores
	for i := range scores {
		all = append(all, namedScores{g.Names[i], scores[i]})
	}
	plot := rocPlot{id: "roc", title: "Attacks on the mean", all: all, best: best, claim: m.claim,
		delta: m.delta, low: f.Low, gamma: m.Gamma, curve: m.curve}
	if g.Limit != nil {
		plot.theory, plot.theoryName = g.Limit.Power, "theory, likelihood ratio"
	}
	roc, err := plot.figure()
	if err != nil {
		return nil, err
	}
	return p, p.draw(roc, scores[best], len(scores), m.Gamma, m.curve)
}

// claimAt is the claimed ε at δ.
func (m *PreparedMean) claimAt(delta float64) float64 {
	if m.Claim != nil && delta == m.delta {
		return m.claim
	}
	x, _ := m.curve(delta) // it has no errors
	return x
}
