package audit

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Fault is a way in which a curator can be wrong while its ledger says that all is well. Faulty
// curators are what the auditor is audited with: they take simulated rewards only.
type Fault int

// The faults.
const (
	NoFault      Fault = iota
	HalfScale          // half the noise that is charged for
	QuarterScale       // a quarter of it, where no attack comes near the ε that is claimed
	EighthScale        // an eighth of it, where the bound on ε is loose as well
	// one draw for all arms that are released together, and for two releases in a row: it cancels
	// in every comparison
	Shared
	Redrawn // running sums with fresh noise at every release, charged once
	// a reward counted in two releases: a slot's rewards are still there at the arm's next release
	Twice
	Unclipped // rewards are not clipped
)

func (f Fault) String() string {
	switch f {
	case NoFault:
		return "none"
	case HalfScale:
		return "half the scale"
	case QuarterScale:
		return "a quarter of the scale"
	case EighthScale:
		return "an eighth of the scale"
	case Shared:
		return "noise shared across arms"
	case Redrawn:
		return "noise drawn again at each release"
	case Twice:
		return "rewards counted in two releases"
	case Unclipped:
		return "no clipping"
	}
	return fmt.Sprintf("fault %d", int(f))
}

// Faults lists what can be wrong with a mechanism's curator so that it shows.
func Faults(m privacy.Mechanism) []Fault {
	d, ok := privacy.DrawsOf(m)
	switch {
	case ok && d.Sum && d.Once:
		return []Fault{HalfScale, Shared, Twice, Unclipped}
	case ok && d.Sum && d.Law != "" && m.Continual():
		return []Fault{HalfScale, Redrawn, Unclipped}
	}
	return []Fault{QuarterScale, Unclipped}
}

// Broken is the subject with a curator that has this fault. Under a trust model only faults of the
// scale are known.
func (s Subject) Broken(f Fault) Subject {
	if f == NoFault {
		return s
	}
	s.Name += ", " + f.String()
	trust := s.trust
	s.Curator = func(arms int, m privacy.Mechanism, ledger *privacy.Ledger,
		src *noise.Fast) (release.Curator, error) {
		if trust != nil && f != HalfScale && f != QuarterScale && f != EighthScale {
			return nil, fmt.Errorf("audit: fault is %v, must be one of the scale under trust %s", f,
				trust.Model)
		}
		switch f {
		case HalfScale, QuarterScale, EighthScale, Unclipped:
			c := &disguised{arms: arms, fault: f, ledger: ledger, src: src, trust: trust}
			return c, c.Forget(m)
		case Shared, Redrawn, Twice:
			c := &faulty{fault: f, ledger: ledger, src: src, slots: make([]faultySlot, arms)}
			return c, c.Forget(m)
		}
		return nil, fmt.Errorf("audit: %v is unknown", f)
	}
	return s
}

// scaled is a mechanism with its noise times x.
func scaled(m privacy.Mechanism, x float64) (privacy.Mechanism, error) {
	if m, ok := m.(privacy.Sparse); ok {
		m.Scale *= x
		m.Threshold *= x
		m.Query *= x
		return m, nil
	}
	if at, ok := privacy.WithScale(m, x*privacy.ScaleOf(m)); ok {
		return at, nil
	}
	return nil, fmt.Errorf("audit: no scale to change in %v", m)
}

// disguised lets a real curator do something else than what it writes into the ledger that is shown.
type disguised struct {
	release.Curator
	arms   int
	fault  Fault
	claim  privacy.Mechanism
	ledger *privacy.Ledger
	src    *noise.Fast
	next   int
	ids    []int
	trust  *release.Trust
}

func (c *disguised) Ledger() *privacy.Ledger { return c.ledger }

func (c *disguised) Forget(m privacy.Mechanism) error {
	c.claim = m
	var err error
	switch c.fault {
	case HalfScale:
		m, err = scaled(m, 0.5)
	case QuarterScale:
		m, err = scaled(m, 0.25)
	case EighthScale:
		m, err = scaled(m, 0.125)
	}
	if err != nil {
		return err
	}
	if c.trust != nil && c.Curator != nil {
		err = c.Curator.Forget(m) // what it knows of the integers took time to find
	} else {
		c.Curator, err = release.Simulated(release.Config{Arms: c.arms, Mechanism: m,
			Unclipped: c.fault == Unclipped, Trust: c.trust}, c.src)
	}
	c.ids = c.ids[:0]
	for range c.arms {
		c.ids = append(c.ids, c.open())
	}
	return err
}

