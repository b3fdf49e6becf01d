package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/front/report"
	"github.com/sotto-dp/sotto/internal/front/train"
	"github.com/sotto-dp/sotto/noise"
)

type auditTraining struct {
	Method   string           `default:"dp-sgd" help:"Descent: dp-sgd, batch, mini-batch or stochastic. Only dp-sgd claims anything." placeholder:"NAME"`
	Model    string           `default:"logistic" help:"Model: logistic, or conv, a small convolutional net." placeholder:"NAME"`
	Fashion  string           `name:"fashion-mnist" help:"Directory of the files of Fashion-MNIST." placeholder:"DIR" type:"path" group:"The data; small made-up images if none is given:"`
	CIFAR    string           `name:"cifar10" help:"Directory of the binary files of CIFAR-10." placeholder:"DIR" type:"path" group:"The data; small made-up images if none is given:"`
	Pool     experiment.Count `default:"1" help:"Average images over k×k pixels first; k divides their height and width." placeholder:"k" group:"The data; small made-up images if none is given:"`
	Examples experiment.Count `default:"64" help:"Examples of the training set." placeholder:"N"`

	Steps    experiment.Count `default:"8" help:"Steps, all of which the adversary sees." placeholder:"T"`
	Rate     string           `default:"0.5" help:"Learning rate, above 0." placeholder:"η"`
	Batch    experiment.Count `default:"16" help:"Examples of a batch, of mini-batch." placeholder:"B"`
	Sampling string           `default:"0.25" help:"Probability of an example to be in a step, of dp-sgd." placeholder:"q"`
	Clip     string           `default:"1" help:"Norm that gradients are clipped to, of dp-sgd." placeholder:"C"`
	Noise    string           `default:"1" help:"Noise multiplier, of dp-sgd: the noise's deviation is σC." placeholder:"σ"`

	Neighbour string `default:"add" help:"Data sets that must look alike: add (an example is added or removed) or replace (one takes the place of another)." placeholder:"NAME"`
	Canary    string `default:"auto" help:"auto (the highest Mahalanobis score of all), mislabelled, blank, dirac (ten times the clip: shows whether gradients are clipped) or canife." placeholder:"NAME"`
	Attacks   string `help:"Attacks, with the confidence split over them: covariance, scalar, glir; all without it, of stochastic only scalar, since the others need batches of two." placeholder:"NAME,…"`
	LastLayer bool   `help:"Restrict attacks to the last layer's parameters."`
	Delta     string `default:"0.01" help:"δ at which ε is claimed and audited." placeholder:"δ"`
	Claim     string `help:"Audit this claim instead of the accountant's." placeholder:"ε"`
	Flaw      string `default:"none" help:"Break dp-sgd on purpose: half-noise, unclipped or batch-clipped. The claim remains; an audit that is strong enough refutes it." placeholder:"NAME"`
	auditFlags
}

// Help is shown by --help.
func (c *auditTraining) Help() string {
	return "Examples:\n  sotto audit training --games 2000 --out report\n  sotto audit training " +
		"--flaw half-noise --games 20000\n  sotto audit training --flaw unclipped --canary " +
		"dirac\n  sotto audit training --method batch\n  sotto audit training --fashion-mnist " +
		"DIR --pool 4 --method mini-batch --rate 0.001 --examples 1280 --batch 64\n\n" + train.Where
}

// data is the training set, and other examples for the adversary.
func (c *auditTraining) data(seed uint64) (all train.Dataset, name string, err error) {
	n := int(c.Examples)
	if n < 2 || n > 100_000 {
		return all, "", fmt.Errorf("--examples is %d, must be from 2 to 100000", n)
	}
	switch {
	case c.Fashion != "" && c.CIFAR != "":
		return all, "", fmt.Errorf("want one of --fashion-mnist and --cifar10")
	case c.Fashion != "":
		all, err = train.OpenFashionMNIST(c.Fashion, n)
		name = "Fashion-MNIST"
	case c.CIFAR != "":
		all, err = train.OpenCIFAR10(c.CIFAR, n)
		name = "CIFAR-10"
	default:
		k := keyOf(seed, "training", "data")
		k.Role = noise.RoleInstance
		all, name = train.Images(n, 6, 6, 1, 2, &k.Fast(1)[0]), "made-up images of 6×6 pixels in two classes"
	}
	if err == nil && c.Pool != 1 {
		name += fmt.Sprintf(", averaged over %d×%[1]d pixels", int(c.Pool))
		if all, err = all.Pool(int(c.Pool)); err != nil {
			err = fmt.Errorf("--pool: %w", err)
		}
	}
	if err == nil && len(all.X) < n {
		err = fmt.Errorf("--examples is %d, must be at most %d, the examples there are", n, len(all.X))
	}
	return all, name, err
}

