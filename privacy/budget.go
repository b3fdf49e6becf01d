package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Budget is a privacy guarantee in one currency: Pure, ZCDP, Approx, Renyi, GDP or None. Budgets
// are plain values and can be compared.
type Budget interface {
	// String is the budget as summary.csv writes it and ParseBudget reads it: epsilon=1 or rho=0.1
	// or epsilon=1,delta=1e-06 or alpha=8,epsilon=0.5 or mu=0.2 or none.
	String() string
	// Validate says what is wrong with the numbers, if anything.
	Validate() error

	sealed() // the conversions below know every currency
}

// Pure is ε-differential privacy ([Azize 2024, Definition 2.3] with δ = 0). Epsilon is
// positive and finite.
type Pure struct {
	Epsilon float64 `json:"epsilon"`
}

// ZCDP is ρ-zero-concentrated differential privacy [Azize 2024, Definition 2.3]: every Rényi
// divergence of order α is at most ρα. Rho is positive and finite.
type ZCDP struct {
	Rho float64 `json:"rho"`
}

// Approx is (ε,δ)-differential privacy [Azize 2024, Definition 2.3]. Epsilon is positive and
// finite, Delta in (0,1).
type Approx struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// Renyi is (α,ε)-Rényi differential privacy (Mironov 2017): the Rényi divergence of order α is at
// most ε. Alpha is above 1 and finite, Epsilon positive and finite.
type Renyi struct {
	Alpha   float64 `json:"alpha"`
	Epsilon float64 `json:"epsilon"`
}

// GDP is μ-Gaussian differential privacy (Dong, Roth and Su 2022, Definition 4): two neighbours are
// at least as hard to tell apart as N(0,1) and N(μ,1). Mu is positive and finite. It is a fixed
// trade-off curve, and so a currency for the cap of a ledger (WithCap) where a guarantee in (ε,δ)
// is wanted at the end: GDPWithin.
type GDP struct {
	Mu float64 `json:"mu"`
}

// None is no privacy at all: an infinite budget in every currency.
type None struct{}

func (Pure) sealed()   {}
func (ZCDP) sealed()   {}
func (Approx) sealed() {}
func (Renyi) sealed()  {}
func (GDP) sealed()    {}
func (None) sealed()   {}

func (b Pure) String() string   { return "epsilon=" + number(b.Epsilon) }
func (b ZCDP) String() string   { return "rho=" + number(b.Rho) }
func (b Approx) String() string { return "epsilon=" + number(b.Epsilon) + ",delta=" + number(b.Delta) }
func (b Renyi) String() string  { return "alpha=" + number(b.Alpha) + ",epsilon=" + number(b.Epsilon) }
func (b GDP) String() string    { return "mu=" + number(b.Mu) }
func (None) String() string     { return "none" }

// Validate accepts 0 < ε < ∞.
func (b Pure) Validate() error { return positive("epsilon", b.Epsilon) }

// Validate accepts 0 < ρ < ∞.
func (b ZCDP) Validate() error { return positive("rho", b.Rho) }

// Validate accepts 0 < ε < ∞ and 0 < δ < 1.
func (b Approx) Validate() error {
	return errors.Join(positive("epsilon", b.Epsilon), probability("delta", b.Delta))
}

// Validate accepts 1 < α < ∞ and 0 < ε < ∞.
func (b Renyi) Validate() error { return errors.Join(order(b.Alpha), positive("epsilon", b.Epsilon)) }

// Validate accepts 0 < μ < ∞.
func (b GDP) Validate() error { return positive("mu", b.Mu) }

// Validate accepts None always.
func (None) Validate() error { return nil }

// MarshalJSON writes "none".
func (None) MarshalJSON() ([]byte, error) { return []byte(`"none"`), nil }

// number is the shortest decimal that reads back as x.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func positive(field string, x float64) error {
	if !(x > 0 && x <= math.MaxFloat64) {
		return fmt.Errorf("%s is %v, must be positive and finite (no privacy is written \"none\")", field, x)
	}
	return nil
}

func probability(field string, x float64) error {
	if !(x > 0 && x < 1) {
		return fmt.Errorf("%s is %v, must be above 0 and below 1", field, x)
	}
	return nil
}

func order(x float64) error {
	if !(x > 1 && x <= math.MaxFloat64) {
		return fmt.Errorf("alpha is %v, must be above 1 and finite", x)
	}
	return nil
}

// NewBudget makes a budget from named numbers, as a file has them: {epsilon}, {rho}, {epsilon,
// delta}, {alpha, epsilon} or {mu}.
func NewBudget(fields map[string]float64) (Budget, error) {
	names := slices.Sorted(maps.Keys(fields))
	var b Budget
	switch strings.Join(names, " ") {
	case "epsilon":
		b = Pure{fields["epsilon"]}
	case "rho":
		b = ZCDP{fields["rho"]}
	case "delta epsilon":
		b = Approx{fields["epsilon"], fields["delta"]}
	case "alpha epsilon":
		b = Renyi{fields["alpha"], fields["epsilon"]}
	case "mu":
		b = GDP{fields["mu"]}
	default:
		return nil, fmt.Errorf("budget has the fields %q, must have epsilon, or rho, or "+
			"epsilon and delta, or alpha and epsilon, or mu", names)
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return b, nil
}

// ParseBudget reads what String writes. The fields may come in any order.
func ParseBudget(s string) (Budget, error) {
	if s == "none" {
		return None{}, nil
	}
	fields := map[string]float64{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("budget %q: %q must be a field=number, or the whole \"none\"", s, part)
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("budget %q: %s is given twice", s, name)
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("budget %q: %s is %q, must be a number", s, name, value)
		}
		fields[name] = x
	}
	return NewBudget(fields)
}

// UnmarshalBudget reads a budget from JSON: "none", or an object of the fields that NewBudget
// takes. Writing needs no help: json.Marshal of any valid budget gives what this reads.
func UnmarshalBudget(data []byte) (Budget, error) {
	var s string
	if json.Unmarshal(data, &s) == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		if s != "none" {
			return nil, fmt.Errorf("budget is %q, must be \"none\" or an object such as {\"epsilon\":1}", s)
		}
		return None{}, nil
	}
	var fields map[string]*float64
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	plain := make(map[string]float64, len(fields))
	for name, x := range fields {
		if x == nil {
			return nil, fmt.Errorf("budget: %s is null, must be a number", name)
		}
		plain[name] = *x
	}
	return NewBudget(plain)
}

// strict decodes one JSON value and refuses unknown fields and anything after it.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is something after the value")
	}
	return nil
}
