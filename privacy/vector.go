package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A Vector is a noisy vector-valued statistic of one slot, such as Σ a·r over the actions a ∈
// ℝ^d that were played, and how many rewards are in it. The curator owns it; it holds until
// its next release.
type Vector struct {
	N     int
	Value []float64
}

// ReleasedVector is to a Vector what Released is to Values: only a Ledger fills it, so who holds
// one holds numbers that were paid for. The zero value is "nothing released".
type ReleasedVector struct{ v *Vector }

// Len is the number of coordinates, 0 if nothing was released.
func (r ReleasedVector) Len() int {
	if r.v == nil {
		return 0
	}
	return len(r.v.Value)
}

// N is how many rewards are in the statistic.
func (r ReleasedVector) N() int { return r.v.N }

// At is noisy coordinate i.
func (r ReleasedVector) At(i int) float64 { return r.v.Value[i] }

// ReleaseVector charges m to the slot once and seals the whole vector: the mechanism's sensitivity
// is that of all its coordinates together. A continual mechanism is charged once a slot, and
// releases one vector for each number of rewards up to its horizon. Refusals and their errors are
// those of Release. A mechanism of single sums, such as Gaussian, costs ∞ here.
func (l *Ledger) ReleaseVector(slot int, m Mechanism, v *Vector) (ReleasedVector, error) {
	return Account{l, l.account(m)}.ReleaseVector(slot, v)
}

// ReleaseVector is Ledger.ReleaseVector through the account's mechanism.
func (a Account) ReleaseVector(slot int, v *Vector) (ReleasedVector, error) {
	// The usual case, as in Account.Release.
	if uint(slot) < uint(len(a.l.running)) && v != nil && a.l.running[slot].followed(a.at, v) {
		return ReleasedVector{v}, nil
	}
	if a.at <= a.l.base {
		return ReleasedVector{}, errStale
	}
	return a.l.releaseVector(slot, a.at, v, a.l.transcript != nil)
}

func (l *Ledger) releaseVector(slot int, at int32, v *Vector, write bool) (ReleasedVector, error) {
	if v == nil || len(v.Value) == 0 {
		return ReleasedVector{}, errors.New("ledger: nothing is released, must have at least " +
			"one coordinate")
	}
	if a := l.get(at); !a.vector {
		at = l.account(Unknown{Name: a.mechanism.Kind() + " of a vector"})
	}
	if slot < 0 || l.cap != nil {
		if err := l.allow(slot, at, 1); err != nil {
			return ReleasedVector{}, err
		}
	}
	a := l.get(at)
	if a.longest > 0 {
		if err := l.lost(slot, at); err != nil {
			return ReleasedVector{}, err
		}
		switch last := l.last(slot, at); {
		case v.N < max(1, last.n) || v.N > a.longest:
			return ReleasedVector{}, fmt.Errorf("ledger: release of slot %d through %v: a "+
				"statistic of %d rewards, must be of %d to %d: %w",
				slot, a.mechanism, v.N, max(1, last.n), a.longest, ErrPrefix)
		case a.leaf > 1 && v.N%a.leaf != 0:
			return ReleasedVector{}, fmt.Errorf("ledger: release of slot %d through %v: a "+
				"statistic of %d rewards, must be of whole leaves: %w", slot, a.mechanism, v.N, ErrPrefix)
		case v.N == last.n && !slices.Equal(v.Value, last.vector):
			return ReleasedVector{}, fmt.Errorf("ledger: release of slot %d through %v: another "+
				"statistic of the same %d rewards: its noise is drawn once: %w",
				slot, a.mechanism, v.N, ErrPrefix)
		}
	}
	l.book(slot, at, 1)
	if a.longest > 0 {
		l.remember(slot, at, running{n: v.N, vector: append(l.last(slot, at).vector[:0], v.Value...)})
	}
	for i, x := range v.Value {
		if x-x != 0 { // NaN or ±Inf
			return ReleasedVector{}, fmt.Errorf("ledger: coordinate %d: %w", i, ErrValues)
		}
	}
	if write {
		if err := l.writeVector(slot, at, v); err != nil {
			return ReleasedVector{}, err
		}
	}
	return ReleasedVector{v}, nil
}

// followed is the usual case of a continual mechanism: the vector of more rewards than the last
// one's, which is paid for.
func (r *running) followed(at int32, v *Vector) bool {
	if r.account != at || v.N <= r.n || v.N > r.room || len(v.Value) != len(r.vector) {
		return false
	}
	for _, x := range v.Value {
		if x-x != 0 {
			return false
		}
	}
	r.more++
	r.n = v.N
	copy(r.vector, v.Value)
	return true
}

// A vectorLine is a line of a transcript: the release of a vector.
type vectorLine struct {
	Slot      *int            `json:"slot"`
	Mechanism json.RawMessage `json:"mechanism"`
	N         int             `json:"n"`
	Vector    []float64       `json:"vector"`
}

func (l *Ledger) writeVector(slot int, at int32, v *Vector) error {
	m, err := json.Marshal(l.get(at).mechanism)
	if err != nil {
		return fmt.Errorf("ledger: transcript: %w", err)
	}
	b, err := json.Marshal(vectorLine{&slot, m, v.N, v.Value})
	if err != nil {
		return fmt.Errorf("ledger: transcript: %w", err)
	}
	if _, err := l.transcript.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("ledger: transcript: %w", err)
	}
	return nil
}

// RestoreVector is Restore for a line that holds the release of a vector. A line of the other
// kind is an error.
func (l *Ledger) RestoreVector(text []byte) (ReleasedVector, error) {
	var in vectorLine
	if err := strict(text, &in); err != nil {
		return ReleasedVector{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	switch {
	case in.Slot == nil:
		return ReleasedVector{}, errors.New(`ledger: transcript: the field "slot" is missing`)
	case in.N < 0:
		return ReleasedVector{}, fmt.Errorf("ledger: transcript: n is %d, must be at least 0", in.N)
	}
	m, err := UnmarshalMechanism(in.Mechanism)
	if err != nil {
		return ReleasedVector{}, fmt.Errorf("ledger: transcript: %w", err)
	}
	return l.releaseVector(*in.Slot, l.account(m), &Vector{in.N, in.Vector}, false)
}
