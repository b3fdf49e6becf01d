package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

type auditMechanism struct {
	Name string `arg:"" name:"MECHANISM" help:"laplace, gaussian, tree, hybrid, kary, sqrt, blt or sparse; mean; or a mechanism in JSON, as a ledger writes it."`

	Epsilon string           `help:"Budget of ε-DP; with --delta, of (ε,δ)-DP." placeholder:"ε" group:"The budget; not for JSON and mean:"`
	Rho     string           `help:"Budget of ρ-zCDP." placeholder:"ρ" group:"The budget; not for JSON and mean:"`
	Delta   string           `help:"δ at which ε is claimed and audited. Without it 0 where there is a claim of ε-DP, else 0.01." placeholder:"δ"`
	Claim   string           `help:"Audit this claim instead of the ledger's." placeholder:"ε"`
	Broken  string           `default:"none" help:"Break the curator on purpose: half, quarter, eighth, shared, redrawn, twice or unclipped. The claim remains, and must be refuted." placeholder:"FAULT"`
	Real    bool             `help:"Attack the curator of real rewards, whose noise nobody can repeat." `
	Arms    experiment.Count `default:"2" help:"Sums released together." placeholder:"K" group:"Sums:"`
	Records experiment.Count `default:"8" help:"Rewards in a sum between two releases." placeholder:"N" group:"Sums:"`
	Looks   experiment.Count `help:"Releases: without it 16 of running sums, 2 of others." placeholder:"L" group:"Sums:"`

	Rows         experiment.Count `default:"100" help:"Points of the data set." placeholder:"N" group:"mean:"`
	Columns      experiment.Count `default:"10" help:"Columns of a point, each 0 or 1." placeholder:"D" group:"mean:"`
	Noise        string           `default:"0" help:"γ: normal noise of variance γ²/k is added to each column of a mean of k points." placeholder:"γ" group:"mean:"`
	Sample       experiment.Count `help:"Points drawn without replacement and averaged; all without it." placeholder:"K" group:"mean:"`
	Clip         string           `default:"0" help:"Clip points to this norm; 0 does not." placeholder:"C" group:"mean:"`
	Target       string           `default:"hard" help:"hard (the point that is easiest to trace), easy (the one best hidden) or average (a new one in each game)." placeholder:"NAME" group:"mean:"`
	References   experiment.Count `help:"Attacks do not know the law of the data, but so many points of it: empirical likelihood ratio, covariance and GLiR." placeholder:"N" group:"mean:"`
	NoShrink     bool             `help:"Do not shrink the covariance of the references: it must not be singular then." group:"mean:"`
	Misspecified experiment.Count `help:"Columns in which attacks have the target wrong." placeholder:"N" group:"mean:"`
	Searched     experiment.Count `default:"2048" help:"Games of the search with each adversary." placeholder:"N"`
	OneRun       bool             `help:"Estimate ε and μ from a single run of many sums, each with a canary." group:"Further readings, over which the confidence is split:"`
	auditMore
	auditGuess
	auditFlags
}

// Help is shown by --help.
func (c *auditMechanism) Help() string {
	return `Examples:
  sotto audit mechanism laplace --epsilon 1 --games 1e6
  sotto audit mechanism gaussian --rho 0.5 --delta 0.01 --out report
  sotto audit mechanism tree --epsilon 1 --looks 16 --broken half
  sotto audit mechanism gaussian --rho 0.5 --deltas 1e-4,1e-3,0.01 --gaussian-dp --one-run --reconstruct 2
  sotto audit mechanism mean --rows 100 --columns 50 --noise 1
  sotto audit mechanism mean --rows 100 --columns 20 --references 200 --misspecified 2
  sotto audit mechanism '{"mechanism":"laplace","scale":2}' --claim 0.25`
}

var (
	faultNames = []string{"none", "half", "quarter", "eighth", "shared", "redrawn", "twice", "unclipped"}
	faults     = []audit.Fault{audit.NoFault, audit.HalfScale, audit.QuarterScale,
		audit.EighthScale, audit.Shared, audit.Redrawn, audit.Twice, audit.Unclipped}
)

