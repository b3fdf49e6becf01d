package serve

import (
	"math"
	"sync"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// noiseUnit is what the known curator's noise is a multiple of, in rewards: far above every sum of
// a test, so that a released sum says both what was summed and what was drawn.
const noiseUnit = 1 << 20

// A known curator is a curator whose noise a test can take off: a multiple of noiseUnit, drawn anew
// for each release.
type known struct {
	release.StepCurator // for what is refused
	ledger              *privacy.Ledger
	mechanism           privacy.Mechanism
	next                int
	draw                func() int
	n                   []int
	steps               []int64
}

func knownNoise(draw func() int) func(release.Config) (release.Curator, error) {
	return func(c release.Config) (release.Curator, error) {
		k := &known{ledger: c.Ledger, mechanism: c.Mechanism, draw: draw, n: make([]int, c.Arms),
			steps: make([]int64, c.Arms)}
		for _, e := range c.Ledger.Entries() {
			k.next = max(k.next, e.Slot+1)
		}
		return k, nil
	}
}

func (k *known) Ledger() *privacy.Ledger { return k.ledger }

func (k *known) AddSteps(arm, n int, steps int64) error {
	k.n[arm] += n
	k.steps[arm] += steps
	return nil
}

// AddNoisy takes what was gathered, as release.Gathered does.
func (k *known) AddNoisy(arm, _ int, sum int64) error {
	k.steps[arm] += sum
	return nil
}

func (k *known) Release(arms []int) (privacy.Released, error) {
	v := &privacy.Values{Tail: privacy.Tail{H: 1}}
	var slots []int
	for _, a := range arms {
		v.N = append(v.N, k.n[a])
		v.Sum = append(v.Sum, float64(k.steps[a])*release.ExactStep+float64(noiseUnit*k.draw()))
		k.n[a], k.steps[a] = 0, 0
		slots = append(slots, k.next)
		k.next++
	}
	return k.ledger.ReleaseAll(slots, k.mechanism, v)
}

// stepsOf is the sum without the noise, in steps.
func stepsOf(sum float64) int64 {
	return int64(math.Mod(sum, noiseUnit) / release.ExactStep)
}

// sums are what releases were given, by arm.
type sums struct {
	mu    sync.Mutex
	n     map[int]int
	steps map[int]int64
}

func newSums() *sums { return &sums{n: map[int]int{}, steps: map[int]int64{}} }

func (s *sums) tell(arm, n int, steps int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[arm] += n
	s.steps[arm] += steps
}
