package policy

import (
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// episodes is the episodic optimism of [Azize 2024, Algorithm 7] ([Azize and Basu 2024, Algorithm
// 4]): play the arm with the highest index until its number of plays has doubled (grown by another
// ratio, if one is set), release that episode's sum, and forget the episodes before it. So a reward
// is in one release, and an arm's index rests on half of its plays. Everything before it decides is
// public or released: the privacy proof [Azize 2024, Theorem 5.2] is that of the releases, by
// parallel composition [Azize 2024, Lemma 2.10].
//
// The first episode of an arm is one round. The sources write "½N samples" for it as for every
// other; half is that reading.
type episodes struct {
	mech privacy.Mechanism
	// of the first episodes, if the noise of "½N samples" is to be the printed one
	first privacy.Mechanism
	half  bool
	ratio float64 // by which an arm's plays grow in an episode

	round int       // rounds asked for so far
	plays []int     // N_a, plays of each arm
	arms  []episode // its last episode
	batch Batch
	last  int // the arm of the batch that is out; −1: the first batch, of every arm
}

// An episode is what an index may read: the release of the arm's last episode.
type episode struct {
	mean  float64 // noisy mean
	h     float64 // number of samples behind it, as the sources count them
	n     float64 // number of samples behind it
	sigma float64 // tail of the noise in the mean: see privacy.Tail
	width float64
	extra float64
}

// noise bounds the noise in the mean, one side, with probability 1 − e^{−x}: whatever law the
// release's tail is of.
func (e *episode) noise(x float64) float64 {
	return float64(e.width*(x+e.extra)) + float64(e.sigma*math.Sqrt(2*x))
}

func newEpisodes(arms int, mech privacy.Mechanism) episodes {
	e := episodes{mech: mech, plays: make([]int, arms), arms: make([]episode, arms), last: -1, ratio: 2}
	e.batch.Plays = make([]Play, arms)
	return e
}

func (e *episodes) Mechanism() privacy.Mechanism {
	if e.first != nil && e.last < 0 {
		return e.first
	}
	return e.mech
}

// PrintedHalf makes the first episode count as half a sample, as the printed "½N" does: twice the
// noise and a wider bonus until the arm is played again. Call it before the first Next.
func (e *episodes) PrintedHalf() {
	e.half = true
	switch m := e.mech.(type) {
	case privacy.Laplace:
		e.first = privacy.Laplace{Scale: 2 * m.Scale}
	case privacy.Gaussian:
		e.first = privacy.Gaussian{Sigma: 2 * m.Sigma}
	}
}

// learn takes in what the last batch released. It returns false before the first batch.
func (e *episodes) learn(released privacy.Released) bool {
	if released.Len() == 0 {
		return false
	}
	if e.last >= 0 {
		e.set(e.last, released, 0)
		return true
	}
	for a := range e.arms {
		e.set(a, released, a)
		if e.half {
			e.arms[a].h = 0.5
		}
	}
	return true
}

func (e *episodes) set(a int, released privacy.Released, i int) {
	n, tail := float64(released.N(i)), released.Tail()
	e.arms[a] = episode{mean: released.Mean(i), h: n, n: n, sigma: tail.Sigma / n,
		width: tail.H / n, extra: tail.Log}
}

// every asks for one round of each arm.
func (e *episodes) every() *Batch {
	e.batch.Plays = e.batch.Plays[:len(e.plays)]
	for a := range e.plays {
		e.batch.Plays[a] = Play{Arm: a, Rounds: 1, Release: true}
		e.plays[a] = 1
	}
	e.round = len(e.plays)
	return &e.batch
}

// SetRatio makes an arm's plays grow by a ratio above 1 in each of its episodes, from N to max(N+1,
// ⌈ratio·N⌉), instead of doubling. Privacy is unchanged; the regret bounds are proved for doubling.
// Call it before the first Next.
func (e *episodes) SetRatio(ratio float64) error {
	if err := checkRatio("ratio", ratio); err != nil {
		return err
	}
	e.ratio = ratio
	return nil
}

// double asks for as many rounds of arm a as it has had, or as the ratio says.
func (e *episodes) double(a int) *Batch {
	// Between the first batch and the next nothing is unreleased: a change of mechanism
	// forgets nothing.
	e.batch.Fresh = e.first != nil && e.last < 0
	e.last = a
	n := Forever // no horizon is that long
	if next := grown(e.plays[a], e.ratio); next < Forever {
		n = next - e.plays[a]
		e.plays[a] = next
		e.round += n
	}
	e.batch.Plays = e.batch.Plays[:1]
	e.batch.Plays[0] = Play{Arm: a, Rounds: n, Release: true}
	return &e.batch
}

// logRound is log t_ℓ, where t_ℓ is the round about to be played.
func (e *episodes) logRound() float64 { return math.Log(float64(e.round + 1)) }
