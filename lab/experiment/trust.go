package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// A Trust says how releases are made, of all private policies or of one: see release.Trust. Of the
// zero value a policy's noise is continuous, and added by a server that is believed: Continuous.
type Trust struct {
	Model     string  // Continuous (or empty), central, local, two-server, shuffle or secagg
	Noise     string  // laplace, polya, skellam, gaussian or count; empty: as release.Trust has it
	Precision float64 // [Chowdhury and Zhou 2023]'s s ≥ 1; 0 means 1
	Promised  float64 // share of the users that are promised to answer, in (0,1]; 0 means 1
	Dropout   float64 // probability that a user does not answer, in [0,1)
	PerUser   bool    // draw every user's messages
	// of secagg: how sums are made, user by user: plain, bell2020 or prio3; empty: the total is
	// drawn at once where it can be
	Protocol string
	Corrupt  float64 // of bell2020: share of the users that may be corrupt, in [0,1)
}

// The protocols: values of Trust.Protocol.
const (
	protocolPlain = "plain"    // in the open
	protocolBell  = "bell2020" // secure aggregation by a single server: package secagg
	// between two servers, with proofs of the range: package prio; each adds its own noise
	protocolPrio = "prio3"
)

// protocols are the values of Trust.Protocol.
func protocols() []string { return []string{protocolPlain, protocolBell, protocolPrio} }

// Continuous is the trust model of continuous noise from a server that is believed: for simulations.
const Continuous = "continuous"

// TrustModels are the values of Trust.Model.
func TrustModels() []string {
	return []string{Continuous, string(privacy.TrustCentral), string(privacy.TrustLocal),
		string(privacy.TrustTwoServer), string(privacy.TrustShuffle), string(privacy.TrustSecAgg)}
}

// noiseNames are the values of Trust.Noise.
func noiseNames() []string {
	return []string{string(privacy.NoiseLaplace), string(privacy.NoisePolya),
		string(privacy.NoiseSkellam), string(privacy.NoiseGaussian), string(privacy.NoiseCount)}
}

// on says that releases are made by a protocol.
func (t Trust) on() bool { return t.Model != "" && t.Model != Continuous }

// normal is the fields that were given.
func (t Trust) normal() []keyed.Field {
	out, err := keyed.NormalOf(ownTrust(), &t)
	if err != nil { // no field of a Trust has one
		return nil
	}
	return out
}

// over is t with what a policy says of its own. A model of its own comes with its own noise.
func (t Trust) over(own Trust) Trust {
	if own.Model != "" {
		t.Model, t.Noise = own.Model, ""
	}
	if own.Noise != "" {
		t.Noise = own.Noise
	}
	if own.Precision != 0 {
		t.Precision = own.Precision
	}
	if own.Promised != 0 {
		t.Promised = own.Promised
	}
	if own.Dropout != 0 {
		t.Dropout = own.Dropout
	}
	t.PerUser = t.PerUser || own.PerUser
	if own.Model != "" {
		t.Protocol, t.Corrupt = "", 0
	}
	if own.Protocol != "" {
		t.Protocol = own.Protocol
	}
	if own.Corrupt != 0 {
		t.Corrupt = own.Corrupt
	}
	return t
}

// content is what its noise is keyed by: empty if it is not on.
func (t Trust) content() string {
	if !t.on() {
		return ""
	}
	s := sim.TrustContent(*t.release(nil, 0))
	for _, f := range t.normal() {
		// Whoever sums, users draw the same noise: so runs can be compared.
		if f.Key == "per_user" && t.Protocol != "" || f.Key == "corrupt" || f.Key == "protocol" &&
			t.Protocol != "" {
			continue
		}
		if f.Key != "trust" && f.Key != "noise" {
			s += fmt.Sprintf(" %s=%v", f.Key, f.Value)
		}
	}
	return s
}

