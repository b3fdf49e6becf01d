package trial

import (
	"io"
	"math"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// A Mean is what was released of an arm: its private mean, the rewards behind it, and
// the noise in it.
type Mean struct {
	// in units of rewards; NaN if nothing was released. Noise may take it outside the range
	Value float64
	N     int
	Noise float64 // standard deviation of the noise in Value, 0 without privacy
	// Released is what the mean is made of, mapped to [0,1]; it has an interval, if its noise is
	// one that intervals are known for.
	Released interval.Sums
}

// A recorder stands between a rule and whoever plays it. It sees what the rule sees, releases, and
// what the rule says, batches: so all that it knows is as private as the transcript.
type recorder struct {
	identify.Identifier
	transcript io.Writer // nil for none
	err        error     // of writing

	batch    *policy.Batch // what is out
	batches  int
	releases int
	tally    *play.Tally
	variance []float64 // of the noise in its sums
}

func newRecorder(p identify.Identifier, arms int, transcript io.Writer) *recorder {
	return &recorder{Identifier: p, transcript: transcript, tally: play.NewTally(arms),
		variance: make([]float64, arms)}
}

// Next implements policy.Policy.
func (r *recorder) Next(released privacy.Released) *policy.Batch {
	r.learn(released)
	r.batch = r.Identifier.Next(released)
	if r.batch != nil {
		r.batches++
		if r.transcript != nil && r.err == nil {
			r.err = writeLine(r.transcript, playsLine(r.batch))
		}
	}
	return r.batch
}

// learn adds up what the last batch has released: the best that is known of an arm, of which the
// rule itself may forget some.
func (r *recorder) learn(released privacy.Released) {
	if released.Len() == 0 || r.batch == nil {
		return
	}
	r.releases++
	r.tally.Learn(r.batch, released, r.Mechanism())
	tail := released.Tail()
	for _, p := range r.batch.Plays {
		// running sums are of continual mechanisms: of the rules', those without noise
		if p.Release {
			r.variance[p.Arm] += float64(2*tail.H*tail.H) + float64(tail.Sigma*tail.Sigma)
		}
	}
}

// means are the private means, mapped back to the declared range.
func (r *recorder) means(lo, hi float64) []Mean {
	out := make([]Mean, len(r.variance))
	for a, sums := range r.tally.Sums {
		out[a] = meanOf(sums, r.variance[a], lo, hi)
	}
	return out
}

// MeanOf is the private mean of what was released with Laplace or normal noise, in units of rewards
// from lo to hi.
func MeanOf(s interval.Sums, lo, hi float64) Mean {
	return meanOf(s, s.Variance(), lo, hi)
}

func meanOf(s interval.Sums, variance, lo, hi float64) Mean {
	out := Mean{Value: math.NaN(), N: s.N, Released: s}
	if n := float64(s.N); n > 0 {
		out.Value = lo + float64((hi-lo)*(s.Sum/n))
		out.Noise = float64((hi - lo) * math.Sqrt(variance) / n)
	}
	return out
}
