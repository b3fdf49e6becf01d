// Package lease decides without a request: a Plan is what everybody may know of how an experiment
// assigns units for a while, and [Plan.Decide] gives a unit its arm by a keyed hash. Whoever has the
// plan decides alike: the service computes the same hash when it is told of the decision.
//
// A plan is public, and so is what it makes of a name: who knows the salt and a unit's name knows the
// unit's arm.
package lease

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/dchest/siphash"
)

// Buckets is how many parts a plan has: the propensity of an arm is a multiple of 1/Buckets.
const Buckets = 10000

// A Plan is how units are assigned, from a time until another.
type Plan struct {
	Experiment string `json:"experiment"`
	// Epoch counts the plans of the experiment from 1. Salt is its own, so that nobody can choose a
	// name for the arm that a later plan gives it.
	Epoch uint64 `json:"epoch"`
	Salt  Salt   `json:"salt"`
	// From and Until are when it was made and until when units may be assigned by it.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Reason is empty where decisions count. Else it says why nobody is assigned, as a decision's reason does: all
	// are given the one arm, and exposures count nowhere.
	Reason string `json:"reason,omitempty"`
	// Fallback is the arm of who has not agreed to take part: such a unit is not assigned, and nothing is reported.
	Fallback string  `json:"fallback,omitempty"`
	Arms     []Share `json:"arms"`
}

// Without is the arm of who has not agreed to take part: the Fallback, or the first if that is none of the Arms.
func (p *Plan) Without() Share {
	i := slices.IndexFunc(p.Arms, func(s Share) bool { return s.Arm == p.Fallback })
	return p.Arms[max(0, i)]
}

// A Share is an arm and how many of the Buckets it has.
type Share struct {
	Arm     string          `json:"arm"`
	Value   json.RawMessage `json:"value,omitempty"` // what a decision gives as its value
	Buckets int             `json:"buckets"`
}

// Propensity is the probability of the arm, over salts.
func (s Share) Propensity() float64 { return float64(s.Buckets) / Buckets }

// A Salt is the key of a plan's hash; its text is 32 hexadecimal digits.
type Salt [16]byte

// MarshalText is the salt's text.
func (s Salt) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads a salt's text.
func (s *Salt) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("lease: salt has %d characters, must have %d", len(text), hex.EncodedLen(len(s)))
	}
	if _, err := hex.Decode(s[:], text); err != nil {
		return fmt.Errorf("lease: salt is %q, must be hexadecimal digits", text)
	}
	return nil
}

// Parse reads a plan, which must be a whole one.
func Parse(data []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return Plan{}, fmt.Errorf("lease: plan: %w", err)
	}
	return p, p.Check()
}

// Check says what is wrong with a plan.
func (p Plan) Check() error {
	sum, seen := 0, map[string]bool{}
	for i, s := range p.Arms {
		switch {
		case s.Arm == "":
			return fmt.Errorf("lease: arms[%d].arm is missing, must be the arm's name", i)
		case seen[s.Arm]:
			return fmt.Errorf("lease: arms[%d].arm is %q, which is there before", i, s.Arm)
		case s.Buckets < 0 || s.Buckets > Buckets:
			return fmt.Errorf("lease: arms[%d].buckets is %d, must be from 0 to %d", i, s.Buckets, Buckets)
		}
		seen[s.Arm] = true
		sum += s.Buckets
	}
	switch {
	case p.Experiment == "":
		return fmt.Errorf("lease: experiment is missing, must be its name")
	case p.Epoch == 0 && p.Reason == "":
		return fmt.Errorf("lease: epoch is 0, must be at least 1")
	case sum != Buckets:
		return fmt.Errorf("lease: the buckets of all arms are %d, must be %d", sum, Buckets)
	case !p.Until.After(p.From):
		return fmt.Errorf("lease: until is %s, must be after from, %s", p.Until.Format(time.RFC3339Nano),
			p.From.Format(time.RFC3339Nano))
	}
	return nil
}

// Decide gives the number of a unit's arm in Arms. It allocates nothing.
func (p *Plan) Decide(unit string) (arm int) { return p.At(p.Salt.Bucket(unit)) }

// At is the number of the arm that has a bucket, from 0 on: of consecutive ranges of buckets in the
// order of Arms. It is −1 if none has.
func (p *Plan) At(bucket int) (arm int) {
	for i := range p.Arms {
		if bucket -= p.Arms[i].Buckets; bucket < 0 {
			return i
		}
	}
	return -1
}

// Bucket is that of a unit, from 0 to Buckets−1: of its name's SipHash-2-4 under the salt, of which the
// upper 32 bits are mapped to the buckets by a product.
func (s *Salt) Bucket(unit string) int {
	name := unsafe.Slice(unsafe.StringData(unit), len(unit)) // is read, and not kept
	h := siphash.Hash(binary.LittleEndian.Uint64(s[:8]), binary.LittleEndian.Uint64(s[8:]), name)
	return int((h >> 32) * Buckets >> 32)
}

// Apportion shares the Buckets out by weights, by largest remainders, equal ones in their order: an arm
// with a weight has at least one bucket. It is nil if no weight is above 0, or more than Buckets are.
func Apportion(weights []float64) []int {
	total, some := 0., 0
	for _, w := range weights {
		if w > 0 {
			total, some = total+w, some+1
		}
	}
	if some == 0 || some > Buckets || !(total < inf) {
		return nil
	}
	out, order, left := make([]int, len(weights)), make([]int, 0, some), Buckets-some
	rest := make([]float64, len(weights))
	for i, w := range weights { // one each, and of the others by what is left of their shares
		if !(w > 0) {
			continue
		}
		order = append(order, i)
		rest[i] = max(0, w/total*Buckets-1)
	}
	total = 0
	for _, x := range rest {
		total += x
	}
	given := 0
	for _, i := range order {
		x := 0.
		if total > 0 {
			x = rest[i] / total * float64(left)
		}
		n := min(int(x), left-given)
		out[i], rest[i] = 1+n, x-float64(n)
		given += n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case rest[a] > rest[b]:
			return -1
		case rest[a] < rest[b]:
			return 1
		}
		return 0
	})
	for k := 0; given < left; k++ {
		out[order[k%len(order)]]++
		given++
	}
	return out
}

const inf = 1e300 // beyond any sum of shares
