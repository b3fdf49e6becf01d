package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/noise"
	lin "github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A SelfAudit audits Sotto with Sotto: every mechanism and every private policy of the catalog, and
// broken copies of them (twins), with faults that have happened. A sound auditor refutes every broken
// copy and no claim of its own.
//
// A sound program fails with probability at most Gamma. Proof: each audit has an equal share s of
// Gamma. An audit of a true claim is one test at level s, which refutes it with probability at most
// s: bets that reach 1/s at any time (sequential.go), or, at a fixed number of games, Answers.Epsilon.
// A broken copy is played until it is refuted. If so many games do not do it, bets begin again with 1,
// on new games, and it fails only if all of Looks tests miss it. They share no game, so if none misses
// it more often than not, that has probability at most 2^−Looks ≤ s. The union over all audits is at
// most Gamma. ∎ That a test misses a broken copy no more often than not is not proved: Looks of the
// results shows how many tests each copy took, and Games how far it was from the end of the last.
// Each test pays for its look: test k of a broken copy has the level s/(k(k+1)), all together at most
// s, so that its lower end stays one of confidence 1 − s.
type SelfAudit struct {
	// Gamma is the probability, at most, that a sound program fails: that a claim is refuted
	// although it is true, or a broken copy is not refuted. 0 means 10⁻⁶.
	Gamma float64
	Quick bool // few games: seconds instead of an hour
	// Games is how many each claim is tested with, fewer where games are slow, more where a flaw is small,
	// after a search for the adversary. 0 is 10⁶, or if Quick, QuickGames in all, of which each counts: bounds that hold at any
	// time are not as tight, and the search costs nothing.
	Games int
	Seed  uint64 // of all simulated noise. Curators of real rewards have noise of their own
	// Only, if set, picks audits by name. Gamma is still split over all of them.
	Only    func(name string) bool
	Workers int                               // audits at a time; ≤ 0: all processors
	Report  func(done, all int, f SelfResult) // called after each audit in its turn, if set
	// Catalog has the policies; the zero value those of Sotto.
	Catalog catalog.Catalog
	More    []Outside // audits of what this package does not know
}

// A SelfResult is one audit of SelfAudit.
type SelfResult struct {
	Finding
	Twin bool // a broken one: it must be refuted
	// Looks is how many tests there were, one but for a broken copy that was played on. The finding
	// is the last one's.
	Looks int
	// Good says that the audit came out as it must.
	Good bool
}

// QuickGames is how many games a claim is tested with in a quick SelfAudit, fewer where games are slow.
const QuickGames = 2000

// A selfItem is an audit to be done.
type selfItem struct {
	name string
	twin bool
	cost int // games are divided by it
	many int // and multiplied by it, if not 0: they are fast, and the flaw is small
	run  func(ctx context.Context, e effort) (Finding, error)
}

// An effort is what an audit may use.
type effort struct {
	gamma          float64
	games          int
	pilot, workers int // 0 games of the search: play until the claim is refuted, or to the end of games
	key            noise.Key
}

// selfDelta is the δ at which claims are audited that are not pure. It is large, so that a test at
// δ needs no games without number.
const selfDelta = 0.05

// twiceDelta is the δ for twins that count rewards twice. Normal noise of which there is 1/√2 shows at a
// large δ first.
func twiceDelta(delta float64) float64 {
	if delta > 0 {
		return 0.2
	}
	return 0
}

// Names lists the audits in their order.
func (s SelfAudit) Names() ([]string, error) {
	items, err := s.items()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, i := range items {
		out = append(out, i.name)
	}
	return out, nil
}

// gamma is Gamma, or what it is by default.
func (s SelfAudit) gamma() float64 {
	if s.Gamma == 0 {
		return 1e-6
	}
	return s.Gamma
}

// Looks is how many tests must miss a broken copy before it counts as missed: as many as coins that
// all fall on one side no more often than an audit's share of Gamma.
func (s SelfAudit) Looks() (int, error) {
	items, err := s.items()
	if err != nil {
		return 0, err
	}
	return looks(s.gamma() / float64(len(items))), checkGamma(s.gamma())
}

func looks(share float64) int { return int(math.Ceil(-math.Log2(share))) }

// patience is how many times the games of a claim each test of a broken copy has, at most.
const patience = 16

