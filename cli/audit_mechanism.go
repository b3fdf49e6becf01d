package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/lab/verdict"
	"github.com/sotto-dp/sotto/privacy"
)

type auditMechanism struct {
	Name string `arg:"" optional:"" name:"MECHANISM" help:"${mechanism}"`
	Exec string `help:"${auditMechanismExec}" placeholder:"COMMAND"`

	budgetFlags
	Delta   flags.Number `in:"[0,1)" help:"${mechanismDelta}" placeholder:"δ"`
	Claim   flags.Number `in:"[0,inf)" help:"Audit this claim instead of the ledger's." placeholder:"ε"`
	Broken  flags.Choice `of:"none,half,quarter,eighth,shared,redrawn,twice,unclipped" default:"none" help:"${broken}" placeholder:"FAULT"`
	Real    bool         `help:"Attack the curator of real rewards, whose noise nobody can repeat."`
	Arms    flags.Count  `in:"[1,100000]" default:"2" help:"Sums released together." placeholder:"K" group:"sums"`
	Records flags.Count  `in:"[1,100000]" default:"8" help:"${auditMechanismRecords}" placeholder:"N" group:"sums"`
	Looks   flags.Count  `in:"[1,100000]" help:"${auditMechanismLooks}" placeholder:"L" group:"sums"`

	Rows         flags.Count  `in:"[2,1e7]" default:"100" help:"Points of the data set." placeholder:"N" group:"mean"`
	Columns      flags.Count  `in:"[1,100000]" default:"10" help:"${auditMechanismColumns}" placeholder:"D" group:"mean"`
	Noise        flags.Number `in:"[0,inf)" default:"0" help:"${meanNoise}" placeholder:"γ" group:"mean"`
	Sample       flags.Count  `help:"${auditMechanismSample}" placeholder:"K" group:"mean"`
	Clip         flags.Number `in:"[0,inf)" default:"0" help:"${auditMechanismClip}" placeholder:"C" group:"mean"`
	Target       flags.Choice `of:"hard,easy,average" default:"hard" help:"${target}" placeholder:"NAME" group:"mean"`
	References   flags.Count  `in:"[2,1e6]" help:"${references}" placeholder:"N" group:"mean"`
	NoShrink     bool         `help:"${noShrink}" group:"mean"`
	Misspecified flags.Count  `help:"Columns in which attacks have the target wrong." placeholder:"N" group:"mean"`
	Searched     flags.Count  `default:"2048" help:"Games of the search with each adversary." placeholder:"N"`
	OneRun       bool         `help:"${oneRun}" group:"further"`
	furtherFlags
	confidenceFlag
	auditFlags
}

var auditMechanismTexts = kong.Vars{
	"mechanism": "laplace, gaussian, tree, hybrid, kary, sqrt, blt or sparse; mean; or a mechanism " +
		"in JSON, as a ledger writes it.",
	"mechanismDelta": "δ at which ε is claimed and audited. Without it 0 where there is a claim of " +
		"ε-DP, else 0.01.",
	"meanNoise": "γ: normal noise of variance γ²/k is added to each column of a mean of k points.",
	"target": "hard (the point that is easiest to trace), easy (the one best hidden) or average (a " +
		"new one in each game).",
	"references": "Attacks do not know the law of the data, but so many points of it: empirical " +
		"likelihood ratio, covariance and GLiR.",
	"noShrink":              "Do not shrink the covariance of the references: it must not be singular then.",
	"oneRun":                "Estimate ε and μ from a single run of many sums, each with a canary.",
	"auditMechanismRecords": "Rewards in a sum between two releases.",
	"auditMechanismLooks":   "Releases: without it 16 of running sums, 2 of others.",
	"auditMechanismColumns": "Columns of a point, each 0 or 1.",
	"auditMechanismSample":  "Points drawn without replacement and averaged; all without it.",
	"auditMechanismClip":    "Clip points to this norm; 0 does not.",
	"auditMechanismExec": "In place of MECHANISM: a program of your own that is given records and says outputs, and what it " +
		"claims of them, such as 'python3 mine.py'. Words are divided at spaces; contrib/python/README.md has the format.",
	"audit mechanism": `Examples:
  sotto audit mechanism laplace --epsilon 1 --games 1e6
  sotto audit mechanism gaussian --rho 0.5 --delta 0.01 --out report
  sotto audit mechanism tree --epsilon 1 --looks 16 --broken half
  sotto audit mechanism gaussian --rho 0.5 --deltas 1e-4,1e-3,0.01 --gaussian-dp --one-run --reconstruct 2
  sotto audit mechanism mean --rows 100 --columns 50 --noise 1
  sotto audit mechanism mean --rows 100 --columns 20 --references 200 --misspecified 2
  sotto audit mechanism '{"mechanism":"laplace","scale":2}' --claim 0.25
  sotto audit mechanism --exec 'python3 mine.py' --games 20000`,
}

func (c *auditMechanism) Run(ctx context.Context, s streams) error {
	set, err := c.settings(c.Confidence, 100_000)
	if err != nil {
		return usage(err)
	}
	set.Claim = c.Claim.Pointer()
	if c.Exec != "" {
		p, err := c.outside(s, set)
		return play(ctx, s, &c.auditFlags, p, err)
	}
	if c.Name == "" {
		return usagef("MECHANISM is missing, must be given, or --exec")
	}
	if c.Name == "mean" {
		p, err := c.mean(set)
		return play(ctx, s, &c.auditFlags, p, err)
	}
	p, err := c.sums(set)
	return play(ctx, s, &c.auditFlags, p, err)
}

