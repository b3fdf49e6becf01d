package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A Plan is an experiment that has been checked, with its cells. It does not change.
type Plan struct {
	Spec        Spec // its CSV files are pinned by their hash, which it does not write down
	Checkpoints []int
	Cells       []Cell
	Warnings    []string
	Hash        string // of the whole experiment, labels included: what shards must agree on
	Block       int    // runs in a unit

	fingerprint string // of its logs, empty if it has none: see fingerprintFile

	normal  []byte   // Spec as JSON
	endless []string // cells that never get to a release
}

// A world is an instance of the experiment, resolved.
type world struct {
	label   string
	source  bandit.Source
	arms    int
	fixed   bandit.Instance // if it is not redrawn
	best    []int           // of KindIdentify: its arms with the largest mean
	content string          // the key of its streams: the source's content, and the range
	// what may be told of content, and what hashes are of: of logged rewards the file's name and
	// sizes
	public string
	trial  trial // of KindStopping: law and mean

	// Of KindLinear and KindContextual, instead of source and fixed.
	linear          bandit.LinearSource
	fixedLinear     bandit.LinearInstance
	contextual      bandit.ContextualSource
	fixedContextual bandit.ContextualInstance
	dim             int

	clipped  bool   // rewards leave the range and are clipped to it
	unranked string // why policies are not ranked by their regret
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// maxLabel bounds the labels of instances and policies: they are columns, legends and file names.
const maxLabel = 100

// Resolve checks all of an experiment before any of it is played, and says what its cells are.
// Errors match ErrSpec.
func (s *Spec) Resolve() (*Plan, error) {
	if s.Resolving {
		resolved, err := s.resolveRuns()
		if err != nil {
			return nil, err
		}
		s = resolved
	}
	p := &Plan{Spec: *s}
	p.Spec.Instances = slices.Clone(s.Instances) // hashes are added below
	switch {
	case s.Name == "":
		return nil, s.fail("name", "is missing: want a name of a-z, 0-9, dot, dash and underscore")
	case !nameForm.MatchString(s.Name) || len(s.Name) > maxLabel:
		return nil, s.fail("name", "is %q: want at most %d characters of a-z, 0-9, dot, dash and "+
			"underscore, the first a letter or digit", clip(s.Name), maxLabel)
	}
	length := struct {
		field   string
		n, most Count
	}{"horizon", s.Horizon, MaxCount}
	switch s.Kind {
	case "", KindRegret:
		p.Spec.Kind = ""
		if s.Cap != 0 || len(s.Rules) > 0 {
			return nil, s.fail("kind", "is %s, but there are rules or a cap: they are for %s",
				KindRegret, KindStopping)
		}
	case KindStopping:
		if s.Horizon != 0 || s.Points != 0 || s.Checkpoints != nil || s.Unclipped || s.Bounds ||
			len(s.Policies) > 0 {
			return nil, s.fail("kind", "is %s, but there are policies, a horizon, checkpoints, "+
				"bounds or unclipped: they are for %s", KindStopping, KindRegret)
		}
		length.field, length.n = "cap", s.Cap
	case KindIdentify:
		if err := s.checkIdentify(); err != nil {
			return nil, err
		}
		length.field, length.n = "cap", s.Cap
	case KindLinear, KindContextual:
		if s.Cap != 0 || len(s.Rules) > 0 {
			return nil, s.fail("kind", "is %s, but there are rules or a cap: they are for %s",
				s.Kind, KindStopping)
		}
	default:
		return nil, s.fail("kind", "%w", checkKind(s.Kind))
	}
	for _, c := range []struct {
		field   string
		n, most Count
	}{length, {"runs", s.Runs, MaxRuns}} {
		switch {
		case c.n == 0:
			return nil, s.fail(c.field, "is missing or 0: want a whole number, at least 1")
		case c.n < 0 || c.n > c.most:
			return nil, s.fail(c.field, "is %d: want a whole number from 1 to %d", int(c.n), int(c.most))
		}
	}
	if s.Kind != KindIdentify && s.Risk != 0 {
		return nil, s.fail("risk", "is %v: it is for experiments of kind %s", s.Risk, KindIdentify)
	}
	if err := p.checkpoints(); err != nil {
		return nil, err
	}
	lo, hi := s.span()
	if !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return nil, s.fail("range", "is [%v, %v]: want two finite numbers, the first below the second", lo, hi)
	}
	if linearKind(s.Kind) && (lo != -1 || hi != 1) {
		return nil, s.fail("range", "is [%v, %v]: rewards are in [-1, 1] in an experiment of "+
			"kind %s; scale them", lo, hi, s.Kind)
	}
	if s.Kind == KindStopping && lo != -hi {
		return nil, s.fail("range", "is [%v, %v]: want [-R, R] in an experiment of kind %s", lo, hi, s.Kind)
	}
	if s.Kind == KindStopping && !(hi >= minRange && hi <= maxRange) {
		return nil, s.fail("range", "is [%v, %v]: want [-R, R] with R from %v to %v", lo, hi,
			float64(minRange), float64(maxRange))
	}
	worlds, err := p.worlds()
	if err != nil {
		return nil, err
	}
	p.logged(worlds)
	if err := p.budgets(); err != nil {
		return nil, err
	}
	if err := p.cells(worlds); err != nil {
		return nil, err
	}
	columns := len(p.Checkpoints)
	if s.Kind == KindIdentify {
		if columns, err = p.identifyColumns(worlds); err != nil {
			return nil, err
		}
	}
	// how long a rule samples is hard to say, but not by its cap
	p.Block = blockSize(max(1, int(s.Horizon)), int(s.Runs), columns)
	if err := p.seal(); err != nil {
		return nil, err
	}
	if s.Bounds {
		if _, left := p.BoundProblems(); len(left) > 0 {
			p.warn("bounds: none for %s", strings.Join(left, "; "))
		}
	}
	return p, nil
}

