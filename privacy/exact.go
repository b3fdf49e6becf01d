package privacy

// Exact releases running sums without noise. It costs ∞.
type Exact struct{}

func (Exact) Kind() string    { return "exact" }
func (Exact) Continual() bool { return true }

// Validate accepts Exact always.
func (Exact) Validate() error { return nil }

// Loss is infinite.
func (Exact) Loss() Loss { return InfiniteLoss() }

// Tail of no noise.
func (Exact) Tail() Tail { return Tail{} }

func (Exact) draws() Draws     { return Draws{} }
func (Exact) facts() facts     { return facts{sum: true, vector: true} }
func (m Exact) entry() Entry   { return Entry{Sensitivity: 1} }
func (m Exact) String() string { return "exact" }

// MarshalJSON writes {"mechanism":"exact"}.
func (m Exact) MarshalJSON() ([]byte, error) { return encode(m.Kind(), nil) }

func (m Exact) read(data []byte) (Mechanism, error) { return m, decode(m.Kind(), data, nil) }
