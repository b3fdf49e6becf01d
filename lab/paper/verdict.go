package paper

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Verdict is what was found of a claim of a source: what the answer of its check means for it.
type Verdict string

// The verdicts of claims.
const (
	Refuted         Verdict = "refuted"
	ProgramDiffers  Verdict = "program differs from paper"
	Overstated      Verdict = "overstated"
	Understated     Verdict = "understated"
	Misprint        Verdict = "misprint"
	NotReproduced   Verdict = "not reproduced"
	NotTested       Verdict = "not tested"
	NotContradicted Verdict = "not contradicted"
	Reproduces      Verdict = "reproduces"
)

// The verdicts of what is no claim, or has none.
const (
	OurFinding Verdict = "our finding"
	Errored    Verdict = "error"
)

// Verdicts are all verdicts, the gravest first.
func Verdicts() []Verdict {
	return []Verdict{Errored, Refuted, ProgramDiffers, Overstated, Understated, Misprint, NotReproduced,
		NotTested, NotContradicted, Reproduces, OurFinding}
}

// Means says in one line what a verdict says.
func (v Verdict) Means() string {
	switch v {
	case Refuted:
		return "A theorem or a number is wrong: the page has a proof or a counter-example."
	case ProgramDiffers:
		return "The authors' program does something else than their paper says."
	case Overstated:
		return "The direction is right; the number, or the scope, is not."
	case Understated:
		return "More is so than the source says."
	case Misprint:
		return "A slip of the pen, or of our text of it: the derivation has it right, and " +
			"nothing rests on the slip."
	case NotReproduced:
		return "It did not come out here; the page says what is not known of the setting."
	case NotTested:
		return "What would decide it is not at hand: data, more runs, a longer preset, or how " +
			"near \"matches\" is."
	case NotContradicted:
		return "An upper bound, or an order: what was played agrees, and could hardly have done otherwise."
	case Reproduces:
		return "What the source shows or proves came out here, within its interval or exactly."
	case OurFinding:
		return "No source claims it: a control or an observation of ours."
	case Errored:
		return "The check, or what it rests on, went wrong here."
	}
	return ""
}

// Grave says that a reader of the source should know of it.
func (v Verdict) Grave() bool {
	return slices.Contains([]Verdict{Errored, Refuted, ProgramDiffers, Overstated, Understated, Misprint,
		NotReproduced}, v)
}

// class is the verdict as a name in style sheets.
func (v Verdict) class() string { return strings.ReplaceAll(string(v), " ", "-") }

// checkMeaning refuses a claim whose answers mean what they cannot.
func (c *Claim) checkMeaning() error {
	fails := []Verdict{"", Refuted, ProgramDiffers, Overstated, Misprint, NotReproduced, NotTested}
	holds := []Verdict{"", Reproduces, NotContradicted, NotTested, Overstated, Misprint, ProgramDiffers}
	switch {
	case c.Own && (c.IfHolds != "" || c.IfFails != "" || c.Weaker != nil || c.Stronger != nil ||
		c.Proof != ""):
		return errors.New("it is a finding of our own, and has no verdict")
	case !slices.Contains(fails, c.IfFails):
		return fmt.Errorf("a check that fails cannot mean that the claim is %q", c.IfFails)
	case !slices.Contains(holds, c.IfHolds):
		return fmt.Errorf("a check that holds cannot mean that the claim is %q", c.IfHolds)
	case c.IfFails == Refuted && strings.TrimSpace(c.Proof) == "":
		return errors.New("to be refuted it needs a proof or a counter-example that its page " +
			"shows; runs alone refute nothing")
	case c.Proof != "" && c.IfFails != Refuted:
		return errors.New("it has a proof against it, and yet cannot be refuted")
	}
	return nil
}

// verdict is what a finding means for the claim.
func (c *Claim) verdict(e *Evidence, f Finding) (Verdict, error) {
	switch {
	case c.Own:
		return OurFinding, nil
	case f.Answer == Undecided:
		return NotTested, nil
	case f.Answer == Holds:
		return cmp.Or(c.IfHolds, Reproduces), nil
	}
	for _, beside := range []struct {
		check Check
		says  Verdict
	}{{c.Weaker, Overstated}, {c.Stronger, Understated}} {
		if beside.check == nil {
			continue
		}
		f, err := beside.check.Of(e)
		var not *NotPlayedError
		switch {
		case errors.As(err, &not): // then nothing is known of it
		case err != nil:
			return Errored, err
		case f.Answer == Holds:
			return beside.says, nil
		}
	}
	return cmp.Or(c.IfFails, NotReproduced), nil
}

// decide is a claim's check and what comes of it. A panic in it is its error: one slip in a check
// must not lose what the others found.
func decide(c *Claim, e *Evidence) (f Finding, v Verdict) {
	wrong := func(format string, args ...any) (Finding, Verdict) {
		return nothing("", fmt.Sprintf(format, args...)), Errored
	}
	defer func() {
		if x := recover(); x != nil {
			f, v = wrong("the check broke: %v", x)
		}
	}()
	if c.Decide == nil {
		return wrong("the claim has no check")
	}
	f, err := c.Decide.Of(e)
	var not *NotPlayedError
	switch {
	case errors.As(err, &not):
		f = nothing(Undecided, not.Error())
	case err != nil:
		return wrong("%v", err)
	case f.Answer != Holds && f.Answer != Fails && f.Answer != Undecided:
		return wrong("the check answered %q", f.Answer)
	}
	if v, err = c.verdict(e, f); err != nil {
		return wrong("%v", err)
	}
	return f, v
}

func nothing(a Answer, detail string) Finding {
	return Finding{Answer: a, Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Detail: detail}
}