// test does an audit: a claim's once, and that of a broken copy until it is refuted or all looks were
// in vain. The effort's gamma is its part of the error probability.
func (i selfItem) test(ctx context.Context, e effort) (f Finding, look int, err error) {
	if !i.twin {
		f, err = i.run(ctx, e)
		return f, 1, err
	}
	share, experiment := e.gamma, e.key.Experiment
	e.games, e.pilot = patience*e.games, 0
	for look = 1; ; look++ {
		if look > 1 { // games of its own
			e.key.Experiment = fmt.Sprintf("%s, look %d", experiment, look)
		}
		e.gamma = share / float64(look*(look+1))
		f, err = i.run(ctx, e)
		if err != nil || f.Refuted || look >= looks(share) {
			return f, look, err
		}
	}
}

// Run does the audits, and reports them in their order.
func (s SelfAudit) Run(ctx context.Context) ([]SelfResult, error) {
	if err := checkGamma(s.gamma()); err != nil {
		return nil, err
	}
	items, err := s.items()
	if err != nil {
		return nil, err
	}
	all := effort{gamma: s.gamma() / float64(len(items)), games: 1_000_000, pilot: 2048, workers: 1}
	if s.Only != nil {
		items = slices.DeleteFunc(items, func(i selfItem) bool { return !s.Only(i.name) })
	}
	switch {
	case s.Games > 0:
		all.games = s.Games
		if s.Quick {
			all.pilot = 256
		}
	case s.Quick:
		all.games, all.pilot = QuickGames, 0
	}
	if len(items) == 1 {
		all.workers = s.Workers
	}
	results, ready := make([]SelfResult, len(items)), make([]bool, len(items))
	var mu sync.Mutex
	done := 0
	err = pool.Run(ctx, s.Workers, len(items), func() func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			r, err := items[n].result(ctx, all, s.Seed)
			if err != nil {
				return fmt.Errorf("audit self: %s: %w", items[n].name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for results[n], ready[n] = r, true; done < len(items) && ready[done]; done++ {
				if s.Report != nil {
					s.Report(done+1, len(items), results[done])
				}
			}
			return nil
		}
	})
	return results[:done], err
}

// result is what came out of an audit.
func (i selfItem) result(ctx context.Context, e effort, seed uint64) (SelfResult, error) {
	start := time.Now()
	e.key = noise.Key{Seed: seed, Experiment: "audit self", Cell: i.name}
	least := min(fewest, e.games)
	if e.pilot > 0 && !i.twin {
		least = 2000
	}
	if i.many > 0 {
		e.games = max(e.games, min(e.games*i.many, 1_000_000))
	}
	e.games, e.pilot = max(e.games/i.cost, least), max(e.pilot/i.cost, min(e.pilot, 128))
	f, look, err := i.test(ctx, e)
	f.Name, f.Seconds = i.name, time.Since(start).Seconds()
	return SelfResult{Finding: f, Twin: i.twin, Looks: look, Good: f.Refuted == i.twin}, err
}

// fewest is the least number of games of a claim: about what refutes a broken copy.
const fewest = 1000

// deltaFor is 0 for a claim of pure differential privacy.
func deltaFor(b privacy.Budget) float64 {
	if _, ok := b.(privacy.Pure); ok {
		return 0
	}
	return selfDelta
}

// outlier are the adversaries against a curator that does not clip: the changed reward is
// far out of range.
func outlier(list []Adversary) []Adversary {
	for i := range list {
		list[i].High = slices.Clone(list[i].High)
		for a := range list[i].High {
			list[i].High[a] = 1e6
		}
	}
	return list
}

// of is the audit of a subject.
func of(s Subject, sees Sees, delta float64, fault Fault, cost int, models ...Model) selfItem {
	if len(models) == 0 {
		models = Models()
	}
	list := Adversaries(s.Arms, s.Horizon, models...)
	if fault == Unclipped {
		list = outlier(list)
	}
	s = s.Broken(fault)
	name := s.Name
	if sees == Plays {
		name += ", plays only"
	}
	return selfItem{name: name, twin: fault != NoFault, cost: cost,
		run: func(ctx context.Context, e effort) (Finding, error) {
			p := PolicyAudit{Subject: s, Adversaries: list, Sees: sees, Delta: delta, Gamma: e.gamma,
				Games: e.games, Pilot: e.pilot, Workers: e.workers, Key: e.key}
			if e.pilot == 0 {
				return p.race(ctx)
			}
			return p.Run(ctx)
		}}
}

