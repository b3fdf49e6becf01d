package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// spy remembers the batches that a policy asked for.
type spy struct {
	policy.Policy
	batches []string
}

func (s *spy) Next(r privacy.Released) *policy.Batch {
	b := s.Policy.Next(r)
	s.batches = append(s.batches, fmt.Sprint(*b))
	return b
}

// The transcript of a run restores its policy, wherever it is cut, and its ledger's total.
func TestTranscriptIsTheState(t *testing.T) {
	testkit.OneGoroutine(t)
	everyPolicy(t, func(t *testing.T, e catalog.Entry, b privacy.Budget) {
		const horizon = 8_000
		var text bytes.Buffer
		cfg := config(t, mu2(t), e.Name, b, horizon, 0, nil)
		watched := &spy{Policy: cfg.Policy}
		cfg.Policy = watched
		cfg.Ledger = privacy.NewLedger(privacy.WithTranscript(&text))
		var out sim.Result
		if err := sim.Run(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(text.Bytes(), []byte("\n"))
		lines = lines[:len(lines)-1]
		if len(lines) != out.Releases {
			t.Fatalf("%d lines for %d releases", len(lines), out.Releases)
		}
		for _, cut := range []int{0, 1, len(lines) / 2, len(lines)} {
			ledger := privacy.NewLedger()
			again := &spy{Policy: config(t, mu2(t), e.Name, b, horizon, 0, nil).Policy}
			at := 0
			if _, err := policy.Replay(again, func() (privacy.Released, error) {
				if at >= min(cut, len(lines)) {
					return privacy.Released{}, io.EOF
				}
				at++
				return ledger.Restore(lines[at-1])
			}); err != nil {
				t.Fatal(err)
			}
			if cut == len(lines) && ledger.Total().Pure() != out.Loss.Pure() {
				t.Errorf("restored total %v, was %v", ledger.Total().Pure(), out.Loss.Pure())
			}
			for i, batch := range again.batches {
				if batch != watched.batches[i] {
					t.Fatalf("cut after %d releases: batch %d is %s, was %s", cut, i, batch, watched.batches[i])
				}
			}
		}
	})
}

func TestReplayRefusesAnotherTranscript(t *testing.T) {
	l := privacy.NewLedger()
	p := config(t, mu2(t), "adap-ucb", privacy.Pure{Epsilon: 1}, 100, 0, nil).Policy
	_, err := policy.Replay(p, func() (privacy.Released, error) {
		return l.Release(0, privacy.Laplace{Scale: 1}, &privacy.Values{N: []int{1}, Sum: []float64{1}})
	})
	if !errors.Is(err, policy.ErrTranscript) {
		t.Errorf("one sum where five were asked for: %v", err)
	}
}

// A run stops where its ledger's cap is reached: AdaP-UCB at ε = 1 under a cap of ½ releases nothing.
func TestLedgerCapStopsTheRun(t *testing.T) {
	cfg := config(t, mu2(t), "adap-ucb", privacy.Pure{Epsilon: 1}, 1000, 0, nil)
	cfg.Ledger = privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.5}))
	var out sim.Result
	if err := sim.Run(context.Background(), cfg, &out); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("got %v", err)
	}
	if len(cfg.Ledger.Entries()) != 0 {
		t.Errorf("the ledger has %v", cfg.Ledger.Entries())
	}
}