func (c *auditTraining) training(d train.Dataset) (train.Training, error) {
	t := train.Training{Steps: int(c.Steps), Size: int(c.Batch)}
	var err error
	if t.Method, err = oneOf("method", c.Method,
		[]string{"dp-sgd", "batch", "mini-batch", "stochastic"},
		[]train.Method{train.DPSGD, train.Batch, train.MiniBatch, train.Stochastic}); err != nil {
		return t, err
	}
	if t.Model, err = oneOf("model", c.Model, []string{"logistic", "conv"},
		[]train.Model{train.Logistic{Features: d.Inputs(), Labels: d.Classes},
			train.Conv{Height: d.Height, Width: d.Width, Channels: d.Channels, Filters: []int{4},
				Labels: d.Classes}}); err != nil {
		return t, err
	}
	if t.Flaw, err = oneOf("flaw", c.Flaw, []string{"none", "half-noise", "unclipped",
		"batch-clipped"}, []train.Flaw{train.Sound, train.HalfNoise, train.Unclipped,
		train.BatchClipped}); err != nil {
		return t, err
	}
	if t.Flaw != train.Sound && t.Method != train.DPSGD {
		return t, fmt.Errorf("--flaw is %q, must be none: the method %s claims nothing that "+
			"could be false", c.Flaw, c.Method)
	}
	if t.Steps < 1 {
		return t, fmt.Errorf("--steps is %d, must be at least 1", t.Steps)
	}
	for _, f := range []struct {
		flag, text string
		to         *float64
		most       float64
		dpsgd      bool
	}{{"rate", c.Rate, &t.Rate, math.MaxFloat64, false},
		{"sampling", c.Sampling, &t.Sampling, 1, true}, {"clip", c.Clip, &t.Clip, math.MaxFloat64, true},
		{"noise", c.Noise, &t.Noise, math.MaxFloat64, true}} {
		x, err := number(f.flag, f.text)
		if err != nil {
			return t, err
		}
		if !(x > 0 && x <= f.most) {
			most := "finite"
			if f.most == 1 {
				most = "at most 1"
			}
			return t, fmt.Errorf("--%s is %q, must be above 0 and %s", f.flag, f.text, most)
		}
		if !f.dpsgd || t.Method == train.DPSGD {
			*f.to = x
		}
	}
	if t.Method == train.MiniBatch && (t.Size < 1 || t.Size > int(c.Examples)) {
		return t, fmt.Errorf("--batch is %d, must be from 1 to --examples, %d", t.Size, int(c.Examples))
	}
	if t.Method != train.MiniBatch {
		t.Size = 0
	}
	return t, t.Validate()
}

func (c *auditTraining) attacks(t train.Training, d train.Dataset) ([]train.Attack, error) {
	var out []train.Attack
	given := c.Attacks
	switch {
	case given == "" && t.Method == train.Stochastic:
		given = "scalar"
	case given == "":
		given = "covariance,scalar,glir"
	case t.Method == train.Stochastic && given != "scalar":
		return nil, fmt.Errorf("--attacks is %q, must be scalar for --method stochastic: the "+
			"others need batches of two", given)
	}
	for _, name := range strings.Split(given, ",") {
		score, err := oneOf("attacks", strings.TrimSpace(name),
			[]string{"covariance", "scalar", "glir"},
			[]train.Score{train.Covariance, train.ScalarProduct, train.GLiR})
		if err != nil {
			return nil, err
		}
		a := train.Attack{Score: score, LastLayer: c.LastLayer}
		if score != train.ScalarProduct {
			a.References, a.Informed = d, t.Method == train.DPSGD
		}
		a.Refresh = score == train.Covariance
		a.Mixture = score == train.Covariance && t.Method == train.DPSGD && t.Sampling < 1
		if slices.ContainsFunc(out, func(b train.Attack) bool { return b.Score == score }) {
			return nil, fmt.Errorf("--attacks is %q: %s is given twice", c.Attacks, name)
		}
		out = append(out, a)
	}
	return out, nil
}

