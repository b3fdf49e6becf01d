package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// direct is an audit of something that is not played as a bandit: worlds makes the games against
// one of a few adversaries, each with one score.
type direct struct {
	name        string
	claim       privacy.Loss
	adversaries []string
	attack      string
	model       string
	fault       Fault
	table       bool // scores are numbers that stand for transcripts
	worlds      func(adversary int) func() func(in bool, src *noise.Fast, scores []float64) error
}

func (d direct) run(ctx context.Context, delta, gamma float64, games, pilot, workers int,
	key noise.Key) (Finding, error) {
	if err := (&PolicyAudit{Delta: delta, Gamma: gamma, Games: games, Pilot: pilot}).check(); err != nil {
		return Finding{}, err
	}
	if pilot == 0 {
		pilot = defaultPilot
	}
	play := func(i, n int, role string) ([]Scores, error) {
		k := key
		k.Role = noise.Role("audit " + role + " " + d.adversaries[i])
		out, err := Play(ctx, n, 1, workers, k, d.worlds(i))
		if err != nil {
			return nil, err
		}
		all := make([]Scores, scores)
		all[0] = out[0]
		if d.table {
			all[scoreHash] = out[0]
		}
		return all, nil
	}
	from := []int{0}
	if d.table {
		from[0] = scoreHash
	}
	c, err := search(len(d.adversaries), pilot, play, from, gamma, delta)
	if err != nil {
		return Finding{}, err
	}
	all, err := play(c.adversary, games, "test")
	if err != nil {
		return Finding{}, err
	}
	s := all[0]
	if d.table {
		s = through(c.table, s)
	}
	f, err := found(c.pilot, s, gamma, delta, claimOf(d.claim, delta))
	f.Name, f.Attack, f.Against, f.Model = d.name, d.attack, d.adversaries[c.adversary], d.model
	return f, err
}

// race plays until ε is known to be above until, or above the claim if that is 0.
func (d direct) race(ctx context.Context, delta, gamma, until float64, most int, key noise.Key) (Finding, error) {
	if err := (&PolicyAudit{Delta: delta, Gamma: gamma, Games: most, Until: until}).check(); err != nil {
		return Finding{}, err
	}
	return contest{name: d.name, adversaries: d.adversaries, attacks: []string{d.attack}, from: []int{0},
		models: slices.Repeat([]string{d.model}, len(d.adversaries)), width: 1, table: d.table,
		world: func(i int) func(bool, *noise.Fast, []float64) error { return d.worlds(i)() },
		claim: func() privacy.Loss { return d.claim }}.run(ctx, delta, gamma, until, most, key)
}

// A Direct is a subject under audit that is not played as a bandit of K arms: VectorSubject and
// MessageSubject make one. A few adversaries are tried, and there is one score.
type Direct struct {
	direct  direct
	Delta   float64 // δ at which ε is bounded
	Gamma   float64 // 1 − confidence
	Games   int     // of the test, or with Until at most
	Until   float64 // as that of a PolicyAudit
	Pilot   int     // of the search, for each adversary; 0: 512
	Workers int     // ≤ 0: all processors
	Key     noise.Key
}

// Name is the subject's.
func (d Direct) Name() string { return d.direct.name }

// Claim is what is under test.
func (d Direct) Claim() privacy.Loss { return d.direct.claim }

// Adversaries names those that are tried.
func (d Direct) Adversaries() []string { return slices.Clone(d.direct.adversaries) }

// Run searches, and tests what was found.
func (d Direct) Run(ctx context.Context) (Finding, error) {
	if d.Until != 0 {
		return d.direct.race(ctx, d.Delta, d.Gamma, d.Until, d.Games, d.Key)
	}
	return d.direct.run(ctx, d.Delta, d.Gamma, d.Games, d.Pilot, d.Workers, d.Key)
}

// Scores plays games against one of Adversaries, with Key. They are no scores yet if numbers stand
// for transcripts: then it is false.
func (d Direct) Scores(ctx context.Context, against string, games int) (Scores, bool, error) {
	i := slices.Index(d.direct.adversaries, against)
	if i < 0 {
		return Scores{}, false, fmt.Errorf("audit: adversary is %q, must be one of %q", against,
			d.direct.adversaries)
	}
	s, err := Play(ctx, games, 1, d.Workers, d.Key, d.direct.worlds(i))
	if err != nil {
		return Scores{}, false, err
	}
	return s[0], !d.direct.table, nil
}

// MessageSubject is a mechanism of the protocol of [Chowdhury and Zhou 2023, Algorithm 1]:
// privacy.Aggregated, Clones or ShuffledCount. Half says that its noise is half of what is claimed
// for: of Aggregated only.
func MessageSubject(m privacy.Mechanism, half bool) (Direct, error) {
	if m, ok := m.(privacy.Aggregated); ok {
		at := m
		if half {
			at = halved(m)
		}
		d, err := aggregated(at, false)
		if half {
			d.name, d.claim = d.name+", "+HalfScale.String(), m.Loss()
		}
		return Direct{direct: d}, err
	}
	if half {
		return Direct{}, fmt.Errorf("audit: %v cannot be broken: there are twins of aggregated sums only", m)
	}
	var d direct
	var err error
	switch m := m.(type) {
	case privacy.Clones:
		d, err = clones(m, false)
	case privacy.ShuffledCount:
		d, err = shuffled(m, false)
	default:
		err = fmt.Errorf("audit: mechanism is %v, must be aggregated, clones or shuffled-count", m)
	}
	return Direct{direct: d}, err
}

