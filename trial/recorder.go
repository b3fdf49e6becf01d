package trial

import (
	"io"
	"math"

	"github.com/sotto-dp/sotto/bound"
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
	Released bound.Sums
}

// A recorder stands between a rule and whoever plays it. It sees what the rule sees, releases, and
// what the rule says, batches: so all that it knows is as private as the transcript.
type recorder struct {
	identify.Identifier
	transcript io.Writer // nil for none
	err        error     // of writing

	batch    *policy.Batch // what is out
	running  bool          // released sums are running ones
	batches  int
	releases int
	sums     []bound.Sums // of all that was released of an arm
	variance []float64    // of the noise in sums
}

func newRecorder(p identify.Identifier, arms int, transcript io.Writer) *recorder {
	return &recorder{Identifier: p, transcript: transcript, running: p.Mechanism().Continual(),
		sums: make([]bound.Sums, arms), variance: make([]float64, arms)}
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

// learn adds up the sums of the last batch's releases. Rewards of different phases are
// different people, so all of an arm's sums together are the best that is known of it; the rule
// itself may forget some.
func (r *recorder) learn(released privacy.Released) {
	if released.Len() == 0 || r.batch == nil {
		return
	}
	r.releases++
	i, tail := 0, released.Tail()
	for _, play := range r.batch.Plays {
		if !play.Release || i >= released.Len() {
			continue
		}
		a := play.Arm
		if r.running {
			r.sums[a], r.variance[a] = bound.Sums{}, 0
		}
		r.sums[a].Sum += released.Sum(i)
		r.sums[a].N += released.N(i)
		r.sums[a].Releases++
		r.variance[a] += float64(2*tail.H*tail.H) + float64(tail.Sigma*tail.Sigma)
		i++
	}
}

// means are the private means, mapped back to the declared range.
func (r *recorder) means(lo, hi float64) []Mean {
	out := make([]Mean, len(r.sums))
	for a, sums := range r.sums {
		sums.Noise = r.Mechanism()
		out[a] = meanOf(sums, r.variance[a], lo, hi)
	}
	return out
}

// MeanOf is the private mean of what was released with Laplace or normal noise, in units of rewards
// from lo to hi.
func MeanOf(s bound.Sums, lo, hi float64) Mean {
	variance := 0.0
	switch m := s.Noise.(type) {
	case privacy.Laplace:
		variance = float64(2 * m.Scale * m.Scale)
	case privacy.Gaussian:
		variance = float64(m.Sigma * m.Sigma)
	}
	return meanOf(s, float64(s.Releases)*variance, lo, hi)
}

func meanOf(s bound.Sums, variance, lo, hi float64) Mean {
	out := Mean{Value: math.NaN(), N: s.N, Released: s}
	if n := float64(s.N); n > 0 {
		out.Value = lo + float64((hi-lo)*(s.Sum/n))
		out.Noise = float64((hi - lo) * math.Sqrt(variance) / n)
	}
	return out
}