// canary picks what is in the training set or not.
func (c *auditTraining) canary(a train.Audit, theta []float64, seed uint64) (train.Canary, string, error) {
	size, long := 1.0, 1.0
	if a.Training.Method == train.DPSGD {
		// A gradient far longer than the clip does not hurt a run that clips it, and shows
		// one that does not.
		size, long = a.Training.Clip, 10*a.Training.Clip
	}
	lo, _ := a.Training.Model.Last()
	makers := map[string]func() (train.Canary, error){
		"mislabelled": func() (train.Canary, error) {
			return train.Mislabelled(a.Training.Model, theta, a.Data, 0)
		},
		"blank": func() (train.Canary, error) { return train.Blank(a.Data, 0), nil },
		"dirac": func() (train.Canary, error) { return train.Dirac(a.Training.Model, lo, long) },
		"canife": func() (train.Canary, error) {
			k := keyOf(seed, "training", "canife")
			made, _, _, err := train.CANIFE{References: a.Data, Clip: size, Steps: 50, Lo: 0,
				Hi: 1}.Craft(a.Training.Model, theta, nil, &k.Fast(1)[0])
			return made, err
		},
	}
	if c.Canary != "auto" {
		names := []string{"mislabelled", "blank", "dirac", "canife"}
		if make, ok := makers[c.Canary]; ok {
			made, err := make()
			return made, made.Name, err
		}
		_, err := oneOf("canary", c.Canary, append([]string{"auto"}, names...), make([]int, 5))
		return train.Canary{}, "", err
	}
	var candidates []train.Canary
	for _, name := range []string{"mislabelled", "blank", "dirac"} {
		made, err := makers[name]()
		if err != nil {
			return train.Canary{}, "", err
		}
		candidates = append(candidates, made)
	}
	for i := range min(len(a.Data.X), 16) {
		made, err := train.Mislabelled(a.Training.Model, theta, a.Data, i)
		if err != nil {
			return train.Canary{}, "", err
		}
		candidates = append(candidates, made)
	}
	a.Canary = candidates[0]
	if a.Training.Method == train.Stochastic {
		// batches of one have no covariance; the order of candidates is the same in larger ones
		a.Training.Method = train.Batch
	}
	a.Attacks = []train.Attack{{References: a.Data, Informed: a.Training.Method == train.DPSGD,
		LastLayer: c.LastLayer}}
	plans, err := a.Plans()
	if err != nil {
		return train.Canary{}, "", err
	}
	best, _, err := train.Select(plans[0], candidates)
	if err != nil {
		return train.Canary{}, "", err
	}
	return candidates[best], fmt.Sprintf("%s, of the highest Mahalanobis score among %d",
		candidates[best].Name, len(candidates)), nil
}

func (c *auditTraining) Run(ctx context.Context, s streams) error {
	o, a, claim, err := c.prepare()
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	scores, err := a.Play(ctx)
	if err != nil {
		return failed(err)
	}
	var names []string
	var all []namedScores
	for i, at := range a.Attacks {
		names = append(names, at.String())
		all = append(all, namedScores{at.String(), scores[i]})
	}
	delta, _ := zeroDelta("delta", c.Delta)
	f, best, err := judge(scores, names, o.gamma, delta, claim)
	if err != nil {
		return failed(err)
	}
	f.Name, f.Against = a.Training.Method.String(), "sees all iterates"
	if a.Training.Flaw != train.Sound {
		f.Name += ", " + a.Training.Flaw.String()
		o.broken = true
	}
	o.findings = rowsOf(f)
	if c.Out != "" {
		roc, err := rocFigure("roc", "Attacks on the iterates", all, claim, delta, 1-o.gamma, nil, "")
		if err != nil {
			return failed(err)
		}
		curve, err := curveFigure("epsilon-delta", scores[best], len(scores), o.gamma,
			func(delta float64) (float64, error) {
				if c.Claim != "" || a.Training.Method != train.DPSGD {
					return math.Inf(1), nil
				}
				g, err := a.Training.Claim(delta, a.Neighbour)
				return g.Epsilon, err
			})
		if err != nil {
			return failed(err)
		}
		o.figures = []report.Figure{roc, curve}
	}
	return c.finish(s, o)
}