// auditBudget reads a budget and the δ at which it is audited: NaN if none is given.
func auditBudget(epsilon, rho, delta string) (privacy.Budget, float64, error) {
	at := math.NaN()
	var err error
	if delta != "" {
		if at, err = zeroDelta("delta", delta); err != nil {
			return nil, at, err
		}
	}
	if (epsilon == "") == (rho == "") {
		return nil, at, errors.New("want a budget: one of --epsilon and --rho")
	}
	if rho != "" {
		x, err := positiveNumber("rho", rho)
		return privacy.ZCDP{Rho: x}, at, err
	}
	x, err := positiveNumber("epsilon", epsilon)
	if at > 0 {
		return privacy.Approx{Epsilon: x, Delta: at}, at, err
	}
	return privacy.Pure{Epsilon: x}, at, err
}

func positiveNumber(flag, text string) (float64, error) {
	x, err := number(flag, text)
	if err == nil && (!(x > 0) || math.IsInf(x, 1)) {
		err = fmt.Errorf("--%s is %q, must be above 0 and finite", flag, text)
	}
	return x, err
}

// mechanism builds what the name says at the budget. Looks is how many releases of a
// running sum there are.
func (c *auditMechanism) mechanism(looks int) (privacy.Mechanism, error) {
	if strings.HasPrefix(c.Name, "{") {
		if c.Epsilon != "" || c.Rho != "" {
			return nil, errors.New("--epsilon and --rho are not for a mechanism in JSON, which " +
				"has its own scale")
		}
		m, err := privacy.UnmarshalMechanism([]byte(c.Name))
		if err != nil {
			return nil, fmt.Errorf("MECHANISM: %w", err)
		}
		if m.Loss().Infinite() {
			return nil, fmt.Errorf("MECHANISM is %s, which has no finite price: its kind must be "+
				"one that the ledger knows, its scale above 0 and finite", c.Name)
		}
		return m, nil
	}
	names := []string{"laplace", "gaussian", "tree", "hybrid", "kary", "sqrt", "blt", "sparse", "mean"}
	if _, err := oneOf("MECHANISM", c.Name, names, make([]int, len(names))); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "--"))
	}
	b, _, err := auditBudget(c.Epsilon, c.Rho, c.Delta)
	if err != nil {
		return nil, err
	}
	// A claim of (ε,δ)-DP is met by ε-DP where noise is Laplace's.
	eps := 0.0
	switch x := b.(type) {
	case privacy.Pure:
		eps = x.Epsilon
	case privacy.Approx:
		eps = x.Epsilon
	}
	needs := func(kind string) error { return fmt.Errorf("mechanism %s needs --%s", c.Name, kind) }
	switch c.Name {
	case "gaussian", "sqrt", "blt":
		if _, ok := b.(privacy.Pure); ok {
			return nil, fmt.Errorf("mechanism %s needs --rho, or --epsilon with --delta: no "+
				"normal noise is ε-DP", c.Name)
		}
	default:
		if eps == 0 {
			return nil, needs("epsilon")
		}
	}
	switch c.Name {
	case "laplace":
		return privacy.Laplace{Scale: 1 / eps}, nil
	case "gaussian":
		return gaussianFor(b), nil
	case "tree":
		return privacy.Tree{Scale: float64(bits.Len(uint(looks))) / eps, Horizon: looks}, nil
	case "hybrid":
		return privacy.Hybrid{Scale: 2 / eps}, nil
	case "kary":
		return privacy.NewKAry(eps, 3, looks), nil
	case "sqrt":
		return privacy.NewSquareRoot(b, looks)
	case "blt":
		return privacy.NewBLT(b, looks)
	}
	return privacy.Sparse{Questions: privacy.Questions{Threshold: 3 / eps, Query: 6 / eps,
		Statistic: privacy.Centre}, Scale: 3 / eps}, nil
}