func (p *Plan) checkpoints() error {
	s := &p.Spec
	if s.capped() {
		p.Checkpoints = []int{int(s.Cap)}
		return nil
	}
	if s.Checkpoints == nil {
		if n := s.points(); n < 1 || n > MaxPoints {
			return s.fail("checkpoints", "is %d: want a number of checkpoints from 1 to %d, or a "+
				"list of rounds", n, MaxPoints)
		}
		p.Checkpoints = sim.LogSpaced(int(s.points()), int(s.Horizon))
		return nil
	}
	if n := len(s.Checkpoints); n == 0 || n > MaxPoints {
		return s.fail("checkpoints", "lists %d rounds: want from 1 to %d", n, MaxPoints)
	}
	last := Count(0)
	for i, t := range s.Checkpoints {
		field := fmt.Sprintf("checkpoints[%d]", i)
		switch {
		case t > s.Horizon:
			return s.fail(field, "is round %d, beyond the horizon, %d", t, s.Horizon)
		case t <= last:
			return s.fail(field, "is round %d after %d: want increasing rounds, the first at least 1", t, last)
		}
		last = t
		p.Checkpoints = append(p.Checkpoints, int(t))
	}
	if last != s.Horizon {
		return s.fail("checkpoints", "end at round %d: the last one must be the horizon, %d", last, s.Horizon)
	}
	return nil
}

