package stopping

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// log(2/(0.95·2)) = log(1/0.95) = 0.0512933 is below β = 0.08, and log(1/0.92) = 0.0833816 is above it,
// but too near 0: at R = |μ| = 2 the message must say that number, and no other power of R or α.
func TestUpperBoundSaysTheLogarithm(t *testing.T) {
	for alpha, want := range map[float64]string{
		0.95: "log(R/(α|μ|)) is 0.0512932943875", 0.92: "log(R/(α|μ|)) is 0.0833816089391",
	} {
		if x, err := newRuleOf(t, "dp-nas", alpha, 0.08, math.Inf(1), 2).UpperBound(2); err == nil ||
			!strings.Contains(err.Error(), want[:len(want)-1]) {
			t.Errorf("alpha %v: %v, %v; want %q", alpha, x, err, want)
		}
	}
}

// An atom at ±R is inside: of ½ at 1 and ½ at 2 only the second is clipped.
func TestAtomsAtTheRangeAreNotClipped(t *testing.T) {
	for _, law := range []string{"table(1:0.5,2:0.5)", "table(-2:0.5,-1:0.5)"} {
		stream := noise.NewFast(3, 1)
		w := drawer{law: parse(t, law), stream: &stream, r: 1}
		sum := w.sum(1000)
		// Within 6 standard deviations of 500.
		if w.clipped < 405 || w.clipped > 595 || sum != 1000 && sum != -1000 {
			t.Errorf("%s: %d of 1000 clipped, sum %v", law, w.clipped, sum)
		}
	}
}

// A private rule that fails before its first question has released nothing, so it speaks of no loss.
func TestFailingBeforeAnyQuestionSpendsNothing(t *testing.T) {
	rule := newRuleOf(t, "dp-exp-nas", 0.5, 0.1, 1, 1)
	stream := noise.NewFast(1, 1)
	cur, err := release.Simulated(release.Config{Arms: 1, Lo: -1, Hi: 1, Mechanism: rule.Mechanism()}, &stream)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no such sample")
	_, err = run(context.Background(), rule, cur, 0, func(int) (int, error) { return 0, broken })
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "no estimate is released") {
		t.Errorf("%v", err)
	}
}

func TestNoPrivacyAtAllIsRefused(t *testing.T) {
	want := "dp-nas: epsilon is 0, must be above 0"
	if _, err := New("dp-nas", 0.1, 0.1, 0, 1); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
