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
}

// A metric is a Metric that is played.
type metric struct {
	Metric
	clip    release.Clip
	missing int64
	curator release.StepCurator
	line    *bytes.Buffer // what its own ledger writes
}

// maxMetrics is far beyond what a budget can be shared out to.
const maxMetrics = 100

// buildMetrics makes them ready; what is their list's name in errors.
func buildMetrics(what string, in []Metric) (out []metric, err error) {
	if len(in) > maxMetrics {
		return nil, fmt.Errorf("play: %s has %d, must have at most %d", what, len(in), maxMetrics)
	}
	for i, m := range in {
		at := fmt.Sprintf("play: %s[%d]", what, i)
		switch m.Mechanism.(type) {
		case privacy.Laplace, privacy.Gaussian:
		default:
			return nil, fmt.Errorf("%s: mechanism is %v, must be Laplace or Gaussian", at, m.Mechanism)
		}
		if m.Lo == 0 && m.Hi == 0 {
			m.Hi = 1
		}
		clip, err := release.NewClip(m.Lo, m.Hi)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if m.Name == "" || slices.ContainsFunc(out, func(o metric) bool { return o.Name == m.Name }) {
			return nil, fmt.Errorf("%s: name is %q, must be one of its own", at, m.Name)
		}
		if !(m.Default >= m.Lo && m.Default <= m.Hi) {
			return nil, fmt.Errorf("%s: default is %v, must be in the range, from %v to %v", at, m.Default,
				m.Lo, m.Hi)
		}
		out = append(out, metric{Metric: m, clip: clip, missing: clip.Steps(m.Default)})
	}
	return out, nil
}

// describe is what must not change of metrics while decisions are out.
func describe(all []metric) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%q from %v to %v, else %v, %v\n", m.Name, m.Lo, m.Hi, m.Default, m.Mechanism)
	}
	return b.String()
}

// curate builds the metric's curator, whose ledger has what was released of it. Its slots are
// numbered as those of the rewards are: the same arms are released at the same instants.
func (m *metric) curate(cfg Config, past pastMetric) error {
	m.line = past.line
	c, err := cfg.Curator(release.Config{Arms: cfg.Arms, Lo: m.Lo, Hi: m.Hi, Mechanism: m.Mechanism,
		Ledger: past.ledger})
	if err != nil {
		return fmt.Errorf("play: metric %q: %w", m.Name, err)
	}
	var ok bool
	if m.curator, ok = c.(release.StepCurator); !ok {
		return fmt.Errorf("play: the curator of metric %q is a %T, must be one that takes sums of steps",
			m.Name, c)
	}
	return nil
}

// A pastMetric is what the lines have said of a metric.
type pastMetric struct {
	ledger  *privacy.Ledger // of it alone
	line    *bytes.Buffer   // what that will write
	outline *release.Outline
	slots   map[int]bool
}

func newPastMetric() pastMetric {
	line := &bytes.Buffer{}
	return pastMetric{ledger: privacy.NewLedger(privacy.WithTranscript(line)), line: line,
		slots: map[int]bool{}}
}

// addMetrics books the metrics of a line.
func (p *past) addMetrics(arms []int, in line) error {
	want := 0
	if len(arms) > 0 {
		want = len(p.metrics)
	}
	if len(in.Metrics) != want {
		return fmt.Errorf("%w: it releases %d metrics, must be %d", ErrState, len(in.Metrics), want)
	}
	for i, text := range in.Metrics {
		m := p.metrics[i]
		if err := chargeMetric(p.ledger, in.Release, text); err != nil {
			return fmt.Errorf("%w: metric %d: %w", ErrState, i, err)
		}
		released, err := m.ledger.Restore(text)
		if err == nil {
			_, err = checkRelease(m.outline, m.slots, arms, released, text)
		}
		if err != nil {
			return fmt.Errorf("%w: metric %d: %w", ErrState, i, err)
		}
	}
	return nil
}

// releaseMetrics releases the metrics of these arms, charges the rewards' ledger for them, and
// gives what is written of them.
func (l *Live) releaseMetrics(arms []int, rewards []byte) (lines []json.RawMessage, err error) {
	for i := range l.metrics {
		m := &l.metrics[i]
		m.line.Reset()
		if _, err := m.curator.Release(arms); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.Name, err)
		}
		text := bytes.Clone(bytes.TrimSpace(m.line.Bytes()))
		if err := chargeMetric(l.Ledger(), rewards, text); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.Name, err)
		}
		lines = append(lines, text)
	}
	return lines, nil
}

// chargeMetric charges the rewards' ledger for the release of a metric, which must be of the same
// slots, with as many decisions in each.
func chargeMetric(ledger *privacy.Ledger, rewards, text []byte) error {
	type shape struct {
		Slots []int `json:"slots"`
		N     []int `json:"n"`
	}
	var is, must shape
	if err := errors.Join(json.Unmarshal(text, &is), json.Unmarshal(rewards, &must)); err != nil {
		return err
	}
	if !slices.Equal(is.Slots, must.Slots) || !slices.Equal(is.N, must.N) {
		return errors.New("its release is not of the slots of the rewards")
	}
	_, err := ledger.Restore(text)
	return err
}