// proves says whether what is proved of a policy for discrete Laplace noise holds: for the one noise
// of a server that is believed, and, if its proof counts them, for those of two servers or of each user.
func (t Trust) proves(e catalog.Entry, p catalog.Params) bool {
	if !e.Discrete || t.release(nil, 0.5).NoiseOf() != privacy.NoiseLaplace {
		return false
	}
	switch privacy.Trust(t.Model) {
	case privacy.TrustCentral:
		return true
	case privacy.TrustTwoServer, privacy.TrustLocal:
		return e.Gathers(p) == nil
	}
	return false
}

// writeProtocol is what a cell's hash has of it, which its content does not.
func (t Trust) writeProtocol(h io.Writer) {
	if t.Protocol != "" {
		fmt.Fprintf(h, "protocol %q\ncorrupt %s\n", t.Protocol, keyed.Number(t.Corrupt))
	}
}

// protocol is what sums a run's messages; nil where the total may be drawn at once.
func (t Trust) protocol(ctx context.Context, name string) release.Summer {
	switch t.Protocol {
	case protocolPlain:
		return release.PlainSum{}
	case protocolPrio:
		return aggregate.Prio{Experiment: name}
	case protocolBell:
		return aggregate.Bell{Context: ctx, Experiment: name, Gamma: t.Corrupt, Delta: t.Dropout}
	}
	return nil
}

// label is the model and the noise in short, as in secagg/polya.
func (t Trust) label() string {
	if !t.on() {
		return Continuous
	}
	s := t.Model + "/" + string(t.release(nil, 0).NoiseOf())
	if t.Precision > 1 {
		s += " s=" + keyed.Number(t.Precision)
	}
	if t.Protocol != "" {
		s += " " + t.Protocol
	}
	return s
}

// assumes says who has to be believed.
func (t Trust) assumes() string {
	for _, m := range catalog.Mechanisms() {
		if m.Trust == string(t.model()) {
			return m.Assumes
		}
	}
	return ""
}

// model is that of package privacy: two servers are secure aggregation with another protocol.
func (t Trust) model() privacy.Trust {
	if t.Protocol == protocolPrio {
		return privacy.TrustTwoServer
	}
	return privacy.Trust(t.Model)
}

// release is how the releases of a run at budget b are made, that may be misread with probability p.
func (t Trust) release(b privacy.Budget, p float64) *release.Trust {
	return &release.Trust{Model: t.model(), Noise: privacy.NoiseName(t.Noise), S: t.Precision,
		Like: b, P: p, Promised: t.Promised,
		Dropout: t.Dropout, PerUser: t.PerUser}
}

// check finds what is wrong with it whatever the budget, and at which key.
func (t Trust) check() (key string, err error) {
	if !t.on() {
		for _, f := range t.normal() {
			if f.Key != "trust" {
				return f.Key, fmt.Errorf("is %v, but trust is %s: it is for trust %s", f.Value,
					Continuous, strings.Join(TrustModels()[1:], ", "))
			}
		}
		return "", nil
	}
	if t.Precision != 0 {
		if err := (release.Trust{Model: privacy.TrustCentral, P: 0.5, S: t.Precision}).Validate(); err != nil {
			return "precision", err
		}
	}
	if t.Promised != 0 {
		if err := (release.Trust{Model: privacy.TrustCentral, P: 0.5,
			Promised: t.Promised}).Validate(); err != nil {
			return "promised", err
		}
	}
	if err := (release.Trust{Model: privacy.TrustCentral, P: 0.5, Dropout: t.Dropout}).Validate(); err != nil {
		return "dropout", err
	}
	if err := t.release(nil, 0.5).Validate(); err != nil {
		return "noise", err
	}
	two := t.Model == string(privacy.TrustTwoServer)
	if t.Protocol != "" && t.Model != string(privacy.TrustSecAgg) && !two || two && t.Protocol == protocolBell {
		return "protocol", fmt.Errorf("is %s, but trust is %s: it is for trust %s, and plain and "+
			"%s for %s too", t.Protocol, t.Model, privacy.TrustSecAgg, protocolPrio, privacy.TrustTwoServer)
	}
	if t.Corrupt != 0 && t.Protocol != protocolBell {
		return "corrupt", fmt.Errorf("is %v, but protocol is %q: it is for %s", t.Corrupt,
			t.Protocol, protocolBell)
	}
	promised := t.Promised
	if promised == 0 {
		promised = 1
	}
	if !(t.Corrupt >= 0 && t.Corrupt < 1) || t.Corrupt > 0 && t.Corrupt+promised > 1 {
		return "corrupt", fmt.Errorf("is %v, must be at least 0, below 1, and at most 1 − "+
			"promised = %v: promised users are honest", t.Corrupt, 1-promised)
	}
	return "", nil
}