// halved has half the noise.
func halved(m privacy.Aggregated) privacy.Aggregated {
	m.Den *= 2
	if m.Noise == privacy.NoiseSkellam || m.Noise == privacy.NoiseGaussian { // a variance
		m.Den *= 2
	}
	return m
}

// aggregated is the audit of a sum that many users make private: the target's reward is 0 or 1, the
// others' are known, and all of them are honest but answer in the smallest promised number.
// Published draws Pólya shares as the code published with [Chowdhury and Zhou 2023] do, with the
// mean's scale turned round: (1−β)/β.
func aggregated(m privacy.Aggregated, published bool) (direct, error) {
	if err := m.Validate(); err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	x := float64(m.Num) / float64(m.Den)
	parties, r := 1, 1.0
	if m.Trust == privacy.TrustSecAgg {
		parties, r = m.Users, 1/float64(m.Users)
	}
	share := func(src *noise.Fast) int64 {
		switch m.Noise {
		case privacy.NoiseLaplace:
			return src.DiscreteLaplace(x)
		case privacy.NoisePolya:
			if published {
				beta := math.Exp(-1 / x)
				scale := (1 - beta) / beta
				plus := src.Poisson(math.Exp(src.LogGamma(r)) * scale)
				return plus - src.Poisson(math.Exp(src.LogGamma(r))*scale)
			}
			return src.PolyaDifference(r, x)
		case privacy.NoiseSkellam:
			return src.Skellam(x)
		}
		return src.DiscreteGaussian(math.Sqrt(x))
	}
	d := direct{name: fmt.Sprintf("aggregated %s %s", m.Trust, m.Noise), claim: m.Loss(),
		adversaries: []string{"all others known"}, attack: "likelihood ratio",
		model: "sum of a batch"}
	if published {
		d.name += ", published scale"
	}
	saturates := m.Noise == privacy.NoiseLaplace || m.Noise == privacy.NoisePolya
	d.worlds = func(int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return func(in bool, src *noise.Fast, out []float64) error {
				sum := int64(0)
				if in {
					sum = m.G
				}
				for range parties {
					sum += share(src)
				}
				out[0] = float64(sum)
				if saturates {
					out[0] = math.Abs(out[0]) - math.Abs(out[0]-float64(m.G))
				}
				return nil
			}
		}
	}
	return d, nil
}

// clones is the audit of local messages that are shuffled: all others have the reward 0. In order
// means that nobody shuffles.
func clones(m privacy.Clones, inOrder bool) (direct, error) {
	if err := m.Validate(); err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	x, g := float64(m.Inner.Num)/float64(m.Inner.Den), float64(m.Inner.G)
	name := "clones"
	if inOrder {
		name += ", not shuffled"
	}
	return direct{name: name, claim: m.Loss(), adversaries: []string{"all others 0"},
		attack: "likelihood ratio", model: "shuffled messages",
		worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, out []float64) error {
					sum := 0.0
					for i := range m.Inner.Users {
						y := float64(src.DiscreteLaplace(x))
						if i == 0 && in {
							y += g
						}
						if inOrder {
							out[0] = laplace(y, g, x)
							return nil // the first message is the target's
						}
						sum += math.Exp(laplace(y, g, x))
					}
					out[0] = math.Log(sum)
					return nil
				}
			}
		}}, nil
}

// shuffled is the audit of privacy.ShuffledCount: all other users' parts are known but the noise in
// their totals. Uncovered leaves out what hides a bit.
func shuffled(m privacy.ShuffledCount, uncovered bool) (direct, error) {
	cover, err := m.Cover()
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	scale := float64(m.Num) / float64(m.Den)
	d := direct{name: "shuffled-count", claim: m.Loss(), adversaries: []string{"all others known"},
		attack: "table of messages", model: "shuffled messages", table: true,
		worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, out []float64) error {
					plus, minus := src.Geometric(scale), src.Geometric(scale)
					blank := src.Uint64()>>2 < cover.Blank
					if uncovered || !blank {
						if in {
							plus++
						}
						u := src.Uint64() >> 2
						for c, w := range cover.Pairs {
							if uncovered || u < w {
								if !uncovered {
									plus, minus = plus+int64(c), minus+int64(c)
								}
								break
							}
							u -= w
						}
					}
					out[0] = float64(plus)*(1<<20) + float64(minus)
					return nil
				}
			}
		}}
	if uncovered {
		d.name += ", without cover"
	}
	return d, nil
}