func (p *Plan) worlds() ([]world, error) {
	s := &p.Spec
	if s.Kind == KindStopping {
		return p.laws()
	}
	if linearKind(s.Kind) {
		return p.linearWorlds()
	}
	if len(s.Instances) == 0 {
		return nil, s.fail("instances", "is missing: want at least one, such as {name: easy, "+
			"bernoulli: [0.75, 0.25]}")
	}
	lo, hi := s.span()
	var out []world
	seen := map[string]int{}
	for i := range s.Instances {
		in := &s.Instances[i]
		at := fmt.Sprintf("instances[%d]", i)
		if err := in.named(s, i, seen); err != nil {
			return nil, err
		}
		src, field, err := in.resolve(p)
		if err != nil {
			if field != "" {
				at += "." + field
			}
			return nil, s.src.wrap(at, err)
		}
		w := world{label: in.Name, source: src}
		w.content = fmt.Sprintf("%v range=[%s,%s]", src, number(lo), number(hi))
		stream := noise.Key{Seed: s.Seed, Experiment: w.content, Run: runOfAll,
			Role: noise.RoleInstance}.Fast(1)
		w.fixed, err = src.Instance(&stream[0])
		if err != nil {
			return nil, s.src.wrap(at, err)
		}
		w.arms = len(w.fixed.Arms)
		if s.Kind == KindIdentify {
			if err := p.checkWorld(&w, at); err != nil {
				return nil, err
			}
			out = append(out, w)
			continue
		}
		if int(s.Horizon) < w.arms {
			return nil, s.fail("horizon", "is %d, below the number of arms of instance %s, %d: "+
				"each arm must be playable once", s.Horizon, in.Name, w.arms)
		}
		if a, b := w.fixed.Support(); a < lo || b > hi {
			if s.Unclipped {
				p.warn("instance %s: rewards leave the declared range [%v, %v] and are not "+
					"clipped: no privacy guarantee", in.Name, lo, hi)
			} else {
				w.clipped = true
				p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped "+
					"to it; regret counts the means before clipping", in.Name, lo, hi)
			}
			if w.unranked = in.unranked(w.fixed, s.Unclipped, lo, hi); w.unranked != "" {
				p.warn("instance %s: policies are not ranked: %s", in.Name, w.unranked)
			}
		}
		out = append(out, w)
	}
	if s.Unclipped {
		p.warn("unclipped: rewards are not clipped to the declared range: no privacy guarantee")
	}
	return out, nil
}

// unranked says why the regret of policies does not rank them on an instance whose rewards leave
// the range: empty if it does.
func (in *Instance) unranked(fixed bandit.Instance, unclipped bool, lo, hi float64) string {
	if !unclipped {
		if fixed.ClippingTurns(lo, hi) {
			return fmt.Sprintf("clipping to [%v, %v] changes which arm is best, or may; they "+
				"look for the best of the clipped means, and regret is of the means before clipping", lo, hi)
		}
		return ""
	}
	means := fixed.Means()
	if m := in.Means; m != nil { // these are one draw
		means = append(means, m.Lo, m.Hi)
	}
	if slices.Min(means) < lo || slices.Max(means) > hi {
		return fmt.Sprintf("means of arms leave [%v, %v], to which policies bring what they are "+
			"told: arms beyond it look the same, and the order in which they are listed decides", lo, hi)
	}
	return ""
}

// named checks the name of instance i, and that it is not yet seen.
func (in *Instance) named(s *Spec, i int, seen map[string]int) error {
	at := fmt.Sprintf("instances[%d].name", i)
	if err := checkLabel(in.Name); err != nil {
		return s.fail(at, "%w", err)
	}
	if j, twice := seen[in.Name]; twice {
		return s.fail(at, "%q is also the name of instances[%d]: names must differ", in.Name, j)
	}
	seen[in.Name] = i
	return nil
}

func checkKind(name string) error {
	if name == "" || slices.Contains(Kinds(), name) {
		return nil
	}
	return fmt.Errorf("is %q%s: known are %s", clip(name), catalog.Hint(clip(name), Kinds()),
		strings.Join(Kinds(), ", "))
}

func checkLabel(name string) error {
	switch {
	case name == "":
		return errors.New("is missing: want a name")
	case len(name) > maxLabel:
		return fmt.Errorf("is %d bytes long: want at most %d", len(name), maxLabel)
	case strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029'
	}):
		return fmt.Errorf("is %q: want one line of text without control characters", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("is %q: want no spaces around it", name)
	}
	return nil
}

