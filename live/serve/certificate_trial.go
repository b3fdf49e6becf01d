package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/privacy"
)

// ofTrial says whether a transcript is that of a trial, by its first line.
func ofTrial(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	var kind struct{ Trial *int }
	return json.Unmarshal(first, &kind) == nil && kind.Trial != nil
}

// certifyTrial is certify for a trial, whose slots and prices are those of a live experiment with arms. There is no
// clock, and no restart, and whoever has two rows in it loses twice as much.
func (p *prover) certifyTrial(text []byte) error {
	lines := chain.NewReader(bytes.NewReader(text))
	var playing []place // what the next release is of
	for {
		object, err := lines.Next()
		if errors.Is(err, io.EOF) {
			p.Transcript.Lines, p.Transcript.Tip = p.line, lines.Tip()
			return p.close()
		}
		if p.line++; err == nil && p.line == 1 {
			err = p.openTrial(object)
		} else if err == nil {
			playing, err = p.addTrial(object, playing)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", p.line, err)
		}
	}
}

func (p *prover) openTrial(object []byte) error {
	var in struct {
		Rule   string
		Budget json.RawMessage
		Arms   []string
		Range  [2]float64
	}
	if err := json.Unmarshal(object, &in); err != nil {
		return err
	}
	budget, err := privacy.UnmarshalBudget(in.Budget)
	if err != nil {
		return err
	}
	p.Kind, p.Trust, p.Unit, p.each = "trial", privacy.TrustCentral, CertifiedUnit{"row", 1}, budget
	p.Transcript.Experiment, p.Arms, p.heads = in.Rule, in.Arms, make([]int, len(in.Arms))
	p.Sums = []CertifiedSum{{"reward", in.Range}}
	p.believed = []string{"clipping", "closing", "complete", "disjoint", "noise", "rows"}
	return p.pays(budget)
}

func (p *prover) addTrial(object []byte, playing []place) ([]place, error) {
	var in struct {
		Plays []struct {
			Arm     int
			Release bool
		}
		Slots []int
	}
	if err := json.Unmarshal(object, &in); err != nil || in.Plays == nil && in.Slots == nil {
		return nil, err
	}
	if in.Slots == nil {
		for _, play := range in.Plays {
			if play.Arm < 0 || play.Arm >= len(p.Arms) {
				return nil, errReleases
			}
			if play.Release {
				playing = append(playing, place{play.Arm, -1})
			}
		}
		return playing, nil
	}
	amounts, err := sumsOf(object, playing, 0)
	if err != nil {
		return nil, err
	}
	for _, a := range amounts {
		start := p.heads[a.Arm]
		p.heads[a.Arm] += a.N
		if err := p.release(a, [2]int{start, p.heads[a.Arm]}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