func ofDirect(d direct, delta float64, twin bool, cost int) selfItem {
	return selfItem{name: d.name, twin: twin, cost: cost,
		run: func(ctx context.Context, e effort) (Finding, error) {
			if e.pilot == 0 {
				return d.race(ctx, delta, e.gamma, 0, e.games, e.key)
			}
			return d.run(ctx, delta, e.gamma, e.games, e.pilot, e.workers, e.key)
		}}
}

func selfItems(known catalog.Catalog) ([]selfItem, error) {
	var all []selfItem
	for _, part := range []func() ([]selfItem, error){selfMechanisms, selfDistributed,
		selfLedgers,
		func() ([]selfItem, error) { return selfPolicies(known.For(catalog.BanditArms)) },
		selfIdentify, selfTranscripts, selfPlays,
		selfLinear, selfRealLinear, selfKept, selfHistogram, selfInstruments} {
		items, err := part()
		if err != nil {
			return nil, fmt.Errorf("audit self: %w", err)
		}
		all = append(all, items...)
	}
	return all, nil
}

func selfMechanisms() ([]selfItem, error) {
	// Noise that is drawn again needs more looks to average over.
	const looks, many, most = 16, 256, 2048
	rho := privacy.ZCDP{Rho: 0.5}
	root, err1 := privacy.NewSquareRoot(rho, looks)
	wideRoot, err2 := privacy.NewSquareRoot(rho, many)
	blt, err3 := privacy.NewBLT(rho, looks)
	wideBLT, err4 := privacy.NewBLT(rho, many)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	var all []selfItem
	for _, c := range []struct {
		m              privacy.Mechanism
		arms, n, looks int
		delta          float64
		real           bool
		wide           privacy.Mechanism // of running sums: for more looks
		many           int
	}{
		{m: privacy.Laplace{Scale: 1}, arms: 2, n: 8, looks: 2, real: true},
		{m: privacy.Gaussian{Sigma: 1}, arms: 2, n: 8, looks: 2, delta: selfDelta, real: true},
		{privacy.Tree{Scale: 5, Horizon: looks}, 1, 1, looks, 0, true,
			privacy.Tree{Scale: float64(bits.Len(uint(most))), Horizon: most}, most},
		{privacy.Hybrid{Scale: 2}, 1, 1, looks, 0, true, privacy.Hybrid{Scale: 2}, most},
		{privacy.NewKAry(1, 3, looks), 1, 1, looks, 0, true, privacy.NewKAry(1, 3, many), many},
		{root, 1, 1, looks, selfDelta, false, wideRoot, many},
		{blt, 1, 1, looks, selfDelta, false, wideBLT, many},
		{m: privacy.Sparse{Questions: privacy.Questions{Threshold: 3, Query: 6,
			Statistic: privacy.Centre}, Scale: 3}, arms: 1, n: 1, looks: looks, real: true},
	} {
		s, err := MechanismSubject(c.m, c.arms, c.n, c.looks)
		if err != nil {
			return nil, err
		}
		all = append(all, of(s, Releases, c.delta, NoFault, 1, View))
		if c.real {
			all = append(all, of(s.Real(), Releases, c.delta, NoFault, 4, View))
		}
		for _, f := range Faults(c.m) {
			broken, times, delta := s, 1, c.delta
			switch _, sparse := c.m.(privacy.Sparse); {
			case f == HalfScale && c.m.Continual() && c.real:
				// what a counter claims for is in the sum of its nodes, each of which shows a part
				f = QuarterScale
			case f == QuarterScale && sparse:
				f = EighthScale
			case f == Twice:
				delta = twiceDelta(delta)
			case f == Redrawn:
				times = 4
				if broken, err = MechanismSubject(c.wide, c.arms, c.n, c.many); err != nil {
					return nil, err
				}
			}
			all = append(all, of(broken, Releases, delta, f, times, View))
		}
	}
	return all, nil
}