// resolve makes the source of an instance. On error it says in which of the instance's fields.
func (in *Instance) resolve(p *Plan) (src bandit.Source, field string, err error) {
	s := &p.Spec
	if in.Linear != nil || in.LinearSource != nil || in.ContextualSource != nil {
		return nil, "", fmt.Errorf("has actions in ℝ^d: they are for experiments of kind %s and %s",
			KindLinear, KindContextual)
	}
	ways := 0
	for _, given := range []bool{in.Bernoulli != nil, in.Laws != nil, in.Standard != "",
		in.Means != nil, in.CSV != "", in.Source != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, "", fmt.Errorf("says what its arms are in %d ways: want exactly one of "+
			"bernoulli, laws, standard, means, csv", ways)
	}
	if in.CSV == "" && in.Columns != (Columns{}) {
		return nil, "", errors.New("says what columns mean, but has no csv")
	}
	fixed := func(i bandit.Instance, err error) (bandit.Source, error) {
		if err != nil {
			return nil, err
		}
		return bandit.Fixed(i), nil
	}
	switch {
	case in.Bernoulli != nil:
		if err := twoArms(len(in.Bernoulli)); err != nil {
			return nil, "bernoulli", err
		}
		for i, m := range in.Bernoulli {
			if !(m >= 0 && m <= 1) {
				return nil, fmt.Sprintf("bernoulli[%d]", i), fmt.Errorf("is %v: want a mean from 0 to 1", m)
			}
		}
		src, err = fixed(bandit.BernoulliInstance(in.Bernoulli...))
		return src, "bernoulli", err
	case in.Laws != nil:
		if err := twoArms(len(in.Laws)); err != nil {
			return nil, "laws", err
		}
		arms := make([]bandit.Law, len(in.Laws))
		for i, text := range in.Laws {
			if arms[i], err = bandit.ParseLaw(text); err != nil {
				return nil, fmt.Sprintf("laws[%d]", i), err
			}
		}
		src, err = fixed(bandit.NewInstance(arms...))
		return src, "laws", err
	case in.Standard != "":
		c := slices.Index([]string{"C1", "C2", "C3", "C4"}, strings.ToUpper(in.Standard))
		if c < 0 {
			return nil, "standard", fmt.Errorf("is %q: want C1, C2, C3 or C4", clip(in.Standard))
		}
		if err := armCount(in.Arms); err != nil {
			return nil, "arms", err
		}
		src, err = fixed(bandit.Standard(c+1, int(in.Arms)))
		return src, "standard", err
	case in.Means != nil:
		return in.resolveMeans(s)
	case in.CSV != "":
		var inst bandit.Instance
		var log logged.Summary
		field, err := in.read(s, func(r io.Reader) (err error) {
			inst, log, err = bandit.ReadCSV(r, in.format(s))
			return err
		})
		if err != nil {
			return nil, field, err
		}
		if log.Skipped > 0 {
			p.warn("instance %s: %d of %d rows have no reward and are left out: this number is "+
				"not private, nor is whose reward is missing",
				in.Name, log.Skipped, log.Rows)
		}
		if log.Clipped {
			lo, hi := s.span()
			p.warn("instance %s: rewards leave the declared range [%v, %v] and are clipped to it "+
				"before a person's mean is taken", in.Name, lo, hi)
		}
		return bandit.Fixed(inst), field, nil
	default:
		return in.Source, "source", nil
	}
}

// format is how the instance's CSV is read: the rows of a person are clipped to the declared range,
// if rewards are clipped at all.
func (in *Instance) format(s *Spec) logged.Format {
	c := in.Columns
	f := logged.Format{Arm: c.Arm, Reward: c.Reward, User: c.User, SkipMissing: c.SkipMissing}
	if f.Lo, f.Hi = s.span(); s.Unclipped {
		f.Lo, f.Hi = math.Inf(-1), math.Inf(1)
	}
	return f
}

// path is a path in the experiment's file: relative ones start where that file is.
func (s *Spec) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(s.dir, p)
}

// read reads the instance's CSV, which may be larger than memory, and pins it by its SHA-256. On
// error it says in which field.
func (in *Instance) read(s *Spec, read func(io.Reader) error) (field string, err error) {
	path := s.path(in.CSV)
	f, err := os.Open(path)
	if err != nil {
		return "csv", err
	}
	defer f.Close()
	h := sha256.New()
	if err := read(io.TeeReader(f, h)); err != nil {
		return "csv", fmt.Errorf("%s: %w", path, err)
	}
	hash := hex.EncodeToString(h.Sum(nil))
	if in.SHA256 != "" && !strings.EqualFold(in.SHA256, hash) {
		return "sha256", fmt.Errorf("is %q, which is not that of %s: it is another file", clip(in.SHA256), path)
	}
	in.SHA256 = hash
	return "csv", nil
}