func (c *disguised) open() int {
	c.next++
	return c.next - 1
}

func (c *disguised) Release(arms []int) (privacy.Released, error) {
	r, err := c.Curator.Release(arms)
	if err != nil {
		return r, err
	}
	return r, c.charge(arms)
}

func (c *disguised) Ask(arms []int, above float64) (privacy.Released, error) {
	r, err := c.Curator.Ask(arms, above)
	if err != nil {
		return r, err
	}
	if r.Len() > 0 {
		return r, c.charge(arms)
	}
	return r, nil
}

func (c *disguised) charge(arms []int) error {
	for _, a := range arms {
		if err := c.ledger.Record(c.ids[a], c.claim); err != nil {
			return err
		}
		if !c.claim.Continual() {
			c.ids[a] = c.open()
		}
	}
	return nil
}

// faulty is a curator of its own, with wrong noise.
type faulty struct {
	fault  Fault
	claim  privacy.Mechanism
	ledger *privacy.Ledger
	src    *noise.Fast
	slots  []faultySlot
	next   int
	held   float64 // noise of the last release, and how often it was used
	uses   int
	values privacy.Values
	ids    []int
	meter  meter // knows the noise
	// weights are those of a sum's draws.
	weights []int
	// account is the ledger's of the claim.
	account privacy.Account
}

type faultySlot struct {
	id, n    int
	sum, old float64
}

func (c *faulty) Ledger() *privacy.Ledger { return c.ledger }

func (c *faulty) Forget(m privacy.Mechanism) error {
	if c.uses = 0; c.claim != m {
		c.claim, c.account = m, c.ledger.Account(m)
		c.meter.fresh(m)
		if m, ok := m.(interface{ Tail() privacy.Tail }); ok {
			c.values.Tail = m.Tail()
		}
	}
	for a := range c.slots {
		c.slots[a] = faultySlot{id: c.open()}
	}
	return m.Validate()
}

func (c *faulty) open() int {
	c.next++
	return c.next - 1
}

func (c *faulty) Add(arm int, reward float64) error { return c.AddSum(arm, 1, min(max(reward, 0), 1)) }

func (c *faulty) AddSum(arm, n int, sum float64) error {
	c.slots[arm].n += n
	c.slots[arm].sum += sum
	return nil
}

func (c *faulty) Ask([]int, float64) (privacy.Released, error) {
	return privacy.Released{}, errors.New("audit: this faulty curator takes no questions")
}

func (c *faulty) Release(arms []int) (privacy.Released, error) {
	c.values.N, c.values.Sum, c.ids = c.values.N[:0], c.values.Sum[:0], c.ids[:0]
	for _, a := range arms {
		s := &c.slots[a]
		sum := s.sum
		if c.fault == Twice {
			sum += s.old
		}
		c.values.N = append(c.values.N, s.n)
		c.values.Sum = append(c.values.Sum, sum+c.noise(s.n))
		c.ids = append(c.ids, s.id)
		if !c.claim.Continual() {
			*s = faultySlot{id: c.open(), old: s.sum}
		}
	}
	if len(arms) == 1 {
		return c.account.Release(c.ids[0], &c.values)
	}
	return c.ledger.ReleaseAll(c.ids, c.claim, &c.values)
}

// noise is that of a sum of n rewards.
func (c *faulty) noise(n int) float64 {
	if c.fault == Shared {
		if c.uses > 0 {
			c.uses--
			return c.held
		}
		c.uses = len(c.slots) - 1
	}
	c.held = 0
	switch d := c.meter.draws; {
	case d.Law == privacy.NoiseGaussian && c.claim.Continual():
		c.held = math.Sqrt(c.meter.variance(n)) * c.src.Normal()
	case d.Law == privacy.NoiseGaussian:
		c.held = d.Scale * c.src.Normal()
	case d.Weights != nil:
		c.weights = d.Weights(c.weights[:0], n)
		for _, w := range c.weights {
			c.held += c.src.Laplace(d.Scale * float64(w))
		}
	case d.Law == privacy.NoiseLaplace:
		c.held = c.src.Laplace(d.Scale)
	}
	return c.held
}
