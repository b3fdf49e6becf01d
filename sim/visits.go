package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Visits is a contextual world of finitely many contexts, as a declared map of features makes them:
// what a policy plays in a context stays what it is until its next release, and is asked once.
// Before the first one policies play the first of equals, so that each decision lists its actions
// from another one on: what is won by it is nobody's luck.
type Visits struct {
	Dim int
	// Of is who comes: each round one of these, each as likely as the others. They are indices of
	// the contexts in Actions and Means.
	Of      []int
	Actions [][]float64 // by context: Dim numbers an action, of norm at most 1
	Means   [][]float64 // by context: the mean reward of each action, in [−1,1]
	// Later are what Means become, one after the other, each after Every decisions more; the last ones
	// stay. Every is at least 1 where there are any.
	Later [][][]float64
	Every int
}

// Earns is the mean reward of a round in which the context's best action is played, and of one in
// which any is, each as likely as the others, at the start.
func (v *Visits) Earns() (best, uniform float64) {
	for _, i := range v.Of {
		top, sum := math.Inf(-1), 0.0
		for _, m := range v.Means[i] {
			top, sum = max(top, m), sum+m
		}
		best += top / float64(len(v.Of))
		uniform += sum / float64(len(v.Means[i])*len(v.Of))
	}
	return best, uniform
}

func (v *Visits) check() error {
	if v.Dim < 1 || len(v.Of) == 0 || len(v.Actions) != len(v.Means) {
		return errors.New("sim: visits have no dimension, nobody who comes, or not as many sets as means")
	}
	for i, m := range v.Means {
		if len(m) == 0 || len(v.Actions[i]) != len(m)*v.Dim {
			return fmt.Errorf("sim: context %d has %d means and %d features, must have %d an action", i,
				len(m), len(v.Actions[i]), v.Dim)
		}
		if err := checkNorms(v.Actions[i], v.Dim); err != nil {
			return fmt.Errorf("sim: context %d: %w", i, err)
		}
		if err := checkMeans(i, m); err != nil {
			return err
		}
	}
	if len(v.Later) > 0 && v.Every < 1 {
		return fmt.Errorf("sim: means change every %d decisions, must be at least 1", v.Every)
	}
	for _, means := range v.Later {
		if len(means) != len(v.Means) {
			return fmt.Errorf("sim: later means are of %d contexts, must be of %d", len(means), len(v.Means))
		}
		for i, m := range means {
			if len(m) != len(v.Means[i]) {
				return fmt.Errorf("sim: context %d has %d means later, must have %d", i, len(m), len(v.Means[i]))
			}
			if err := checkMeans(i, m); err != nil {
				return err
			}
		}
	}
	for _, i := range v.Of {
		if uint(i) >= uint(len(v.Means)) {
			return fmt.Errorf("sim: visitors are of context %d, and there are %d", i, len(v.Means))
		}
	}
	return nil
}

func checkMeans(context int, means []float64) error {
	for _, x := range means {
		if !(x >= -1 && x <= 1) {
			return fmt.Errorf("sim: context %d has the mean %v, must be from -1 to 1", context, x)
		}
	}
	return nil
}

// A LatePolicy is a contextual policy whose rewards come late, such as linear.OFUL: Best chooses,
// Play counts a decision, whenever Due says 0 after it Cut ends its segment, and Learn is of the
// oldest segment that was cut.
type LatePolicy interface {
	Mechanism() privacy.Mechanism
	Best(actions []float64) int
	Play(a []float64)
	Due() int
	Cut() (gram []int64)
	Learn(privacy.ReleasedVector)
}

// A sampler chooses by coins, anew each time, as linear.LinTS.
type sampler interface{ Sample(actions []float64) int }

// Whoever is asked once a release plays by one draw for as long.
var _, _ sampler = (*linear.LinTS)(nil), (*linear.HistogramTS)(nil)

// A known policy is asked for actions of sets that are known beforehand, and told of many decisions at once, as
// linear.LinTS.
type known interface {
	SampleOf(s *linear.Sets, set, from int) int
	PlayOf(s *linear.Sets, counts []int)
	Free() int
}

var _ known = (*linear.LinTS)(nil)

// A VisitsConfig is one run of a live contextual bandit: rewards come in their window, and each
// segment is released, after those before it, when the last of its windows has passed.
type VisitsConfig struct {
	Policy  LatePolicy
	World   *Visits
	Horizon int // T, decisions, at least 1
	Window  int // decisions that are made while a reward is waited for, at least 1
	// Floor is the probability, in [0,1), of a uniform action, whatever the policy wants.
	Floor       float64
	Checkpoints []int // as in Config
	// Visitors draws who comes, Rewards whether the reward is 1 or −1, Coins toss for the floor: all
	// independent of what is played, so that policies meet the same.
	Visitors, Rewards, Coins *noise.Fast
	Noise                    *noise.Fast // privacy noise
	// Released, if set, is told of each release: how many decisions had been made.
	Released func(decisions int)
}

