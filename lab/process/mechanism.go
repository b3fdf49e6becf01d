package process

import (
	"encoding/json"
	"errors"
	"fmt"

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
	m := &Mechanism{}
	var err error
	m.of, err = h.begin(of, m.read)
	return m, err
}

// begin starts a program that plays no policy.
func (h *Host) begin(of catalog.Program, read func([]byte) error) (*program, error) {
	of, err := checked(of)
	if err != nil {
		return nil, err
	}
	p := &program{host: h, of: of}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	h.known = append(h.known, p)
	return p, p.first(read)
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
	err := named(in.Sotto, in.Name)
	if err == nil && in.Claim == nil {
		err = errors.New(`claim is missing, must be a budget such as {"epsilon":1}`)
	}
	if err != nil {
		return err
	}
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
	out, err := m.of.numbers(c, m.line, "outputs", times)
	return append(to, out...), err
}

// numbers asks a process, which is then free, for so many numbers by a name.
func (p *program) numbers(c *child, line []byte, name string, times int) ([]float64, error) {
	line, err := c.ask(line)
	if err != nil {
		return nil, err
	}
	out, err := readNumbers(line, name, c.turn, times)
	if err != nil {
		c.end()
		return nil, p.fail(err)
	}
	p.free(c)
	return out, nil
}

// readNumbers reads the line of a turn, so many numbers by a name.
func readNumbers(line []byte, name string, turn, times int) ([]float64, error) {
	var in map[string]json.RawMessage
	err := strict(line, &in)
	said := in["turn"]
	delete(in, "turn")
	var numbers []*float64 // null is none, and no 0
	if err == nil && len(in) == 1 && in[name] != nil {
		err = json.Unmarshal(in[name], &numbers)
	}
	if err != nil || numbers == nil {
		return nil, bad(line, `{"`+name+`":[NUMBER,…],"turn":TURN}`, err)
	}
	if err := sameTurn(string(said), turn); err != nil {
		return nil, err
	}
	if len(numbers) != times {
		return nil, fmt.Errorf("%s has %d numbers, must have %d", name, len(numbers), times)
	}
	out := make([]float64, times)
	for i, x := range numbers {
		if x == nil {
			return nil, fmt.Errorf("%s[%d] is null, must be a number", name, i)
		}
		out[i] = *x
	}
	return out, nil
}
