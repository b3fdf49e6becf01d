package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleParseBudget() {
	b, err := privacy.ParseBudget("epsilon=1,delta=1e-06")
	fmt.Println(b, err)
	_, err = privacy.ParseBudget("epsilon=-1")
	fmt.Println(err)
	// Output:
	// epsilon=1,delta=1e-06 <nil>
	// budget: epsilon is -1, must be positive and finite (no privacy is written "none")
}

// anyBudget draws a valid budget of any currency, of sizes that occur and beyond.
func anyBudget() *rapid.Generator[privacy.Budget] {
	size := rapid.Custom(func(t *rapid.T) float64 {
		return math.Exp(rapid.Float64Range(-20, 6).Draw(t, "log size"))
	})
	delta := rapid.Custom(func(t *rapid.T) float64 {
		return math.Exp(rapid.Float64Range(-60, -0.01).Draw(t, "log delta"))
	})
	return rapid.Custom(func(t *rapid.T) privacy.Budget {
		switch rapid.IntRange(0, 5).Draw(t, "currency") {
		case 0:
			return privacy.Pure{Epsilon: size.Draw(t, "epsilon")}
		case 1:
			return privacy.ZCDP{Rho: size.Draw(t, "rho")}
		case 2:
			return privacy.Approx{Epsilon: size.Draw(t, "epsilon"), Delta: delta.Draw(t, "delta")}
		case 4:
			return privacy.GDP{Mu: size.Draw(t, "mu")}
		case 3:
			return privacy.Renyi{Alpha: 1.001 + size.Draw(t, "alpha"), Epsilon: size.Draw(t, "epsilon")}
		}
		return privacy.None{}
	})
}

func TestBudgetsAreWrittenAsInSummaries(t *testing.T) {
	for _, c := range []struct {
		b          privacy.Budget
		text, json string
	}{
		{privacy.Pure{Epsilon: 1}, "epsilon=1", `{"epsilon":1}`},
		{privacy.ZCDP{Rho: 0.1}, "rho=0.1", `{"rho":0.1}`},
		{privacy.Approx{Epsilon: 1, Delta: 1e-6}, "epsilon=1,delta=1e-06", `{"epsilon":1,"delta":0.000001}`},
		{privacy.Renyi{Alpha: 8, Epsilon: 0.5}, "alpha=8,epsilon=0.5", `{"alpha":8,"epsilon":0.5}`},
		{privacy.GDP{Mu: 0.25}, "mu=0.25", `{"mu":0.25}`},
		{privacy.None{}, "none", `"none"`},
	} {
		if got := c.b.String(); got != c.text {
			t.Errorf("String is %q, want %q", got, c.text)
		}
		if got, err := json.Marshal(c.b); string(got) != c.json || err != nil {
			t.Errorf("JSON is %s (%v), want %s", got, err, c.json)
		}
	}
}

func TestBudgetsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBudget().Draw(t, "budget")
		if got, err := privacy.ParseBudget(b.String()); got != b || err != nil {
			t.Fatalf("ParseBudget(%q) = %v, %v", b, got, err)
		}
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalBudget(data); got != b || err != nil {
			t.Fatalf("UnmarshalBudget(%s) = %v, %v", data, got, err)
		}
	})
}

func TestBadBudgets(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		b       privacy.Budget
		mention []string
	}{
		{privacy.Pure{}, []string{"epsilon is 0", "positive"}},
		{privacy.Pure{Epsilon: -2}, []string{"epsilon is -2"}},
		{privacy.Pure{Epsilon: nan}, []string{"epsilon is NaN"}},
		{privacy.Pure{Epsilon: inf}, []string{"epsilon is +Inf", "none"}},
		{privacy.ZCDP{Rho: math.Inf(-1)}, []string{"rho is -Inf"}},
		{privacy.Approx{Epsilon: 1}, []string{"delta is 0", "above 0 and below 1"}},
		{privacy.Approx{Epsilon: 1, Delta: 1}, []string{"delta is 1"}},
		{privacy.Approx{Epsilon: 1, Delta: nan}, []string{"delta is NaN"}},
		{privacy.Approx{Epsilon: -1, Delta: -1}, []string{"epsilon is -1", "delta is -1"}},
		{privacy.Renyi{Alpha: 1, Epsilon: 1}, []string{"alpha is 1", "above 1"}},
		{privacy.Renyi{Alpha: inf, Epsilon: 1}, []string{"alpha is +Inf"}},
		{privacy.GDP{}, []string{"mu is 0"}},
		{privacy.GDP{Mu: nan}, []string{"mu is NaN"}},
	} {
		err := c.b.Validate()
		if err == nil {
			t.Errorf("%#v is accepted", c.b)
			continue
		}
		for _, m := range c.mention {
			if !strings.Contains(err.Error(), m) {
				t.Errorf("%#v: %q does not say %q", c.b, err, m)
			}
		}
		if _, err := privacy.ParseBudget(c.b.String()); err == nil {
			t.Errorf("ParseBudget(%q) is accepted", c.b)
		}
		if !privacy.LossOf(c.b).Infinite() {
			t.Errorf("%#v has a finite loss", c.b)
		}
		if (privacy.Laplace{Scale: 1e12}).Loss().Within(c.b) {
			t.Errorf("%#v: something is within it", c.b)
		}
	}
	for _, s := range []string{"", "None", "epsilon", "epsilon=", "epsilon=1,",
		"epsilon=1,epsilon=2", "delta=0.1", "rho=1,delta=0.1", "x=1", "epsilon=1e400", "none=1"} {
		if b, err := privacy.ParseBudget(s); err == nil {
			t.Errorf("ParseBudget(%q) = %v", s, b)
		}
	}
	for _, s := range []string{"", "null", "1", `"None"`, `{}`, `{"epsilon":null}`,
		`{"epsilon":"1"}`, `{"epsilon":1,"x":2}`, `{"epsilon":1} {}`, `[1]`} {
		if b, err := privacy.UnmarshalBudget([]byte(s)); err == nil {
			t.Errorf("UnmarshalBudget(%s) = %v", s, b)
		}
	}
}

func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{"none", "epsilon=1", "rho=0.1", "epsilon=1,delta=1e-06",
		"delta=0.5,epsilon=3", "alpha=8,epsilon=0.5", "epsilon=NaN", "epsilon=0x1p-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := privacy.ParseBudget(s)
		if err != nil {
			return
		}
		if err := b.Validate(); err != nil {
			t.Fatalf("%q gave an invalid budget: %v", s, err)
		}
		if again, err := privacy.ParseBudget(b.String()); again != b || err != nil {
			t.Fatalf("%q gave %v, which reads back as %v, %v", s, b, again, err)
		}
	})
}

func FuzzUnmarshalBudget(f *testing.F) {
	for _, s := range []string{`"none"`, `{"epsilon":1}`, `{"alpha":8,"epsilon":0.5}`,
		`{"epsilon":1,"delta":1e-6}`, `{"rho":1e-320}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := privacy.UnmarshalBudget(data)
		if err != nil {
			return
		}
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := privacy.UnmarshalBudget(out); again != b || err != nil {
			t.Fatalf("%s gave %v, which reads back as %v, %v", data, b, again, err)
		}
	})
}
