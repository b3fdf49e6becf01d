package privacy

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// blocks is a counter that there is not: a running sum is that of whole blocks of Width rewards, and
// of the rewards since the last one by themselves, with Lap(Scale) on each. A reward is in one block
// and in one place of it, which is two Laplace releases. This file is all that it takes, and its line
// in the table: see blocks_outside_test.go.
type blocks struct {
	Scale          float64
	Width, Horizon int
}

// Blocks puts the made-up counter into the table while a test runs.
func Blocks(t *testing.T, scale float64, width, horizon int) Mechanism {
	before := mechanisms
	mechanisms = tableOf(append(before.all[:len(before.all):len(before.all)], blocks{})...)
	t.Cleanup(func() { mechanisms = before })
	return blocks{scale, width, horizon}
}

func (blocks) Kind() string    { return "blocks" }
func (blocks) Continual() bool { return true }

func (m blocks) Validate() error {
	var width error
	if m.Width < 1 {
		width = fmt.Errorf("mechanism blocks: width is %d, must be at least 1", m.Width)
	}
	return errors.Join(treeShape("blocks", "scale", m.Scale, m.Horizon), width)
}

func (m blocks) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLevels(m.Scale, 2)
}

func (m blocks) nodes(t int) int { return t/m.Width + t%m.Width }

func (m blocks) variance(t int) float64 { return 2 * m.Scale * m.Scale * float64(m.nodes(t)) }

// Tail is that of the most nodes: see Tree.Tail.
func (m blocks) Tail() Tail {
	most := m.Horizon/m.Width + m.Width
	return Tail{Sigma: m.Scale * math.Sqrt(2*float64(most)), H: m.Scale}
}

func (m blocks) withScale(x float64) Mechanism { m.Scale = x; return m }

func (m blocks) draws() Draws {
	return Draws{Law: NoiseLaplace, Scale: m.Scale,
		Float:   func() Stream[float64] { return &blocksNoise[float64]{width: uint64(m.Width)} },
		Whole:   func() Stream[int64] { return &blocksNoise[int64]{width: uint64(m.Width)} },
		Weights: func(to []int, t int) []int { return ones(to, m.nodes(t)) },
		Shows: func(to []Shown, t int) []Shown {
			if t%m.Width == 0 {
				return append(to, Shown{t - m.Width, 1})
			}
			return append(to, Shown{t - 1, 1})
		}}
}

func (m blocks) facts() facts { return facts{sum: true, longest: m.Horizon} }
func (m blocks) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Scale} }
func (m blocks) String() string {
	return fmt.Sprintf("blocks(scale=%s,width=%d,horizon=%d)", number(m.Scale), m.Width, m.Horizon)
}

func (m *blocks) fields() []field {
	return []field{{"scale", &m.Scale}, {"width", &m.Width}, {"horizon", &m.Horizon}}
}

func (m blocks) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m blocks) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}

// blocksNoise is the noise of one slot.
type blocksNoise[T int64 | float64] struct {
	width, t    uint64
	whole, rest T
}

// At implements Stream. The rewards of a block that is passed by are never shown by themselves.
func (c *blocksNoise[T]) At(t uint64, noise Sampler[T]) (T, error) {
	for c.t < t {
		left := c.width - c.t%c.width
		x, err := noise.Draw(1)
		if err != nil {
			return 0, err
		}
		if t-c.t >= left {
			c.t += left
			c.whole, c.rest = c.whole+x, 0
		} else {
			c.t++
			c.rest += x
		}
	}
	return c.whole + c.rest, nil
}
