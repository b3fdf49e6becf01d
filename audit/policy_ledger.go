package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"sync"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// The games of this file are against what keeps the count of what was spent, and not against
// a mechanism: a program releases one reward as often as its ledger lets it, and the ledger's
// cap is the claim.

// A teller releases a reward y to the attacker: the log-likelihood ratio of y = 1 against y = 0 of
// all it saw is the score.
type teller func(y float64, src *noise.Fast) (score float64, err error)

// told is the audit of a teller.
func told(name string, claim privacy.Loss, model string, tell func() teller) direct {
	return direct{name: name, claim: claim, adversaries: []string{"all of it"},
		attack: "likelihood ratio", model: model,
		worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				t := tell()
				return func(in bool, src *noise.Fast, out []float64) error {
					y := 0.0
					if in {
						y = 1
					}
					var err error
					out[0], err = t(y, src)
					out[0] = coarse(out[0])
					return err
				}
			}
		}}
}

// refused is nil for what a ledger says when it keeps to what was paid for.
func refused(err error) error {
	if errors.Is(err, privacy.ErrBudget) || errors.Is(err, privacy.ErrPrefix) {
		return nil
	}
	return err
}

// restarts is a program under a cap that spends all that it may, stops, reads its journal into a new
// ledger, and goes on. Forgets has the journal's cap dropped on the way, as reading it once did.
func restarts(forgets bool) teller {
	m, limit := privacy.Laplace{Scale: 1}, privacy.WithCap(privacy.Pure{Epsilon: 1})
	return func(y float64, src *noise.Fast) (score float64, err error) {
		spend := func(l *privacy.Ledger) error {
			for range 2 { // what the program has planned
				sum := y + src.Laplace(m.Scale)
				switch _, err := l.Release(0, m, &privacy.Values{N: []int{1}, Sum: []float64{sum}}); {
				case err == nil:
					score += laplace(coarse(sum), 1, m.Scale)
				case refused(err) != nil:
					return err
				}
			}
			return nil
		}
		before := privacy.NewLedger(limit)
		if err := spend(before); err != nil {
			return 0, err
		}
		journal, err := json.Marshal(before)
		if err != nil {
			return 0, err
		}
		after := privacy.NewLedger(limit)
		if forgets {
			after = privacy.NewLedger()
			journal = bytes.Replace(journal, []byte(`"cap":{"epsilon":1}`), []byte(`"cap":"none"`), 1)
		}
		if err := json.Unmarshal(journal, after); err != nil {
			return 0, err
		}
		return score, spend(after)
	}
}

// replays is a program that crashes after a release, whose line is in its transcript, and is
// brought back to where it was. Redraws has the release made again instead of read.
func replays(redraws bool) teller {
	m, limit := privacy.Laplace{Scale: 1}, privacy.WithCap(privacy.Pure{Epsilon: 1})
	return func(y float64, src *noise.Fast) (score float64, err error) {
		var text bytes.Buffer
		sum := coarse(y + src.Laplace(m.Scale))
		r, err := privacy.NewLedger(limit, privacy.WithTranscript(&text)).Release(0, m,
			&privacy.Values{N: []int{1}, Sum: []float64{sum}, Tail: m.Tail()})
		if err != nil {
			return 0, err
		}
		score = laplace(r.Sum(0), 1, m.Scale)
		again := privacy.NewLedger(limit)
		if redraws {
			r, err = again.Release(0, m, &privacy.Values{N: []int{1},
				Sum: []float64{coarse(y + src.Laplace(m.Scale))}})
		} else {
			r, err = again.Restore(bytes.TrimSpace(text.Bytes()))
		}
		if err != nil {
			return 0, err
		}
		if r.Sum(0) != sum {
			score += laplace(r.Sum(0), 1, m.Scale)
		}
		return score, nil
	}
}

// The releases of chooses: each of the two courses, fixed in advance, is (chosenEpsilon, chosenDelta)-DP,
// the second exactly so.
const (
	chosenEpsilon = 1.5    // where so few games as 10⁵ show the flaw
	chosenDelta   = 0.2    //
	chosenFirst   = 0.7216 // μ
	chosenLaplace = 1.6141 // ε
)

