package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// linearSpy remembers the batches that a policy asked for, and of which its release is.
type linearSpy struct {
	linear.Policy
	batches []string
	asked   []bool
}

func (s *linearSpy) Next(r privacy.ReleasedVector) *policy.Batch {
	b := s.Policy.Next(r)
	s.batches = append(s.batches, fmt.Sprint(*b))
	s.asked = append(s.asked, slices.ContainsFunc(b.Plays, func(p policy.Play) bool { return p.Release }))
	return b
}

// The transcript of a run restores its policy, wherever it is cut, and its ledger's total.
func TestLinearTranscriptIsTheState(t *testing.T) {
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		const horizon = 100_000
		in := sphere10(t, 0)
		var text bytes.Buffer
		cfg := linearChoice(t, c, b, in, horizon, 0)
		watched := &linearSpy{Policy: cfg.Policy}
		cfg.Policy, cfg.Ledger = watched, privacy.NewLedger(privacy.WithTranscript(&text))
		var out sim.Result
		if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		lines := transcript(t, &text, out.Releases)
		for _, cut := range []int{0, 1, len(lines) / 2, len(lines)} {
			ledger := privacy.NewLedger()
			again := &linearSpy{Policy: linearChoice(t, c, b, in, horizon, 0).Policy}
			var released privacy.ReleasedVector
			for at, i := 0, 0; i < len(watched.batches); i++ {
				again.Next(released)
				released = privacy.ReleasedVector{}
				if again.asked[i] {
					if at == cut {
						break
					}
					var err error
					if released, err = ledger.RestoreVector(lines[at]); err != nil {
						t.Fatal(err)
					}
					at++
				}
			}
			if cut == len(lines) && spent(ledger.Total(), b) != spent(out.Loss, b) {
				t.Errorf("restored total %v, was %v", ledger.Total(), out.Loss)
			}
			for i, batch := range again.batches {
				if batch != watched.batches[i] {
					t.Fatalf("cut after %d releases: batch %d is %s, was %s", cut, i, batch, watched.batches[i])
				}
			}
		}
	})
}

func transcript(t *testing.T, text *bytes.Buffer, releases int) [][]byte {
	t.Helper()
	lines := bytes.SplitAfter(text.Bytes(), []byte("\n"))
	lines = lines[:len(lines)-1]
	if len(lines) != releases {
		t.Fatalf("%d lines for %d releases", len(lines), releases)
	}
	return lines
}

// contextualSpy remembers what a policy saw and chose, and when it learned.
type contextualSpy struct {
	linear.Contextual
	sets    [][]float64
	choices []linear.Choice
	learned []int // rounds before each
}

func (s *contextualSpy) Rows() []float64 { return linear.RowsOf(s.Contextual) }

func (s *contextualSpy) Learn(r privacy.ReleasedVector) {
	s.learned = append(s.learned, len(s.choices))
	s.Contextual.Learn(r)
}

func (s *contextualSpy) Choose(actions []float64) linear.Choice {
	s.sets = append(s.sets, slices.Clone(actions))
	s.choices = append(s.choices, s.Contextual.Choose(actions))
	return s.choices[len(s.choices)-1]
}

// A contextual policy is a function of the transcript, of the decision sets, which are public,
// and of its coins.
func TestContextualTranscriptIsTheState(t *testing.T) {
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		const horizon = 1000
		in := gaussianContexts(t, bandit.SignNoise(), true)
		var text bytes.Buffer
		cfg := contextualChoice(t, c, b, in, horizon, 0)
		watched := &contextualSpy{Contextual: cfg.Policy}
		cfg.Policy, cfg.Ledger = watched, privacy.NewLedger(privacy.WithTranscript(&text))
		var out sim.Result
		if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		lines := transcript(t, &text, out.Releases)
		ledger := privacy.NewLedger()
		again := &contextualSpy{Contextual: contextualChoice(t, c, b, in, horizon, 0).Policy}
		for round, set := range watched.sets {
			for again.Due() >= 0 {
				if len(again.learned) == len(lines) {
					t.Fatalf("round %d: more releases are due than there were", round+1)
				}
				r, err := ledger.RestoreVector(lines[len(again.learned)])
				if err != nil {
					t.Fatal(err)
				}
				again.Learn(r)
			}
			if got, want := again.Choose(set), watched.choices[round]; got != want {
				t.Fatalf("round %d: chose %v, was %v", round+1, got, want)
			}
		}
		if !slices.Equal(again.learned, watched.learned) {
			t.Errorf("learned after rounds %v, was %v", again.learned, watched.learned)
		}
		if spent(ledger.Total(), b) != spent(out.Loss, b) {
			t.Errorf("restored total %v, was %v", ledger.Total(), out.Loss)
		}
	})
}
