package privacy

// A Vector is a noisy vector-valued statistic of one slot, such as Σ a·r over the actions a ∈ ℝ^d that were played, and how many rewards are in
// it. The curator owns it; it holds until its next release.
type Vector struct {
	N     int
	Value []float64
}

// ReleasedVector is to a Vector what Released is to Values: only a Ledger fills it, so who holds one holds numbers that were paid for. The zero
// value is "nothing released".
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

// ReleaseVector charges m to the slot once and seals the whole vector: the mechanism's sensitivity is that of all its coordinates together. Refusals
// and their errors are those of Release.
func (l *Ledger) ReleaseVector(slot int, m Mechanism, v *Vector) (ReleasedVector, error) {
	panic("to be written")
}