// chooses releases a first sum with Gaussian noise and then, in the light of it, the worse of two:
// one more with Gaussian noise, or one with Laplace noise. Converts has a cap in (ε,δ) that admits
// what is within it by the best conversion of what was charged; the ledger has the cap in μ, which
// is what it can hold.
func chooses(limit privacy.GDP, converts bool) teller {
	first := privacy.Gaussian{Sigma: 1 / chosenFirst}
	rest := math.Sqrt(limit.Mu*limit.Mu - chosenFirst*chosenFirst)
	second, other := privacy.Gaussian{Sigma: 1 / rest}, privacy.Laplace{Scale: 1 / chosenLaplace}
	l := privacy.NewLedger(privacy.WithCap(limit))
	return func(y float64, src *noise.Fast) (score float64, err error) {
		l.Reset() // but for the cap
		sum := y + float64(first.Sigma*src.Normal())
		if _, err := l.Release(0, first, &privacy.Values{N: []int{1}, Sum: []float64{sum}}); err != nil {
			return 0, err
		}
		score = normal(sum, 1, first.Sigma)
		var m privacy.Mechanism = second
		if left := chosenEpsilon - score; hockeyLaplace(left, chosenLaplace) > hockeyNormal(left, rest) {
			m = other
		}
		sum = y
		if m == second {
			sum += float64(second.Sigma * src.Normal())
		} else {
			sum += src.Laplace(other.Scale)
		}
		if !converts {
			if _, err := l.Release(0, m, &privacy.Values{N: []int{1}, Sum: []float64{sum}}); err != nil {
				return score, refused(err)
			}
		}
		if m == second {
			return score + normal(sum, 1, second.Sigma), nil
		}
		return score + laplace(coarse(sum), 1, other.Scale), nil
	}
}

// hockeyLaplace is the hockey stick divergence of order e^e, e of either sign, of Lap(1/x)
// and its shift by 1.
func hockeyLaplace(e, x float64) float64 {
	switch {
	case e >= x:
		return 0
	case e <= -x:
		return -math.Expm1(e)
	}
	return -math.Expm1((e - x) / 2)
}

// hockeyNormal is that of N(0,1) and N(μ,1).
func hockeyNormal(e, mu float64) float64 {
	return phi(mu/2-e/mu) - math.Exp(e)*phi(-mu/2-e/mu)
}

// lies is a tree of one reward: the program says again and again that its sum is of that one, with
// noise drawn again. Seals is a ledger that charges for the tree once and seals what it is given.
func lies(seals bool) teller {
	const tries = 8
	m := privacy.Tree{Scale: 1, Horizon: 1}
	return func(y float64, src *noise.Fast) (score float64, err error) {
		l := privacy.NewLedger()
		for range tries {
			sum := coarse(y + src.Laplace(m.Scale))
			if _, err := l.Release(0, m, &privacy.Values{N: []int{1},
				Sum: []float64{sum}}); err == nil || seals {
				score += laplace(sum, 1, m.Scale)
			} else if refused(err) != nil {
				return 0, err
			}
		}
		return score, nil
	}
}

// What goes wrong with a cap on windows of time.
const (
	capForgets = "what has ended is forgotten"
	capSlides  = "a window begins with an experiment, and not with its release"
)

// years is an operator who would start an experiment in each week, under a cap on windows of 52 weeks that allows
// one. It makes one release, sooner or later as the release before it suggests, and ends. The attacker has what
// was released in the window that begins with the first.
func years(limit privacy.Pure, broken string) teller {
	const length = 52
	m := privacy.Laplace{Scale: 1 / limit.Epsilon}
	return func(y float64, src *noise.Fast) (score float64, err error) {
		w, err := privacy.NewWindows(limit, length)
		if err != nil {
			return 0, err
		}
		var charges []privacy.Charge
		lasts, end := int64(8), int64(2*length)
		for week := int64(0); week+lasts <= end; week++ {
			next := privacy.Charge{Loss: m.Loss(), From: week, Last: privacy.Never}
			if err := w.Allow(charges, next); err != nil {
				if refused(err) != nil {
					return 0, err
				}
				continue
			}
			week += lasts
			sum := coarse(y + src.Laplace(m.Scale))
			score += laplace(sum, 1, m.Scale)
			if end, lasts = min(end, week+length), 3; sum > 0.5 {
				lasts = 5
			}
			if next.Last = week; broken == capSlides {
				next.Last = next.From
			}
			if broken != capForgets {
				charges = append(charges, next)
			}
		}
		return score, nil
	}
}