func (c *VisitsConfig) check() error {
	switch {
	case c.Policy == nil || c.World == nil:
		return errors.New("sim: policy or world is missing")
	case c.Horizon < 1:
		return fmt.Errorf("sim: horizon is %d, must be at least 1", c.Horizon)
	case c.Window < 1:
		return fmt.Errorf("sim: window is %d decisions, must be at least 1", c.Window)
	case !(c.Floor >= 0 && c.Floor < 1):
		return fmt.Errorf("sim: floor is %v, must be at least 0 and below 1", c.Floor)
	case c.Visitors == nil || c.Rewards == nil || c.Coins == nil || c.Noise == nil:
		return errors.New("sim: a stream is missing: visitors, rewards, coins or noise")
	}
	if err := c.World.check(); err != nil {
		return err
	}
	return checkCheckpoints(c.Checkpoints, c.Horizon)
}

// RunVisits plays one run to its horizon. Regret is the sum over decisions of the best mean of the
// context less that of the action; PlaysBest counts the decisions for a best action. Plays is by
// index in the decision sets. What is due after the last decision is not released.
func RunVisits(ctx context.Context, cfg VisitsConfig, out *Result) error {
	if err := cfg.check(); err != nil {
		return err
	}
	cur, err := cfg.curator(nil)
	if err != nil {
		return err
	}
	out.room(len(cfg.Checkpoints))
	out.Plays, out.Releases = out.Plays[:0], 0
	r := visit{VisitsConfig: cfg, cur: cur, sets: linear.NewSets(cfg.World.Dim, cfg.World.Actions), exact: true,
		chosen: make([]int, len(cfg.World.Means))}
	for _, set := range cfg.World.Actions {
		r.vectors = slices.AppendSeq(r.vectors, slices.Chunk(set, cfg.World.Dim))
		for _, x := range set {
			r.exact = r.exact && x/release.ExactStep == math.Trunc(x/release.ExactStep)
		}
	}
	r.counts = make([]int, len(r.vectors))
	r.draws, _ = cfg.Policy.(sampler)
	r.known, _ = cfg.Policy.(known)
	for i, m := range cfg.World.Means {
		r.chosen[i] = -1
		out.Plays = append(out.Plays, make([]int, max(0, len(m)-len(out.Plays)))...)
	}
	if err := r.play(ctx, out); err != nil {
		return err
	}
	out.Loss = cur.Ledger().Total()
	return nil
}

// curator is of the policy's mechanism as it is now.
func (c *VisitsConfig) curator(ledger *privacy.Ledger) (release.FeatureCurator, error) {
	return release.SimulatedFeatures(release.FeatureConfig{Dim: c.World.Dim, Slots: 1,
		Mechanism: c.Policy.Mechanism(), Rows: linear.RowsOf(c.Policy), Ledger: ledger}, c.Noise)
}

// A visit is a run.
type visit struct {
	VisitsConfig
	cur     release.FeatureCurator
	sets    *linear.Sets
	vectors [][]float64 // of the sets, by number
	exact   bool        // they are whole steps
	chosen  []int       // by context: what the policy plays, −1 until it is asked
	means   [][]float64 // by context: those of now
	top     []float64   // by context: the best of them
	turn    int         // the decision from which on they are others, −1: none
	draws   sampler     // the policy, if it is one: it is asked each time
	known   known       // the policy, if it is one
	counts  []int       // by vector: decisions that it was not told of
	free    int         // how many more there may be
	listed  []float64   // scratch
	waiting []decision
	cuts    []segment // the oldest first
}

// A decision is twice the number of its vector, and 1 more with the reward 1: without it it is −1.
type decision uint32

func (d decision) reward() float64 { return float64(2*int(d&1) - 1) }

// A segment has n decisions, the last of them number last.
type segment struct{ n, last int }