// gaussianFor is the least noise that meets a budget of ρ-zCDP or (ε,δ)-DP.
func gaussianFor(b privacy.Budget) privacy.Gaussian {
	if z, ok := b.(privacy.ZCDP); ok {
		return privacy.Gaussian{Sigma: math.Sqrt(0.5 / z.Rho)}
	}
	a, ok := b.(privacy.Approx)
	if !ok {
		return privacy.Gaussian{}
	}
	lo, hi := 1e-9, 1e9
	for range 100 {
		mid := math.Sqrt(lo) * math.Sqrt(hi)
		if (privacy.Gaussian{Sigma: mid}).Loss().Approx(a.Delta) <= a.Epsilon {
			hi = mid
		} else {
			lo = mid
		}
	}
	return privacy.Gaussian{Sigma: hi}
}

func (c *auditMechanism) Run(ctx context.Context, s streams) error {
	if c.Name == "mean" {
		return c.mean(ctx, s)
	}
	o, x, err := c.prepare()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return c.auditFlags.play(ctx, s, o, x, c.Claim)
}

// protocolKinds are mechanisms of a batch of users, which only JSON can give.
var protocolKinds = []string{"aggregated", "split-mix", "clones", "shuffled-count"}

// prepare reads the flags into an audit of sums.
func (c *auditMechanism) prepare() (*outcome, searched, error) {
	o := &outcome{title: "Audit of a mechanism", description: "Two data sets that differ in one " +
		"reward; an adversary chooses them, sees what is released, and says which of the two it was."}
	var x searched
	gamma, games, seed, err := c.read(100_000)
	if err != nil {
		return nil, x, err
	}
	o.gamma, o.seed = gamma, seed
	for _, f := range []struct {
		name  string
		given bool
	}{{"references", c.References != 0}, {"no-shrink", c.NoShrink}, {"misspecified", c.Misspecified != 0}} {
		if f.given {
			return nil, x, fmt.Errorf("--%s is for mean only", f.name)
		}
	}
	for _, name := range protocolKinds {
		if strings.HasPrefix(c.Name, "{") && strings.Contains(c.Name, `"mechanism":"`+name+`"`) {
			return c.prepareMessages(o, gamma, games, seed)
		}
	}
	fail := func(err error) (*outcome, searched, error) { return nil, x, err }
	running := false
	for _, name := range []string{"tree", "hybrid", "kary", "sqrt", "blt", "sparse"} {
		running = running || c.Name == name || strings.HasPrefix(c.Name, "{") &&
			strings.Contains(c.Name, `"`+name+`"`)
	}
	looks, n, arms := int(c.Looks), int(c.Records), int(c.Arms)
	if looks == 0 {
		looks = 2
		if running {
			looks = 16
		}
	}
	if running { // one sum, released after every reward
		n, arms = 1, 1
	}
	for _, f := range []struct {
		name string
		x    int
	}{{"looks", looks}, {"records", n}, {"arms", arms}} {
		if f.x < 1 || f.x > 100_000 {
			return nil, x, fmt.Errorf("--%s is %d, must be from 1 to 100000", f.name, f.x)
		}
	}
	m, err := c.mechanism(looks)
	if err != nil {
		return fail(err)
	}
	delta := 0.0
	if c.Delta != "" {
		if delta, err = zeroDelta("delta", c.Delta); err != nil {
			return fail(err)
		}
	} else if math.IsInf(m.Loss().Pure(), 1) {
		delta = 0.01
	}
	if delta == 0 && math.IsInf(m.Loss().Pure(), 1) && c.Claim == "" {
		return nil, x, fmt.Errorf("--delta is %q, must be above 0: %s claims no ε at δ = 0", c.Delta, m.Kind())
	}
	subject, err := audit.MechanismSubject(m, arms, n, looks)
	if err != nil {
		return fail(err)
	}
	cur := noise.NewFast(1, 2)
	if _, err := release.Simulated(release.Config{Arms: arms, Mechanism: m}, &cur); err != nil {
		return nil, x, fmt.Errorf("MECHANISM is %s, must be one of sums: %w", m.Kind(), err)
	}
	p := audit.PolicyAudit{Subject: subject,
		Adversaries: audit.Adversaries(arms, subject.Horizon, audit.View), Delta: delta,
		Games: games, Pilot: int(c.Searched),
		Workers: c.Workers, Key: keyOf(seed, "mechanism", m.Kind())}
	o.tested = []report.Fact{{Name: "mechanism", Value: fmt.Sprint(m)},
		{Name: "releases", Value: fmt.Sprintf("%s of %s, after every %s of each",
			several(looks, "release"), several(arms, "sum"), several(n, "reward"))}}
	if err := c.breaks(o, &p, c.Broken, c.Real, audit.Faults(m)); err != nil {
		return fail(err)
	}
	o.tested = append(o.tested, report.Fact{Name: "neighbours", Value: "one reward replaced by " +
		"another, in [0, 1]"},
		report.Fact{Name: "the claim", Value: claimText(c.Claim, m.Loss(), delta)},
		report.Fact{Name: "adversary", Value: "knows all rewards but one, has chosen them, and " +
			"sees every number that is released"})
	x = searchedPolicy(p, c.Workers)
	if p.Gamma, err = x.split(o, gamma, c.auditGuess, c.auditMore, c.OneRun); err != nil {
		return fail(err)
	}
	x.run = p.Run
	if m, ok := m.(privacy.Gaussian); ok && c.Claim == "" {
		x.mu = 1 / m.Sigma
	}
	return o, x, nil
}

