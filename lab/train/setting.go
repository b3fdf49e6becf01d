package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/noise"
)

// A Request is an audit of a training run as somebody asks for it: which method, canary and
// attacks. Audit makes the game.
type Request struct {
	Method Method
	Flaw   Flaw   // of DPSGD
	Model  string // ModelNames
	Steps  int
	Rate   float64
	Size   int // of a batch, of MiniBatch
	// of DPSGD
	Sampling, Clip, Noise float64

	Neighbour Neighbour
	Canary    string  // CanaryNames
	Scores    []Score // nil: all that suit the method
	LastLayer bool    // attacks see the last layer's parameters only

	Games   int
	Workers int // ≤ 0: all processors
	// Key is where all randomness comes from; its cell is of no account.
	Key noise.Key
}

// ModelNames are the models, and CanaryNames the canaries; AutoCanary is the one of the highest
// Mahalanobis score among all but canife.
func ModelNames() []string { return []string{"logistic", "conv"} }

// CanaryNames are how canaries are called.
func CanaryNames() []string { return []string{AutoCanary, "mislabelled", "blank", "dirac", "canife"} }

// FlawNames are how flaws are called, by their numbers.
func FlawNames() []string { return []string{"none", "half-noise", "unclipped", "batch-clipped"} }

// AutoCanary leaves the choice to the highest score.
const AutoCanary = "auto"

// cell is the key of a part of the work.
func (s Request) cell(name string) noise.Key {
	k := s.Key
	k.Cell = name
	return k
}

// MadeUp is n small made-up images of two classes, for who has no others.
func (s Request) MadeUp(n int) Dataset {
	k := s.cell("data")
	k.Role = noise.RoleInstance
	return Images(n, 6, 6, 1, 2, &k.Fast(1)[0])
}

// Audit is the game on a training set, and how its canary is called.
func (s Request) Audit(data Dataset) (Audit, string, error) {
	fail := func(err error) (Audit, string, error) { return Audit{}, "", err }
	t, err := s.training(data)
	if err != nil {
		return fail(err)
	}
	a := Audit{Training: t, Data: data, Neighbour: s.Neighbour, Games: s.Games, Workers: s.Workers,
		Key: s.cell("games")}
	if t.Method != DPSGD {
		// Without noise the same data would give the same iterates, and there would be nothing
		// left to find.
		if a.Size = len(data.X) / 2; t.Size > a.Size {
			return fail(fmt.Errorf("batch is %d, must be at most half of the examples, %d: the "+
				"other half is not in the game", t.Size, a.Size))
		}
	}
	if a.Attacks, err = s.attacks(t, data); err != nil {
		return fail(err)
	}
	a.Start = make([]float64, t.Model.Params())
	k := s.cell("start")
	k.Role = noise.RoleInstance
	t.Model.Init(a.Start, &k.Fast(1)[0])
	var name string
	if a.Canary, name, err = s.canary(a); err != nil {
		return fail(err)
	}
	return a, name, nil
}

func (s Request) training(d Dataset) (Training, error) {
	t := Training{Method: s.Method, Flaw: s.Flaw, Steps: s.Steps, Rate: s.Rate}
	switch s.Model {
	case "logistic":
		t.Model = Logistic{Features: d.Inputs(), Labels: d.Classes}
	case "conv":
		t.Model = Conv{Height: d.Height, Width: d.Width, Channels: d.Channels, Filters: []int{4},
			Labels: d.Classes}
	default:
		return t, fmt.Errorf("model is %q, must be one of %q", s.Model, ModelNames())
	}
	if t.Flaw != Sound && t.Method != DPSGD {
		return t, fmt.Errorf("flaw is %v, must be none: %v claims nothing that could be false",
			FlawNames()[t.Flaw], t.Method)
	}
	switch t.Method {
	case DPSGD:
		t.Sampling, t.Clip, t.Noise = s.Sampling, s.Clip, s.Noise
	case MiniBatch:
		if t.Size = s.Size; t.Size < 1 || t.Size > len(d.X) {
			return t, fmt.Errorf("batch is %d, must be from 1 to the examples, %d", t.Size, len(d.X))
		}
	}
	return t, t.Validate()
}

func (s Request) attacks(t Training, d Dataset) ([]Attack, error) {
	scores := s.Scores
	switch alone := t.Method == Stochastic; {
	case scores == nil && alone:
		scores = []Score{ScalarProduct}
	case scores == nil:
		scores = []Score{Covariance, ScalarProduct, GLiR}
	case alone && !slices.Equal(scores, []Score{ScalarProduct}):
		return nil, errors.New("attacks must be scalar for --method stochastic: the others need " +
			"batches of two")
	}
	var out []Attack
	for _, score := range scores {
		a := Attack{Score: score, LastLayer: s.LastLayer}
		if score != ScalarProduct {
			a.References, a.Informed = d, t.Method == DPSGD
		}
		a.Refresh = score == Covariance
		a.Mixture = score == Covariance && t.Method == DPSGD && t.Sampling < 1
		out = append(out, a)
	}
	return out, nil
}

// canary picks what is in the training set or not.
func (s Request) canary(a Audit) (Canary, string, error) {
	model, theta := a.Training.Model, a.Start
	size, long := 1.0, 1.0
	if a.Training.Method == DPSGD {
		// A gradient far longer than the clip does not hurt a run that clips it, and shows one
		// that does not.
		size, long = a.Training.Clip, 10*a.Training.Clip
	}
	lo, _ := model.Last()
	makers := map[string]func() (Canary, error){
		"mislabelled": func() (Canary, error) { return Mislabelled(model, theta, a.Data, 0) },
		"blank":       func() (Canary, error) { return Blank(a.Data, 0), nil },
		"dirac":       func() (Canary, error) { return Dirac(model, lo, long) },
		"canife": func() (Canary, error) {
			k := s.cell("canife")
			made, _, _, err := CANIFE{References: a.Data, Clip: size, Steps: 50, Lo: 0,
				Hi: 1}.Craft(model, theta, nil, &k.Fast(1)[0])
			return made, err
		},
	}
	if s.Canary != AutoCanary {
		make, ok := makers[s.Canary]
		if !ok {
			return Canary{}, "", fmt.Errorf("canary is %q, must be one of %q", s.Canary, CanaryNames())
		}
		made, err := make()
		return made, made.Name, err
	}
	var candidates []Canary
	for _, name := range []string{"mislabelled", "blank", "dirac"} {
		made, err := makers[name]()
		if err != nil {
			return Canary{}, "", err
		}
		candidates = append(candidates, made)
	}
	for i := range min(len(a.Data.X), 16) {
		made, err := Mislabelled(model, theta, a.Data, i)
		if err != nil {
			return Canary{}, "", err
		}
		candidates = append(candidates, made)
	}
	a.Canary = candidates[0]
	if a.Training.Method == Stochastic {
		// batches of one have no covariance; the order of candidates is the same in larger ones
		a.Training.Method = Batch
	}
	a.Attacks = []Attack{{References: a.Data, Informed: a.Training.Method == DPSGD,
		LastLayer: s.LastLayer}}
	plans, err := a.Plans()
	if err != nil {
		return Canary{}, "", err
	}
	best, _, err := Select(plans[0], candidates)
	if err != nil {
		return Canary{}, "", err
	}
	return candidates[best], fmt.Sprintf("%s, of the highest Mahalanobis score among %d",
		candidates[best].Name, len(candidates)), nil
}
