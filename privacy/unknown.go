package privacy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Unknown is a mechanism that was read from a file, or given to a ledger, and that this package
// cannot price. It costs ∞, and is written as it was read.
type Unknown struct {
	Name string // its kind
	raw  string // the JSON it was read from, if any; a string, so that mechanisms can be compared
}

func (m Unknown) Kind() string  { return m.Name }
func (Unknown) Continual() bool { return false }

// Validate accepts Unknown always: it may be recorded, at a cost of ∞.
func (Unknown) Validate() error { return nil }

// Loss is infinite.
func (Unknown) Loss() Loss { return InfiniteLoss() }

// What costs ∞ has no sensitivity, and is any of them.
func (Unknown) facts() facts   { return facts{sum: true, vector: true} }
func (m Unknown) entry() Entry { return Entry{Sensitivity: math.Inf(1)} }

func (m Unknown) String() string { return fmt.Sprintf("unknown(%q)", m.Name) }

// MarshalJSON writes what was read.
func (m Unknown) MarshalJSON() ([]byte, error) {
	if m.raw != "" {
		return []byte(m.raw), nil
	}
	return encode(m.Name, nil)
}

// read keeps the text, and what it is of Name.
func (m Unknown) read(data []byte) (Mechanism, error) {
	var raw bytes.Buffer
	if err := json.Compact(&raw, data); err != nil {
		return nil, fmt.Errorf("mechanism: %w", err)
	}
	return Unknown{Name: m.Name, raw: raw.String()}, nil
}