// outside is the audit of a program of somebody else.
func (c *auditMechanism) outside(s streams, set verdict.Settings) (*verdict.Searched, error) {
	switch {
	case c.Name != "":
		return nil, errors.New("want one of MECHANISM and --exec")
	case c.budgetFlags.given():
		return nil, errors.New("--epsilon and --rho are not for --exec: the program says what it claims")
	case c.Broken != "none" || c.Real || c.OneRun || c.Reconstruct != 0:
		return nil, errors.New("--broken, --real, --one-run and --reconstruct are not for --exec")
	}
	m, err := s.programs.Mechanism(catalog.Program{Args: strings.Fields(c.Exec)})
	if err != nil {
		return nil, &flags.Error{Field: "--exec", Err: err}
	}
	return verdict.Outside{Settings: set, Mechanism: m, Records: int(c.Records), Delta: c.Delta.Pointer(),
		Searched: int(c.Searched), Further: c.further(false)}.Prepare()
}

// sums is the audit of sums, or of a protocol's messages.
func (c *auditMechanism) sums(set verdict.Settings) (*verdict.Searched, error) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"references", c.References != 0}, {"no-shrink", c.NoShrink}, {"misspecified", c.Misspecified != 0}} {
		if f.given {
			return nil, fmt.Errorf("--%s is for mean only", f.name)
		}
	}
	m, looks, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	if verdict.OfMessages(m) {
		if c.Real || c.Broken != "none" && c.Broken != "half" {
			return nil, fmt.Errorf("--real and --broken %s are not for %s: its broken copy has half",
				c.Broken, m.Kind())
		}
		return verdict.Messages{Settings: set, Mechanism: m, Delta: c.Delta.Pointer(),
			Half: c.Broken == "half", Searched: int(c.Searched), Further: c.further(c.OneRun)}.Prepare()
	}
	if c.Broken != "none" && c.Real {
		return nil, errRealBroken
	}
	return verdict.Sums{Settings: set, Mechanism: m, Arms: int(c.Arms), Records: int(c.Records),
		Looks: looks, Delta: c.Delta.Pointer(), Fault: fault(c.Broken), Real: c.Real,
		Searched: int(c.Searched), Further: c.further(c.OneRun)}.Prepare()
}

var errRealBroken = errors.New("want one of --broken and --real: the curator of real rewards cannot be broken")

// mechanism is what the name says at the budget, and how often it is released.
func (c *auditMechanism) mechanism() (m privacy.Mechanism, looks int, err error) {
	if strings.HasPrefix(c.Name, "{") {
		if c.budgetFlags.given() {
			return nil, 0, errors.New("--epsilon and --rho are not for a mechanism in JSON, which " +
				"has its own scale")
		}
		if m, err = privacy.UnmarshalMechanism([]byte(c.Name)); err != nil {
			return nil, 0, fmt.Errorf("MECHANISM: %w", err)
		}
		if m.Loss().Infinite() {
			return nil, 0, fmt.Errorf("MECHANISM is %s, which has no finite price: its kind must be "+
				"one that the ledger knows, its scale above 0 and finite", c.Name)
		}
		return m, c.looks(m), nil
	}
	if err := flags.OneOf("MECHANISM", c.Name, append(audit.NamedMechanisms(), "mean")...); err != nil {
		return nil, 0, err
	}
	b, err := c.budget(c.Delta)
	if err != nil {
		return nil, 0, err
	}
	// Whether sums are running is a matter of the kind, whatever the scale.
	if m, err = audit.NewMechanism(c.Name, b, 1); err == nil {
		looks = c.looks(m)
		m, err = audit.NewMechanism(c.Name, b, looks)
	}
	return m, looks, err
}

// looks is how often a mechanism is released.
func (c *auditMechanism) looks(m privacy.Mechanism) int {
	switch {
	case c.Looks != 0:
		return int(c.Looks)
	case verdict.Running(m):
		return 16
	}
	return 2
}

// mean is the audit of a mean.
func (c *auditMechanism) mean(set verdict.Settings) (*verdict.PreparedMean, error) {
	switch {
	case c.budgetFlags.given():
		return nil, errors.New("--epsilon and --rho are not for mean, whose noise is --noise")
	case c.Broken != "none" || c.Real:
		return nil, errors.New("--broken and --real are not for mean")
	case c.OneRun || c.Reconstruct != 0:
		return nil, errors.New("--one-run and --reconstruct are not for mean")
	case c.NoShrink && c.References == 0:
		return nil, errors.New("--no-shrink needs --references")
	}
	return verdict.Mean{Settings: set, Delta: c.Delta.Pointer(), Further: c.further(false),
		Audit: audit.MeanAudit{Rows: int(c.Rows), Columns: int(c.Columns), Sample: int(c.Sample),
			Noise: c.Noise.X, Clip: c.Clip.X, Target: string(c.Target),
			References: int(c.References), NoShrink: c.NoShrink,
			Misspecified: int(c.Misspecified)}}.Prepare()
}
