package audit

import (
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// An Outside is an audit of what this package does not know, for SelfAudit: a service, for
// instance, that is asked as anybody may ask it.
type Outside struct {
	Name  string
	Twin  bool // it is broken, and must be refuted
	Claim privacy.Loss
	Delta float64 // at which the claim is tested, 0 for one of pure differential privacy
	// Attack is what the score is, Model what the adversary may do, and Adversaries are tried in
	// turn.
	Attack, Model string
	Adversaries   []string
	Cost          int // games are divided by it, at least 1
	// Worlds makes games against an adversary. A game is played in one world or the other, with the
	// noise of src, and gives one score, which is to be larger in the world in.
	Worlds func(adversary int) func() func(in bool, src *noise.Fast, scores []float64) error
}

// Direct is the audit alone, whose effort is still to be said.
func (o Outside) Direct() Direct { return Direct{direct: o.direct(), Delta: o.Delta} }

func (o Outside) direct() direct {
	return direct{name: o.Name, claim: o.Claim, adversaries: o.Adversaries, attack: o.Attack, model: o.Model,
		worlds: o.Worlds}
}

// item is the audit as SelfAudit does it.
func (o Outside) item() selfItem { return ofDirect(o.direct(), o.Delta, o.Twin, max(o.Cost, 1)) }

// items are all audits: those of this package, and those from outside.
func (s SelfAudit) items() ([]selfItem, error) {
	items, err := selfItems(s.Catalog)
	items = slices.Clip(items)
	for _, o := range s.More {
		items = append(items, o.item())
	}
	return items, err
}
