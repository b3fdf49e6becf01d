package protocol

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
)

// The session of the lying server: of 12 enrolled 3 may be corrupt, and it lets 7 in,
// those 3 among them.
const (
	lyingEnrolled, lyingHere, lyingNMin = 12, 7, 6
	lyingGamma                          = 0.25
)

var lyingAdversaries = []string{"a server that tells two stories", "a server that loses all but the promised"}

// lying is the audit of a sum by secagg against a malicious server with the corrupt clients. It
// either tells some honest clients that the target has vanished and others that it survives,
// and reads its message if it gets both its secrets; or it lets no more honest clients survive
// than are promised, and has their sum. Announced is the twin whose threshold is that of the
// clients who are let in.
//
// Whether its message is read is played out, with its message, once for each worker and every 1024
// games: it is a matter of thresholds, not of what is in the messages.
func lying(announced bool) (audit.Outside, error) {
	session := secagg.Session{ID: [32]byte{1}, Experiment: "audit", Grid: 1, Length: 1,
		Enrolled: lyingEnrolled, NMin: lyingNMin, Mode: secagg.Malicious,
		Gamma: lyingGamma, Complete: true}
	honest, err := session.HonestMin(lyingHere)
	if err != nil {
		return audit.Outside{}, err
	}
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: honest, Invited: lyingHere, P: 1e-6})
	if err != nil {
		return audit.Outside{}, err
	}
	o := audit.Outside{Name: "secagg, a lying server", Twin: announced, Claim: m.Loss(), Cost: 4,
		Adversaries: lyingAdversaries, Attack: "the message, or the sum", Model: "one sum, from inside"}
	if announced {
		o.Name += ", announced threshold"
		session.Enrolled = lyingHere
	}
	session.Modulus, session.Grid = uint64(m.Modulus), uint64(m.G)
	b := float64(m.Num) / float64(m.Den)
	o.Worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			played, read := 0, false
			return func(in bool, src *noise.Fast, out []float64) error {
				x := int64(0)
				if in {
					x = m.G
				}
				if adversary == 1 {
					for range honest {
						x += src.PolyaDifference(1/float64(honest), b)
					}
					out[0] = saturated01(x, m.G)
					return nil
				}
				x += src.PolyaDifference(1/float64(honest), b)
				if played%again == 0 {
					var err error
					if read, err = twoStories(session, ring(x, session.Modulus)); err != nil {
						return err
					}
				}
				played++
				if out[0] = 0; read {
					out[0] = peaks(x, m.G)
				}
				return nil
			}
		}
	}
	return o, nil
}

// saturated01 orders sums by their likelihood ratio, of G more against none, under
// discrete Laplace noise.
func saturated01(x, g int64) float64 { return float64(abs(x) - abs(x-g)) }

func abs(x int64) int64 { return max(x, -x) }

// twoStories says whether a lying server reads the message of the first of those whom it lets in.
func twoStories(s secagg.Session, message uint64) (bool, error) {
	messages := map[uint32][]uint64{1: {message}}
	for id := uint32(2); id <= lyingHere; id++ {
		messages[id] = []uint64{0}
	}
	leak, err := secagg.Local{}.TwoStories(context.Background(), s, messages, 1, []uint32{5, 6, 7}, []uint32{2})
	if err != nil {
		return false, err
	}
	if leak.Message != nil && leak.Message[0] != message {
		return false, errors.New("the lying server opened another message than was sent")
	}
	return leak.Message != nil, nil
}

// A crowdless is whoever runs aggregate.Bell on a batch of one or two users: it sees each message
// that is summed in the open.
type crowdless struct {
	aggregate.Bell
	last float64 // the target's message, in rewards
	seen bool
}

var crowdlessAdversaries = []string{"the server, all others 0"}

func (c *crowdless) begin(int) { c.seen = false }

func (c *crowdless) sees(released float64) (float64, bool) {
	if c.seen {
		return c.last, false
	}
	return released, false
}

// An openSum sums in the open for a crowdless.
type openSum struct{ to *crowdless }

// Sum implements release.Summer.
func (o openSum) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	o.to.last, o.to.seen = signed(messages[len(messages)-1], s.Modulus)/float64(s.Grid), true
	return release.PlainSum{}.Sum(s, messages)
}

// retries is how often a server that fails after it has opened the sum has the clients come again,
// each time under a new session.
const retries = 16

// retried is the audit of sums that a server opens again and again, to take their mean. All but the
// target's reward are known. Forgetful is the twin whose clients remember sessions and not batches.
// What clients let happen is played out by aggregate.Journal, opened anew for each try as after a
// restart, once for each worker and every 1024 games: it is no matter of what is in the messages.
func retried(forgetful bool) (audit.Outside, error) {
	const users = 8
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: users, Invited: users, P: 1e-6})
	if err != nil {
		return audit.Outside{}, err
	}
	o := audit.Outside{Name: "aggregate, retries and restarts", Twin: forgetful, Claim: m.Loss(), Cost: 8,
		Adversaries: []string{"a server that fails after opening, all others known"},
		Attack:      "likelihood ratio", Model: "sums of one batch"}
	if forgetful {
		o.Name += ", remembered by session"
	}
	o.Worlds = func(int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			b, played, sums := float64(m.Num)/float64(m.Den), 0, 0
			return func(in bool, src *noise.Fast, out []float64) error {
				if played%again == 0 {
					var err error
					if sums, err = admitted(m, forgetful); err != nil {
						return err
					}
				}
				played++
				out[0] = 0
				for range sums {
					x := int64(0)
					if in {
						x = m.G
					}
					for range users {
						x += src.PolyaDifference(1.0/users, b)
					}
					out[0] += saturated01(x, m.G)
				}
				return nil
			}
		}
	}
	return o, nil
}