func selfDistributed() ([]selfItem, error) {
	var all []selfItem
	for _, c := range []struct {
		trust privacy.Trust
		noise privacy.NoiseName
		delta float64
		users int
	}{
		{privacy.TrustCentral, privacy.NoiseLaplace, 0, 64},
		{privacy.TrustCentral, privacy.NoiseSkellam, selfDelta, 64},
		{privacy.TrustCentral, privacy.NoiseGaussian, selfDelta, 64},
		{privacy.TrustLocal, privacy.NoiseLaplace, 0, 64},
		{privacy.TrustLocal, privacy.NoiseGaussian, selfDelta, 64},
		{privacy.TrustSecAgg, privacy.NoisePolya, 0, 32},
		{privacy.TrustSecAgg, privacy.NoiseSkellam, selfDelta, 32},
		{privacy.TrustSecAgg, privacy.NoiseGaussian, selfDelta, 32},
	} {
		m, err := privacy.NewAggregated(privacy.Calibration{Trust: c.trust, Noise: c.noise,
			Epsilon: 1, S: 1, Users: c.users, Invited: c.users, P: 1e-6})
		if err != nil {
			return nil, err
		}
		d, err := aggregated(m, false)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, c.delta, false, 1))
		broken, fault := halved(m), HalfScale
		if c.delta > 0 { // its claim is not as tight
			broken, fault = halved(broken), QuarterScale
		}
		if d, err = aggregated(broken, false); err != nil {
			return nil, err
		}
		d.name, d.claim = d.name+", "+fault.String(), m.Loss()
		all = append(all, ofDirect(d, c.delta, true, 1))
		if c.noise == privacy.NoisePolya {
			if d, err = aggregated(m, true); err != nil {
				return nil, err
			}
			all = append(all, ofDirect(d, c.delta, true, 1))
		}
		if c.trust == privacy.TrustLocal && c.noise == privacy.NoiseLaplace {
			few, err := privacy.NewAggregated(privacy.Calibration{Trust: c.trust, Noise: c.noise,
				Epsilon: 2, S: 1, Users: 256, Invited: 256, P: 1e-6})
			if err != nil {
				return nil, err
			}
			for _, inOrder := range []bool{false, true} {
				if d, err = clones(privacy.Clones{Inner: few, Delta: selfDelta}, inOrder); err != nil {
					return nil, err
				}
				all = append(all, ofDirect(d, selfDelta, inOrder, 1))
			}
		}
	}
	m, err := privacy.NewShuffledCount(1, 0.5, 16, 16, 0.1)
	if err != nil {
		return nil, err
	}
	for _, uncovered := range []bool{false, true} {
		d, err := shuffled(m, uncovered)
		if err != nil {
			return nil, err
		}
		all = append(all, ofDirect(d, 0, uncovered, 1))
	}
	return all, nil
}

// selfHorizon is a horizon at which a policy releases something, and how much a game costs.
func selfHorizon(name string, p catalog.Params) (horizon, cost int) {
	switch name {
	case "dp-se", "dp-se-doubling":
		return 1 << 14, 1
	case "dp-se-2":
		return 1 << 13, 8
	case "dp-se-2-modified":
		return 512, 4
	case "dp-ucb-anytime":
		if p["counter"] == 0 { // doubling
			return 128, 1
		}
		return 16, 1
	case "dp-ucb", "dp-ucb-thesis":
		if p["counter"] == 4 { // blt: its buffers are fitted for each game
			return 16, 4
		}
		return 16, 1
	}
	return 128, 1
}

// selfArms are two arms, or two in each of two contexts.
func selfArms(e catalog.Entry) int {
	if e.Contexts {
		return 4
	}
	return 2
}

