package release

import (
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

var private = []privacy.Mechanism{
	privacy.Laplace{Scale: 2}, privacy.Gaussian{Sigma: 1.5}, privacy.Tree{Scale: 4, Horizon: 8},
	privacy.Hybrid{Scale: 1.25},
	privacy.KAry{Scale: 3, Base: 3, Horizon: 13},
}

// Counters with correlated noise, for simulations only.
var correlated = []privacy.Mechanism{
	privacy.SquareRoot{Sigma: 1.5, Horizon: 40},
	privacy.BLT{Sigma: 1.5, Horizon: 40, Decay: [privacy.Buffers]float64{0.99, 0.9, 0.5},
		Weight: [privacy.Buffers]float64{0.1, 0.17, 0.21}},
}

func TestCuratorsPassInspection(t *testing.T) {
	for _, m := range private {
		t.Run("simulated/"+m.Kind(), func(t *testing.T) {
			if bad := inspect(t, simulatedMaker, m); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
		t.Run("real/"+m.Kind(), func(t *testing.T) {
			if bad := inspect(t, exactMaker, m); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
	}
	for _, m := range correlated {
		t.Run("simulated/"+m.Kind(), func(t *testing.T) {
			if bad := inspect(t, simulatedMaker, m); len(bad) > 0 {
				t.Errorf("fails %q", bad)
			}
		})
	}
}

// broken builds a simulated curator and breaks it.
func broken(f func(c *curator[float64]) Curator) maker {
	return func(m privacy.Mechanism, run int) (Curator, error) {
		c, err := simulatedMaker(m, run)
		if err != nil {
			return nil, err
		}
		return f(c.(*curator[float64])), nil
	}
}

func TestBrokenTwinsAreCaught(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, twin := range []struct {
		name   string
		check  string // that must fail
		build  maker
		family func(m privacy.Mechanism) bool // of mechanisms that can be broken so
	}{
		{"half the noise", "law", broken(func(c *curator[float64]) Curator {
			c.noise = halved{c.noise}
			return c
		}), nil},
		{"half the noise in inner nodes", "shared nodes", broken(func(c *curator[float64]) Curator {
			c.noise = &lateHalved{sampler: c.noise}
			return c
		}), hasNodes},
		{"noise shared by two arms", "independent arms", broken(func(c *curator[float64]) Curator {
			c.noise = &repeated{sampler: c.noise, times: 2}
			return c
		}), nil},
		{"a stream shared by two arms", "independent arms", broken(func(c *curator[float64]) Curator {
			c.streams[1] = c.streams[0]
			return c
		}), func(m privacy.Mechanism) bool { _, ok := m.(privacy.SquareRoot); return ok }},
		{"one draw for ever", "successive releases", broken(func(c *curator[float64]) Curator {
			c.noise = &repeated{sampler: c.noise, times: 1 << 30}
			return c
		}), func(m privacy.Mechanism) bool { _, minus := m.(privacy.KAry); return !minus }}, // x and then x−x
		{"one draw for ever", "independent arms", broken(func(c *curator[float64]) Curator {
			c.noise = &repeated{sampler: c.noise, times: 1 << 30}
			return c
		}), nil},
		{"noise drawn again at the second look", "one look", broken(func(c *curator[float64]) Curator {
			return redrawing{c}
		}),
			privacy.Mechanism.Continual},
		{"noise drawn again at the second look", "shared nodes", broken(func(c *curator[float64]) Curator {
			return redrawing{c}
		}), hasNodes},
		{"a slot that is not emptied", "one look", broken(func(c *curator[float64]) Curator {
			return keeping{c}
		}),
			func(m privacy.Mechanism) bool { return !m.Continual() }},
		{"a reward counted in two releases", "sensitivity", broken(func(c *curator[float64]) Curator {
			return keeping{c}
		}),
			func(m privacy.Mechanism) bool { return !m.Continual() }},
		{"a reward counted twice", "sensitivity", broken(func(c *curator[float64]) Curator {
			return twice{c}
		}), nil},
		{"no clipping", "sensitivity", broken(func(c *curator[float64]) Curator {
			c.unclipped = true
			return finite{c}
		}), nil},
		{"charged for more noise than there is", "price", broken(func(c *curator[float64]) Curator {
			c.account = c.ledger.Account(privacy.Laplace{Scale: 100})
			c.charge = privacy.Laplace{Scale: 100}
			return c
		}), nil},
	} {
		for _, m := range slices.Concat(private, correlated) {
			if twin.family != nil && !twin.family(m) {
				continue
			}
			t.Run(twin.name+"/"+m.Kind(), func(t *testing.T) {
				if bad := inspect(t, twin.build, m); !slices.Contains(bad, twin.check) {
					t.Errorf("the check %q did not catch it; %q did", twin.check, bad)
				}
			})
		}
	}
}

// hasNodes says that the mechanism's releases can differ by one node.
func hasNodes(m privacy.Mechanism) bool {
	at, _ := shared(m)
	return at > 0
}

type halved struct{ sampler[float64] }

func (h halved) Draw(w int) (float64, error) {
	x, err := h.sampler.Draw(w)
	return x / 2, err
}

// lateHalved gives the first four draws as they are.
type lateHalved struct {
	sampler[float64]
	n int
}

func (h *lateHalved) Draw(w int) (float64, error) {
	x, err := h.sampler.Draw(w)
	if h.n++; h.n > 2 {
		x /= 2
	}
	return x, err
}

type repeated struct {
	sampler[float64]
	times, left int
	x           float64
}

func (r *repeated) Draw(w int) (float64, error) {
	if r.left == 0 {
		r.left = r.times
		x, err := r.sampler.Draw(1)
		if err != nil {
			return 0, err
		}
		r.x = x
	}
	r.left--
	return r.x, nil
}

type redrawing struct{ *curator[float64] }

func (c redrawing) Release(arms []int) (privacy.Released, error) {
	clear(c.counters)
	for a := range c.streams {
		c.streams[a] = c.fresh()
	}
	return c.curator.Release(arms)
}

type keeping struct{ *curator[float64] }

func (c keeping) Release(arms []int) (privacy.Released, error) {
	before := slices.Clone(c.slots)
	r, err := c.curator.Release(arms)
	for _, a := range arms {
		c.slots[a].n, c.slots[a].sum = before[a].n, before[a].sum
	}
	return r, err
}

type twice struct{ *curator[float64] }

func (c twice) Add(arm int, reward float64) error {
	err := c.curator.Add(arm, reward)
	c.slots[arm].sum += min(max(reward, 0), 1)
	return err
}

// finite spares what does not clip infinite rewards.
type finite struct{ *curator[float64] }

func (c finite) Add(arm int, reward float64) error {
	return c.curator.Add(arm, min(max(reward, -1e9), 1e9))
}
