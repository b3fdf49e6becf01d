package cli

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
)

// Randomised response at ε = 1: the finding of two attacks, one of which is noise, and another that
// says nothing at all.
func TestJudge(t *testing.T) {
	src := noise.NewFast(7, 7)
	truth := math.E / (1 + math.E)
	var good, noisy, constant audit.Scores
	for range 20000 {
		for _, in := range []bool{true, false} {
			bit := in
			if u := float64(src.Uint64()>>11) / (1 << 53); u > truth {
				bit = !in
			}
			x := 0.0
			if bit {
				x = 1
			}
			n := float64(src.Uint64()>>11) / (1 << 53)
			if in {
				good.In, noisy.In, constant.In = append(good.In, x), append(noisy.In, n), append(constant.In, 3)
			} else {
				good.Out, noisy.Out, constant.Out = append(good.Out, x), append(noisy.Out, n),
					append(constant.Out, 3)
			}
		}
	}
	// False alarm at most 1e-6 (γ), and the seed is fixed.
	f, best, err := judge([]audit.Scores{constant, noisy, good},
		[]string{"constant", "noise", "bit"}, 1e-6, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if best != 2 || f.Attack != "bit" || f.Refuted || !(f.Low > 0.8 && f.Low <= 1) ||
		!(f.Low < f.Estimate && f.Estimate < f.High) || f.Games != 40000 {
		t.Errorf("judge found %+v of attack %d", f, best)
	}
	if f, _, err = judge([]audit.Scores{good}, []string{"bit"}, 1e-6, 0, 0.5); err != nil || !f.Refuted {
		t.Errorf("a claim of half the ε is not refuted: %+v, %v", f, err)
	}
	if f, _, err = judge([]audit.Scores{noisy}, []string{"noise"}, 1e-6, 0, 0); err != nil ||
		f.Refuted || f.Low != 0 || !math.IsNaN(f.Estimate) {
		t.Errorf("noise refutes: %+v, %v", f, err)
	}
	if _, _, err = judge([]audit.Scores{constant}, []string{"constant"}, 1e-6, 0,
		1); !errors.Is(err, audit.ErrConstantScore) || exitCode(failed(err)) != exitUsage {
		t.Errorf("a constant score: %v", err)
	}
}

// The answer of an audit decides its exit code, and a page is written in each case.
func TestFinish(t *testing.T) {
	row := func(name string, low, claimed float64, twin bool) auditRow {
		return auditRow{Finding: audit.Finding{Name: name, Claimed: claimed, Low: low,
			Estimate: low, High: math.Inf(1), Refuted: low > claimed, Games: 100}, twin: twin}
	}
	for _, c := range []struct {
		rows []auditRow
		want string // in the error; "" is none
	}{
		{[]auditRow{row("own", 0.5, 1, false)}, ""},
		{[]auditRow{row("own", 0.5, 1, false), row("twin", 2, 1, true)}, ""},
		{[]auditRow{row("own", 1.5, 1, false), row("twin", 2, 1, true)}, "refuted: own"},
		{[]auditRow{row("own", 0.5, 1, false), row("twin", 0.2, 1, true)},
			"broken on purpose and not refuted: twin"},
		{[]auditRow{row("plain", 9, math.Inf(1), false)}, ""},
	} {
		var out bytes.Buffer
		err := (&auditFlags{Out: t.TempDir()}).finish(streams{out: &out},
			&outcome{title: "Audit", findings: c.rows, gamma: 0.05})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.rows, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			exitCode(err) != exitFailed):
			t.Errorf("%v: error %v, want %q", c.rows, err, c.want)
		}
		if strings.Contains(c.want, "refuted: own") &&
			!strings.Contains(out.String(), "The claim of own is refuted") {
			t.Errorf("nothing is said of the refuted claim:\n%s", out.String())
		}
	}
}

// Normal noise for a budget is the least that meets it.
func TestGaussianFor(t *testing.T) {
	c := auditMechanism{Name: "gaussian", Epsilon: "1", Delta: "0.01"}
	m, err := c.mechanism(2)
	if err != nil {
		t.Fatal(err)
	}
	if eps := m.Loss().Approx(0.01); !(eps <= 1 && eps > 1-1e-6) {
		t.Errorf("%v has ε = %v at δ = 0.01, want 1", m, eps)
	}
}