// prepareMessages is the audit of a protocol's messages.
func (c *auditMechanism) prepareMessages(o *outcome, gamma float64, games int,
	seed uint64) (*outcome, searched, error) {
	var x searched
	m, err := c.mechanism(1)
	if err != nil {
		return nil, x, err
	}
	if c.Real || c.Broken != "none" && c.Broken != "half" {
		return nil, x, fmt.Errorf("--real and --broken %s are not for %s: its broken twin is half",
			c.Broken, m.Kind())
	}
	d, err := audit.MessageSubject(m, c.Broken == "half")
	if err != nil {
		return nil, x, err
	}
	if c.Delta != "" {
		if d.Delta, err = zeroDelta("delta", c.Delta); err != nil {
			return nil, x, err
		}
	} else if math.IsInf(m.Loss().Pure(), 1) {
		d.Delta = 0.01
	}
	if d.Delta == 0 && math.IsInf(m.Loss().Pure(), 1) && c.Claim == "" {
		return nil, x, fmt.Errorf("--delta is %q, must be above 0: %s claims no ε at δ = 0", c.Delta, m.Kind())
	}
	d.Games, d.Pilot, d.Workers, d.Key = games, int(c.Searched), c.Workers, keyOf(seed, "mechanism", m.Kind())
	o.broken = c.Broken != "none"
	o.tested = []report.Fact{{Name: "mechanism", Value: fmt.Sprint(m)},
		{Name: "broken on purpose", Value: c.Broken}, {Name: "neighbours", Value: "one user's reward, 0 or 1"},
		{Name: "the claim", Value: claimText(c.Claim, m.Loss(), d.Delta)},
		{Name: "adversary", Value: "knows all other users' rewards, and sees what the protocol shows"}}
	o.cannot = append(o.cannot, simulatedOnly)
	x = searchedDirect(d)
	if d.Gamma, err = x.split(o, gamma, c.auditGuess, c.auditMore, c.OneRun); err != nil {
		return nil, x, err
	}
	x.run = d.Run
	return o, x, nil
}

func claimText(given string, l privacy.Loss, delta float64) string {
	if given != "" {
		return fmt.Sprintf("ε = %s at δ = %v, given on the command line", given, delta)
	}
	return fmt.Sprintf("the ledger's, at δ = %v: %v", delta, l)
}

