package audit

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

// NamedMechanisms are the names that NewMechanism knows.
func NamedMechanisms() []string {
	return []string{"laplace", "gaussian", "tree", "hybrid", "kary", "sqrt", "blt", "sparse"}
}

// NewMechanism is the mechanism of this name with the least noise that meets a budget:
// privacy.Pure, or for normal noise privacy.ZCDP or privacy.Approx. Looks is how many releases of a
// running sum there are.
func NewMechanism(name string, b privacy.Budget, looks int) (privacy.Mechanism, error) {
	names := NamedMechanisms()
	if !slices.Contains(names, name) {
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
	switch normal := name == "gaussian" || name == "sqrt" || name == "blt"; {
	case normal && pure:
		return nil, fmt.Errorf("mechanism %s needs ρ, or ε with δ: no normal noise is ε-DP", name)
	case !normal && eps == 0:
		return nil, fmt.Errorf("mechanism %s needs ε", name)
	}
	switch name {
	case "laplace":
		return privacy.Laplace{Scale: 1 / eps}, nil
	case "gaussian":
		if a, ok := b.(privacy.Approx); ok {
			sigma, err := privacy.AnalyticSigma(a)
			return privacy.Gaussian{Sigma: sigma}, err
		}
		sigma, err := privacy.GaussianSigma(b)
		return privacy.Gaussian{Sigma: sigma}, err
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