// admitted is how many sums of one batch a client's message is in.
func admitted(m privacy.Mechanism, forgetful bool) (n int, err error) {
	dir, err := os.MkdirTemp("", "sotto-audit-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var sessions secagg.Used
	for i := range retries {
		s := secagg.Session{ID: [32]byte{byte(i), 1}, Experiment: "audit", Arm: 1, Batch: 1}
		if err = sessions.Add(s.ID); err == nil && !forgetful {
			err = aggregate.Journal{Dir: dir, Together: true}.Spend(aggregate.ChargeOf(s, m))
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, secagg.ErrReplay):
			return 0, err
		}
	}
	return n, nil
}

// signed is the number that x stands for in the ring: those near m stand for negative ones.
func signed(x, m uint64) float64 {
	if x > m/2 {
		return float64(x) - float64(m)
	}
	return float64(x)
}

func newCrowdless() insider {
	c := &crowdless{}
	c.Open = openSum{c}
	return c
}

// halfOpen is a twin: two users' messages are summed in the open, with half a noise each.
func halfOpen() (audit.Outside, error) {
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: 2, Invited: 2, P: 1e-6})
	if err != nil {
		return audit.Outside{}, err
	}
	b := float64(m.Num) / float64(m.Den)
	return audit.Outside{Name: "bell2020 of two users, half a noise each", Twin: true, Claim: m.Loss(),
		Adversaries: crowdlessAdversaries, Attack: "likelihood ratio", Model: "one sum, from inside",
		Worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, out []float64) error {
					x := src.PolyaDifference(0.5, b)
					if in {
						x += m.G
					}
					out[0] = peaks(x, m.G)
					return nil
				}
			}
		}}, nil
}

// peaks tells a message with no noise at all, where a share's law has its peak: 1 for G, −1 for none.
func peaks(x, g int64) float64 {
	switch x {
	case 0:
		return -1
	case g:
		return 1
	}
	return 0
}

// A prioOfOne is one of the two servers that sum a batch of one user, or the leader who looks at
// its share of the report alone. Raw is the twin of a leader who is handed the reward.
type prioOfOne struct {
	corruptServer
	raw   bool
	look  bool
	share float64
}

var prioAdversaries = append(slices.Clone(serverAdversaries), "the first server's share of the report")

func newPrioOfOne(raw bool) insider {
	p := &prioOfOne{raw: raw}
	p.protocol = aggregate.Prio{Experiment: "audit",
		Fault: func(_ int, leader, helper []byte) ([]byte, []byte) {
			// of a report; then each part with its length: the public part, and the share
			const header = 50
			at := header + 4 + int(binary.BigEndian.Uint32(leader[header:])) + 4
			p.share = float64(binary.LittleEndian.Uint64(leader[at:]))
			return leader, helper
		}}
	return p
}

func (p *prioOfOne) begin(adversary int) {
	p.look = adversary == len(serverAdversaries)
	p.corruptServer.begin(adversary % len(serverAdversaries))
}

func (p *prioOfOne) sees(released float64) (float64, bool) {
	if p.look {
		return p.share, true
	}
	return p.corruptServer.sees(released)
}

func (p *prioOfOne) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	total, answers, err := p.corruptServer.Sum(s, messages)
	if p.raw {
		p.share = float64(messages[0])
	}
	return total, answers, err
}

// networked are sums over a network, against those who run it.
func networked() ([]audit.Outside, error) {
	var all []audit.Outside
	add := func(o audit.Outside, err error) error {
		all = append(all, o)
		return err
	}
	for _, twin := range []bool{false, true} {
		if err := errors.Join(add(lying(twin)), add(retried(twin))); err != nil {
			return nil, err
		}
	}
	few := func(name string, model privacy.Trust, scale float64, users int, twin bool, cost int,
		adversaries []string, inside func() insider) error {
		return add(sum(audit.Outside{Name: name, Twin: twin, Cost: cost, Adversaries: adversaries},
			release.Trust{Model: model, P: 1e-3}, privacy.Laplace{Scale: 1}, scale, users, inside))
	}
	prio := func(raw bool) func() insider { return func() insider { return newPrioOfOne(raw) } }
	err := errors.Join(
		few("bell2020 of one user", privacy.TrustSecAgg, 1, 1, false, 1, crowdlessAdversaries, newCrowdless),
		few("bell2020 of one user, half the scale", privacy.TrustSecAgg, 0.5, 1, true, 1, crowdlessAdversaries,
			newCrowdless),
		few("bell2020 of two users", privacy.TrustSecAgg, 1, 2, false, 1, crowdlessAdversaries, newCrowdless),
		few("prio3 of one user", privacy.TrustTwoServer, 1, 1, false, 8, prioAdversaries, prio(false)),
		few("prio3 of one user, handed the reward", privacy.TrustTwoServer, 1, 1, true, 8, prioAdversaries,
			prio(true)),
		add(halfOpen()),
	)
	return all, err
}