func selfPolicies(entries []catalog.Entry) ([]selfItem, error) {
	var all []selfItem
	for _, e := range entries {
		if !e.Private || e.Name == catalog.AutoPolicy { // what it picks has rows of its own
			continue
		}
		variants := []catalog.Params{{}}
		if p, ok := e.Param("counter"); ok {
			for i := 1; i < len(p.Choices); i++ {
				variants = append(variants, catalog.Params{"counter": float64(i)})
			}
		}
		for _, v := range variants {
			var b privacy.Budget = privacy.Pure{Epsilon: 1}
			if e.With(v).Meets(b) != nil {
				b = privacy.ZCDP{Rho: 0.5}
			}
			if _, ok := e.Param("beta"); ok && (e.Name == "dp-se" || e.Name == "dp-se-2" ||
				e.Name == "dp-se-2-modified") {
				v["beta"] = 0.5
			}
			horizon, cost := selfHorizon(e.Name, v)
			s, err := PolicySubject(e, selfArms(e), horizon, b, v)
			if err != nil {
				return nil, err
			}
			if i, ok := v["counter"]; ok {
				p, _ := e.Param("counter")
				s.Name = e.Name + " counter=" + p.Choices[int(i)]
			} else {
				s.Name = e.Name
			}
			delta, fault := deltaFor(b), HalfScale
			_, other := v["counter"]
			switch {
			case e.Name == "dp-se-2" || e.Name == "dp-se-2-modified",
				strings.HasSuffix(s.Name, "=hybrid"),
				// a tree's ε is in the sum of five nodes, each of which shows a fifth
				!other && (e.Name == "dp-ucb" || e.Name == "dp-ucb-thesis"):
				fault = QuarterScale
			}
			all = append(all, of(s, Releases, delta, NoFault, cost),
				of(s, Plays, delta, NoFault, cost), of(s, Releases, delta, fault, cost))
			if !e.Plain() {
				all = append(all, of(s, Releases, delta, Shared, cost),
					of(s, Releases, twiceDelta(delta), Twice, cost, View))
			}
			if e.Name == "adap-klucb" || e.Name == "adac-ucb" {
				all = append(all, of(s, Releases, delta, Shared, cost),
					of(s, Releases, twiceDelta(delta), Twice, cost, View), of(s, Releases, delta, Unclipped, cost),
					of(s, Plays, delta, Unclipped, cost))
				under, err := selfUnder(s, b)
				if err != nil {
					return nil, err
				}
				all = append(all, under...)
			}
		}
	}
	return all, nil
}

// selfUnder is a policy under the trust models that its budget allows.
func selfUnder(s Subject, b privacy.Budget) ([]selfItem, error) {
	var all []selfItem
	for _, t := range []release.Trust{
		{Model: privacy.TrustCentral, Noise: privacy.NoiseLaplace},
		{Model: privacy.TrustLocal, Noise: privacy.NoiseLaplace},
		{Model: privacy.TrustTwoServer, Noise: privacy.NoiseLaplace},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoisePolya},
		{Model: privacy.TrustShuffle, Noise: privacy.NoiseCount},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoiseSkellam},
		{Model: privacy.TrustSecAgg, Noise: privacy.NoiseGaussian},
	} {
		normal := t.Noise == privacy.NoiseSkellam || t.Noise == privacy.NoiseGaussian
		if _, pure := b.(privacy.Pure); pure == normal {
			continue
		}
		t.P = 1e-3
		s, err := s.Under(t)
		if err != nil {
			return nil, err
		}
		fault := HalfScale
		if t.Model == privacy.TrustLocal || t.Model == privacy.TrustTwoServer {
			fault = EighthScale // the analyser sees more noise than is claimed for
		}
		cost := 2
		// slow to draw; the least noise for a budget is a little less than what is claimed for it
		if normal {
			cost, fault = 8, QuarterScale
		}
		all = append(all, of(s, Releases, deltaFor(b), NoFault, cost, View),
			of(s, Releases, deltaFor(b), fault, cost, View))
	}
	return all, nil
}

func selfIdentify() ([]selfItem, error) {
	var all []selfItem
	for _, e := range catalog.IdentifyPolicies() {
		if !e.Private {
			continue
		}
		most := 1 << 10
		if e.Name == "dp-se" { // its first phase is longer
			most = 1 << 13
		}
		given := catalog.Params{}
		if e.Seeks() == catalog.GoalBudget { // one that a game has
			given["plays"] = 128
		}
		s, err := IdentifySubject(e, selfArms(e), most, 0.1, privacy.Pure{Epsilon: 1}, given)
		if err != nil {
			return nil, err
		}
		s.Name = "identify " + e.Name
		cost := 1
		if e.Name == "dp-tt" { // its threshold takes time
			cost = 4
		}
		all = append(all, of(s, Releases, 0, NoFault, cost), of(s, Plays, 0, NoFault, cost),
			of(s, Releases, 0, HalfScale, cost))
		if e.Name == catalog.DefaultRule || e.Contexts {
			all = append(all, of(s, Releases, 0, Shared, cost))
			if e.Seeks() != catalog.GoalBudget { // of two arms it has one release each: nothing is in two
				all = append(all, of(s, Releases, 0, Twice, cost))
			}
		}
	}
	return all, nil
}