func (in *Instance) resolveMeans(s *Spec) (bandit.Source, string, error) {
	m := in.Means
	if err := armCount(in.Arms); err != nil {
		return nil, "arms", err
	}
	family := bandit.BernoulliFamily()
	var err error
	lo, hi := s.span()
	switch m.Law {
	case "", "bernoulli":
		if m.SD != 0 {
			return nil, "sd", errors.New("is given, but a Bernoulli law has none")
		}
	case "gaussian", "clipped-gaussian":
		if !(m.SD > 0) || math.IsInf(m.SD, 0) {
			return nil, "sd", fmt.Errorf("is %v: law %s wants a standard deviation, finite and "+
				"above 0", m.SD, m.Law)
		}
		if m.Law == "gaussian" {
			family, err = bandit.GaussianFamily(m.SD)
		} else {
			family, err = bandit.ClippedGaussianFamily(m.SD, lo, hi)
		}
		if err != nil {
			return nil, "sd", err
		}
	default:
		known := []string{"bernoulli", "gaussian", "clipped-gaussian"}
		return nil, "law", fmt.Errorf("is %q%s: want %s", clip(m.Law),
			catalog.Hint(clip(m.Law), known), strings.Join(known, ", "))
	}
	src, err := bandit.NewUniformMeans(int(in.Arms), m.Lo, m.Hi, family, m.Redraw)
	if err != nil {
		return nil, "means", err
	}
	return src, "", nil
}

func twoArms(n int) error {
	switch {
	case n == 1:
		return errors.New("has 1 arm: want at least 2, or there is nothing to learn")
	case n < 1:
		return errors.New("has no arms: want at least 2")
	}
	return nil
}

func armCount(n Count) error {
	switch {
	case n == 0:
		return errors.New("is missing: want the number of arms, at least 2")
	case n < 2 || n > bandit.MaxArms:
		return fmt.Errorf("is %d: want a number of arms from 2 to %d", int(n), bandit.MaxArms)
	}
	return nil
}

func (p *Plan) budgets() error {
	return p.checkBudgets("budgets", p.Spec.Budgets)
}

func (p *Plan) checkBudgets(field string, budgets []privacy.Budget) error {
	s := &p.Spec
	seen := map[string]int{}
	for i, b := range budgets {
		at := fmt.Sprintf("%s[%d]", field, i)
		if b == nil {
			return s.fail(at, "is missing")
		}
		if err := b.Validate(); err != nil {
			return s.src.wrap(at, err)
		}
		if j, twice := seen[b.String()]; twice {
			return s.fail(at, "%s is also %s[%d]", b, field, j)
		}
		seen[b.String()] = i
	}
	return nil
}

// A choice is a policy of the experiment, resolved.
type choice struct {
	label  string
	entry  catalog.Entry
	params catalog.Params // complete
	// name and parameters: part of cell hashes and of the noise streams' keys
	content string
	budgets []privacy.Budget
	trust   Trust
	// of the policy's own budgets: those of the experiment that they stand beside
	beside map[string]string
}

// skips are the policies that do not meet some budgets, those with the same reason together.
type skips []skip

type skip struct {
	at, takes string // budgets
	policies  []string
}

func (s *skips) add(policy, at, takes string) {
	for i := range *s {
		if g := &(*s)[i]; g.at == at && g.takes == takes {
			if !slices.Contains(g.policies, policy) {
				g.policies = append(g.policies, policy)
			}
			return
		}
	}
	*s = append(*s, skip{at, takes, []string{policy}})
}

func (s skips) warn(p *Plan) {
	for _, g := range s {
		if len(g.policies) == 1 {
			p.warn("policy %s is not played at %s: it takes %s", g.policies[0], g.at, g.takes)
		} else {
			p.warn("policies %s are not played at %s: they take %s", strings.Join(g.policies, ", "),
				g.at, g.takes)
		}
	}
}

