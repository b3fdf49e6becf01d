package release

import (
	"sync"
	"sync/atomic"

	"github.com/sotto-dp/sotto/privacy"
)

// leastAhead is how many draws are ready at least, once there was time for them.
const leastAhead = 32

// mostAhead bounds them: those of a curator with more numbers are drawn when they are needed.
const mostAhead = 4096

// ahead is a sampler whose noise was drawn before it is asked for. Exact samplers reject and repeat, so
// that the time of a draw tells of the noise, and with the release of the sum (docs/timing.md). Nobody
// waits for a draw that was made ahead: when it is made follows from how many were taken, which is public,
// and it is seen by nobody before it is used. It is in memory alone: what a crash loses was in no release.
//
// The values are those of the law, in its order.
type ahead struct {
	law   sampler[int64] // from whose bits nobody else draws
	stock chan drawn
	busy  atomic.Bool
	mu    sync.Mutex // held to draw
	over  bool
}

type drawn struct {
	x   int64
	err error
}

// newAhead is ready for a release of so many numbers.
func newAhead(law sampler[int64], most int) *ahead {
	a := &ahead{law: law, stock: make(chan drawn, min(max(most, leastAhead), mostAhead))}
	a.refill()
	return a
}

// Draw takes what was drawn first, and draws if nothing is ready.
func (a *ahead) Draw(int) (int64, error) {
	defer a.refill()
	select {
	case d := <-a.stock:
		return d.x, d.err
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case d := <-a.stock:
		return d.x, d.err
	default:
		return a.law.Draw(1)
	}
}

// refill draws beside whoever goes on, so that all slots of one release find their noise ready.
func (a *ahead) refill() {
	if len(a.stock) < cap(a.stock) && a.busy.CompareAndSwap(false, true) {
		go a.fill()
	}
}

func (a *ahead) fill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.over && len(a.stock) < cap(a.stock) {
		x, err := a.law.Draw(1)
		a.stock <- drawn{x, err}
	}
	a.busy.Store(false)
}

// stop waits for the last draw ahead.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// drawAhead has a curator of real rewards draw ahead where a release takes a draw for each sum: Laplace
// and Gaussian noise, which is all that a live play of arms has.
func drawAhead(c *curator[int64]) {
	build := c.build
	var last *ahead
	with := func(p recipe[int64]) recipe[int64] {
		if _, none := p.noise.(silent); p.family == once && p.noise != nil && !none {
			last = newAhead(p.noise, len(c.slots))
			p.noise = last
		}
		return p
	}
	c.build = func(m privacy.Mechanism) (recipe[int64], error) {
		if last != nil { // the next law has the same bits
			last.stop()
		}
		p, err := build(m)
		if err != nil {
			return p, err
		}
		return with(p), nil
	}
	c.recipe = with(c.recipe)
}