func (r *visit) play(ctx context.Context, out *Result) error {
	var regret, hits float64
	next, open := 0, 0
	for t := range r.Horizon {
		if t&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for len(r.cuts) > 0 && r.cuts[0].last+r.Window <= t {
			if err := r.release(t); err != nil {
				return fmt.Errorf("sim: decision %d of %d: %w", t, r.Horizon, err)
			}
			out.Releases++
		}
		w := r.World
		if t == r.turn {
			r.move()
		}
		i := w.Of[int(r.Visitors.Float64()*float64(len(w.Of)))]
		turn := r.Visitors.Float64()
		a, means := r.chosen[i], r.means[i]
		if a < 0 {
			a = r.ask(i, int(turn*float64(len(means))))
			if out.Releases > 0 && r.draws == nil {
				r.chosen[i] = a
			}
		}
		if r.Floor > 0 {
			floor, other := r.Coins.Float64(), r.Coins.Float64()
			if floor < r.Floor {
				a = int(other * float64(len(means)))
			}
		}
		if uint(a) >= uint(len(means)) {
			return fmt.Errorf("sim: decision %d of %d: action %d of %d was chosen: %w", t, r.Horizon, a,
				len(means), ErrStopped)
		}
		d := decision(2 * (r.sets.First(i) + a))
		if 2*r.Rewards.Float64()-1 < means[a] {
			d++
		}
		r.waiting = append(r.waiting, d)
		if open++; r.due(i, a) {
			r.Policy.Cut()
			r.cuts, open = append(r.cuts, segment{open, t}), 0
		}
		if gap := r.top[i] - means[a]; gap > 0 {
			regret += gap
		} else {
			hits++
		}
		out.Plays[a]++
		if next < len(r.Checkpoints) && r.Checkpoints[next] == t+1 {
			out.Regret[next], out.PlaysBest[next] = regret, hits
			next++
		}
	}
	r.tell()
	return nil
}

// due counts a decision for an action of a context, and says whether a segment ends with it.
func (r *visit) due(i, a int) bool {
	if r.known == nil {
		d := r.World.Dim
		r.Policy.Play(r.World.Actions[i][a*d:][:d])
		return r.Policy.Due() >= 0
	}
	r.counts[r.sets.First(i)+a]++
	if r.free--; r.free > 0 {
		return false
	}
	r.tell()
	r.free = r.known.Free()
	return r.Policy.Due() >= 0
}

// tell has the policy count what it was not told of.
func (r *visit) tell() {
	if r.known != nil {
		r.known.PlayOf(r.sets, r.counts)
		clear(r.counts)
	}
}

// move has the means from decision turn on.
func (r *visit) move() {
	w := r.World
	now := r.turn / max(1, w.Every)
	if r.means = w.Means; now > 0 {
		r.means = w.Later[now-1]
	}
	if r.turn += w.Every; now == len(w.Later) {
		r.turn = -1
	}
	r.top = r.top[:0]
	for _, m := range r.means {
		r.top = append(r.top, slices.Max(m))
	}
}

// ask is what the policy plays in a context whose actions are listed from one of them on.
func (r *visit) ask(i, from int) int {
	if r.known != nil {
		return r.known.SampleOf(r.sets, i, from)
	}
	set, n := r.World.Actions[i], len(r.World.Means[i])
	cut := from * r.World.Dim
	r.listed = append(append(r.listed[:0], set[cut:]...), set[:cut]...)
	if r.draws != nil {
		return (r.draws.Sample(r.listed) + from) % n
	}
	if a := r.Policy.Best(r.listed); uint(a) < uint(n) {
		return (a + from) % n
	}
	return n // no action
}

// release lets the oldest segment out, after t decisions.
func (r *visit) release(t int) error {
	n := r.cuts[0].n
	if err := r.hand(r.waiting[:n]); err != nil {
		return err
	}
	released, err := r.cur.Release(0)
	if err != nil {
		return err
	}
	r.waiting, r.cuts = slices.Delete(r.waiting, 0, n), slices.Delete(r.cuts, 0, 1)
	kind := r.Policy.Mechanism().Kind()
	r.Policy.Learn(released)
	if r.Policy.Mechanism().Kind() != kind {
		if r.cur, err = r.curator(r.cur.Ledger()); err != nil {
			return err
		}
	}
	for i := range r.chosen {
		r.chosen[i] = -1
	}
	if r.Released != nil {
		r.Released(t)
	}
	return nil
}

// hand gives the curator a segment's decisions. Sums of whole steps are the same in any order, and made of counts.
func (r *visit) hand(all []decision) error {
	steps, sums := r.cur.(release.StepFeatureCurator)
	switch r.Policy.Mechanism().(type) {
	case privacy.VectorGaussian, privacy.VectorLaplace, privacy.Histogram:
	default:
		sums = false // of products of features, which are no whole steps
	}
	if !sums || !r.exact {
		for _, d := range all {
			if err := r.cur.Add(0, r.vectors[d/2], d.reward()); err != nil {
				return err
			}
		}
		return nil
	}
	counts := make([]int64, 2*len(r.vectors))
	for _, d := range all {
		counts[d]++
	}
	total, one := make([]int64, steps.Width()), make([]int64, steps.Width())
	for d, n := range counts {
		if n == 0 {
			continue
		}
		clear(one)
		steps.Products(one, r.vectors[d/2], decision(d).reward())
		for j, x := range one {
			total[j] += n * x
		}
	}
	return steps.AddSteps(0, len(all), total)
}
