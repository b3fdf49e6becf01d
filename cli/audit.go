package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/verdict"
	"github.com/sotto-dp/sotto/privacy"
)

type auditCommand struct {
	Mechanism auditMechanism `cmd:"" help:"Attack a mechanism: sums, counts, a mean."`
	Policy    auditPolicy    `cmd:"" help:"Attack a policy by the rewards it is fed."`
	Training  auditTraining  `cmd:"" help:"Attack gradient descent by its iterates."`
	Self      auditSelf      `cmd:"" help:"Attack all of Sotto, and broken copies of it."`
}

// confidenceFlag is that of all audits but self.
type confidenceFlag struct {
	Confidence flags.Number `in:"(0,0.999999999]" default:"0.95" help:"${confidence}" placeholder:"1−γ"`
}

// auditFlags are those of all audits.
type auditFlags struct {
	Games   flags.Count   `in:"[100,1e8]" help:"${games}" placeholder:"N"`
	Seed    flags.Seed    `default:"1" help:"Seed of all simulated randomness." placeholder:"S"`
	Workers flags.Workers `help:"${auditWorkers}" placeholder:"W"`
	JSON    bool          `help:"As JSON, for programs."`
	Out     string        `help:"${auditOut}" placeholder:"DIR" type:"path"`
	figureFlags
}

// settings are the flags, with so many games if none are given.
func (c *auditFlags) settings(confidence flags.Number, games int) (verdict.Settings, error) {
	s := verdict.Settings{Gamma: gamma(confidence.X), Games: games, Seed: c.Seed.X,
		Workers: int(c.Workers), Figures: c.Out != ""}
	if c.Games != 0 {
		s.Games = int(c.Games)
	}
	if c.Out == "" {
		return s, nil
	}
	return s, canHold("--out", c.Out) // before the games: they may take an hour
}

// gamma is 1 − the confidence, rounded: 1 − 0.95 is not 0.05 in binary.
func gamma(confidence float64) float64 { return math.Round((1-confidence)*1e12) / 1e12 }

// budgetFlags are the budget of an audit, and the δ at which it is audited.
type budgetFlags struct {
	Epsilon flags.Number `in:"(0,inf)" help:"Budget of ε-DP; with --delta, of (ε,δ)-DP." placeholder:"ε" group:"budget"`
	Rho     flags.Number `in:"(0,inf)" help:"Budget of ρ-zCDP." placeholder:"ρ" group:"budget"`
}

func (c budgetFlags) given() bool { return c.Epsilon.Set || c.Rho.Set }

// budget is the budget that is audited at δ.
func (c budgetFlags) budget(delta flags.Number) (privacy.Budget, error) {
	switch {
	case c.Epsilon.Set == c.Rho.Set:
		return nil, errors.New("want a budget: one of --epsilon and --rho")
	case c.Rho.Set:
		return privacy.ZCDP{Rho: c.Rho.X}, nil
	case delta.X > 0:
		return privacy.Approx{Epsilon: c.Epsilon.X, Delta: delta.X}, nil
	}
	return privacy.Pure{Epsilon: c.Epsilon.X}, nil
}

// furtherFlags are further readings of an audit. Each has games of its own, and its part of the
// error probability.
type furtherFlags struct {
	Deltas      flags.Numbers `in:"[0,1)" help:"${deltas}" placeholder:"δ,…" group:"further"`
	GaussianDP  bool          `name:"gaussian-dp" help:"Bound μ of Gaussian DP from below." group:"further"`
	Reconstruct flags.Count   `in:"[2,1e6]" help:"${reconstruct}" placeholder:"VALUES" group:"further"`
}

func (c furtherFlags) further(oneRun bool) audit.Further {
	return audit.Further{Deltas: c.Deltas.X, GaussianDP: c.GaussianDP, OneRun: oneRun,
		Values: int(c.Reconstruct)}
}

// fault is what --broken says.
func fault(name flags.Choice) audit.Fault {
	f, _ := audit.FaultNamed(string(name)) // a choice among their names
	return f
}

// auditTexts are help texts that are long, or said twice.
var auditTexts = kong.Vars{
	"confidence": "The audited ε is below the true one with this probability, for all attacks " +
		"together.",
	"selfConfidence": "A sound program fails this audit with at most the rest of this probability.",
	"games": "Games of the test, of self for each claim; without it 100 000, of training 4000, of self a " +
		"million, or 2000 in all if --quick. Self plays at least 1000, and 2000 if it is given.",
	"auditOut": "Write the report to this directory: report.html, audit.json, a drawing of " +
		"each figure, and curve.csv, the bounds on ε over δ.",
	"deltas":      "Audit ε at these δ too, all of them together: the (ε,δ) curve.",
	"reconstruct": "Guess one reward, which is one of so many values from 0 to 1, from what is released.",
	"broken": "Break the curator on purpose: half, quarter, eighth, shared, redrawn, twice or " +
		"unclipped. The claim remains, and must be refuted.",
	"auditWorkers": "Games played at a time; answers do not depend on it. 0 is one a processor.",
}

// prepared is an audit that can be run.
type prepared interface {
	Run(context.Context) (*verdict.Page, error)
}

// play runs an audit that was prepared, or says what was wrong with it, and prints what it found.
func play[P prepared](ctx context.Context, s streams, c *auditFlags, p P, err error) error {
	if err != nil {
		return usage(err)
	}
	w := waiting(s, "audit", 0) // games that end when enough is known have no number
	page, err := p.Run(ctx)
	w.end()
	if err != nil {
		return failed(err)
	}
	return c.finish(s, page)
}

// finish writes what an audit has to say, and returns its error: a claim is refuted, or a broken
// twin is not.
func (c *auditFlags) finish(s streams, p *verdict.Page) error {
	p.Command = auditAgain(s.program, s.args)
	if c.Out != "" {
		if err := p.WriteDir(c.Out, c.selection()); err != nil {
			return drawn(fmt.Errorf("--out: %w", err))
		}
	}
	if c.JSON {
		if err := p.WriteJSON(s.out); err != nil {
			return err
		}
		return p.Err()
	}
	if err := p.WriteText(s.out); err != nil {
		return err
	}
	if c.Out != "" {
		if _, err := fmt.Fprintf(s.out, "The report is %s.\n", near(filepath.Join(c.Out, "report.html"))); err != nil {
			return err
		}
	}
	return p.Err()
}

// auditAgain is the command that gives the same answer again: without flags that change no number,
// since pages do not depend on them either.
func auditAgain(program string, args []string) string {
	var words []string
	for i := 0; i < len(args); i++ {
		switch name, _, cut := strings.Cut(args[i], "="); name {
		case "--json", "--progress":
		case "--out", "--workers":
			if !cut {
				i++ // its value
			}
		default:
			words = append(words, shellWord(args[i]))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return program + " " + strings.Join(words, " ")
}

// failed says whose fault an audit's error is. What scores cannot tell apart is no fault, but a
// question that has no answer.
func failed(err error) error {
	for _, e := range []error{audit.ErrNoGames, audit.ErrConfidence, audit.ErrDelta,
		audit.ErrSingular, audit.ErrFewReferences, audit.ErrShape, audit.ErrConstantScore, audit.ErrNaNScore} {
		if errors.Is(err, e) {
			return usage(err)
		}
	}
	if errors.Is(err, context.Canceled) {
		return interrupted("stopped: there is no finding")
	}
	return err
}
