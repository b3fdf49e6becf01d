package cli

import (
	"errors"
	"fmt"
	"math"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

type planRelease struct {
	Budget flags.Budget `required:"" help:"${planReleaseBudget}" placeholder:"BUDGET"`
	Users  flags.Count  `required:"" help:"Users who are invited to a batch." placeholder:"N"`

	Trust     flags.Choice `of:"central,local,two-server,shuffle,secagg,all" default:"secagg" help:"${planReleaseTrust}" placeholder:"MODEL"`
	Noise     string       `help:"${planReleaseNoise}" placeholder:"NOISE"`
	Precision flags.Number `in:"[1,inf)" default:"1" help:"${planReleasePrecision}" placeholder:"S"`
	Promised  flags.Number `in:"(0,1]" default:"1" help:"${planReleasePromised}" placeholder:"SHARE"`
	Misread   flags.Number `in:"(0,1)" default:"1e-6" help:"Probability that the sum is misread." placeholder:"P"`
	Returning flags.Count  `default:"1" help:"Batches that a user may take part in." placeholder:"B"`
	Delta     flags.Number `in:"(0,1)" default:"1e-6" help:"δ at which losses are told in (ε,δ)." placeholder:"δ"`
	Error     flags.Number `in:"(0,inf)" help:"${planReleaseError}" placeholder:"E"`
	Traffic   flags.Rate   `help:"${planReleaseTraffic}" placeholder:"N/day"`
	JSON      bool         `help:"As JSON, for programs."`
}

// planReleaseTexts are help texts that are too long for their flags.
var planReleaseTexts = kong.Vars{
	"planReleaseBudget": "What a user may lose by a batch, such as epsilon=1, rho=0.1, " +
		"epsilon=1,delta=1e-6 or " +
		"alpha=2,epsilon=0.1.",
	"planReleaseNoise":     "laplace, polya, skellam, gaussian or count, as 'sotto list mechanisms' has them.",
	"planReleasePrecision": "s of [Chowdhury and Zhou 2023], at least 1: rewards are encoded with g = s·ε·√n.",
	"planReleaseTrust":     "central, local, two-server, shuffle or secagg; or all, to compare them.",
	"planReleaseError": "With --trust all: how far noise may take the mean reward of a batch, with " +
		"probability 0.95; the answer has the smallest batch.",
	"planReleaseTraffic": "With --error: decisions of an arm, such as 10000/day, hour, minute or second; the " +
		"answer has how long that batch takes to fill.",
	"planReleasePromised": "Share of the users who are promised to answer: noise is calibrated to them.",
	"plan release": `Examples:
  sotto plan release --budget epsilon=0.1 --users 4096
  sotto plan release --budget alpha=2,epsilon=0.01 --users 1000 --noise skellam --precision 10 --returning 100
  sotto plan release --budget epsilon=1 --users 1000 --trust shuffle --promised 0.9
  sotto plan release --budget epsilon=1 --users 1000 --trust all --error 0.01 --traffic 2000/day

With --trust all every trust model is asked what its noise does to the mean of a batch
of so many users, those of live experiments (central, two-server, secagg, local) with
the noise that is drawn there.`,
}

// releasePlan is what programs read.
type releasePlan struct {
	Mechanism privacy.Mechanism `json:"mechanism"`
	Loss      privacy.Loss      `json:"loss"`
	Epsilon   float64           `json:"epsilon_at_delta"`
	Delta     float64           `json:"delta"`
	Bits      int               `json:"bits,omitempty"`     // each user sends
	Messages  float64           `json:"messages,omitempty"` // each user sends, in the mean
	Tail      privacy.Tail      `json:"tail"`
	Returning *returningPlan    `json:"returning,omitempty"`
}

type returningPlan struct {
	Batches  int      `json:"batches"`
	Renyi    *float64 `json:"renyi"` // null: no bound
	Advanced *float64 `json:"advanced"`
	Simple   *float64 `json:"simple"`
	// by the law of the loss, convolved; null where it is not known
	Numerical *float64 `json:"numerical"`
}

// numerical is ε at δ of so many batches, by the law of the loss: their number and noise are fixed
// in advance. Where there is none, or it is no better, it is the given one.
func numerical(m privacy.Mechanism, batches int, delta, renyi float64) float64 {
	guess := renyi
	if math.IsInf(guess, 1) {
		guess = math.Sqrt(float64(batches))
	}
	for step := min(1e-2, max(1e-6, guess/4000)); step <= 0.1; step *= 4 {
		p, err := privacy.NewPLD(m, step)
		if err == nil {
			p, err = p.Times(batches)
		}
		if err == nil {
			return min(renyi, p.Epsilon(delta))
		}
	}
	return renyi
}

// stated is the mechanism that a policy states for the budget.
func (c *planRelease) stated() (privacy.Mechanism, error) {
	switch b := c.Budget.Budget.(type) {
	case privacy.Pure:
		return privacy.Laplace{Scale: 1 / b.Epsilon}, nil
	case privacy.None:
		return nil, errors.New("--budget is none, must be private")
	}
	sigma, err := privacy.GaussianSigma(c.Budget.Budget)
	if err != nil {
		return nil, fmt.Errorf("--budget: %w", err)
	}
	return privacy.Gaussian{Sigma: sigma}, nil
}

func (c *planRelease) plan() (releasePlan, error) {
	out := releasePlan{Delta: c.Delta.X}
	budget := c.Budget.Budget
	t := release.Trust{Model: privacy.Trust(c.Trust), Noise: privacy.NoiseName(c.Noise),
		Like: budget, S: c.Precision.X, Promised: c.Promised.X, P: c.Misread.X}
	stated, err := c.stated()
	if err != nil {
		return out, err
	}
	if out.Mechanism, err = t.Mechanism(stated, int(c.Users)); err != nil {
		return out, err
	}
	out.Loss = out.Mechanism.Loss()
	// it has a δ of its own
	if out.Epsilon = out.Loss.Approx(out.Delta); math.IsInf(out.Epsilon, 1) {
		if b, ok := budget.(privacy.Approx); ok {
			out.Delta, out.Epsilon = b.Delta, out.Loss.Approx(b.Delta)
		}
	}
	if b, ok := out.Mechanism.(interface{ Bits() int }); ok {
		out.Bits = b.Bits()
	}
	if m, ok := out.Mechanism.(privacy.Clones); ok {
		out.Bits = m.Inner.Bits()
	}
	if m, ok := out.Mechanism.(privacy.ShuffledCount); ok {
		out.Messages = m.Messages()
	}
	out.Tail = out.Mechanism.(interface{ Tail() privacy.Tail }).Tail()
	if c.Returning > 1 {
		r, err := privacy.ReturningUsers(out.Loss, int(c.Returning), out.Delta)
		if err != nil {
			return out, err
		}
		out.Returning = &returningPlan{int(c.Returning), finiteOrNil(r.Renyi), finiteOrNil(r.Advanced),
			finiteOrNil(r.Simple),
			finiteOrNil(numerical(out.Mechanism, int(c.Returning), out.Delta, r.Renyi))}
	}
	return out, nil
}

func (c *planRelease) Run(s streams) error {
	if c.Trust == allTrusts {
		return c.compare(s)
	}
	if c.Error.Set || c.Traffic.Set {
		return usage(errors.New("--error and --traffic go with --trust all"))
	}
	p, err := c.plan()
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		return printJSON(s, p)
	}
	w := report.NewColumns(s.out)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	row("mechanism", "%v", p.Mechanism)
	inner := p.Mechanism
	switch m := p.Mechanism.(type) {
	case privacy.SplitMix:
		row("shares", "%d of each user, statistical distance 2^-%.1f", m.Shares, m.Sigma())
		inner = m.Inner
	case privacy.Clones:
		inner = m.Inner
		row("each message", "%v", m.Inner.Loss())
	case privacy.ShuffledCount:
		row("users", "%d invited, %d promised to answer", m.Invited, m.Users)
		row("messages", "%.4g of each user in the mean", p.Messages)
	}
	if m, ok := inner.(privacy.Aggregated); ok {
		row("users", "%d invited, %d promised to answer", m.Invited, m.Users)
		row("precision g", "%d", m.G)
		row("modulus m", "%d, τ = %d", m.Modulus, m.Tau)
		row("bits a user", "%d", p.Bits)
	}
	row("a user loses", "%v", p.Loss)
	row("in (ε,δ)", "ε = %s at δ = %.3g", privacy.Up(p.Epsilon, 4), p.Delta)
	x := math.Log(20)
	row("noise in the sum", "at most %.4g rewards with probability 0.95, at most %.4g in the "+
		"mean reward", p.Tail.Both(x), p.Tail.Both(x)/float64(c.Users))
	if r := p.Returning; r != nil {
		show := func(x *float64) string {
			if x == nil {
				return "∞"
			}
			return privacy.Up(*x, 4)
		}
		row(fmt.Sprintf("%d batches", r.Batches), "ε = %s at δ = %.3g by the law of the loss; "+
			"%s by Rényi curves, %s by advanced composition, %s added up", show(r.Numerical), p.Delta,
			show(r.Renyi), show(r.Advanced), show(r.Simple))
	}
	return w.Flush()
}
