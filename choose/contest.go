package choose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/pool"
)

// A contest ranks entrants by the mean of what play returns for them, the least first. It knows
// nothing of bandits.
type contest struct {
	// the first ranked of all entrants are ranked; the others get no more runs than
	// they need for a mean
	ranked, all       int
	level, resolution float64
	strict            bool
	risk              float64 // level of the mean of bad runs; 0: it is not read
	byRisk            bool    // the ranking is by that
	top               float64 // values are in [0, top]
	min, max, effort  int
	workers           int
	limit             time.Duration
	// play fills out with the values of runs first, first+1, …, a function of entrant and run
	// alone, and returns the largest work of a run.
	play     func(ctx context.Context, entrant, first int, out []float64) (work int, err error)
	progress func(Progress)

	sizes      []int     // of samples, increasing
	base       int       // the one that is min
	multiplier []float64 // of Student's intervals, by size; 0: not yet known
	entrant    []played
	pairs      map[[2]int]judgement // of entrants a < b
	order      []int                // ranked entrants, best first
	stopped    string
}

// played is what is known of one entrant.
type played struct {
	x     []float64 // its values; whole samples only
	size  int       // index of the sample's size; −1: none
	floor int       // size it must have before it is judged
	sure  int       // size it must have to be first
	cap   int       // size it may not pass
	work  int       // largest work of a run so far
}

// A judgement is what is known of a pair.
type judgement struct {
	verdict Verdict
	first   bool // if Better: it is the first of the pair
	proved  bool // without a central limit theorem, at every size at once
	size    int  // of the sample that it rests on
}

// fewest is the least number of runs that a sample has, where the question does not want fewer.
const fewest = 16

// again is how many times min the first entrant of the ranking and the next one must have been
// played: what is rarer than one in min may be why they are in front.
const again = 16

// ErrTime is matched when the time was over before there was anything to say.
var ErrTime = errors.New("time is over")

func (c *contest) run(ctx context.Context) error {
	c.plan()
	limited := ctx
	if c.limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, c.limit, ErrTime)
		defer cancel()
	}
	want := make([]int, c.all) // sizes
	for look, total := 1, 0; ; look++ {
		late, err := c.raise(ctx, limited, want)
		if err != nil {
			return err
		}
		for i := range c.entrant {
			if c.entrant[i].size < 0 {
				return fmt.Errorf("%w: after %v some policies have not yet been played %d times",
					ErrTime, c.limit, c.sizes[0])
			}
		}
		c.settle()
		c.rank()
		next, unsettled := c.wanted(want)
		if c.progress != nil {
			total = 0
			for i := range c.entrant {
				total += len(c.entrant[i].x)
			}
			c.progress(Progress{Look: look, Policies: c.ranked, Runs: total, Unsettled: unsettled, Next: next})
		}
		switch {
		case unsettled == 0 && (next == 0 || late):
			c.stopped = "settled"
		case late:
			c.stopped = "time"
		case next == 0:
			c.stopped = "runs"
			for k := 1; k < len(c.order); k++ {
				a, b := &c.entrant[c.order[k-1]], &c.entrant[c.order[k]]
				if c.verdict(c.order[k-1], c.order[k]) == Unsettled && min(len(a.x), len(b.x)) < c.max {
					c.stopped = "effort"
				}
			}
		default:
			continue
		}
		return nil
	}
}

// plan fixes the sizes of samples, before anything is played.
func (c *contest) plan() {
	for s := 16; s > 0; s-- {
		if n := c.min >> s; n >= fewest {
			c.sizes = append(c.sizes, n)
		}
	}
	c.base = len(c.sizes)
	for n := c.min; n < c.max; n *= 2 {
		c.sizes = append(c.sizes, n)
	}
	c.sizes = append(c.sizes, c.max)
	c.multiplier = make([]float64, len(c.sizes))
	c.entrant = make([]played, c.all)
	for i := range c.entrant {
		c.entrant[i].size = -1
	}
	c.pairs = map[[2]int]judgement{}
}

// within is the largest size whose runs stay within an effort.
func (c *contest) within(work, effort int) int {
	k := 0
	for k+1 < len(c.sizes) && c.sizes[k+1] <= effort/max(work, 1) {
		k++
	}
	return k
}