// breaks sets the curator of an audit. Possible are the faults that show, if not nil.
func (c *auditFlags) breaks(o *outcome, p *audit.PolicyAudit, broken string, real bool,
	possible []audit.Fault) error {
	fault, err := oneOf("broken", broken, faultNames, faults)
	if err != nil {
		return err
	}
	curator := "simulated noise"
	switch {
	case fault != audit.NoFault && real:
		return errors.New("want one of --broken and --real: the curator of real rewards cannot be broken")
	case real:
		p.Subject = p.Subject.Real()
		curator = "that of real rewards, with noise of its own that no seed repeats"
	case fault != audit.NoFault:
		ok := possible == nil
		var shows []string
		for _, f := range possible {
			ok = ok || f == fault
			for i := range faults {
				if faults[i] == f {
					shows = append(shows, faultNames[i])
				}
			}
		}
		// A worse scale shows where half of it does.
		if !ok && (fault == audit.QuarterScale || fault == audit.EighthScale) {
			ok = true
		}
		if !ok {
			return fmt.Errorf("--broken is %q, must be one of %s for this mechanism: other "+
				"faults do not show", broken, strings.Join(shows, ", "))
		}
		p.Subject = p.Subject.Broken(fault)
		if fault == audit.Unclipped {
			for i := range p.Adversaries {
				for arm := range p.Adversaries[i].High {
					p.Adversaries[i].High[arm] = 1e6
				}
			}
		}
		curator = "broken on purpose: " + fault.String()
		o.broken = true
	}
	o.tested = append(o.tested, report.Fact{Name: "curator", Value: curator})
	if !real {
		o.cannot = append(o.cannot, simulatedOnly)
	} else {
		o.cannot = append(o.cannot, "The curator of real rewards was attacked through its "+
			"releases alone. Timing, memory and the randomness of the machine are not in it.")
	}
	return nil
}

// play runs an audit of sums, of a policy or of something else, and draws what it found from
// games of their own.
func (c *auditFlags) play(ctx context.Context, s streams, o *outcome, x searched, says string) error {
	f, err := x.run(ctx)
	if err != nil {
		return failed(err)
	}
	if f, err = claimed(f, says); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	o.findings = rowsOf(f)
	if f.Claimed == 0 && says == "" {
		o.warnings = append(o.warnings, "The ledger was charged nothing: no reward was in a "+
			"release. Play longer.")
	}
	o.tested = append(o.tested, report.Fact{Name: "searched",
		Value: fmt.Sprintf("%s, each of them neighbours and a continuation, with %s each and "+
			"more with the best; the test has games of its own",
			counted(x.adversaries, "adversary", "adversaries"),
			several(x.pilot, "game"))},
		report.Fact{Name: "worst adversary found", Value: f.Model + ": " + f.Against})
	o.cannot = append(o.cannot, "The adversaries are a list that was searched, not all there are.")
	if o.readings, err = x.more(ctx, f, says); err != nil {
		return failed(err)
	}
	o.level = levelText(x.gamma)
	if c.Out != "" {
		if err := c.draw(ctx, o, x, f, says); err != nil {
			return failed(err)
		}
	}
	return c.finish(s, o)
}

// draw adds the figures of the adversary that was found.
func (c *auditFlags) draw(ctx context.Context, o *outcome, x searched, f audit.Finding, says string) error {
	games := min(x.games, 200_000)
	scores, ok, loss, err := x.again(ctx, "figure", f, games)
	if err != nil || !ok {
		return err
	}
	roc, err := rocFigure("roc", "The attack that did best", []namedScores{{f.Attack, scores}},
		f.Claimed, f.Delta, 1-o.gamma, nil, "")
	if err != nil {
		return err
	}
	roc.Note += fmt.Sprintf(" %d games of its own.", games)
	curve, err := curveFigure("epsilon-delta", scores, 1, o.gamma, func(delta float64) (float64, error) {
		if says != "" {
			return math.Inf(1), nil
		}
		return min(loss.Approx(delta), loss.Pure()), nil
	})
	if err != nil {
		return err
	}
	o.figures = append(o.figures, roc, curve)
	return nil
}

// A meanAudit is an audit of a mean: data, mechanism, target and attacks, and the claim.
type meanAudit struct {
	*outcome
	game         audit.Game
	names        []string // of the attacks
	delta, claim float64
	mu           float64                              // claimed μ of Gaussian DP; +Inf: none
	curve        func(delta float64) (float64, error) // the claim at every δ
	// power of the likelihood ratio in the limit; nil if it is not known
	theory func(alpha float64) float64
}