func (p *Plan) choices() ([]choice, error) {
	s := &p.Spec
	if s.Kind == KindStopping {
		return p.rules()
	}
	if len(s.Policies) == 0 {
		return nil, s.fail("policies", "is missing: want at least one, such as {policy: %s}",
			firstPolicy(s.Kind))
	}
	var out []choice
	var skips skips
	for i, q := range s.Policies {
		at := fmt.Sprintf("policies[%d]", i)
		entry, err := s.Catalog.Find(banditOf(s.Kind), q.Policy)
		if err != nil {
			return nil, s.src.wrap(at+".policy", err)
		}
		params, err := entry.Complete(q.Params)
		if err != nil {
			// Blame the parameter, if one alone is enough to fail.
			for _, name := range sorted(q.Params) {
				if _, e := entry.Complete(catalog.Params{name: q.Params[name]}); e != nil {
					return nil, s.src.wrap(at+"."+name, e)
				}
			}
			return nil, s.src.wrap(at, err)
		}
		entry = entry.With(params)
		c := choice{label: q.Name, entry: entry, params: params, content: entry.Content(params)}
		for _, w := range entry.Warnings(params) {
			p.warn("%s", w)
		}
		if entry.Private && entry.PublicContexts && !s.Unclipped {
			p.warn("policy %s protects rewards alone: contexts are public", entry.Name)
		}
		if c.trust, err = p.trustOf(i, entry.Private); err != nil {
			return nil, err
		}
		c.content += c.trust.content()
		if c.trust.on() && entry.Continuous && !(entry.Discrete && c.trust.centralLaplace()) {
			p.warn("policy %s under trust %s: privacy holds, but its bound is proved for "+
				"continuous noise", entry.Name, c.trust.label())
			c.entry.Correct = ""
		}
		budgets := s.Budgets
		if len(q.Budgets) > 0 {
			if budgets = q.Budgets; !entry.Private {
				return nil, s.fail(at+".budgets", "is for private policies: %s adds no noise", entry.Name)
			}
			if err := p.checkBudgets(at+".budgets", budgets); err != nil {
				return nil, err
			}
			if len(budgets) == len(s.Budgets) {
				c.beside = map[string]string{}
				for i, b := range budgets {
					if b.String() != s.Budgets[i].String() {
						c.beside[b.String()] = s.Budgets[i].String()
					}
				}
			}
		}
		if !entry.Private {
			c.budgets = []privacy.Budget{privacy.None{}}
		} else {
			if len(budgets) == 0 {
				return nil, s.fail("budgets", "is missing: policy %s is private and takes %s",
					entry.Name, strings.Join(entry.Budgets, " | "))
			}
			var skipped []string
			var why error
			for _, b := range budgets {
				err := entry.Meets(b)
				if err == nil {
					err = c.trust.meets(b)
				}
				if err != nil {
					skipped, why = append(skipped, b.String()), err
					continue
				}
				c.budgets = append(c.budgets, b)
			}
			if len(c.budgets) == 0 {
				return nil, s.src.wrap(at, fmt.Errorf("meets none of the budgets: %w", why))
			}
			if len(skipped) > 0 {
				if errors.Is(why, errTrust) {
					p.warn("policy %s under trust %s is not played at %s: %v", entry.Name,
						c.trust.label(), strings.Join(skipped, ", nor at "), why)
				} else {
					skips.add(entry.Name, strings.Join(skipped, ", nor at "),
						strings.Join(entry.Budgets, " | "))
				}
			}
		}
		out = append(out, c)
	}
	skips.warn(p)
	if err := p.label(out); err != nil {
		return nil, err
	}
	return out, nil
}

func firstPolicy(kind string) string { return catalog.For(banditOf(kind))[0].Name }