// raise plays until every entrant has the size that is wanted of it; late says that the time was
// over first. Samples that are not whole are dropped.
func (c *contest) raise(ctx, limited context.Context, want []int) (late bool, err error) {
	type task struct{ entrant, from, to int }
	var tasks []task
	missing := make([]int, c.all)
	for i := range c.entrant {
		e := &c.entrant[i]
		if want[i] <= e.size {
			continue
		}
		n := c.sizes[want[i]]
		chunk := 1 // nothing is known of it yet
		if e.size >= 0 {
			chunk = min(max((1<<21)/max(e.work, 1), 1), 64)
		}
		from := len(e.x)
		e.x = append(e.x, make([]float64, n-from)...)
		for ; from < n; from += chunk {
			tasks = append(tasks, task{i, from, min(from+chunk, n)})
			missing[i]++
		}
	}
	// The longest first, so that no worker is left with one at the end.
	slices.SortStableFunc(tasks, func(a, b task) int {
		return cmp.Compare(c.entrant[b.entrant].work*(b.to-b.from), c.entrant[a.entrant].work*(a.to-a.from))
	})
	var mu sync.Mutex
	err = pool.Run(limited, c.workers, len(tasks), func() func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			t := tasks[i]
			work, err := c.play(ctx, t.entrant, t.from, c.entrant[t.entrant].x[t.from:t.to])
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			c.entrant[t.entrant].work = max(c.entrant[t.entrant].work, work)
			missing[t.entrant]--
			return nil
		}
	})
	if ctx.Err() != nil {
		return false, fmt.Errorf("stopped: %w", pool.Stopped(ctx))
	}
	// A deadline cuts runs short; any other error is a failure.
	if err != nil && limited.Err() == nil {
		return false, err
	}
	late = err != nil
	for i := range c.entrant {
		e := &c.entrant[i]
		if want[i] <= e.size {
			continue
		}
		if missing[i] == 0 {
			e.size = want[i]
		}
		if e.size < 0 {
			e.x = nil
			continue
		}
		e.x = e.x[:c.sizes[e.size]]
		e.floor, e.cap = min(c.within(e.work, c.effort/8), c.base), c.within(e.work, c.effort)
		e.sure = e.floor
		for e.sure < c.within(e.work, c.effort/4) && c.sizes[e.sure+1] <= again*c.min {
			e.sure++
		}
	}
	return late, nil
}

// wanted says which sizes come next, how many entrants grow, and how many neighbours are not settled.
func (c *contest) wanted(want []int) (next, unsettled int) {
	for i := range c.entrant {
		want[i] = max(c.entrant[i].size, c.entrant[i].floor)
	}
	for k, i := range c.order {
		if k < 2 && c.ranked > 1 && want[i] == c.entrant[i].size {
			want[i] = max(want[i], c.entrant[i].sure)
		}
	}
	for k := 1; k < len(c.order); k++ {
		i, j := c.order[k-1], c.order[k]
		if c.verdict(i, j) != Unsettled {
			continue
		}
		unsettled++
		a, b := &c.entrant[i], &c.entrant[j]
		// The smaller sample bounds what a pair can say; a long one helps alone, if the other has
		// reached its end.
		growA, growB := a.size < a.cap, b.size < b.cap
		if growA && (a.size <= b.size || !growB) {
			want[i] = max(want[i], a.size+1)
		}
		if growB && (b.size <= a.size || !growA) {
			want[j] = max(want[j], b.size+1)
		}
	}
	for i := range c.entrant {
		if want[i] > c.entrant[i].size {
			next++
		}
	}
	return next, unsettled
}

// settle judges the pairs that have more runs than when they were judged last, or are not settled.
// Every judgement at every size holds with what was promised, so that the last one may replace an
// earlier one. One that the longer sample casts doubt on is withdrawn.
func (c *contest) settle() {
	bounds := make([]span, c.ranked)
	for i := range bounds {
		if c.byRisk {
			_, bounds[i] = c.tail(i)
		} else {
			bounds[i] = c.bound(i)
		}
	}
	for i := range c.ranked {
		for j := i + 1; j < c.ranked; j++ {
			pair := [2]int{i, j}
			old, known := c.pairs[pair]
			known = known && old.verdict != Unsettled
			if known && old.size == min(c.entrant[i].size, c.entrant[j].size) {
				continue
			}
			judge := c.judge
			if c.byRisk {
				judge = c.judgeRisk
			}
			now, doubt := judge(i, j, bounds[i], bounds[j])
			if known && now.verdict == Unsettled && !doubt(old) {
				now.verdict, now.first, now.proved = old.verdict, old.first, old.proved
			}
			c.pairs[pair] = now
		}
	}
}

// verdict is what is known of i and j: Better if i is better. It is Unsettled where j is better.
func (c *contest) verdict(i, j int) Verdict {
	p, known := c.pairs[[2]int{min(i, j), max(i, j)}]
	if !known || p.verdict == Better && p.first != (i < j) {
		return Unsettled
	}
	return p.verdict
}

// worse marks the entrants that are worse than this one, or than one that is.
func (c *contest) worse(than int) []bool {
	marked := make([]bool, c.ranked)
	for todo := []int{than}; len(todo) > 0; todo = todo[1:] {
		for i := range marked {
			if !marked[i] && c.verdict(todo[0], i) == Better {
				marked[i] = true
				todo = append(todo, i)
			}
		}
	}
	return marked
}

// rank orders the entrants: by their means, or those of bad runs, where that contradicts no settled pair. (Samples of
// different sizes can.)
func (c *contest) rank() {
	rest := make([]int, c.ranked)
	mean := make([]float64, c.ranked)
	for i := range rest {
		rest[i] = i
		mean[i] = c.rankedBy(i)
	}
	slices.SortStableFunc(rest, func(i, j int) int { return cmp.Compare(mean[i], mean[j]) })
	c.order = c.order[:0]
	for len(rest) > 0 {
		at := slices.IndexFunc(rest, func(i int) bool {
			return !slices.ContainsFunc(rest, func(j int) bool { return c.verdict(j, i) == Better })
		})
		at = max(at, 0) // a circle: some statement is wrong, which has probability level
		c.order = append(c.order, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
}