// prepareMean reads the flags into an audit of a mean.
func (c *auditMechanism) prepareMean() (*meanAudit, error) {
	o := &outcome{title: "Audit of a mean", description: "A membership game: a point is in the " +
		"data or not, by a fair coin, and attacks tell from the released mean which."}
	gamma, games, seed, err := c.read(100_000)
	if err != nil {
		return nil, err
	}
	o.gamma, o.seed = gamma, seed
	if c.Epsilon != "" || c.Rho != "" {
		return nil, errors.New("--epsilon and --rho are not for mean, whose noise is --noise")
	}
	if c.Broken != "none" || c.Real {
		return nil, errors.New("--broken and --real are not for mean")
	}
	if c.OneRun || c.Reconstruct != 0 {
		return nil, errors.New("--one-run and --reconstruct are not for mean")
	}
	if _, err := c.deltas(); err != nil {
		return nil, err
	}
	n, d, k := int(c.Rows), int(c.Columns), int(c.Sample)
	switch {
	case n < 2 || n > 10_000_000:
		return nil, fmt.Errorf("--rows is %d, must be from 2 to 1e7", n)
	case d < 1 || d > 100_000:
		return nil, fmt.Errorf("--columns is %d, must be from 1 to 100000", d)
	case k < 0 || k > n:
		return nil, fmt.Errorf("--sample is %d, must be from 1 to --rows, %d", k, n)
	}
	spreadOf, err := number("noise", c.Noise)
	if err == nil && (!(spreadOf >= 0) || math.IsInf(spreadOf, 1)) {
		err = fmt.Errorf("--noise is %q, must be at least 0 and finite", c.Noise)
	}
	if err != nil {
		return nil, err
	}
	clip, err := number("clip", c.Clip)
	if err == nil && (!(clip >= 0) || math.IsInf(clip, 1)) {
		err = fmt.Errorf("--clip is %q, must be at least 0 and finite", c.Clip)
	}
	if err != nil {
		return nil, err
	}
	k2 := keyOf(seed, "mechanism", "mean data")
	k2.Role = noise.RoleInstance
	src := &k2.Fast(1)[0]
	data := audit.Bernoulli{P: make([]float64, d)}
	hard, easy := make([]float64, d), make([]float64, d)
	for j := range data.P {
		data.P[j] = 0.1 + 0.8*float64(src.Uint64()>>11)/(1<<53)
		if data.P[j] < 0.5 {
			hard[j] = 1
		} else {
			easy[j] = 1
		}
	}
	g := audit.Game{Data: data, Mean: audit.Mean{N: n, Sample: k, Clip: clip}, Games: games,
		Key: keyOf(seed, "mechanism", "mean"), Workers: c.Workers}
	var spread []float64
	if spreadOf > 0 {
		spread = make([]float64, d)
		for j := range spread {
			spread[j] = spreadOf
		}
		g.Mean.Noise = spread
	}
	if g.Target, err = oneOf("target", c.Target, []string{"hard", "easy", "average"},
		[][]float64{hard, easy, nil}); err != nil {
		return nil, err
	}
	if err = g.Mean.Validate(d); err != nil {
		return nil, err
	}
	rows := g.Mean.Rows()
	g.Attacks = []audit.Attack{audit.Asymptotic{Mu: data.P, Var: data.Variance(), Noise: spread,
		Rows: rows}, audit.ScalarProduct{Reference: data.P}}
	names := []string{"likelihood ratio, asymptotic", "scalar product"}
	plain := spread == nil && clip == 0 && k == 0
	if plain {
		g.Attacks, names = append(g.Attacks, audit.BernoulliLR(data)), append(names, "likelihood ratio, exact")
	}
	knows, note := "the law of the data", ""
	if c.References != 0 {
		references, err := c.references(data, src)
		if err != nil {
			return nil, err
		}
		knows = fmt.Sprintf("%d points of the data's law", len(references))
		covariance, err := audit.NewCovariance(references, rows, !c.NoShrink)
		if err != nil {
			return nil, fmt.Errorf("--references is %d: %w", c.References, err)
		}
		note = covariance.Note()
		g.Attacks = []audit.Attack{covariance, audit.ScalarProduct{Reference: references[0]},
			audit.GLiR{Covariance: covariance}}
		names = []string{"covariance", "scalar product", "GLiR"}
		if plain {
			lr, err := audit.NewBernoulliReference(references)
			if err != nil {
				return nil, err
			}
			g.Attacks, names = append(g.Attacks, lr), append(names, "likelihood ratio, empirical")
		}
	} else if c.NoShrink {
		return nil, errors.New("--no-shrink needs --references")
	}
	if g.Target == nil {
		// a scalar product is for one target
		g.Attacks, names = append(g.Attacks[:1], g.Attacks[2:]...), append(names[:1], names[2:]...)
	}
	aim := g.Target
	if wrong := int(c.Misspecified); wrong != 0 {
		switch {
		case g.Target == nil:
			return nil, errors.New("--misspecified is not for --target average, which has no target to mistake")
		case wrong < 0 || wrong > d:
			return nil, fmt.Errorf("--misspecified is %d, must be from 0 to --columns, %d", wrong, d)
		}
		aim = slices.Clone(g.Target)
		for j := range wrong {
			aim[j] = 1 - aim[j]
		}
		for i := range g.Attacks {
			g.Attacks[i] = audit.Misspecified{Attack: g.Attacks[i], Target: aim}
			if _, err := g.Attacks[i].Aim(g.Target); err != nil {
				return nil, err
			}
		}
	}
	delta := 0.01
	if c.Delta != "" {
		if delta, err = zeroDelta("delta", c.Delta); err != nil {
			return nil, err
		}
	}
	// Points of {0,1}^d are at most √d apart, and clipped ones at most 2C: replacing one moves the
	// sum of k by so much, and the noise of the sum has γ√k.
	loss, says, mu := privacy.InfiniteLoss(), "none: without noise a mean promises nothing", math.Inf(1)
	if spreadOf > 0 {
		apart := math.Sqrt(float64(d))
		if clip > 0 {
			apart = min(apart, 2*clip)
		}
		sigma := spreadOf * math.Sqrt(float64(rows)) / apart
		loss, mu = privacy.Gaussian{Sigma: sigma}.Loss(), 1/sigma
		says = fmt.Sprintf("that of normal noise on points at most %.4g apart, at δ = %v", apart, delta)
		if k > 0 && k < n {
			says += ", without what sub-sampling adds"
		}
	}
	m := &meanAudit{outcome: o, mu: mu, game: g, names: names, delta: delta, claim: loss.Pure(),
		curve: func(delta float64) (float64, error) {
			return loss.Approx(delta), nil
		}}
	if delta > 0 {
		m.claim = loss.Approx(delta)
	}
	if c.Claim != "" {
		m.mu, m.curve = math.Inf(1), func(float64) (float64, error) { return math.Inf(1), nil }
		if m.claim, err = claim(c.Claim); err != nil {
			return nil, err
		}
		says = fmt.Sprintf("given on the command line, at δ = %v", delta)
	}
	targets := map[string]string{"hard": "the point that is easiest to trace: in each column the " +
		"rarer value", "easy": "the point best hidden: in each column the more frequent value",
		"average": "a new point of the data's law in each game"}
	o.tested = []report.Fact{
		{Name: "mechanism", Value: fmt.Sprintf("mean of %d of %d points with %s; noise γ = %v, "+
			"clipping %v (0: none)", rows, n, several(d, "column"), spreadOf, clip)},
		{Name: "data", Value: "independent columns of 0 and 1, with means from 0.1 to 0.9"},
		{Name: "neighbours", Value: "one point replaced by the target (000 Algorithms 5 and 12)"},
		{Name: "target", Value: targets[c.Target]}, {Name: "the claim", Value: says},
		{Name: "adversary", Value: "knows " + knows + " and the target, and sees the mean"},
		{Name: "attacks", Value: strings.Join(names, "; ")},
	}
	o.cannot = []string{"The other points are drawn anew in each game, which hides the target " +
		"better than data that the adversary knows: the claim is about the worst data there are.",
		simulatedOnly}
	if note != "" {
		o.warnings = append(o.warnings, note)
	}
	if c.Misspecified != 0 {
		o.tested = append(o.tested, report.Fact{Name: "misspecified",
			Value: fmt.Sprintf("attacks have the target wrong in %s", several(int(c.Misspecified), "column"))})
	}
	if g.Target != nil && clip == 0 {
		score, err := audit.Leakage(n, g.Target, data.P, data.Variance(), spread)
		if err != nil {
			return nil, err
		}
		limit := audit.Optimal(score)
		if c.Misspecified != 0 {
			scal, err := audit.LeakageBetween(n, g.Target, aim, data.P, data.Variance(), spread)
			if err != nil {
				return nil, err
			}
			targ, err := audit.Leakage(n, aim, data.P, data.Variance(), spread)
			if err != nil {
				return nil, err
			}
			limit = audit.Missing(scal, targ)
		}
		if k > 0 && k < n {
			rate := float64(k) / float64(n)
			limit = audit.Limit{Shift: limit.Shift / math.Sqrt(rate), Rate: rate}
		}
		m.theory = limit.Power
		o.tested = append(o.tested, report.Fact{Name: "leakage score m*",
			Value: strconv.FormatFloat(score, 'g', 4, 64)},
			report.Fact{Name: "advantage in the limit",
				Value: strconv.FormatFloat(limit.Advantage(), 'g', 4, 64)})
	}
	return m, nil
}

