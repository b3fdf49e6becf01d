package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A Spec is an experiment as its file says it. Read and Parse make one from a file; a program may
// fill one in. Nothing in it has been checked beyond its form: Resolve does that.
type Spec struct {
	Name        string // [a-z0-9._-]+
	Description string
	Kind        string      // one of Kinds; empty is KindRegret
	Horizon     keyed.Count // T, rounds; of the kinds that measure regret
	// samples, or plays, after which a rule gives up; of KindStopping and KindIdentify
	Cap  keyed.Count
	Runs keyed.Count // of each cell
	// of KindIdentify, instead of Runs: as few runs as can show that an error rate is at most Risk,
	// see ResolvingRuns
	Resolving bool
	// δ, the probability of a wrong answer that is allowed, above 0 and below 1; of KindIdentify
	Risk        float64
	Seed        uint64
	Points      keyed.Count   // checkpoints, log-spaced; 0 means 200
	Checkpoints []keyed.Count // explicit checkpoints, increasing; they replace Points
	// the declared range of rewards; both 0 means [0,1], or [−1,1] of samples and of linear and
	// contextual bandits
	Lo, Hi    float64
	Unclipped bool // feed rewards outside the range as they are: no privacy guarantee
	Bounds    bool // draw lower bounds on the regret beside it; changes no number, and no hash
	// the confidence, above 0 and below 1, of intervals for the arms' means, made of each run's
	// releases at its end; 0: there are none. Of KindRegret and KindIdentify
	Intervals float64
	Instances []Instance
	Policies  []Policy
	Rules     []Rule           // of KindStopping, instead of policies
	Budgets   []privacy.Budget // those that are not private run at none, whatever stands here
	Trust     Trust            // of all private policies; of KindRegret and KindIdentify
	Delay     sim.DelayLaw     // of rewards; of KindRegret, KindIdentify, and KindContextual with Clicks
	// Catalog has the policies by name; the zero value those of Sotto.
	Catalog catalog.Catalog

	dir string // relative paths start here
	src *keyed.Source
}

// defaultPoints is the number of checkpoints of an experiment that does not say.
const defaultPoints = 200

// MaxPoints is the largest number of checkpoints.
const MaxPoints = 100_000

// MaxRuns is the largest number of runs of a cell.
const MaxRuns = 10_000_000

// An Instance says where rewards come from, in exactly one of the ways below.
type Instance struct {
	Name string

	Bernoulli []float64 // means of Bernoulli arms
	// Vectors x of Bernoulli arms, and how their means follow from them, for one θ: linear or empty, ⟨θ,x⟩, or
	// logistic, 1/(1+e^{−⟨θ,x⟩}). For policies that know it.
	Vectors [][]float64
	Link    string
	// Contexts are the shares of contexts that people come with, at least two: Bernoulli is then the means of the arms of
	// the first context, of the second, …, of all as many. For policies that play contexts.
	Contexts []float64
	Laws     []string // one law an arm, as bandit.ParseLaw reads it
	Standard string   // C1, C2, C3 or C4 of [Sajed 2019], for Arms arms
	Means    *Means   // means drawn at random for Arms arms
	CSV      string   // path of logged rewards, relative to the experiment's file
	Columns  Columns  // what the columns of that file mean
	SHA256   string   // of that file, in hex; if set, another file is refused
	Exec     []string // a program of somebody else's that pays rewards, and its arguments
	// anything else, from a program: its file form names the source, and cannot be played
	Source bandit.Source

	Arms keyed.Count

	// Changes give the arms of Bernoulli or Laws other laws during a run, of KindRegret.
	Changes []Change

	Law string // of KindStopping: the law of the samples, as bandit.ParseLaw reads it

	Linear           *Linear                 // of KindLinear and KindContextual
	LinearSource     bandit.LinearSource     // of KindLinear, from a program, as Source
	ContextualSource bandit.ContextualSource // of KindContextual, from a program
	Clicks           *Clicks                 // of KindContextual
}

// A Change gives the arms of an instance other laws.
type Change struct {
	From keyed.Count // the first round that has them, the run's first being 1
	Laws []string    // one an arm, as bandit.ParseLaw reads it
}

// Columns say what the columns of a CSV of logged rewards mean (logged.Format). Further
// ones are ignored.
type Columns struct {
	Arm, Reward string // empty: arm and reward
	// column of persons, each of whom counts once; empty: every row is of another person
	User           string
	SkipMissing    bool // leave out rows without a reward
	logged.Dialect      // how the file is written
}

// A Rule is a stopping rule with its parameters.
type Rule struct {
	Rule string // nas, dp-nas or dp-exp-nas
	// what tables call it; empty: the rule's name, with its parameters where that is not enough
	Name        string
	Alpha, Beta float64 // both above 0 and below 1
}