// trustOf is the trust model of a policy, checked. What the experiment says of all is for
// private policies alone.
func (p *Resolved) trustOf(i int, private, known bool) (Trust, error) {
	s := &p.Spec
	q := &s.Policies[i]
	at := fmt.Sprintf("policies[%d]", i)
	if !known {
		if f := q.Trust.normal(); len(f) > 0 {
			return Trust{}, s.fail(at+"."+f[0].Key, "is for experiments of kind %s", with(f[0].Key))
		}
		return Trust{}, nil
	}
	if !private {
		if f := q.Trust.normal(); len(f) > 0 {
			return Trust{}, s.fail(at+"."+f[0].Key, "is for private policies: %s adds no noise", q.Policy)
		}
		return Trust{}, nil
	}
	if s.Unclipped && s.Trust.over(q.Trust).on() {
		return Trust{}, s.fail("unclipped", "is true, but rewards are encoded as integers under "+
			"trust %s", s.Trust.over(q.Trust).Model)
	}
	t := s.Trust.over(q.Trust)
	if key, err := t.check(); err != nil {
		if rest, ok := strings.CutPrefix(err.Error(), key+" "); ok { // the place has the key
			err = errors.New(rest)
		}
		own := false
		for _, f := range q.Trust.normal() {
			own = own || f.Key == key || f.Key == "trust"
		}
		if own {
			key = at + "." + key
		}
		return Trust{}, s.src.Wrap(key, err)
	}
	return t, nil
}

// errTrust is a budget that a trust model cannot meet.
var errTrust = errors.New("not possible")

// meets says whether releases at this budget can be made.
func (t Trust) meets(b privacy.Budget) error {
	if _, none := b.(privacy.None); none || !t.on() {
		return nil
	}
	if err := t.release(b, 0.5).Validate(); err != nil {
		return fmt.Errorf("%w: %w", errTrust, err)
	}
	return nil
}

// tryTrust builds the curator of a cell, so that a mechanism that cannot be distributed is
// found before a run.
func (c *Cell) tryTrust(m privacy.Mechanism) error {
	t := c.trust(0.5)
	if t == nil {
		return nil
	}
	s := noise.Key{}.Fast(1)
	if _, err := release.Simulated(release.Config{Arms: c.world.arms, Mechanism: m, Trust: t},
		&s[0]); err != nil {
		return fmt.Errorf("policy %s under trust %s: %w", c.choice.entry.Name, t.Model, err)
	}
	return nil
}

// trust is how the cell's releases are made; nil for continuous noise, and without privacy.
func (c *Cell) trust(p float64) *release.Trust {
	if _, none := c.budget.(privacy.None); none || !c.choice.trust.on() {
		return nil
	}
	return c.choice.trust.release(c.budget, p)
}

// trustIn is trust for a run of this experiment.
func (c *Cell) trustIn(ctx context.Context, s *Spec, p float64) *release.Trust {
	t := c.trust(p)
	if t != nil {
		t.Summer = c.choice.trust.protocol(ctx, s.Name)
	}
	return t
}

// misread is the probability with which a run may misread a sum.
func (c *Cell) misread(s *Spec) float64 {
	return c.choice.params.Misread(int(s.Horizon))
}

// spareRisk is the share of the risk that a rule leaves to the decoding of its sums.
const spareRisk = 1e-6

// identifyRisk is the risk that the rule is built for, and that of misreading: together no more
// than the experiment's.
func (c *Cell) identifyRisk(s *Spec) (rule, misread float64) {
	if c.trust(0.5) == nil {
		return s.Risk, 0
	}
	return s.Risk * (1 - spareRisk), s.Risk * spareRisk
}
