// Package protocol audits sums of a batch that are made by a protocol, by the code that makes them, with an
// attacker inside of it: for audit.SelfAudit, beside its own. Begin with Audits.
package protocol

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Audits are all of them, with their broken copies, for SelfAudit.More.
func Audits() ([]audit.Outside, error) {
	var all []audit.Outside
	for _, part := range []func() ([]audit.Outside, error){trusted, networked} {
		audits, err := part()
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		all = append(all, audits...)
	}
	return all, nil
}

// delta is the δ at which claims are audited that are not pure: large, so that a test at δ needs no
// games without number.
const delta = 0.05

const (
	again = 1024 // after how many games of a worker what is no matter of its noise is played out again
	renew = 64   // and its ledger is emptied
)

// trusted are sums under trust models that are seen through from inside.
func trusted() ([]audit.Outside, error) {
	var all []audit.Outside
	add := func(o audit.Outside, t release.Trust, m privacy.Mechanism, scale float64, users int,
		inside func() insider) error {
		o, err := sum(o, t, m, scale, users, inside)
		all = append(all, o)
		return err
	}
	for _, c := range []struct {
		name   string
		noise  privacy.NoiseName
		stated privacy.Mechanism
		delta  float64
		users  int
		cost   int
		by     release.NoiseAdder
	}{
		{"two-server laplace", privacy.NoiseLaplace, privacy.Laplace{Scale: 1}, 0, 8, 1, nil},
		{"two-server gaussian", privacy.NoiseGaussian, privacy.Gaussian{Sigma: 1}, delta, 8, 1, nil},
		{"two-server skellam", privacy.NoiseSkellam, privacy.Gaussian{Sigma: 1}, delta, 8, 1, nil},
		{"two-server laplace by prio3", privacy.NoiseLaplace, privacy.Laplace{Scale: 1}, 0, 2, 8,
			aggregate.Prio{Experiment: "audit"}},
	} {
		t := release.Trust{Model: privacy.TrustTwoServer, Noise: c.noise, P: 1e-3}
		fault, scale := audit.HalfScale, 0.5
		if c.delta > 0 { // its claim is not as tight
			fault, scale = audit.QuarterScale, 0.25
		}
		for _, x := range []struct {
			suffix  string
			scale   float64
			missing bool
		}{{"", 1, false}, {", " + fault.String(), scale, false},
			{", the honest server adds nothing", 1, true}} {
			o := audit.Outside{Name: c.name + x.suffix, Twin: x.suffix != "", Delta: c.delta, Cost: c.cost,
				Adversaries: serverAdversaries}
			if err := add(o, t, c.stated, x.scale, c.users, func() insider {
				return &corruptServer{protocol: c.by, missing: x.missing}
			}); err != nil {
				return nil, err
			}
		}
	}
	t := release.Trust{Model: privacy.TrustShuffle, Noise: privacy.NoisePolya, P: 1e-3,
		Like: privacy.Approx{Delta: 1e-4}}
	for _, x := range []struct {
		suffix string
		scale  float64
		flaw   int
	}{{"", 1, mixed}, {", " + audit.HalfScale.String(), 0.5, mixed}, {", not mixed", 1, unmixed},
		{", not split", 1, unsplit}, {", cut off at 0 instead of reduced", 1, saturated}} {
		o := audit.Outside{Name: "split-mix" + x.suffix, Twin: x.suffix != "", Delta: delta, Cost: 2,
			Adversaries: mixerAdversaries}
		if err := add(o, t, privacy.Laplace{Scale: 1}, x.scale, privacy.MinSplitMix, func() insider {
			return &mixer{flaw: x.flaw}
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// An insider is a release.Summer that an attacker sits in, who sees more than the release. From it
// and that the attacker has the sum, with less noise, or a score.
type insider interface {
	release.Summer
	begin(adversary int)
	sees(released float64) (x float64, score bool)
}

// A corruptServer is one of two servers, in league with whoever reads the release: it knows its own
// noise. Missing is a twin whose honest server adds nothing.
type corruptServer struct {
	protocol release.NoiseAdder // nil: shares are added up in the clear
	missing  bool
	corrupt  int     // 0, the leader, or 1
	own      float64 // its noise, in rewards
}

var serverAdversaries = []string{"the first server, all others 0", "the second server, all others 0"}

// AddsNoise implements release.NoiseAdder.
func (*corruptServer) AddsNoise() {}

func (c *corruptServer) begin(adversary int) { c.corrupt = adversary }

func (c *corruptServer) sees(released float64) (float64, bool) { return released - c.own, false }

func (c *corruptServer) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	draw, server := s.Noise, 0
	s.Noise = func() (int64, error) {
		z, err := draw()
		if server == c.corrupt {
			c.own = float64(z) / float64(s.Grid)
		} else if c.missing {
			z = 0
		}
		server++
		return z, err
	}
	if c.protocol != nil {
		return c.protocol.Sum(s, messages)
	}
	total, answers, err := release.PlainSum{}.Sum(s, messages)
	for range 2 {
		z, err := s.Noise()
		if err != nil {
			return 0, 0, err
		}
		total = (total + ring(z, s.Modulus)) % s.Modulus
	}
	return total, answers, err
}

// ring is x modulo m, far below 2^63.
func ring(x int64, m uint64) uint64 {
	return uint64((x%int64(m) + int64(m)) % int64(m))
}

// How a shuffler of split messages can be wrong.
const (
	mixed     = iota
	unmixed   // messages come in the order of their users
	unsplit   // each user sends one message
	saturated // a user's message is cut off at 0 instead of reduced modulo m
)

// A mixer shows the messages of privacy.SplitMix to the attacker, without an order. It has the sum
// modulo m, which is the release, the sum of the integers, or the largest message.
type mixer struct {
	flaw      int
	adversary int
	value     float64
	messages  []uint64
}

var mixerAdversaries = []string{"sum modulo m, all others 0", "sum of the integers, all others 0",
	"largest message, all others 0"}

func (x *mixer) begin(adversary int) { x.adversary = adversary }

func (x *mixer) sees(released float64) (float64, bool) {
	if x.adversary == 0 && x.flaw == mixed {
		return released, false
	}
	return x.value, true
}

func (x *mixer) Sum(s release.Sum, messages []uint64) (uint64, int, error) {
	m, ok := s.Mechanism.(privacy.SplitMix)
	if !ok {
		return 0, 0, fmt.Errorf("%v is not split and mixed", s.Mechanism)
	}
	x.messages = append(x.messages[:0], messages...)
	if x.flaw != mixed {
		k, users := m.Shares, x.messages[:0] // of which only places that were read are written
		for i := 0; i < len(messages); i += k {
			sum := uint64(0)
			for _, v := range messages[i : i+k] {
				sum = (sum + v) % s.Modulus
			}
			users = append(users, sum)
		}
		x.messages = users
		x.value = 0
		switch {
		case x.flaw == unmixed:
			x.value = signed(users[len(users)-1], s.Modulus) // the target's
		case x.flaw == saturated:
			for _, v := range users {
				x.value += max(0, signed(v, s.Modulus))
			}
		default:
			x.value = math.Inf(-1)
			for _, v := range users {
				x.value = max(x.value, signed(v, s.Modulus))
			}
		}
	} else {
		slices.Sort(x.messages) // all that their multiset says
		x.value = float64(x.messages[len(x.messages)-1])
		if x.adversary == 1 {
			x.value = 0
			for _, v := range x.messages {
				x.value += float64(v)
			}
		}
	}
	return release.PlainSum{}.Sum(s, messages)
}

// sum is the audit o of one sum of a batch of users under a trust model, by the code that makes it,
// against an attacker in the middle of it. The target is the last user, and all the others' rewards
// are 0. Scale is that of the noise in the program that runs, in parts of the stated one's, whose
// ledger makes the claim.
func sum(o audit.Outside, t release.Trust, stated privacy.Mechanism, scale float64, users int,
	inside func() insider) (audit.Outside, error) {
	run, ok := privacy.WithScale(stated, scale*privacy.ScaleOf(stated))
	if !ok {
		return o, fmt.Errorf("no scale to change in %v", stated)
	}
	o.Attack, o.Model = "likelihood ratio", "one sum, from inside"
	saturates := t.NoiseOf() == privacy.NoiseLaplace || t.NoiseOf() == privacy.NoisePolya
	world := func(m privacy.Mechanism, ledger *privacy.Ledger, adversary int) func(bool,
		*noise.Fast, []float64) error {
		var cur release.Curator
		var stream noise.Fast
		x, played, t := inside(), 0, t
		t.Summer = x
		return func(in bool, src *noise.Fast, out []float64) error {
			stream = *src
			defer func() { *src = stream }()
			var err error // games are played at once
			if played++; cur == nil || played%renew == 0 {
				ledger.Reset()
				if cur, err = release.Simulated(release.Config{Arms: 1, Mechanism: m,
					Ledger: ledger, Trust: &t}, &stream); err != nil {
					return err
				}
			}
			x.begin(adversary)
			reward := 0.0
			if in {
				reward = 1
			}
			if err := cur.Add(0, reward); err != nil {
				return err
			}
			for range users - 1 {
				if err := cur.Add(0, 0); err != nil {
					return err
				}
			}
			r, err := cur.Release([]int{0})
			if err != nil {
				return err
			}
			e, score := x.sees(r.Sum(0))
			if out[0] = e; saturates && !score {
				out[0] = math.Round((math.Abs(e)-math.Abs(e-1))*(1<<32)) / (1 << 32) // a float's last bits tell more
			}
			return nil
		}
	}
	ledger, src := privacy.NewLedger(), noise.NewFast(1, 2)
	if err := world(stated, ledger, 0)(true, &src, make([]float64, 1)); err != nil {
		return o, err
	}
	o.Claim = ledger.Total()
	o.Worlds = func(adversary int) func() func(bool, *noise.Fast, []float64) error {
		return func() func(bool, *noise.Fast, []float64) error {
			return world(run, privacy.NewLedger(), adversary)
		}
	}
	return o, nil
}