func selfLinear() ([]selfItem, error) {
	var all []selfItem
	for _, e := range append(catalog.LinearPolicies(), catalog.ContextualPolicies()...) {
		if !e.Private || e.Name == catalog.HistogramTS { // whose rows are selfHistogram's
			continue
		}
		variants := []catalog.Params{shortly(e)}
		if p, ok := e.Param("noise"); ok {
			variants = nil
			for i := range p.Choices {
				variants = append(variants, catalog.Params{"noise": float64(i)})
			}
		}
		for _, v := range variants {
			var b privacy.Budget = privacy.ZCDP{Rho: 0.5}
			switch {
			case e.Meets(privacy.Pure{Epsilon: 1}) == nil:
				b = privacy.Pure{Epsilon: 1}
			case e.With(v).Meets(b) != nil:
				b = privacy.Approx{Epsilon: 1, Delta: 0.05}
			}
			for _, twin := range []bool{false, true} {
				horizon := 16
				if e.NewLinear != nil {
					horizon = 1 << 15
				}
				x, err := VectorSubject(e, horizon, b, v, twin)
				if err != nil {
					return nil, err
				}
				d := x.direct
				d.name = e.Name
				if p, ok := e.Param("noise"); ok {
					d.name += " noise=" + p.Choices[int(v["noise"])]
				}
				if twin {
					d.name += ", " + d.fault.String()
				}
				all = append(all, ofDirect(d, deltaFor(b), twin, 2))
			}
		}
	}
	return all, nil
}

// shortly are parameters with which a policy releases in a short game.
func shortly(e catalog.Entry) catalog.Params {
	switch e.Name {
	case "dp-lin-ts":
		return catalog.Params{"first": 4}
	case "jdp-greedy":
		return catalog.Params{"first": 4, "leaf": 4}
	case instrumentPolicy:
		return catalog.Params{"first": 4}
	}
	return nil
}

// selfRealLinear are the curators of real rewards of vectors, by the policies that they are for.
func selfRealLinear() ([]selfItem, error) {
	var all []selfItem
	for _, e := range append(catalog.LinearPolicies(), catalog.ContextualPolicies()...) {
		horizon := map[string]int{"adac-gope-var": 1 << 15, "adac-oful": 16, "dp-lin-ts": 16,
			"lin-ucb": 16, "lin-priv": 16, "jdp-greedy": 16,
			instrumentPolicy: 16}[e.Name]
		if horizon == 0 { // its noise cannot be made exact
			continue
		}
		given := shortly(e)
		if e.Name == "lin-ucb" {
			given = catalog.Params{"noise": float64(lin.GramTree)}
		}
		var b privacy.Budget = privacy.ZCDP{Rho: 0.5}
		cost := 4
		if e.Meets(privacy.Pure{Epsilon: 1}) == nil {
			// Its twin is near its claim: more games, which are short.
			b, cost = privacy.Pure{Epsilon: 1}, 1
		}
		for _, c := range []struct {
			by   clipping
			twin bool
		}{{clipping{real: true}, false}, {clipping{real: true}, true}, {clipping{real: true, far: true}, false},
			{clipping{open: true}, true}} {
			x, err := vectorSubject(e, horizon, b, given, c.twin && c.by.real, c.by)
			if err != nil {
				return nil, err
			}
			d := x.direct
			d.name = e.Name + c.by.name()
			if c.twin && c.by.real {
				d.name += ", " + d.fault.String()
			}
			all = append(all, ofDirect(d, deltaFor(b), c.twin, cost))
		}
	}
	return all, nil
}

// String is a line of the table.
func (r SelfResult) String() string {
	good := "as it must be"
	if !r.Good {
		good = "WRONG"
	}
	if r.Looks > 1 {
		good += fmt.Sprintf(", test %d", r.Looks)
	}
	return fmt.Sprintf("%-55s claimed %-8s audited %.3f in [%.3f, %.3f], %s, %s: %s, %s, %d "+
		"games, %.1f s", r.Name, strconv.FormatFloat(r.Claimed, 'g', 4, 64), r.Estimate,
		r.Low, r.High, r.Verdict(), good, r.Attack, r.Against, r.Games, r.Seconds)
}
