// Package sim plays policies against environments, with the curator in between: exactly, and
// without anything of length T. Begin with Run.
//
// A policy asks for a batch, "arm a, n rounds, then release"; nothing can change its mind before
// the release. So a run counts the slots while they fill and draws the sum of n rewards at once
// when a slot is released: a run of 10⁷ rounds costs as much as its releases.
//
// Run plays bandits of K arms, RunLinear those with a fixed set of actions in ℝ^d, both in that
// way. RunContextual plays decision sets that are drawn anew in each round, and so goes round by
// round. RunDelayed and RunVisits play as live experiments do, whose rewards come late: on arms,
// through play.Live itself, and with contexts, each of which is asked about once a release.
package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// ErrStopped is matched by the error of a run whose policy stopped before the horizon, or asked for
// what cannot be played.
var ErrStopped = errors.New("the policy stopped before the horizon")

// A Config is one run.
type Config struct {
	Policy   policy.Policy
	Instance bandit.Instance
	Horizon  int // T, rounds, at least 1
	// Lo and Hi are the declared range of rewards; both 0 means [0,1]. Rewards outside are clipped
	// before anything sees them.
	Lo, Hi float64
	// Unclipped feeds rewards as they are, as some papers' experiments do. The run has no privacy
	// guarantee then, and its ledger says ∞.
	Unclipped bool
	// Checkpoints are the rounds at which the run is looked at: increasing, from 1 to Horizon.
	Checkpoints []int
	// Rewards has one stream an arm: as long as the releases of an arm have the same sizes they are
	// the same, whatever was played in between.
	Rewards []noise.Fast
	Noise   *noise.Fast // privacy noise
	// Trust, if set, has releases made so that less has to be believed. A batch that too few users
	// answered is played again, with new users, in rounds that count.
	Trust *release.Trust
	// Ledger, if set, is where releases are recorded: one with a cap, or a transcript. It must
	// be this run's own.
	Ledger *privacy.Ledger
	Trace  *Trace // if set, receives the run's segments
	// Intervals, if set, are filled in at the end; of Run.
	Intervals *Intervals
	// Contexts, if set, are those that people come with; of Run.
	Contexts *Contexts
}

// A Result is what a run leaves. Regret and PlaysBest have one entry a checkpoint. Run reuses the
// slices it is given.
type Result struct {
	Regret    []float64 // pseudo-regret Σ_a Δ_a N_a(t), in units of reward
	PlaysBest []float64 // plays of the arms with the highest mean
	// of each arm, at the horizon; of a contextual run, of each index of its decision sets
	Plays []int
	// how many times the curator let something out, answers to questions included
	Releases int
	Loss     privacy.Loss
}

// Run plays one run to its horizon, and ends its policy (policy.End).
func Run(ctx context.Context, cfg Config, out *Result) error {
	if err := cfg.check(); err != nil {
		return err
	}
	defer policy.End(cfg.Policy)
	lo, hi := release.Range(cfg.Lo, cfg.Hi)
	arms := len(cfg.Instance.Arms)
	cur, err := release.Simulated(release.Config{
		Arms: arms, Lo: lo, Hi: hi, Mechanism: cfg.Policy.Mechanism(), Unclipped: cfg.Unclipped,
		Trust: cfg.Trust, Ledger: cfg.Ledger,
	}, cfg.Noise)
	if err != nil {
		return err
	}
	watch, to, err := watched(cfg.Intervals, cfg, cfg.Policy, cur, lo, hi)
	if err != nil {
		return err
	}
	if err := cfg.Contexts.begin(cfg.Policy, arms, append(slices.Clone(cfg.Checkpoints), cfg.Horizon), &cfg); err != nil {
		return err
	}
	r := run{
		driver:  play.Driver{Policy: cfg.Policy, Curator: cur},
		curve:   newCurve(cfg.Instance.Arms, cfg.Contexts.of(), cfg.Horizon, cfg.Checkpoints, cfg.Trace, out),
		feed:    newFeed(cfg.Instance, cfg.Rewards, to, lo, hi, cfg.Unclipped, cfg.Trust != nil),
		changes: cfg.Instance.Changes,
		watch:   watch,
	}
	switch stopped, err := r.play(ctx); {
	case err != nil:
		return err
	case stopped:
		return fmt.Errorf("sim: round %d of %d: %w", r.curve.t, cfg.Horizon, ErrStopped)
	}
	if watch != nil {
		if err := watch.end(&r.feed, r.curve.plays); err != nil {
			return err
		}
	}
	out.Plays = r.curve.all(out.Plays)
	out.Releases = r.driver.Releases
	out.Loss = cur.Ledger().Total()
	return nil
}

