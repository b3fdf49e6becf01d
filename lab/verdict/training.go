package verdict

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/train"
)

// Training is an audit of gradient descent by its iterates.
type Training struct {
	Settings
	Setting train.Request // its Games, Workers and Key are those of Settings
	// Open is the training set and what it is called; nil is made-up images.
	Open     func() (train.Dataset, string, error)
	Examples int // 2 to 100000
	Pool     int // images are averaged over Pool×Pool pixels first
	Delta    float64
}

// A PreparedTraining is an audit of training, ready to be run.
type PreparedTraining struct {
	Training
	page  *Page
	game  train.Audit
	claim float64
}

// Prepare reads the data, picks the canary and checks the audit.
func (t Training) Prepare() (*PreparedTraining, error) {
	if t.Delta == 0 && t.Setting.Method == train.DPSGD && t.Claim == nil {
		return nil, errNoClaim("dp-sgd")
	}
	t.Setting.Games, t.Setting.Workers, t.Setting.Key = t.Games, t.Workers, t.key("training", "")
	data, dataName, err := t.data()
	if err != nil {
		return nil, err
	}
	a, canary, err := t.Setting.Audit(data)
	if err != nil {
		return nil, err
	}
	plans, err := a.Plans()
	if err != nil {
		return nil, err
	}
	out := &PreparedTraining{Training: t, game: a}
	says := "given on the command line"
	if t.Claim != nil {
		out.claim = *t.Claim
	} else {
		g, err := a.Training.Claim(t.Delta, a.Neighbour)
		if err != nil {
			return nil, err
		}
		out.claim, says = g.Epsilon, g.Route
		if math.IsInf(out.claim, 1) {
			says = "none: " + a.Training.Method.String() + " gradient descent promises nothing"
		}
	}
	out.page = t.page(a, plans, canary, dataName, says)
	return out, nil
}

// data is the training set.
func (t Training) data() (train.Dataset, string, error) {
	n := t.Examples
	if n < 2 || n > 100_000 {
		return train.Dataset{}, "", fmt.Errorf("examples is %d, must be from 2 to 100000", n)
	}
	all, name := train.Dataset{}, "made-up images of 6×6 pixels in two classes"
	var err error
	if t.Open == nil {
		all = t.Setting.MadeUp(n)
	} else if all, name, err = t.Open(); err != nil {
		return all, "", err
	}
	if t.Pool != 1 {
		name += fmt.Sprintf(", averaged over %d×%[1]d pixels", t.Pool)
		if all, err = all.Pool(t.Pool); err != nil {
			return all, "", fmt.Errorf("pool: %w", err)
		}
	}
	if len(all.X) < n {
		return all, "", fmt.Errorf("examples is %d, must be at most %d, the examples there are", n, len(all.X))
	}
	return all, name, nil
}

// page says what is tested.
func (t Training) page(a train.Audit, plans []*train.Prepared, canary, dataName, says string) *Page {
	drawn, knows := fmt.Sprintf("all %d examples, the same in every game", len(a.Data.X)),
		"knows the data but for the canary"
	if a.Size > 0 {
		drawn, knows = fmt.Sprintf("%d of %d examples, drawn anew for every game", a.Size,
			len(a.Data.X)), "knows the examples that the data are drawn from, and the canary"
	}
	run := a.Training
	method := fmt.Sprintf("%v, %s, learning rate %v", run.Method, words.Counted(run.Steps, "step", "steps"), run.Rate)
	switch run.Method {
	case train.DPSGD:
		method += fmt.Sprintf(", sampling %v, clip %v, noise multiplier %v", run.Sampling, run.Clip, run.Noise)
	case train.MiniBatch:
		method += fmt.Sprintf(", batches of %d", run.Size)
	}
	var attacks []string
	for _, at := range a.Attacks {
		attacks = append(attacks, at.String())
	}
	p := &Page{Title: "Audit of a training run", Description: "A membership game: a canary is in " +
		"the training set or not, by a fair coin, and attacks tell from the iterates which.",
		Gamma: t.Gamma, Seed: t.Seed, Broken: run.Flaw != train.Sound,
		Cannot: []string{
			"One canary, one data set and one starting point were tried. Others may leak more.",
			"Whoever sees only the last model, and not all iterates, learns less; how much was not measured.",
			simulatedOnly,
		}}
	p.fact("training", "%s", method)
	p.fact("model", "%s, %d parameters", t.Setting.Model, run.Model.Params())
	p.fact("data", "%s; %s", dataName, drawn)
	p.fact("broken on purpose", "%s", train.FlawNames()[run.Flaw])
	p.fact("neighbours", "%v", a.Neighbour)
	p.fact("the claim", "%s, at δ = %s", says, strconv.FormatFloat(t.Delta, 'g', -1, 64))
	p.fact("adversary", "%s, the starting point and all settings, and sees every iterate", knows)
	p.fact("canary", "%s", canary)
	p.Tested = append(p.Tested, report.Fact{Name: "attacks", Value: join(attacks, "; ")})
	for i, plan := range plans {
		if note := plan.Note(); note != "" {
			p.Tested = append(p.Tested, report.Fact{Name: "note on " + a.Attacks[i].Score.String(),
				Value: note})
		}
	}
	if _, ok := run.Model.(train.Conv); ok && run.Flaw == train.Sound {
		p.Cannot = append(p.Cannot, "For a net that is not convex the covariance of gradients is "+
			"that of the starting point, and drifts as training goes on.")
	}
	return p
}

// Run plays the audit.
func (t *PreparedTraining) Run(ctx context.Context) (*Page, error) {
	p, a := t.page, t.game
	scores, err := a.Play(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var all []namedScores
	for i, at := range a.Attacks {
		names = append(names, at.String())
		all = append(all, namedScores{at.String(), scores[i]})
	}
	f, best, err := audit.Judge(scores, names, t.Gamma, t.Delta, t.claim)
	if err != nil {
		return nil, err
	}
	f.Name, f.Against = a.Training.Method.String(), "sees all iterates"
	if a.Training.Flaw != train.Sound {
		f.Name += ", " + a.Training.Flaw.String()
	}
	p.Rows = rowsOf(f)
	if !t.Figures {
		return p, nil
	}
	claims := a.Training.Claims(a.Neighbour)
	claimed := func(delta float64) (float64, error) {
		if t.Training.Claim != nil || a.Training.Method != train.DPSGD {
			return math.Inf(1), nil
		}
		g, err := claims(delta)
		return g.Epsilon, err
	}
	roc, err := rocPlot{id: "roc", title: "Attacks on the iterates", all: all, best: best,
		claim: t.claim, delta: t.Delta, low: f.Low, gamma: t.Gamma, curve: claimed}.figure()
	if err != nil {
		return nil, err
	}
	return p, p.draw(roc, scores[best], len(scores), t.Gamma, claimed)
}
