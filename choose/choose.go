// Package choose answers one question: which private policy should I use? It plays every policy
// that can meet a budget on an instance, or on instances drawn from a prior, and ranks them by mean
// regret, adding runs until the ranking is settled at a stated error level. Begin with Question.Run.
//
// # What is promised
//
// Policies are compared in pairs, run by run on the same rewards (common random
// numbers). A pair is settled when one mean is
// shown to be below the other, or when the two are shown to be within a factor 1 + Resolution of
// each other. Sample sizes are n_i = MinRuns·2^i (and at last MaxRuns), and each statement has an
// error probability of its own for each size, in advance:
//
//	Level · w_i / S,  w_i = 1/((π²/3 − 1)(1 + |i|)²),  Σ_i w_i ≤ 1,  S = 2·(pairs + policies).
//
// By the union bound all statements, at all sizes, hold together with probability at least 1 −
// Level. So it does not matter when one looks, which pairs are looked at, or that a policy gets
// more runs because it is close to another; a policy that is settled against its neighbours stops
// early at no price, and a verdict may be replaced by that of a longer sample. Intervals of means,
// the ± of an answer, are among the statements.
//
// Each statement is one of three kinds. Student's interval of a mean or of a paired difference is
// approximate: it trusts that the mean of n runs is nearly Gaussian. It is believed only where the
// sample's skewness, in the direction that would mislead, is at most √(n/25) (Cochran, Sampling
// Techniques, 1977, §2.15: n > 25 G₁²). Hoeffding's bound (JASA 58, 1963, Theorem 1), P(x̄ ≤ x) ≤
// exp(−n kl(x/B, μ/B)) for values in [0,B], needs no trust: B is the horizon times the largest gap.
// Neither does betting on paired differences (Waudby-Smith and Ramdas, JRSS B 86, 2024): where the
// mean of d ≤ B is not negative, no bet of a fixed share λ ≤ 1/B on its being so is expected to
// gain, and Π(1 − λd) reaches S/Level·2 ever with probability at most Level/2S (Ville's inequality,
// at all sizes at once, so that no w_i is needed). These two settle what a few disasters keep
// Student's from settling.
//
// What no run has shown, Student's interval cannot know: an event that strikes once in 100 000
// runs, and costs 100 000 times the mean, doubles the mean unseen. Quantiles and the largest regret
// stand beside each mean for this reason, and Strict uses only Hoeffding's bound and betting, which
// hold whatever the tails are. It needs many more runs.
//
// # Bad runs
//
// With a level of risk p, each row has the conditional value at risk beside the mean, the mean of the
// worst 1 − p of the runs, and a ranking by it orders by that. Its Student's interval, of the mean of
// v + (x − v)₊/(1−p), is among the statements, and is believed by the same rule of skewness; so is an
// upper bound that needs no trust, Hoeffding's for the best v of a grid. Entrants are then compared by
// these intervals alone, not in pairs.
//
// # What is recommended
//
// The first of the ranking, with two exceptions, in Answer.Refused. Where clipping to the declared
// range changes which arm is best, policies look for another arm than the one they are judged by,
// and who is in front is in front by accident. And where the first is not shown to lose less than
// playing all arms equally often, which looks at no reward, that is what to do.
package choose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// ErrQuestion is matched by every error in a question.
var ErrQuestion = errors.New("cannot choose")

// A Candidate is a policy with its parameters; those not given have their defaults.
type Candidate struct {
	Policy string // its name in the catalog
	Params catalog.Params
}

// A Question is what to choose for.
type Question struct {
	// an instance, or a prior over instances: bandit.Fixed or a source that is redrawn each run
	Source  bandit.Source
	Budget  privacy.Budget
	Horizon int // T, rounds
	// Lo and Hi are the declared range of rewards; both 0 means [0,1], which logged rewards may not
	// leave: their range must be declared, from what is known without them. Rewards outside are
	// clipped, and regret is that of the means before clipping.
	Lo, Hi float64
	// Delay says how late rewards are. Then only policies are candidates that can be played live
	// (play.Admit), and each round of a run takes its time.
	Delay sim.DelayLaw

	// Policies are the candidates. None means every private policy of the catalog that can meet the
	// budget, at its defaults. A policy without privacy is played as a reference and never ranked.
	Policies  []Candidate
	Reference bool // play the catalog's policies without privacy too, as references
	// Catalog has the policies by name; the zero value those of Sotto.
	Catalog catalog.Catalog

	Level      float64 // total error probability, in (0,1); 0 means 0.05
	Resolution float64 // in [0,1): means within this fraction of each other are a tie; 0 means 0.01
	Strict     bool    // trust no central limit theorem

	// Risk is the level p of the conditional value at risk that answers have beside the mean: the
	// mean regret of the worst 1 − p of the runs. In [½,1); 0: none. ByRisk ranks by it; not with
	// Strict, which has nothing to say of it.
	Risk   float64
	ByRisk bool

	// MinRuns is the number of runs before a policy may be settled, at least 2; 0 means 1024, or
	// MaxRuns if that is less. The first two of the ranking get 16 times as many, so that rare
	// disasters show. Policies whose runs are long get fewer: see Effort.
	MinRuns int
	MaxRuns int // of each policy, at least 2; 0 means 65536, or MinRuns if that is more
	// Effort bounds the work on one policy: it gets no more runs than this many releases (rounds,
	// where each reward must be drawn by itself), an eighth of it before it may be settled with
	// fewer than MinRuns, and a quarter for being among the first two. At least 16 runs are
	// played. 0 means 2^28.
	Effort int
	// Time, if positive, is the time after which no run is begun: the answer is then what is known,
	// and depends on the machine.
	Time time.Duration

	Seed    uint64
	Workers int // runs at a time; 0 is one a processor. Answers do not depend on it

	Progress func(Progress) // if set, told after each look
}

