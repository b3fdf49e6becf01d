// Package catalog is the one table of policies by name: what experiment files, the command line,
// the JSON schema and `sotto list` know of them. It is a slice, built when asked for: no
// registration, no globals. Begin with For.
package catalog

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// ErrBudget is matched by the error for a budget that a policy cannot meet.
var ErrBudget = errors.New("budget not supported")

// A Setting is what everybody may know before the first round.
type Setting struct {
	Arms    int
	Horizon int // T; policies that need none ignore it
	Budget  privacy.Budget
	// Unclipped says that rewards may leave their declared range: no guarantee, and no short cuts
	// that rest on it.
	Unclipped bool
	// Coins are for policies that randomise their choices. Others need none.
	Coins policy.Coins
	// Shares are those of the arms, for a policy that keeps them; nil is even ones.
	Shares []float64
	// Vectors and Logistic are as in IdentifySetting, for entries that say what they make of them.
	Vectors  [][]float64
	Logistic bool
	// Contexts are those that people come with, of an entry that plays them; 0 is one. Arms are those of all contexts
	// together, as many of each: arm a of context c, of K arms each, is arm cK + a.
	Contexts int
	// Cells is of how many sums a release of an arm is added up, each with noise of its own; 0 for one.
	Cells int
}

// The kinds of bandit that policies are for: values of Entry.Bandit.
const (
	BanditArms       = "regret"     // K arms; "" and "arms" are read as it
	BanditLinear     = "linear"     // a fixed, finite set of actions in ℝ^d
	BanditContextual = "contextual" // a new set of actions in ℝ^d in each round
)

// A LinearSetting is what everybody may know of a linear bandit before the first round.
type LinearSetting struct {
	Actions [][]float64 // K vectors of d numbers
	Horizon int
	Budget  privacy.Budget
}

// A ContextualSetting is what everybody may know of a contextual bandit before the first round.
type ContextualSetting struct {
	Dim     int // d
	Arms    int // the most actions that a round can have
	Horizon int
	Budget  privacy.Budget
	Coins   policy.Coins // for policies that randomise their choices
	// Rows are all vectors that can be played, Dim numbers each, one after the other; nil where they are not
	// few, or not known.
	Rows []float64
	// Step is release.ExactStep on the curator of real rewards, 0 on that of simulated ones:
	// confidence sets that rest on a noise's law allow for its grid.
	Step float64
}

// How the means of arms follow from their vectors: values of Entry.Vectors.
const (
	MeansLinear   = "linear"
	MeansLogistic = "logistic"
)

// An Entry describes a policy.
type Entry struct {
	Name      string
	Title     string
	Private   bool     // adds noise; a policy that does not is run once, at budget none
	Budgets   []string // kinds of budget it can meet, as Kind names them
	Guarantee string   // of privacy
	Regret    string   // bound, and where it is proved
	// Finite says that this bound is a theorem that holds at every horizon or risk, with constants that are known or
	// of a known order: not one as these tend to a limit. Parameters with which nothing is proved take it away.
	Finite  bool
	Source  string
	Anytime bool // needs no horizon
	Params  []Param
	// Bandit is the kind of bandit that the policy plays, and says which of the
	// constructors below is set.
	Bandit string
	// Goal is what the policy is for, see Seeks.
	Goal Goal
	// Vectors says what a policy of BanditArms or BanditIdentify makes of the arms' vectors: MeansLinear or
	// MeansLogistic, or nothing if it is empty.
	Vectors string
	// Contexts says that such a policy plays a bandit of its own in each of finitely many contexts, which are public.
	Contexts bool
	// Twin names the policy that this one is without privacy, if that has an entry of its own. At
	// budget none every policy is its own twin.
	Twin string
	// Family names the policy without privacy that this one makes private, or is a variant of; empty
	// is itself. Figures draw a private policy and those of its family without privacy in one hue.
	Family string
	// Newer names the private policy that we recommend in its place, empty where we know none. A figure
	// that has a recommended policy too draws this one grey.
	Newer string
	// PublicContexts says that a private policy that is given contexts protects rewards alone.
	PublicContexts bool
	// Continuous says that its bound, or its δ-correctness, is proved for continuous noise of its
	// mechanism's law, and not for any noise with a known tail; Discrete that the proof is for the
	// discrete Laplace noise of a server that is believed, too, and for those that Gathered names.
	Continuous, Discrete bool
	// Simulated says why a policy cannot be played live yet; empty where its form says it, or it can.
	Simulated string
	// Gathered says whether what is proved holds live where nobody sees the rewards. It must be said
	// of what play.Admit admits.
	Gathered Verdict
	// AnyTail says the same of a policy that is not played live: that all that is proved of it holds for any noise with
	// a tail that is known.
	AnyTail bool
	// Program is who plays it, if that is a program of somebody else.
	Program Program
	// New builds the policy of BanditArms. Its parameters are as Entry.Complete returns them.
	New func(Setting, Params) (policy.Policy, error)
	// NewLinear builds that of BanditLinear.
	NewLinear func(LinearSetting, Params) (linear.Policy, error)
	// NewContextual builds that of BanditContextual.
	NewContextual func(ContextualSetting, Params) (linear.Contextual, error)
	// NewIdentify builds that of BanditIdentify, and Correct says who proves that it is δ-correct,
	// empty if nobody does.
	NewIdentify func(IdentifySetting, Params) (identify.Identifier, error)
	Correct     string

	vary func(*Entry, Params) // nil: parameters change nothing above
}