func (c *Config) check() error {
	arms := len(c.Instance.Arms)
	switch {
	case c.Policy == nil:
		return errors.New("sim: policy is missing")
	case arms < 2:
		return fmt.Errorf("sim: the instance has %d arms, must have at least 2", arms)
	case c.Horizon < 1:
		return fmt.Errorf("sim: horizon is %d, must be at least 1", c.Horizon)
	case len(c.Rewards) != arms:
		return fmt.Errorf("sim: %d reward streams for %d arms, must be one an arm", len(c.Rewards), arms)
	case c.Noise == nil:
		return errors.New("sim: noise stream is missing")
	case c.Instance.Drifts() && c.Trust != nil && c.Trust.Dropout > 0:
		return errDrift
	}
	if err := c.Instance.Validate(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return checkCheckpoints(c.Checkpoints, c.Horizon)
}

func checkCheckpoints(at []int, horizon int) error {
	last := 0
	for _, t := range at {
		if t <= last || t > horizon {
			return fmt.Errorf("sim: checkpoint %d, must increase from 1 to the horizon, %d", t, horizon)
		}
		last = t
	}
	return nil
}

// A run plays batches. Its driver lets slots out, and its feed fills them just before that.
type run struct {
	driver  play.Driver
	curve   curve
	feed    feed
	again   [1]policy.Play
	changes []bandit.Change // that are to come
	watch   *watch          // nil: nobody asks for intervals
}

// looksBetween is how many rounds a policy may decide before the context is looked at again.
const looksBetween = 1 << 16

// play plays to the horizon, or until the policy stops by itself.
func (r *run) play(ctx context.Context) (stopped bool, err error) {
	stayer, _ := r.driver.Policy.(policy.Stayer)
	// Elsewhere release.Repeat would repeat nothing, and asking would only cost time.
	if _, tree := r.driver.Policy.Mechanism().(privacy.Tree); !tree {
		stayer = nil
	}
	for looks := 0; ; looks-- {
		if looks <= 0 {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			looks = looksBetween
		}
		b, err := r.driver.Next()
		if b == nil || err != nil {
			return err == nil, err
		}
		if b.Fresh {
			clear(r.feed.waiting)
		}
		if len(r.changes) > 0 {
			if err := r.turn(b); err != nil {
				return false, err
			}
		}
		if fits, err := r.curve.take(b); !fits || err != nil {
			return false, err
		}
		for i := range b.Plays {
			arm := b.Plays[i].Arm
			if r.feed.waiting[arm] += b.Plays[i].Rounds; b.Plays[i].Release {
				if err := r.feed.fill(arm); err != nil {
					return false, err
				}
			}
		}
		if err := r.driver.Close(); err != nil {
			if fits, err := r.retry(ctx, err); !fits || err != nil {
				return false, err
			}
		}
		if r.watch != nil {
			if err := r.watch.learn(b, r.driver.Released); err != nil {
				return false, err
			}
		}
		if r.curve.t == r.curve.horizon { // what was just released may be enough for an answer
			return r.driver.Policy.Next(r.driver.Released) == nil, policy.Err(r.driver.Policy)
		}
		if stayer != nil && len(b.Plays) == 1 && b.Plays[0].Release {
			n, err := r.stay(stayer, b.Plays[0].Arm)
			if err != nil {
				return false, err
			}
			looks -= n
		}
	}
}

// retry plays a batch again that too few users answered, in rounds that count.
func (r *run) retry(ctx context.Context, failed error) (fits bool, err error) {
	for failed != nil {
		b, err := r.feed.again(failed)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		if fits, err := r.curve.take(b); !fits || err != nil {
			return false, err
		}
		if err := r.feed.refill(b); err != nil {
			return false, err
		}
		failed = r.driver.Close()
	}
	return true, nil
}

// stay plays an arm again, and releases it, for as long as the policy would ask for nothing else,
// but for the last round: that is released to nobody.
func (r *run) stay(p policy.Stayer, arm int) (int, error) {
	rounds, while := p.Stay()
	if rounds = min(rounds, min(r.curve.horizon-1, r.until())-r.curve.t,
		looksBetween); rounds <= 0 || r.feed.oneByOne[arm] {
		return 0, nil
	}
	d := &r.driver
	n, last, err := release.Repeat(d.Curator, arm, rounds, while, d.Released, r.feed.laws[arm],
		&r.feed.streams[arm])
	if err != nil || n == 0 {
		return 0, err
	}
	p.Stayed(n)
	d.Released = last
	d.Releases += n
	r.again[0] = policy.Play{Arm: arm, Rounds: n, Release: true}
	r.curve.batch(&policy.Batch{Plays: r.again[:]}, n)
	return n, nil
}

// A feed draws what a slot has been waiting for, when it is released.
type feed struct {
	laws     []bandit.Law
	streams  []noise.Fast
	in       intake
	waiting  []int // rounds of each arm that have been played and not drawn
	size     []int // of each arm's slot, when it was last filled
	oneByOne []bool
}

// An intake is what a curator takes rewards in with.
type intake interface {
	Add(arm int, reward float64) error
	AddSum(arm, n int, sum float64) error
}

// newFeed returns the feed of an instance's arms. The declared range is [lo, hi]; encoded says that
// rewards are rounded one by one: then the sum is enough of those only that are 0 or 1.
func newFeed(in bandit.Instance, streams []noise.Fast, to intake, lo, hi float64, unclipped,
	encoded bool) feed {
	k := len(in.Arms)
	f := feed{laws: in.Arms, streams: streams, in: to, waiting: make([]int, k), size: make([]int, k),
		oneByOne: make([]bool, k)}
	f.look(in.Arms, lo, hi, unclipped, encoded)
	for _, c := range in.Changes {
		f.look(c.Arms, lo, hi, unclipped, encoded)
	}
	return f
}

// look notes which arms' rewards have to be drawn one by one.
func (f *feed) look(laws []bandit.Law, lo, hi float64, unclipped, encoded bool) {
	for a, law := range laws {
		from, to := law.Support()
		// The curator must see each reward that it may have to clip.
		if !unclipped && (from < lo || to > hi) {
			f.oneByOne[a] = true
		}
		if _, bits := law.(bandit.Bernoulli); encoded && !(bits && lo == 0 && hi == 1) {
			f.oneByOne[a] = true
		}
	}
}

// again is the batch to play once more, if that is what the error says: nobody has seen what its
// users had. Any other error it returns.
func (f *feed) again(err error) (*policy.Batch, error) {
	var few *release.TooFewError
	if !errors.As(err, &few) {
		return nil, err
	}
	b := &policy.Batch{}
	for _, a := range few.Arms {
		b.Plays = append(b.Plays, policy.Play{Arm: a, Rounds: f.size[a], Release: true})
	}
	return b, nil
}

// refill draws the rewards of a batch that is played again: none were waiting.
func (f *feed) refill(b *policy.Batch) error {
	for _, p := range b.Plays {
		f.waiting[p.Arm] = p.Rounds
		if err := f.fill(p.Arm); err != nil {
			return err
		}
	}
	return nil
}

// fill draws the rewards of the arm that are waiting, at once if their sum is enough.
func (f *feed) fill(arm int) error {
	n := f.waiting[arm]
	f.waiting[arm], f.size[arm] = 0, n
	return f.draw(arm, n, arm)
}

// draw draws so many rewards of an arm for a slot of the curator.
func (f *feed) draw(arm, n, slot int) error {
	law, stream := f.laws[arm], &f.streams[arm]
	if !f.oneByOne[arm] {
		return f.in.AddSum(slot, n, law.Sum(n, stream))
	}
	for range n {
		if err := f.in.Add(slot, law.Draw(stream)); err != nil {
			return err
		}
	}
	return nil
}

// A curve is looked at as batches pass by.
type curve struct {
	horizon int
	last    int // the last round whose release is of use
	at      []int
	next    int // checkpoint
	t       int // rounds so far
	gaps    []float64
	each    int // arms of a context
	plays   []int
	best    []bool
	count   []int
	regret  []float64
	hits    []float64
	trace   *Trace

	// under laws that are no more: the regret, plays of the best arms, and of each
	lost, hit float64
	earlier   []int
}

func newCurve(laws []bandit.Law, contexts, horizon int, at []int, trace *Trace, out *Result) curve {
	arms := len(laws)
	c := curve{horizon: horizon, last: horizon - 1, at: at, gaps: make([]float64, arms), each: arms / contexts,
		plays: make([]int, arms),
		best:  make([]bool, arms), count: make([]int, arms), trace: trace}
	c.gap(laws)
	out.room(len(at))
	c.regret, c.hits = out.Regret, out.PlaysBest
	return c
}

// gap notes what a play of each arm loses.
func (c *curve) gap(laws []bandit.Law) {
	for from := 0; from < len(laws); from += c.each {
		top := math.Inf(-1)
		for _, law := range laws[from : from+c.each] {
			top = max(top, law.Mean())
		}
		for a := from; a < from+c.each; a++ {
			c.gaps[a] = top - laws[a].Mean()
			c.best[a] = c.gaps[a] == 0
		}
	}
}

// room makes room for n checkpoints.
func (r *Result) room(n int) {
	grow := func(s []float64) []float64 {
		if cap(s) < n {
			return make([]float64, n)
		}
		return s[:n]
	}
	r.Regret, r.PlaysBest = grow(r.Regret), grow(r.PlaysBest)
}

// take records a batch, cut by the horizon. It fits if what it releases is of use: nothing reads
// the release of a batch that reaches the horizon, unless that is an identification rule's cap, and
// one that is cut never gets as far.
func (c *curve) take(b *policy.Batch) (fits bool, err error) {
	n, from := b.Rounds(), c.t
	if n <= 0 {
		return false, fmt.Errorf("sim: round %d of %d: empty batch: %w", from, c.horizon, ErrStopped)
	}
	c.batch(b, min(n, c.horizon-from))
	return n <= c.last-from, nil
}

// batch records the first m rounds of a batch.
func (c *curve) batch(b *policy.Batch, m int) {
	if c.trace != nil {
		c.trace.add(b, c.t, m)
	}
	end := c.t + m
	if len(b.Plays) == 1 {
		arm := b.Plays[0].Arm
		for c.next < len(c.at) && c.at[c.next] <= end {
			c.look(arm, c.at[c.next]-c.t)
		}
		c.plays[arm] += m
		c.t = end
		return
	}
	if len(b.Plays) > len(c.count) {
		c.count = make([]int, len(b.Plays))
	}
	for c.next < len(c.at) && c.at[c.next] <= end {
		b.Counts(c.at[c.next]-c.t, c.count)
		regret, hits := c.lost, c.hit
		for a, n := range c.plays {
			regret += float64(c.gaps[a] * float64(n))
			if c.best[a] {
				hits += float64(n)
			}
		}
		for i := range b.Plays {
			a, n := b.Plays[i].Arm, float64(c.count[i])
			regret += float64(c.gaps[a] * n)
			if c.best[a] {
				hits += n
			}
		}
		c.regret[c.next], c.hits[c.next] = regret, hits
		c.next++
	}
	b.Counts(m, c.count)
	for i := range b.Plays {
		c.plays[b.Plays[i].Arm] += c.count[i]
	}
	c.t = end
}

// look is a checkpoint after extra more rounds of one arm.
func (c *curve) look(arm, extra int) {
	regret, hits := c.lost, c.hit
	gaps, best := c.gaps[:len(c.plays)], c.best[:len(c.plays)]
	c.plays[arm] += extra
	for a, n := range c.plays {
		regret += float64(gaps[a] * float64(n))
		if best[a] {
			hits += float64(n)
		}
	}
	c.plays[arm] -= extra
	c.regret[c.next], c.hits[c.next] = regret, hits
	c.next++
}