func sorted(params catalog.Params) []string {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// label names the policies that were not given a name: by the policy, and where that is not enough
// by the parameters that differ.
func (p *Plan) label(choices []choice) error {
	s := &p.Spec
	byPolicy := map[string][]int{}
	for i, c := range choices {
		if c.label == "" {
			byPolicy[c.entry.Name] = append(byPolicy[c.entry.Name], i)
		}
	}
	for name, same := range byPolicy {
		for _, i := range same {
			choices[i].label = name
			if len(same) == 1 {
				continue
			}
			var differ, trusts []string
			for _, j := range same {
				trusts = append(trusts, choices[j].trust.label())
			}
			if slices.Sort(trusts); len(slices.Compact(trusts)) > 1 {
				differ = append(differ, choices[i].trust.label())
			}
			for _, q := range choices[i].entry.Params {
				var values []string
				for _, j := range same {
					values = append(values, show(choices[j].params, q))
				}
				slices.Sort(values)
				if len(slices.Compact(values)) > 1 {
					differ = append(differ, q.Name+"="+show(choices[i].params, q))
				}
			}
			if len(differ) > 0 {
				choices[i].label += " (" + strings.Join(differ, ", ") + ")"
			}
		}
	}
	seen := map[string]int{}
	for i, c := range choices {
		at := fmt.Sprintf("%s[%d]", s.players(), i)
		if err := checkLabel(c.label); err != nil {
			return s.fail(at+".name", "%w", err)
		}
		if j, twice := seen[c.label]; twice {
			return s.fail(at, "%q is also the label of %s[%d]: give one of them another name or "+
				"other parameters", c.label, s.players(), j)
		}
		seen[c.label] = i
	}
	return nil
}

// players is the field that says who plays.
func (s *Spec) players() string {
	if s.Kind == KindStopping {
		return "rules"
	}
	return "policies"
}

func show(params catalog.Params, q catalog.Param) string {
	x, ok := params[q.Name]
	switch {
	case !ok && q.DefaultDoc != "":
		return q.DefaultDoc
	default:
		return q.Text(x)
	}
}

func (p *Plan) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Warnings, w) {
		p.Warnings = append(p.Warnings, w)
	}
}

// cells lists the cells in the order of every output: by instance, then policy, then budget, each
// in the order of the file.
func (p *Plan) cells(worlds []world) error {
	choices, err := p.choices()
	if err != nil {
		return err
	}
	s := &p.Spec
	seen := map[string]string{}
	for i := range worlds {
		for j, c := range choices {
			for _, b := range c.budgets {
				cell := Cell{Instance: worlds[i].label, Policy: c.label, Budget: b.String(),
					world: worlds[i], choice: c, budget: b}
				at := fmt.Sprintf("%s[%d]", s.players(), j)
				if s.Kind == KindStopping {
					if err := p.begin(&cell, s.Rules[j]); err != nil {
						return s.src.wrap(at, err)
					}
				} else {
					if s.Kind == KindIdentify {
						cell.identifyHash(s)
					} else {
						cell.hash(p)
					}
					// A policy that cannot be built is found now, not after an hour.
					if err := p.try(&cell); err != nil {
						return s.src.wrap(at, err)
					}
				}
				if other, twice := seen[cell.Hash]; twice {
					return s.fail(at, "%s is the same as %s: the same instance, policy, "+
						"parameters and budget under another name",
						cell.Label(), other)
				}
				seen[cell.Hash] = cell.Label()
				p.Cells = append(p.Cells, cell)
			}
		}
	}
	p.warnEndless()
	return nil
}

// try builds the policy of a cell.
func (p *Plan) try(c *Cell) error {
	if linearKind(p.Spec.Kind) {
		return p.tryLinear(c)
	}
	if p.Spec.Kind == KindIdentify {
		rule, err := c.identifier(&p.Spec, &noise.Fast{})
		if err != nil {
			return err
		}
		return c.tryTrust(rule.Mechanism())
	}
	pol, err := c.policy(int(p.Spec.Horizon), p.Spec.Unclipped, c.world.arms, &noise.Fast{})
	if err != nil {
		return err
	}
	return c.tryTrust(pol.Mechanism())
}

// seal fixes the normal form and the hash of the experiment.
func (p *Plan) seal() error {
	var err error
	if p.normal, err = p.Spec.JSON(); err != nil {
		return &Error{Err: err}
	}
	played := p.Spec
	played.Bounds = false // drawn, not played: asking for them later leaves results as they are
	normal, err := played.JSON()
	if err != nil {
		return &Error{Err: err}
	}
	h := sha256.New()
	fmt.Fprintf(h, "sotto experiment %d\n%s\n", FormatVersion, normal)
	for _, c := range p.Cells {
		fmt.Fprintf(h, "%q %q %q %s\n", c.Instance, c.Policy, c.Budget, c.Hash)
	}
	p.Hash = hex.EncodeToString(h.Sum(nil))
	return nil
}