// Means draws an instance's means uniformly in [Lo, Hi].
type Means struct {
	Lo, Hi float64
	Law    string  // bernoulli (or empty), gaussian, or clipped-gaussian (to the declared range)
	SD     float64 // of the Gaussian laws
	Redraw bool    // for each run anew; else once
}

// A Policy is a policy with its parameters.
type Policy struct {
	Policy string // its name in the catalog
	// Program is a policy of somebody else's, instead of Policy.
	Program catalog.Program
	// what tables and figures call it; empty: the policy's name, with its parameters where
	// that is not enough
	Name    string
	Params  catalog.Params
	Trust   Trust            // what it says instead of the experiment's
	Budgets []privacy.Budget // instead of the experiment's
	// of KindContextual: the share of the rounds of Clicks that play a uniform action
	Floor float64
}

// fail places an error at a field.
func (s *Spec) fail(field, format string, args ...any) *keyed.Error {
	return s.src.Wrap(field, fmt.Errorf(format, args...))
}

// Override replaces a field, named horizon, runs, seed or checkpoints, by what a flag says. Errors
// in it are then placed at the flag.
func (s *Spec) Override(field, flag, value string) error {
	var err error
	switch field {
	case "horizon":
		if k, err := kindOf(s.Kind); err == nil && !keyed.Has(k.keys(s.Catalog), field) {
			return &keyed.Error{Field: field, Pos: keyed.Pos{File: flag},
				Err: fmt.Errorf("an experiment of kind %s has none: it has a cap on samples", k.name())}
		}
		s.Horizon, err = keyed.ParseCount(value)
	case "runs":
		if s.Resolving = value == resolving && s.resolver() != nil; s.Resolving {
			s.Runs = 0
			break
		}
		s.Runs, err = keyed.ParseCount(value)
	case "checkpoints":
		s.Points, err = keyed.ParseCount(value)
		s.Checkpoints = nil
	case "seed":
		s.Seed, err = keyed.ParseSeed(value)
	default:
		return fmt.Errorf("field %q cannot be overridden: horizon, runs, seed and checkpoints can", field)
	}
	if err != nil {
		return &keyed.Error{Field: field, Pos: keyed.Pos{File: flag}, Err: err}
	}
	if s.src != nil { // the file is not to blame any more
		src := *s.src
		src.At = make(map[string]keyed.Pos, len(s.src.At))
		for f, pos := range s.src.At {
			if f != field && !strings.HasPrefix(f, field+"[") {
				src.At[f] = pos
			}
		}
		src.At[field] = keyed.Pos{File: flag}
		s.src = &src
	}
	return nil
}

// A resolver is a kind that can say how many runs are enough.
type resolver interface {
	resolveRuns(*Spec) (*Spec, error)
}

// resolver is the experiment's kind, if it is one.
func (s *Spec) resolver() resolver {
	k, err := kindOf(s.Kind)
	if err != nil {
		return nil
	}
	r, _ := k.(resolver)
	return r
}

// normal is the experiment's normal form: every default written out, fields in one order.
func (s *Spec) normal() ([]keyed.Field, error) {
	k, err := kindOf(s.Kind)
	if err != nil {
		return nil, s.fail("kind", "%w", err)
	}
	out, err := keyed.NormalOf(k.keys(s.Catalog), s)
	var in *keyed.InItem
	if errors.As(err, &in) {
		return nil, s.src.Wrap(in.Field, in.Err)
	}
	return out, err
}

// span is the declared range of rewards.
func (s *Spec) span() (lo, hi float64) {
	if k, err := kindOf(s.Kind); err == nil && s.Lo == 0 && s.Hi == 0 {
		return k.span()
	}
	return s.Lo, s.Hi
}

func (s *Spec) points() keyed.Count {
	if s.Points == 0 {
		return defaultPoints
	}
	return s.Points
}

// JSON is the experiment's normal form on one line: every default written out, fields in one order.
// Parse reads it back, since JSON is YAML.
func (s *Spec) JSON() ([]byte, error) {
	f, err := s.normal()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := keyed.WriteFlow(&b, f, true); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// YAML is the experiment's normal form as a file.
func (s *Spec) YAML() ([]byte, error) {
	fields, err := s.normal()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range fields {
		b.WriteString(f.Key + ":")
		items, block := f.Value.([]any)
		block = block && len(items) > 0 && f.Key != "range" && f.Key != "checkpoints"
		if !block {
			b.WriteByte(' ')
			if err := keyed.WriteFlow(&b, f.Value, false); err != nil {
				return nil, err
			}
			b.WriteByte('\n')
			continue
		}
		b.WriteByte('\n')
		for _, item := range items {
			b.WriteString("  - ")
			if err := keyed.WriteFlow(&b, item, false); err != nil {
				return nil, err
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}
