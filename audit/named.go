package audit

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

// A named mechanism is made for a budget: ε for Laplace noise.
type named struct {
	name   string
	normal bool
	of     func(b privacy.Budget, epsilon float64, looks int) (privacy.Mechanism, error)
}

func namedMechanisms() []named {
	plain := func(of func(epsilon float64, looks int) privacy.Mechanism) func(privacy.Budget, float64,
		int) (privacy.Mechanism, error) {
		return func(_ privacy.Budget, epsilon float64, looks int) (privacy.Mechanism, error) {
			return of(epsilon, looks), nil
		}
	}
	return []named{
		{"laplace", false, plain(func(e float64, _ int) privacy.Mechanism { return privacy.Laplace{Scale: 1 / e} })},
		{"gaussian", true, func(b privacy.Budget, _ float64, _ int) (privacy.Mechanism, error) {
			sigma := privacy.GaussianSigma
			if a, ok := b.(privacy.Approx); ok {
				sigma = func(privacy.Budget) (float64, error) { return privacy.AnalyticSigma(a) }
			}
			x, err := sigma(b)
			return privacy.Gaussian{Sigma: x}, err
		}},
		{"tree", false, plain(func(e float64, looks int) privacy.Mechanism {
			return privacy.Tree{Scale: float64(bits.Len(uint(looks))) / e, Horizon: looks}
		})},
		{"hybrid", false, plain(func(e float64, _ int) privacy.Mechanism { return privacy.Hybrid{Scale: 2 / e} })},
		{"kary", false, plain(func(e float64, looks int) privacy.Mechanism { return privacy.NewKAry(e, 3, looks) })},
		{"sqrt", true, func(b privacy.Budget, _ float64, looks int) (privacy.Mechanism, error) {
			return privacy.NewSquareRoot(b, looks)
		}},
		{"blt", true, func(b privacy.Budget, _ float64, looks int) (privacy.Mechanism, error) {
			return privacy.NewBLT(b, looks)
		}},
		{"sparse", false, plain(func(e float64, _ int) privacy.Mechanism {
			return privacy.Sparse{Questions: privacy.Questions{Threshold: 3 / e, Query: 6 / e,
				Statistic: privacy.Centre}, Scale: 3 / e}
		})},
	}
}

// NamedMechanisms are the names that NewMechanism knows.
func NamedMechanisms() []string {
	var names []string
	for _, m := range namedMechanisms() {
		names = append(names, m.name)
	}
	return names
}

// NewMechanism is the mechanism of this name with the least noise that meets a budget:
// privacy.Pure, or for normal noise privacy.ZCDP or privacy.Approx. Looks is how many releases of a
// running sum there are.
func NewMechanism(name string, b privacy.Budget, looks int) (privacy.Mechanism, error) {
	names := NamedMechanisms()
	i := slices.Index(names, name)
	if i < 0 {
		return nil, fmt.Errorf("mechanism is %q%s, must be one of %s", name,
			catalog.Hint(name, names), strings.Join(names, ", "))
	}
	eps := 0.0
	switch b := b.(type) {
	case privacy.Pure:
		eps = b.Epsilon
	case privacy.Approx: // met by ε-DP where noise is Laplace's
		eps = b.Epsilon
	}
	_, pure := b.(privacy.Pure)
	m := namedMechanisms()[i]
	switch {
	case m.normal && pure:
		return nil, fmt.Errorf("mechanism %s needs ρ, or ε with δ: no normal noise is ε-DP", name)
	case !m.normal && eps == 0:
		return nil, fmt.Errorf("mechanism %s needs ε", name)
	}
	return m.of(b, eps, looks)
}

// FaultNames are how faults are called, NoFault first and then as the constants go on.
func FaultNames() []string {
	return []string{"none", "half", "quarter", "eighth", "shared", "redrawn", "twice", "unclipped"}
}

// FaultNamed is the fault of one of FaultNames.
func FaultNamed(name string) (Fault, error) {
	if i := slices.Index(FaultNames(), name); i >= 0 {
		return []Fault{NoFault, HalfScale, QuarterScale, EighthScale, Shared, Redrawn, Twice,
			Unclipped}[i], nil
	}
	return NoFault, fmt.Errorf("fault is %q, must be one of %s", name, strings.Join(FaultNames(), ", "))
}

// Break breaks the curator of an audit. Possible are the faults that show, any if nil: of another
// one an audit says nothing.
func (p PolicyAudit) Break(fault Fault, possible []Fault) (PolicyAudit, error) {
	// a worse scale shows where half of it does
	shows := possible == nil || slices.Contains(possible, fault) ||
		fault == QuarterScale || fault == EighthScale
	if !shows {
		var names []string
		given := fault.String()
		for i, name := range FaultNames() {
			f, _ := FaultNamed(name)
			if f == fault {
				given = name
			}
			if i > 0 && slices.Contains(possible, f) {
				names = append(names, name)
			}
		}
		return p, fmt.Errorf("fault is %s, must be one of %s: others do not show here", given,
			strings.Join(names, ", "))
	}
	p.Subject = p.Subject.Broken(fault)
	if fault == Unclipped {
		p.Adversaries = slices.Clone(p.Adversaries)
		for i, a := range p.Adversaries {
			high := slices.Clone(a.High)
			for arm := range high {
				high[arm] = 1e6
			}
			p.Adversaries[i].High = high
		}
	}
	return p, nil
}
