package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

// A Mechanism is a mechanism of somebody else's: a program that is given records and says outputs,
// and what it claims of them. Audits play it; it makes no release.
type Mechanism struct {
	Name  string
	Claim privacy.Budget

	of   *program
	line []byte
}

// Mechanism starts a mechanism. One at a time may ask it.
func (h *Host) Mechanism(of catalog.Program) (*Mechanism, error) {
	var err error
	if of, err = checked(of); err != nil {
		return nil, err
	}
	m := &Mechanism{of: &program{host: h, of: of}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	h.known = append(h.known, m.of)
	return m, m.of.first(m.read)
}

func (m *Mechanism) read(line []byte) error {
	var in struct {
		Sotto json.Number
		Name  string
		Claim json.RawMessage
	}
	if err := strict(line, &in); err != nil {
		return bad(line, `{"sotto":1,"name":"mine","claim":{"epsilon":1}}`, err)
	}
	switch {
	case in.Sotto.String() != strconv.Itoa(Version):
		return fmt.Errorf("sotto is %q, must be %d, the version of the format", clip(in.Sotto.String()), Version)
	case !nameForm.MatchString(in.Name) || len(in.Name) > maxName:
		return fmt.Errorf("name is %q, must be of a-z, 0-9, dash and underscore, a letter first, at most %d of them",
			clip(in.Name), maxName)
	case in.Claim == nil:
		return errors.New(`claim is missing, must be a budget such as {"epsilon":1}`)
	}
	var err error
	if m.Claim, err = privacy.UnmarshalBudget(in.Claim); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if _, none := m.Claim.(privacy.None); none {
		return errors.New(`claim is "none", must be a budget such as {"epsilon":1}`)
	}
	m.Name = in.Name
	return nil
}

// Outputs appends so many outputs on records, by a seed below 2⁵³, each with noise of its own.
func (m *Mechanism) Outputs(to, records []float64, times int, seed uint64) ([]float64, error) {
	c, err := m.of.lease()
	if err != nil {
		return nil, err
	}
	m.line = append(m.line[:0], `{"records":[`...)
	for i, x := range records {
		if i > 0 {
			m.line = append(m.line, ',')
		}
		m.line = number(m.line, x)
	}
	m.line = fmt.Appendf(m.line, "],\"times\":%d,\"seed\":%d}\n", times, seed)
	line, err := c.ask(m.line, m.of.of.Seconds)
	if err != nil {
		return nil, err
	}
	var in struct{ Outputs []float64 }
	if err = strict(line, &in); err != nil {
		err = bad(line, `{"outputs":[NUMBER,…]}`, err)
	} else if len(in.Outputs) != times {
		err = fmt.Errorf("outputs has %d numbers, must have %d", len(in.Outputs), times)
	}
	if err != nil {
		c.end()
		return nil, m.of.fail(err)
	}
	m.of.free(c)
	return append(to, in.Outputs...), nil
}