// With is the entry as it is with these parameters, where they change the budgets it can meet, its
// guarantee, its source or what is proved of it.
func (e Entry) With(p Params) Entry {
	if e.vary != nil {
		e.vary(&e, p)
	}
	if why := e.unproved(p, false); len(why) > 0 {
		e.Regret, e.Finite = "none proved: "+strings.Join(why, "; and "), false
	}
	return e
}

// Plain says that the policy plays arms of which nothing is known beforehand, and people who are all alike: not vectors,
// and not contexts.
func (e Entry) Plain() bool { return e.Vectors == "" && !e.Contexts }

// A Param describes one parameter of a policy.
type Param struct {
	Name, Doc string
	Flag      bool     // true or false, 1 or 0 in Params
	Choices   []string // one of these words, its index in Params
	Integer   bool     // a whole number
	Default   float64  // NaN: derived from the setting, as DefaultDoc says
	// DefaultDoc writes the default, where it is derived.
	DefaultDoc string
	Lo, Hi     float64 // allowed: strictly between, or equal where the flags below say so
	LoIn, HiIn bool
	// Proof says for which values the theorem on the policy's regret holds.
	Proof Proof
}

// A Proof says for which values of a parameter the theorem on its policy's regret, or number of
// samples, is proved. The zero value is for policies of which nothing is proved.
type Proof struct {
	Theorem string    // who proves it
	Above   float64   // for values above this; −Inf: for every value that is allowed
	Only    []float64 // if not nil: for these values instead, and
	Derived bool      // for the default that is derived
	// Beside says what is proved of the other values instead, empty if nothing is.
	Beside string
}

// always is a theorem that holds for every value of the parameter.
func always(theorem string) Proof { return Proof{Theorem: theorem, Above: math.Inf(-1)} }

// only is a theorem for these values alone, and onlyDerived one for the derived default.
func only(theorem string, values ...float64) Proof { return Proof{Theorem: theorem, Only: values} }

func onlyDerived(theorem string, as ...float64) Proof {
	return Proof{Theorem: theorem, Only: append([]float64{}, as...), Derived: true}
}

// holds says whether the theorem is for this value, given or else derived.
func (p Proof) holds(x float64, given bool) bool {
	switch {
	case p.Only != nil && given:
		return slices.Contains(p.Only, x)
	case p.Only != nil:
		return p.Derived
	}
	return !given || x > p.Above
}

// Proved says in words for which values the theorem is proved: empty for every value that is
// allowed, and where nothing is proved.
func (p Param) Proved() string {
	q := p.Proof
	switch {
	case q.Theorem == "" || q.Only == nil && math.IsInf(q.Above, -1):
		return ""
	case q.Only == nil:
		return fmt.Sprintf("%s needs %s above %v", q.Theorem, p.Name, q.Above)
	}
	var values []string
	for _, x := range q.Only {
		values = append(values, p.Text(x))
	}
	if values == nil {
		values = []string{p.DefaultDoc}
	}
	return fmt.Sprintf("%s is for %s = %s", q.Theorem, p.Name, strings.Join(values, " or "))
}