// references draws points of the data's law for the adversary.
func (c *auditMechanism) references(data audit.Bernoulli, src *noise.Fast) ([][]float64, error) {
	n, d := int(c.References), data.Dim()
	if n < 2 || n > 1_000_000 || n > 100_000_000/d {
		return nil, fmt.Errorf("--references is %d, must be from 2 to 1e6, and 1e8 numbers in all", n)
	}
	if d > 2000 {
		return nil, fmt.Errorf("--columns is %d, must be at most 2000 with --references: their "+
			"covariance is a matrix", d)
	}
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, d)
		data.Draw(out[i], src)
	}
	return out, nil
}

func (c *auditMechanism) mean(ctx context.Context, s streams) error {
	m, err := c.prepareMean()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	scores, err := m.game.Play(ctx)
	if err != nil {
		return failed(err)
	}
	gamma := m.gamma / float64(c.parts())
	f, best, err := judge(scores, m.names, gamma, m.delta, m.claim)
	if err != nil {
		return failed(err)
	}
	if c.parts() > 1 {
		g := m.game
		g.Key.Role, g.Attacks = "audit readings", g.Attacks[best:best+1]
		again, err := g.Play(ctx)
		if err != nil {
			return failed(err)
		}
		m.level = levelText(gamma)
		if m.readings, err = c.readScores(again[0], gamma, m.delta, func(delta float64) float64 {
			if c.Claim != "" && delta == m.delta {
				return m.claim
			}
			x, _ := m.curve(delta) // it has no errors
			return x
		}, m.mu); err != nil {
			return failed(err)
		}
	}
	f.Name, f.Against = "mean", c.Target+" target"
	m.findings = rowsOf(f)
	if c.Out != "" {
		var all []namedScores
		for i := range scores {
			all = append(all, namedScores{m.names[i], scores[i]})
		}
		roc, err := rocFigure("roc", "Attacks on the mean", all, m.claim, m.delta, 1-m.gamma,
			m.theory, "theory, likelihood ratio")
		if err != nil {
			return failed(err)
		}
		curve, err := curveFigure("epsilon-delta", scores[best], len(scores), m.gamma, m.curve)
		if err != nil {
			return failed(err)
		}
		m.figures = []report.Figure{roc, curve}
	}
	return c.finish(s, m.outcome)
}
