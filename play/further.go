package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Metric is a second number of each decision that is released beside its reward: a sum over the
// same decisions, at the same instants, with noise of its own. No policy sees it. A unit loses by
// it what its mechanism costs, in addition.
type Metric struct {
	Name string
	// Lo and Hi are its declared range, both 0 for [0,1], and Default, in it, what a decision
	// counts for which it is not reported.
	Lo, Hi, Default float64
	Mechanism       privacy.Mechanism // privacy.Laplace or Gaussian, of values mapped to [0,1]
	Aggregate       Aggregate         // what several reports of a decision make of it
}

// A further is a Metric, or a Rule as one: a sum of each decision beside its reward's, with a curator
// and a ledger of its own.
type further struct {
	Metric
	what    string  // metric or rule
	most    float64 // of a rule: Clip
	clip    release.Clip
	missing int64
	curator release.StepCurator
	ledger  *privacy.Ledger // of it alone
	line    *bytes.Buffer   // what that writes
	// what the curator of people's rewards releases, nil where that is not known, and what was
	outline *release.Outline
	slots   map[int]bool
	sums    []float64 // of a metric, what was released of each slot: of arms, or of their cells
}

// maxMetrics is far beyond what a budget can be shared out to.
const maxMetrics = 100

// buildFurther makes metrics ready, or rules; what is one's name in errors.
func buildFurther(what string, in []Metric) (out []further, err error) {
	if len(in) > maxMetrics {
		return nil, fmt.Errorf("play: %ss has %d, must have at most %d", what, len(in), maxMetrics)
	}
	for i, m := range in {
		at := fmt.Sprintf("play: %ss[%d]", what, i)
		switch m.Mechanism.(type) {
		case privacy.Laplace, privacy.Gaussian:
		default:
			return nil, fmt.Errorf("%s: mechanism is %v, must be Laplace or Gaussian", at, m.Mechanism)
		}
		if m.Lo == 0 && m.Hi == 0 {
			m.Hi = 1
		}
		clip, err := release.NewClip(m.Lo, m.Hi)
		if err == nil {
			err = checkAggregate(m.Aggregate)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if m.Name == "" || slices.ContainsFunc(out, func(o further) bool { return o.Name == m.Name }) {
			return nil, fmt.Errorf("%s: name is %q, must be one of its own", at, m.Name)
		}
		if !(m.Default >= m.Lo && m.Default <= m.Hi) {
			return nil, fmt.Errorf("%s: default is %v, must be in the range, from %v to %v", at, m.Default,
				m.Lo, m.Hi)
		}
		line := &bytes.Buffer{}
		out = append(out, further{Metric: m, what: what, clip: clip, missing: clip.Steps(m.Default),
			ledger: privacy.NewLedger(privacy.WithTranscript(line)), line: line, slots: map[int]bool{}})
	}
	return out, nil
}

// describe is what must not change of metrics and rules while decisions are out.
func describe(all []further) string {
	var b strings.Builder
	for _, f := range all {
		if f.most > 0 {
			fmt.Fprintf(&b, "%q clipped at %v, %v\n", f.Name, f.most, f.Mechanism)
		} else {
			fmt.Fprintf(&b, "%q from %v to %v, else %v, %v", f.Name, f.Lo, f.Hi, f.Default, f.Mechanism)
			if f.Aggregate != First {
				fmt.Fprintf(&b, ", %s", f.Aggregate)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// curated is what the curator is built of. Its slots are numbered as those of the rewards are: the
// same arms are released at the same instants.
func (f *further) curated(arms int) release.Config {
	return release.Config{Arms: arms, Lo: f.Lo, Hi: f.Hi, Mechanism: f.Mechanism}
}

// curate builds the curator on what was released.
func (f *further) curate(cfg Config) (err error) {
	if f.curator, err = stepCurator(cfg.Curator, f.curated(cfg.Arms*cfg.Cells.each()), f.ledger); err != nil {
		return fmt.Errorf("play: %s %q: %w", f.what, f.Name, err)
	}
	return nil
}

// outlines says what the curator of people's rewards releases.
func (f *further) outlines(cfg Config) (err error) {
	if f.outline, err = release.NewOutline(f.curated(cfg.Arms*cfg.Cells.each()), true); err != nil {
		return fmt.Errorf("play: %s %q: %w", f.what, f.Name, err)
	}
	return nil
}

// stepCurator builds a curator that takes sums of steps.
func stepCurator(build func(release.Config) (release.Curator, error), cfg release.Config,
	ledger *privacy.Ledger) (release.StepCurator, error) {
	cfg.Ledger = ledger
	c, err := build(cfg)
	if err != nil {
		return nil, err
	}
	s, ok := c.(release.StepCurator)
	if !ok {
		return nil, fmt.Errorf("the curator is a %T, must be one that takes sums of steps", c)
	}
	return s, nil
}

// first is what each sum counts of a decision whose first report counts; good until it is asked again.
func (l *Live) first(reward float64, metrics []float64) []int64 {
	l.counts = append(l.counts[:0], l.missing...)
	out := l.counts
	out[0] = l.clip.Steps(reward)
	for i, f := range l.further {
		if i < len(metrics) && metrics[i] == metrics[i] {
			out[1+i] = f.clip.Steps(metrics[i])
		}
	}
	return l.within(out)
}

// addFurther books the metrics or rules of a line.
func (l *Live) addFurther(arms []int, in line) error {
	texts, want := in.Metrics, 0
	for _, r := range in.Rules {
		texts = append(texts, r.Release)
	}
	if len(arms) > 0 {
		want = len(l.further)
	}
	if len(texts) != want {
		what := "metrics"
		if l.vectors != nil {
			what = "rules"
		}
		return fmt.Errorf("it releases %d %s, must be %d", len(texts), what, want)
	}
	if want == 0 {
		return nil
	}
	must, err := shapeOf(in)
	if err != nil {
		return err
	}
	for i, text := range texts {
		f := &l.further[i]
		err := must.charge(l.ledger, text)
		if err == nil {
			err = f.add(arms, text)
		}
		if err != nil {
			return fmt.Errorf("%s %d: %w", f.what, i, err)
		}
	}
	return nil
}

// add books a release.
func (f *further) add(arms []int, text []byte) error {
	released, err := f.ledger.Restore(text)
	if err == nil {
		_, err = checkRelease(f.outline, f.slots, arms, released, text)
	}
	if err != nil || f.sums == nil {
		return err
	}
	for i, a := range arms {
		f.sums[a] += released.Sum(i)
	}
	return nil
}

// releaseFurther releases the metrics or rules of these arms, charges the ledger of the rewards for
// them, and writes them into the line.
func (l *Live) releaseFurther(arms []int, to *line) error {
	if len(l.further) == 0 {
		return nil
	}
	must, err := shapeOf(*to)
	if err != nil {
		return err
	}
	for i, f := range l.further {
		f.line.Reset()
		_, err := f.curator.Release(arms)
		text := bytes.Clone(bytes.TrimSpace(f.line.Bytes()))
		if err == nil {
			err = must.charge(l.ledger, text)
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", f.what, f.Name, err)
		}
		if to.Rules != nil {
			to.Rules[i].Release = text
		} else {
			to.Metrics = append(to.Metrics, text)
		}
	}
	return nil
}

// A shape is which slots a release is of, and how many decisions are in each.
type shape struct {
	Slots []int `json:"slots"`
	N     []int `json:"n"`
}

// shapeOf is that of a line's release of rewards.
func shapeOf(in line) (s shape, err error) {
	if in.N == 0 {
		return s, json.Unmarshal(in.Release, &s)
	}
	var one struct {
		Slot int `json:"slot"`
	}
	err = json.Unmarshal(in.Release, &one)
	return shape{[]int{one.Slot}, []int{in.N}}, err
}

// charge charges the ledger of the rewards for the release of a metric or a rule, which must be of
// their slots, with as many decisions in each.
func (s shape) charge(ledger *privacy.Ledger, text []byte) error {
	var is shape
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	if !slices.Equal(is.Slots, s.Slots) || !slices.Equal(is.N, s.N) {
		return errors.New("its release is not of the slots of the rewards")
	}
	_, err := ledger.Restore(text)
	return err
}
