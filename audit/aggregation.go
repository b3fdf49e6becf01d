package audit

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg"
)

// The session of the lying server: of 12 enrolled 3 may be corrupt, and it lets 7 in, those 3 among them.
const (
	lyingEnrolled, lyingHere, lyingNMin = 12, 7, 6
	lyingGamma                          = 0.25
)

var lyingAdversaries = []string{"a server that tells two stories", "a server that loses all but the promised"}

// lying is the audit of a sum by secagg against a malicious server with the corrupt clients. It either tells some honest clients that the target has
// vanished and others that she survives, and reads her message if it gets both her secrets; or it lets no more honest clients survive than
// are promised, and has their sum. Announced is the twin whose threshold is that of the clients who are let in.
//
// Whether her message is read is played out, with her message, once for each worker and every 1024 games: it is a matter of thresholds, not
// of what is in the messages.
func lying(announced bool) (direct, error) {
	session := secagg.Session{ID: [32]byte{1}, Experiment: "audit", Grid: 1, Length: 1, Enrolled: lyingEnrolled, NMin: lyingNMin, Mode: secagg.Malicious,
		Gamma: lyingGamma, Complete: true}
	honest, err := session.HonestMin(lyingHere)
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: honest, Invited: lyingHere, P: 1e-6})
	if err != nil {
		return direct{}, fmt.Errorf("audit: %w", err)
	}
	d := direct{name: "secagg, a lying server", claim: m.Loss(), adversaries: lyingAdversaries, attack: "the message, or the sum", model: "one sum, from inside"}
	if announced {
		d.name += ", announced threshold"
		session.Enrolled = lyingHere
	}
	session.Modulus, session.Grid = uint64(m.Modulus), uint64(m.G)
	b := float64(m.Num) / float64(m.Den)
	d.worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			played, read := 0, false
			return func(in bool, src *noise.Fast, out []float64) error {
				x := 0
				if in {
					x = int(m.G)
				}
				if adversary == 1 {
					for range honest {
						x += src.PolyaDifference(1/float64(honest), b)
					}
					out[0] = saturated01(x, m.G)
					return nil
				}
				x += src.PolyaDifference(1/float64(honest), b)
				if played%shard == 0 {
					var err error
					if read, err = twoStories(session, ring(int64(x), session.Modulus)); err != nil {
						return err
					}
				}
				played++
				switch {
				case !read || x != 0 && x != int(m.G): // a share's law has its peak where there is no noise
					out[0] = 0
				case x == 0:
					out[0] = -1
				default:
					out[0] = 1
				}
				return nil
			}
		}
	}
	return d, nil
}

// saturated01 orders sums by their likelihood ratio, of G more against none, under discrete Laplace noise.
func saturated01(x int, g int64) float64 { return float64(abs(x) - abs(x-int(g))) }

func abs(x int) int { return max(x, -x) }

// twoStories says whether a lying server reads the message of the first of those whom it lets in.
func twoStories(s secagg.Session, message uint64) (bool, error) {
	messages := map[uint32][]uint64{1: {message}}
	for id := uint32(2); id <= lyingHere; id++ {
		messages[id] = []uint64{0}
	}
	leak, err := secagg.Local{}.TwoStories(context.Background(), s, messages, 1, []uint32{5, 6, 7}, []uint32{2})
	if err != nil {
		return false, fmt.Errorf("audit: %w", err)
	}
	if leak.Message != nil && leak.Message[0] != message {
		return false, fmt.Errorf("audit: the lying server opened another message than was sent")
	}
	return leak.Message != nil, nil
}

// selfAggregation are sums over a network, against those who run it.
func selfAggregation() ([]selfItem, error) {
	var all []selfItem
	for _, twin := range []bool{false, true} {
		d, err := lying(twin)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, 0, twin, 4))
	}
	return all, nil
}