// A Verdict says whether what is proved of a policy, beside its privacy, holds where sums are gathered
// that nobody sees a reward of: with one whole noise of each of two servers, of each user, or of each
// cohort. One of its fields is set; none of a policy that cannot be played live.
type Verdict struct {
	Proved  string // what the proof needs of the noise, which these have
	Refused string // what it needs that they have not, and what to take instead
}

// ErrGathered is matched by the error of a policy of which it is not proved that it does without
// somebody who sees the rewards.
var ErrGathered = errors.New("it is not proved for sums that are gathered")

// Gathers is nil if what is proved of the policy with these parameters, which are as Complete returns
// them, holds where nobody sees the rewards, and otherwise an error that matches ErrGathered.
func (e Entry) Gathers(p Params) error {
	switch v := e.With(p).Gathered; {
	case v.Refused != "":
		return fmt.Errorf("%s: %w: %s", e.Name, ErrGathered, v.Refused)
	case v.Proved == "":
		return fmt.Errorf("%s: %w: nobody has said what its proof needs of the noise", e.Name, ErrGathered)
	}
	return nil
}

// Params are a policy's parameters by name.
type Params map[string]float64

// Misread is the probability with which a run may misread a sum where no server is believed: 1/T, or
// the policy's own p.
func (p Params) Misread(horizon int) float64 {
	if x, ok := p["p"]; ok && x > 0 && x < 1 {
		return x
	}
	return 1 / float64(max(2, horizon))
}

// Kind is the kind of a budget: "epsilon", "rho", "epsilon,delta", "alpha,epsilon", "mu" or "none".
func Kind(b privacy.Budget) string {
	switch b.(type) {
	case privacy.Pure:
		return "epsilon"
	case privacy.ZCDP:
		return "rho"
	case privacy.Approx:
		return "epsilon,delta"
	case privacy.Renyi:
		return "alpha,epsilon"
	case privacy.GDP:
		return "mu"
	default:
		return "none"
	}
}

// Find is Catalog.Find among Sotto's own policies.
func Find(bandit, name string) (Entry, error) { return Catalog{}.Find(bandit, name) }

func find(entries []Entry, name string) (Entry, error) {
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }); i >= 0 {
		return entries[i], nil
	}
	known := names(entries)
	return Entry{}, fmt.Errorf("policy %q is unknown%s; known are %s", name, Hint(name, known),
		strings.Join(known, ", "))
}

func names(entries []Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name
	}
	return out
}

func banditText(bandit string) string {
	switch bandit {
	case BanditLinear:
		return "linear bandits"
	case BanditContextual:
		return "contextual bandits"
	case BanditIdentify:
		return "best-arm identification"
	}
	return "bandits of K arms"
}

// Meets says whether the policy can run at budget b: nil, or an error that matches ErrBudget.
func (e Entry) Meets(b privacy.Budget) error {
	kind := Kind(b)
	if kind == "none" || slices.Contains(e.Budgets, kind) {
		return nil
	}
	return fmt.Errorf("%w: policy %s cannot meet %s: it takes %s", ErrBudget, e.Name, b,
		strings.Join(append(slices.Clone(e.Budgets), "none"), " | "))
}

// Complete checks given parameters and adds the defaults of those that are missing and have one.
// Derived defaults stay missing.
func (e Entry) Complete(given Params) (Params, error) {
	out := make(Params, len(e.Params))
	names := make([]string, len(e.Params))
	for i, p := range e.Params {
		names[i] = p.Name
		x, ok := given[p.Name]
		if !ok {
			if !math.IsNaN(p.Default) {
				out[p.Name] = p.Default
			}
			continue
		}
		if err := p.check(x); err != nil {
			return nil, fmt.Errorf("policy %s: %w", e.Name, err)
		}
		out[p.Name] = x
	}
	unknown := make([]string, 0)
	for name := range given {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		known := "it has none"
		if len(names) > 0 {
			known = "known are " + strings.Join(names, ", ")
		}
		return nil, fmt.Errorf("policy %s: parameter %q is unknown%s; %s", e.Name, unknown[0],
			Hint(unknown[0], names), known)
	}
	return out, nil
}

// Unproved says why the theorem on the policy's regret, or number of samples, is not proved for
// these parameters, which are as Complete returns them: a reason for each that it is not for,
// none if it holds.
func (e Entry) Unproved(p Params) []string { return e.unproved(p, true) }

