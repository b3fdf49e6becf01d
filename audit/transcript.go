package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

// What becomes of a trial's transcript.
type recording int

const (
	asWritten recording = iota
	// trial.Replay has played it again, and the attacker sees what that says, too
	replayed
	// the trial was run a second time on the same rows, as after a restart that does not
	// know what was spent
	anew
)

// record runs a trial on real rewards: its transcript, and what it has spent. It runs out of rows, or
// has its answer before: rarely, but in one of many games, noise alone looks like a difference.
func record(r trial.Rule, log logged.Log) (*bytes.Buffer, privacy.Loss, error) {
	var text bytes.Buffer
	var unfinished *trial.UnfinishedError
	result, err := trial.Run(context.Background(), trial.Config{Rule: r, Log: log, Transcript: &text})
	switch {
	case err == nil:
		return &text, result.Loss, nil
	case errors.As(err, &unfinished):
		return &text, unfinished.Spent, nil
	}
	return nil, privacy.Loss{}, fmt.Errorf("audit: %w", err)
}

// transcribed is the audit of trials on real rewards by their transcripts: all that they leave. One
// reward of one arm is 0 or 1, all others are 0, and the rows are as many as the rule's first
// release reads. The noise is the real curators'. The claim is what the trial says that it has
// spent, or, of a rule at several times the budget, what it would have spent.
func transcribed(times float64, how recording) (direct, error) {
	const epsilon, usual = 1, 24 // of dp-tt at ε = 1
	first := int(usual / times)
	rule := func(epsilon float64) (trial.Rule, error) {
		return trial.NewRule("dp-tt", 2, 0.05, privacy.Pure{Epsilon: epsilon}, nil)
	}
	// play is one trial: the noisy sum of the first arm as its transcript and its replay have it,
	// and what it has spent.
	play := func(r trial.Rule, rows, at int, in bool) (sums []float64, spent privacy.Loss, err error) {
		log := logged.Log{Summary: logged.Summary{Names: []string{"a", "b"}},
			Rewards: [][]float64{make([]float64, rows), make([]float64, rows)}}
		if in {
			log.Rewards[0][at] = 1
		}
		text, spent, err := record(r, log)
		if err != nil {
			return nil, spent, err
		}
		for line := range strings.Lines(text.String()) {
			var release struct {
				Sum []float64 `json:"sum"`
			}
			if err := json.Unmarshal([]byte(line), &release); err != nil {
				return nil, spent, err
			}
			if release.Sum != nil {
				sums = append(sums, release.Sum[0])
			}
		}
		if how == replayed {
			seen, err := trial.Replay(text)
			if err != nil {
				return nil, spent, err
			}
			if x := seen.Means[0].Value * float64(rows); math.Abs(x-sums[0]) > 1e-9*float64(rows) {
				sums = append(sums, x) // it knows something that the transcript does not say
			}
		}
		return sums, spent, nil
	}
	trials := 1
	if how == anew {
		trials = 2
	}
	claimed, err := rule(epsilon)
	if err != nil {
		return direct{}, err
	}
	r, err := rule(epsilon * times)
	if err != nil {
		return direct{}, err
	}
	d := direct{name: "trial transcript",
		adversaries: []string{"the first row, all other rewards 0", "the last row, all other " +
			"rewards 0"}, attack: "likelihood ratio", model: View.String()}
	switch how {
	case replayed:
		d.name += ", replayed"
	case anew:
		d.name += ", replayed, run again on its rows"
	}
	if times != 1 {
		d.name, d.fault = d.name+", "+HalfScale.String(), HalfScale
	}
	if _, d.claim, err = play(claimed, usual, 0, true); err != nil {
		return direct{}, err
	}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		at := []int{0, first - 1}[adversary]
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, _ *noise.Fast, out []float64) error {
				var llr float64 // of Lap(1/times) around 1 against around 0
				for range trials {
					sums, _, err := play(r, first, at, in)
					if err != nil {
						return err
					}
					for _, x := range sums {
						llr += times * (math.Abs(x) - math.Abs(x-1))
					}
				}
				out[0] = coarse(llr)
				return nil
			}
		}
	}
	return d, nil
}

// selfTranscripts are trials by what they leave.
func selfTranscripts() ([]selfItem, error) {
	var all []selfItem
	for _, c := range []struct {
		times float64
		how   recording
		twin  bool
	}{{1, asWritten, false}, {2, asWritten, true}, {1, replayed, false}, {1, anew, true}} {
		d, err := transcribed(c.times, c.how)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, 0, c.twin, 4))
	}
	return all, nil
}