// Progress is where a question stands.
type Progress struct {
	Look      int // from 1
	Policies  int // ranked
	Runs      int // played so far, of all policies
	Unsettled int // neighbours in the ranking that are not settled
	Next      int // policies that get more runs
}

// A Verdict is what is known of two neighbours in the ranking.
type Verdict string

// The verdicts. Unsettled says that MaxRuns, Effort or Time ended the search.
const (
	Better    Verdict = "better" // the first one's mean is lower
	Tie       Verdict = "tie"    // the means are within the resolution
	Unsettled Verdict = "unsettled"
)

// A Row is one policy of an answer.
type Row struct {
	Policy string `json:"policy"` // its label: the name, and parameters that were given
	// from 1: a tier ends where the next policy is shown to be worse; 0 for references
	Tier int `json:"tier"`
	// First says what is known of the first policy against this one: Better, Tie or Unsettled. It
	// is empty for the first and for references.
	First     Verdict `json:"first,omitempty"`
	Guarantee string  `json:"guarantee"`
	Bound     string  `json:"bound"`   // on regret, and where it is proved
	Source    string  `json:"source"`  // of the policy
	Anytime   bool    `json:"anytime"` // needs no horizon

	Runs int     `json:"runs"`
	Mean float64 `json:"mean"` // of the regret at the horizon
	// Mean ± Half is Student's interval; those of all rows that are not Heavy hold together at the
	// question's level
	Half   float64 `json:"half"`
	SD     float64 `json:"sd"`
	Ratio  float64 `json:"ratio,omitempty"` // Mean over the first row's; 0 where that is 0
	Median float64 `json:"median"`
	Q95    float64 `json:"q95"`
	Q99    float64 `json:"q99"`
	Max    float64 `json:"max"`
	// Top is the share of the mean that the worst hundredth of the runs carries.
	Top float64 `json:"top"`
	// Worst ± WorstHalf is the conditional value at risk at the question's level, with Student's
	// interval of it, if the question has one; WorstHeavy says that the interval is not to be trusted.
	Worst      float64 `json:"worst,omitempty"`
	WorstHalf  float64 `json:"worst_half,omitempty"`
	WorstHeavy bool    `json:"worst_heavy,omitempty"`
	// Heavy says that the mean rests on a few runs: Top is above ½ (of 100 runs at least), or the
	// skewness of the runs is above √(n/25), so that Student's interval is not to be trusted.
	Heavy bool `json:"heavy"`

	Candidate Candidate `json:"-"`
}

// A Left is a candidate that was left out.
type Left struct {
	Policy string `json:"policy"`
	Why    string `json:"why"`
}

// An Answer is the ranking, and how far it can be trusted.
type Answer struct {
	World      string     `json:"world"` // the source's content
	Budget     string     `json:"budget"`
	Horizon    int        `json:"horizon"`
	Level      float64    `json:"level"`
	Resolution float64    `json:"resolution"`
	Strict     bool       `json:"strict"`
	Seed       uint64     `json:"seed"`
	Risk       float64    `json:"risk,omitempty"`    // level of the rows' Worst
	ByRisk     bool       `json:"by_risk,omitempty"` // the ranking is by it
	Delay      string     `json:"delay,omitempty"`   // how late rewards are
	Settled    bool       `json:"settled"`
	Stopped    string     `json:"stopped"` // why runs ended: "settled", "runs", "effort" or "time"
	Rows       []Row      `json:"rows"`    // best first
	Verdicts   []Verdict  `json:"verdicts"`
	References []Row      `json:"references"`
	Regret     string     `json:"regret"` // of which means it is
	Range      [2]float64 `json:"range"`  // that rewards are clipped to
	// the expected regret of playing all arms equally often
	EqualSplit float64 `json:"equal_split"`
	// Refused says why nothing is recommended: clipping changes which arm is best, or the first
	// policy is not shown to lose less than an equal split.
	Refused  string   `json:"refused,omitempty"`
	Left     []Left   `json:"left"`
	Warnings []string `json:"warnings"`
}

// Use is the first of the ranking: the policy to use, unless Refused says that there is none.
func (a *Answer) Use() Row { return a.Rows[0] }