// shares is the audit of two users, in two goroutines, who send what one release.Randomizer makes
// of their rewards. The attacker is the second of them, and knows that its own reward is 0, and so its
// noise. Repeats has both get the same noise, as a source that two read at a time has it.
func shares(name string, m privacy.Aggregated, repeats bool) (direct, error) {
	r, err := release.NewRandomizer(m)
	if err != nil {
		return direct{}, err
	}
	x, g := float64(m.Num)/float64(m.Den), float64(m.G)
	whole := func(v uint64) float64 { // beyond half the ring are negative numbers
		if v > uint64(m.Modulus)/2 {
			return float64(v) - float64(m.Modulus)
		}
		return float64(v)
	}
	d := told(name, m.Loss(), "local messages", nil)
	d.adversaries = []string{"the message", "the message less the noise of the next"}
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, src *noise.Fast, out []float64) error {
				var sent [2]float64
				y := 0.0
				if in {
					y = 1
				}
				if repeats {
					sent[1] = float64(src.DiscreteLaplace(x))
					sent[0] = float64(y*g) + sent[1]
				} else {
					var wg sync.WaitGroup
					var failed [2]error
					for u, reward := range []float64{y, 0} {
						wg.Go(func() {
							var message []uint64
							if message, failed[u] = r.Messages(nil, reward); failed[u] == nil {
								sent[u] = whole(message[0])
							}
						})
					}
					wg.Wait()
					if err := errors.Join(failed[:]...); err != nil {
						return err
					}
				}
				if out[0] = laplace(sent[0], g, x); adversary == 1 {
					out[0] = sent[0] - sent[1]
				}
				return nil
			}
		}
	}
	return d, nil
}

// selfLedgers are what keeps count: journals, transcripts, caps, and noise that is drawn once.
func selfLedgers() ([]selfItem, error) {
	var all []selfItem
	limit, err := privacy.GDPWithin(privacy.Approx{Epsilon: chosenEpsilon, Delta: chosenDelta})
	if err != nil {
		return nil, err
	}
	cap1 := privacy.LossOf(privacy.Pure{Epsilon: 1})
	for _, c := range []struct {
		name, twin string
		claim      privacy.Loss
		delta      float64
		tell       func(broken bool) teller
	}{
		{"ledger, restarted", "the journal's cap is dropped", cap1, 0, restarts},
		{"ledger, replayed", "the release is made again", cap1, 0, replays},
		{"ledger, adaptive releases", "the cap is in (ε,δ) and converts", privacy.LossOf(limit),
			chosenDelta, func(broken bool) teller {
				return chooses(limit, broken)
			}},
		{"ledger, a lie about N", "every sum is sealed", privacy.Tree{Scale: 1, Horizon: 1}.Loss(), 0, lies},
	} {
		for _, broken := range []bool{false, true} {
			name := c.name
			if broken {
				name += ", " + c.twin
			}
			item := ofDirect(told(name, c.claim, "one reward, released again", func() teller {
				return c.tell(broken)
			}), c.delta, broken, 1)
			if c.delta > 0 {
				item.many = 16
			}
			all = append(all, item)
		}
	}
	yearly := privacy.Pure{Epsilon: 2}
	for _, broken := range []string{"", capForgets, capSlides} {
		name := "cap on a year"
		if broken != "" {
			name += ", " + broken
		}
		all = append(all, ofDirect(told(name, privacy.LossOf(yearly), "one reward, in all experiments",
			func() teller { return years(yearly, broken) }), 0, broken != "", 2))
	}
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustLocal,
		Noise: privacy.NoiseLaplace, Epsilon: 1, S: 1, Users: 64, Invited: 64, P: 1e-6})
	if err != nil {
		return nil, err
	}
	for _, broken := range []bool{false, true} {
		name := "randomizer, shared by goroutines"
		if broken {
			name += ", noise repeated"
		}
		d, err := shares(name, m, broken)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, 0, broken, 1))
	}
	return all, nil
}
