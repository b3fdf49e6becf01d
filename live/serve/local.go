package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/sotto-dp/sotto/release"
)

// local gathers what clients have randomised: every report has a whole noise in it, and may be seen by
// everybody. A sum of n has n noises.
type local struct {
	noise     release.Noise
	low, high int64
}

func newLocal(decl *Experiment) (*local, error) {
	n, err := decl.Noise()
	if err != nil {
		return nil, err
	}
	reach := n.Reach()
	return &local{noise: n, low: -reach, high: int64(1/release.ExactStep) + reach}, nil
}

func (g *local) tell(task *ReportTask) { task.Noise = g.noise }

// message clips to where an honest client's noise ends, but for one in 2^64: who lies adds no
// more.
func (g *local) message(_ ticket, body []byte) ([]byte, error) {
	v, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil {
		return nil, fieldError("message", "must be a whole number below 2^63 in size")
	}
	return binary.BigEndian.AppendUint64(nil, uint64(min(max(v, g.low), g.high))), nil
}

func (g *local) gather(_ context.Context, of slot) (out gathered, err error) {
	for r, err := range of.reports {
		switch {
		case err != nil:
			return gathered{}, err
		case len(r.Data) != 8:
			return gathered{}, fmt.Errorf("%w: what is stored of decision %d is damaged", errNever, r.Number)
		}
		out.answers++
		out.sum += int64(binary.BigEndian.Uint64(r.Data))
	}
	return out, nil
}