// Against are the policies of which this is known, against the first: that it is better, that they
// tie with it, or nothing.
func (a *Answer) Against(v Verdict) []Row {
	var out []Row
	for _, r := range a.Rows[1:] {
		if r.First == v {
			out = append(out, r)
		}
	}
	return out
}

// Anytime is the first policy of the ranking that needs no horizon, if there is one.
func (a *Answer) Anytime() (Row, bool) {
	i := slices.IndexFunc(a.Rows, func(r Row) bool { return r.Anytime })
	if i < 0 {
		return Row{}, false
	}
	return a.Rows[i], true
}

// Rank answers a question. Errors in the question match ErrQuestion; a cancelled context gives its
// error and no answer.
func Rank(ctx context.Context, q Question) (Answer, error) {
	declared := q.Lo != 0 || q.Hi != 0
	if err := q.complete(); err != nil {
		return Answer{}, err
	}
	w, err := newWorld(&q, declared)
	if err != nil {
		return Answer{}, err
	}
	c := contest{
		ranked: w.ranked, all: len(w.entrants), level: q.Level, resolution: q.Resolution,
		strict: q.Strict, risk: q.Risk, byRisk: q.ByRisk, top: w.top,
		min: q.MinRuns, max: q.MaxRuns, effort: q.Effort, workers: q.Workers, limit: q.Time,
		play: w.play, progress: q.Progress,
	}
	if err := c.run(ctx); err != nil {
		return Answer{}, err
	}
	return w.answer(&q, &c)
}

// complete checks the question and fills in its defaults.
func (q *Question) complete() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrQuestion}, args...)...)
	}
	or := func(x *int, d int) {
		if *x == 0 {
			*x = d
		}
	}
	if q.Lo == 0 && q.Hi == 0 {
		q.Hi = 1
	}
	if q.Level == 0 {
		q.Level = 0.05
	}
	if q.Resolution == 0 {
		q.Resolution = 0.01
	}
	switch {
	case q.Source == nil:
		return fail("source is missing, must be an instance or a prior over instances")
	case q.Budget == nil:
		return fail("budget is missing")
	case q.Budget == privacy.Budget(privacy.None{}):
		return fail("budget is none, must be a budget that protects")
	case q.Horizon < 1 || q.Horizon > maxHorizon:
		return fail("horizon is %d, must be from 1 to %d", q.Horizon, maxHorizon)
	case !(q.Lo < q.Hi) || math.IsInf(q.Lo, 0) || math.IsInf(q.Hi, 0):
		return fail("range is [%v, %v], must be two finite numbers, the first below the second", q.Lo, q.Hi)
	case !(q.Level > 0 && q.Level < 1):
		return fail("level is %v, must be above 0 and below 1", q.Level)
	case !(q.Resolution > 0 && q.Resolution < 1):
		return fail("resolution is %v, must be at least 0 (0.01) and below 1", q.Resolution)
	case !riskIn(q.Risk):
		return fail("risk is %v, must be at least 0.5 and below 1", q.Risk)
	case q.ByRisk && q.Risk == 0:
		return fail("a ranking by risk wants a level of risk, such as 0.99")
	case q.ByRisk && q.Strict:
		return fail("a ranking by risk rests on a central limit theorem, and strict trusts none")
	case q.MinRuns < 0 || q.MinRuns == 1 || q.MinRuns > maxRuns:
		return fail("min runs is %d, must be from 2 to %d", q.MinRuns, maxRuns)
	case q.MaxRuns < 0 || q.MaxRuns == 1 || q.MaxRuns > maxRuns:
		return fail("max runs is %d, must be from 2 to %d", q.MaxRuns, maxRuns)
	case q.MinRuns > 0 && q.MaxRuns > 0 && q.MinRuns > q.MaxRuns:
		return fail("min runs is %d, above max runs, %d", q.MinRuns, q.MaxRuns)
	case q.Effort < 0:
		return fail("effort is %d, must be at least 1", q.Effort)
	case q.Time < 0:
		return fail("time is %v, must be positive", q.Time)
	case q.Workers < 0:
		return fail("workers is %d, must be at least 1, or 0 for one a processor", q.Workers)
	}
	if err := q.Budget.Validate(); err != nil {
		return fail("%w", err)
	}
	if q.Delay.Window != 0 {
		if field, err := q.Delay.Check(q.Lo, q.Hi); err != nil {
			return fail("%s of the delay %w", field, err)
		}
	}
	switch {
	case q.MinRuns == 0 && q.MaxRuns == 0:
		q.MinRuns, q.MaxRuns = 1024, 65536
	case q.MinRuns == 0:
		q.MinRuns = min(1024, q.MaxRuns)
	case q.MaxRuns == 0:
		q.MaxRuns = max(65536, q.MinRuns)
	}
	or(&q.Effort, 1<<28)
	return nil
}

// maxHorizon keeps counts exact as doubles, and in an int of 32 bits with room for sums.
const maxHorizon = min(1<<53, math.MaxInt/4)

// maxRuns keeps a policy's regrets in memory.
const maxRuns = 10_000_000