// prepare reads the flags into an audit.
func (c *auditTraining) prepare() (*outcome, train.Audit, float64, error) {
	o := &outcome{title: "Audit of a training run", description: "A membership game: a canary is " +
		"in the training set or not, by a fair coin, and attacks tell from the iterates which."}
	var a train.Audit
	fail := func(err error) (*outcome, train.Audit, float64, error) { return nil, a, 0, err }
	var games int
	var err error
	if o.gamma, games, o.seed, err = c.read(4000); err != nil {
		return fail(err)
	}
	delta, err := zeroDelta("delta", c.Delta)
	if err != nil {
		return fail(err)
	}
	if delta == 0 && c.Method == "dp-sgd" && c.Claim == "" {
		return fail(fmt.Errorf("--delta is %q, must be above 0: dp-sgd claims no ε at δ = 0", c.Delta))
	}
	data, dataName, err := c.data(o.seed)
	if err != nil {
		return fail(err)
	}
	a = train.Audit{Data: data, Games: games, Workers: c.Workers, Key: keyOf(o.seed, "training", "games")}
	if a.Training, err = c.training(data); err != nil {
		return fail(err)
	}
	drawn, knows := fmt.Sprintf("all %d examples, the same in every game", len(data.X)),
		"knows the data but for the canary"
	if a.Training.Method != train.DPSGD {
		// Without noise the same data would give the same iterates, and there would be
		// nothing left to find.
		a.Size = len(data.X) / 2
		drawn, knows = fmt.Sprintf("%d of %d examples, drawn anew for every game", a.Size,
			len(data.X)), "knows the examples that the data are drawn from, and the canary"
		if a.Training.Size > a.Size {
			return fail(fmt.Errorf("--batch is %d, must be at most half of --examples, %d: the "+
				"other half is not in the game", a.Training.Size, a.Size))
		}
	}
	if a.Neighbour, err = oneOf("neighbour", c.Neighbour, []string{"add", "replace"},
		[]train.Neighbour{train.AddRemove, train.ReplaceOne}); err != nil {
		return fail(err)
	}
	if a.Attacks, err = c.attacks(a.Training, data); err != nil {
		return fail(err)
	}
	a.Start = make([]float64, a.Training.Model.Params())
	k := keyOf(o.seed, "training", "start")
	k.Role = noise.RoleInstance
	a.Training.Model.Init(a.Start, &k.Fast(1)[0])
	var canary string
	if a.Canary, canary, err = c.canary(a, a.Start, o.seed); err != nil {
		return fail(err)
	}
	plans, err := a.Plans()
	if err != nil {
		return fail(err)
	}
	var says string
	var eps float64
	if c.Claim != "" {
		if eps, err = claim(c.Claim); err != nil {
			return fail(err)
		}
		says = "given on the command line"
	} else {
		g, err := a.Training.Claim(delta, a.Neighbour)
		if err != nil {
			return fail(err)
		}
		eps, says = g.Epsilon, g.Route
		if math.IsInf(eps, 1) {
			says = "none: " + a.Training.Method.String() + " gradient descent promises nothing"
		}
	}
	t := a.Training
	method := fmt.Sprintf("%v, %s, learning rate %v", t.Method, several(t.Steps, "step"), t.Rate)
	switch t.Method {
	case train.DPSGD:
		method += fmt.Sprintf(", sampling %v, clip %v, noise multiplier %v", t.Sampling, t.Clip, t.Noise)
	case train.MiniBatch:
		method += fmt.Sprintf(", batches of %d", t.Size)
	}
	var attacks []string
	for _, at := range a.Attacks {
		attacks = append(attacks, at.String())
	}
	o.tested = []report.Fact{
		{Name: "training", Value: method}, {Name: "model",
			Value: fmt.Sprintf("%s, %d parameters", c.Model, t.Model.Params())},
		{Name: "data", Value: dataName + "; " + drawn},
		{Name: "broken on purpose", Value: c.Flaw},
		{Name: "neighbours", Value: a.Neighbour.String()},
		{Name: "the claim", Value: says + ", at δ = " + strconv.FormatFloat(delta, 'g', -1, 64)},
		{Name: "adversary", Value: knows + ", the starting point and all settings, and sees every iterate"},
		{Name: "canary", Value: canary}, {Name: "attacks", Value: strings.Join(attacks, "; ")},
	}
	for i, p := range plans {
		if note := p.Note(); note != "" {
			o.tested = append(o.tested, report.Fact{Name: "note on " + a.Attacks[i].Score.String(),
				Value: note})
		}
	}
	o.cannot = []string{
		"One canary, one data set and one starting point were tried. Others may leak more.",
		"Who sees only the last model, and not all iterates, learns less; what he learns was not measured.",
		simulatedOnly,
	}
	if _, ok := t.Model.(train.Conv); ok && t.Flaw == train.Sound {
		o.cannot = append(o.cannot, "For a net that is not convex the covariance of gradients is "+
			"that of the starting point, and drifts as training goes on.")
	}
	return o, a, eps, nil
}
