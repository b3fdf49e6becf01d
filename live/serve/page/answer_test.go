package page

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// An answer says which arm, how sure that is, and by how much the control is beaten or beats; and two arms
// are never compared before both were released.
func TestAnswer(t *testing.T) {
	x, err := decl.Reader{}.Parse("shop", []byte(shop+"fallback: blue\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		red, blue           [2]int // released, and their sum
		head, why, arm      string
		estimate            float64
		conclusive, compare bool
	}{
		{head: "No answer yet", why: "Not yet: nothing was released."},
		{red: [2]int{50, 20}, head: "No answer yet: of red alone something was released",
			why: "Not yet: nothing was released of a second arm."},
		{red: [2]int{4000, 800}, blue: [2]int{4000, 2000}, head: "blue wins", arm: "red", estimate: -0.3,
			why: "blue is better than red, by ", conclusive: true, compare: true},
		{red: [2]int{4000, 2000}, blue: [2]int{4000, 800}, head: "red wins", arm: "red", estimate: 0.3,
			why: "red is better than blue, by ", conclusive: true, compare: true},
		{red: [2]int{60, 30}, blue: [2]int{60, 24}, head: "red is ahead, not yet conclusive", arm: "red",
			estimate: 0.1, why: "Better than blue by −", compare: true},
	} {
		info := serve.Info{Experiment: *x, Keep: -1}
		for _, a := range [][2]int{c.red, c.blue} {
			arm := serve.ArmInfo{Decisions: a[0], Released: a[0], Sum: float64(a[1])}
			if a[0] > 0 {
				arm.Releases, arm.Noise = 1, privacy.Laplace{Scale: 1}
			}
			info.Arms = append(info.Arms, arm)
		}
		r, err := reportOf(info)
		if err != nil {
			t.Fatal(err)
		}
		r.against = serve.AgainstControl(r.decl, info.Arms, *r.Verdict)
		a := answerOf(info, r)
		if a.Head != c.head || !strings.HasPrefix(strings.ToLower(a.Why), strings.ToLower(c.why)) || a.Control != "blue" ||
			a.Arm != c.arm || (a.Tone == "good") != c.conclusive {
			t.Errorf("%v, %v: %+v", c.red, c.blue, a)
		}
		if (a.Interval != nil) != c.compare || c.compare && (!(a.Interval[0] < *a.Estimate && *a.Estimate < a.Interval[1]) ||
			math.Abs(*a.Estimate-c.estimate) > 1e-9) {
			t.Errorf("%v, %v: %v in %v", c.red, c.blue, a.Estimate, a.Interval)
		}
		if c.conclusive && (a.Interval[0] > 0) != (c.estimate > 0) {
			t.Errorf("%v, %v: %v", c.red, c.blue, a.Interval)
		}
	}
}

// What a budget allows is never said to be less than it is, and much and little do not look alike.
func TestAllows(t *testing.T) {
	for _, c := range []struct {
		b    privacy.Budget
		want []string
	}{
		{privacy.Pure{Epsilon: 0.1}, []string{"a factor of 1.11:", "at most 52.5 %"}},
		{privacy.Pure{Epsilon: 0.5}, []string{"a factor of 1.65:", "at most 62.3 %", "one person’s outcome"}},
		{privacy.Pure{Epsilon: 8}, []string{"at most 100 %"}},
		{privacy.Pure{Epsilon: 10}, []string{"next to nothing", "more than 99.9 %"}},
		{privacy.ZCDP{Rho: 1}, nil},
	} {
		text := allows(c.b, "person")
		if (text == "") != (c.want == nil) {
			t.Errorf("%v: %q", c.b, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %q does not say %q", c.b, text, want)
			}
		}
	}
}