func (e Entry) unproved(p Params, beside bool) []string {
	var out []string
	for _, d := range e.Params {
		x, given := p[d.Name]
		if d.Proof.Theorem == "" || d.Proof.holds(x, given) || d.Proof.Beside != "" && !beside {
			continue
		}
		text := fmt.Sprintf("%s is %s; %s", d.Name, d.Text(x), d.Proved())
		if d.Proof.Beside != "" {
			text += ", and " + d.Proof.Beside
		}
		out = append(out, text)
	}
	return out
}

// Warnings names the theorems whose range the parameters leave. Of identification, what is
// proved is in Correct.
func (e Entry) Warnings(p Params) []string {
	if e.Bandit == BanditIdentify {
		return nil
	}
	out := e.unproved(p, false)
	for i := range out {
		out[i] = fmt.Sprintf("policy %s: %s: privacy holds, the regret bound is not proved", e.Name, out[i])
		if !e.Private {
			out[i] = strings.Replace(out[i], "privacy holds, the", "the", 1)
		}
	}
	return out
}

// Allowed says in words which values the parameter takes.
func (p Param) Allowed() string {
	switch {
	case p.Flag:
		return "true or false"
	case p.Choices != nil:
		return strings.Join(p.Choices, " or ")
	}
	var s []string
	if p.Integer {
		s = append(s, "a whole number")
	}
	if !math.IsInf(p.Lo, -1) {
		s = append(s, edge(p.LoIn, "at least ", "above ")+strconv.FormatFloat(p.Lo, 'g', -1, 64))
	}
	if !math.IsInf(p.Hi, 1) {
		s = append(s, edge(p.HiIn, "at most ", "below ")+strconv.FormatFloat(p.Hi, 'g', -1, 64))
	} else {
		s = append(s, "finite")
	}
	return strings.Join(s, ", ")
}

func edge(in bool, yes, no string) string {
	if in {
		return yes
	}
	return no
}

func (p Param) check(x float64) error {
	ok := !math.IsNaN(x) && !math.IsInf(x, 0) && (x > p.Lo || p.LoIn && x == p.Lo) &&
		(x < p.Hi || p.HiIn && x == p.Hi)
	switch {
	case p.Flag:
		ok = x == 0 || x == 1
	case p.Choices != nil:
		ok = x >= 0 && x < float64(len(p.Choices)) && x == math.Trunc(x)
	}
	if p.Integer {
		ok = ok && x == math.Trunc(x)
	}
	if !ok {
		return fmt.Errorf("%s is %v, must be %s", p.Name, x, p.Allowed())
	}
	return nil
}

// Text writes a value of the parameter as people do.
func (p Param) Text(x float64) string {
	switch {
	case p.Flag:
		return strconv.FormatBool(x != 0)
	case p.Choices != nil && x >= 0 && x < float64(len(p.Choices)):
		return p.Choices[int(x)]
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// Parse reads what Text writes. Whether a number is allowed is for Complete to say.
func (p Param) Parse(text string) (float64, error) {
	switch {
	case p.Flag:
		switch text {
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		}
	case p.Choices != nil:
		if i := slices.Index(p.Choices, text); i >= 0 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("%s is %q%s, must be %s", p.Name, text, Hint(text, p.Choices), p.Allowed())
	default:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x, nil
		}
	}
	return 0, fmt.Errorf("%s is %q, must be %s", p.Name, text, p.Allowed())
}

// Param is the parameter of this name.
func (e Entry) Param(name string) (Param, bool) {
	i := slices.IndexFunc(e.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return e.Params[i], true
}

// Content is the policy with the parameters that are not at their defaults, in one order: what its
// noise is keyed by. So a parameter that is new in the catalog changes no run, and what is left out
// is what New does by itself.
func (e Entry) Content(p Params) string {
	var b strings.Builder
	b.WriteString(e.Name)
	if e.Program.Hash != "" {
		b.WriteString(" program=" + e.Program.Hash)
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if d, ok := e.Param(name); !ok || p[name] != d.Default {
			b.WriteString(" " + name + "=" + strconv.FormatFloat(p[name], 'g', -1, 64))
		}
	}
	return b.String()
}

// Hint is ", did you mean …?" if one of the known words is near, else empty.
func Hint(word string, known []string) string {
	best, at := 1+max(2, len(word)/3), ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < best {
			best, at = d, k
		}
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", at)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
