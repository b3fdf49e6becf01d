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
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/parquetlog"
	"github.com/sotto-dp/sotto/privacy"
)

// A Resolved is an experiment that has been checked, with its cells. It does not change.
type Resolved struct {
	Spec        Spec // its CSV files are pinned by their hash, which it does not write down
	Checkpoints []int
	Cells       []Cell
	Warnings    []string
	Hash        string // of the whole experiment, labels included: what shards must agree on
	Block       int    // runs in a unit

	kind        kind
	fingerprint string // of its logs, empty if it has none: see fingerprintFile

	normal  []byte   // Spec as JSON
	endless []string // cells that never get to a release
}

// Length says in words how long runs are.
func (p *Resolved) Length() string { return p.kind.text(&p.Spec) }

// An environment is an instance of the experiment, resolved. Of the parts that kinds have of their own, one
// is set.
type environment struct {
	label   string
	content string // the key of its streams: the source's content, and the range
	// what may be told of content, and what hashes are of: of logged rewards the file's name and
	// sizes
	public    string
	arms, dim int    // dim is 0 where actions are no vectors
	clipped   bool   // rewards leave the range and are clipped to it
	unranked  string // why policies are not ranked by their regret

	armsWorld
	linearWorld
	contextualWorld
	trial // law and mean
}

// Resolve checks all of an experiment before any of it is played, and says what its cells are.
// Errors match ErrSpec.
func (s *Spec) Resolve() (*Resolved, error) {
	k, err := kindOf(s.Kind)
	if err != nil {
		return nil, s.fail("kind", "%w", err)
	}
	if s.Resolving {
		r, ok := k.(resolver)
		if !ok {
			return nil, s.fail("runs", "is %s: that is for experiments of kind %s", resolving, KindIdentify)
		}
		if s, err = r.resolveRuns(s); err != nil {
			return nil, err
		}
	}
	p := &Resolved{Spec: *s, kind: k}
	p.Spec.Instances = slices.Clone(s.Instances) // hashes are added below
	switch {
	case s.Name == "":
		return nil, s.fail("name", "is missing, must be a name of a-z, 0-9, dot, dash and underscore")
	case !keyed.NameForm.MatchString(s.Name) || len(s.Name) > keyed.MaxLabel:
		return nil, s.fail("name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
			"underscore, the first a letter or digit", keyed.Clip(s.Name), keyed.MaxLabel)
	}
	if err := foreign(k, s); err != nil {
		return nil, err
	}
	if lo, hi := s.span(); !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return nil, s.fail("range", "is [%v, %v], must be two finite numbers, the first below "+
			"the second", lo, hi)
	}
	if err := k.check(s); err != nil {
		return nil, err
	}
	p.Spec.Kind = k.name()
	key, length := k.length(s)
	for _, c := range []struct {
		field   string
		n, most keyed.Count
	}{{key, length, keyed.MaxCount}, {"runs", s.Runs, MaxRuns}} {
		switch {
		case c.n == 0:
			return nil, s.fail(c.field, "is missing or 0, must be a whole number, at least 1")
		case c.n < 0 || c.n > c.most:
			return nil, s.fail(c.field, "is %d, must be a whole number from 1 to %d", int(c.n), int(c.most))
		}
	}
	if err := k.checkpoints(p); err != nil {
		return nil, err
	}
	worlds, err := k.worlds(p)
	if err != nil {
		return nil, err
	}
	p.logged(worlds)
	if err := p.checkBudgets("budgets", s.Budgets); err != nil {
		return nil, err
	}
	if err := p.cells(worlds); err != nil {
		return nil, err
	}
	columns, err := k.columns(p, worlds)
	if err != nil {
		return nil, err
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

// eachInstance makes the worlds of all instances. On error resolve says in which of the instance's
// fields, unless it has placed the error itself.
func (p *Resolved) eachInstance(resolve func(*Instance) (w environment, field string, err error)) ([]environment, error) {
	s, form := &p.Spec, p.kind.instances()
	if len(s.Instances) == 0 {
		return nil, s.fail("instances", "is missing, must be at least one, such as %s", form.example)
	}
	var out []environment
	seen, others := map[string]int{}, foreignWays(p.kind)
	for i := range s.Instances {
		in := &s.Instances[i]
		at := fmt.Sprintf("instances[%d]", i)
		if err := in.named(s, i, seen); err != nil {
			return nil, err
		}
		if err := form.check(in, p.kind.name(), others); err != nil {
			return nil, s.src.Wrap(at, err)
		}
		w, field, err := resolve(in)
		var placed *keyed.Error
		switch {
		case errors.As(err, &placed):
			return nil, err
		case err != nil && field != "":
			return nil, s.src.Wrap(at+"."+field, err)
		case err != nil:
			return nil, s.src.Wrap(at, err)
		}
		w.label = in.Name
		out = append(out, w)
	}
	return out, nil
}

// named checks the name of instance i, and that it is not yet seen.
func (in *Instance) named(s *Spec, i int, seen map[string]int) error {
	at := fmt.Sprintf("instances[%d].name", i)
	if err := keyed.CheckLabel(in.Name); err != nil {
		return s.fail(at, "%w", err)
	}
	if j, twice := seen[in.Name]; twice {
		return s.fail(at, "%q is also the name of instances[%d]: names must differ", in.Name, j)
	}
	seen[in.Name] = i
	return nil
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
	r, err := parquetlog.AsCSV(io.TeeReader(f, h), in.Columns.Dialect)
	if err == nil {
		err = read(r)
	}
	if err != nil {
		return "csv", fmt.Errorf("%s: %w", path, err)
	}
	hash := hex.EncodeToString(h.Sum(nil))
	if in.SHA256 != "" && !strings.EqualFold(in.SHA256, hash) {
		return "sha256", fmt.Errorf("is %q, which is not that of %s: it is another file", keyed.Clip(in.SHA256), path)
	}
	in.SHA256 = hash
	return "csv", nil
}

func armCount(n keyed.Count) error {
	switch {
	case n == 0:
		return errors.New("is missing, must be the number of arms, at least 2")
	case n < 2 || n > bandit.MaxArms:
		return fmt.Errorf("is %d, must be a number of arms from 2 to %d", int(n), bandit.MaxArms)
	}
	return nil
}

func (p *Resolved) checkBudgets(field string, budgets []privacy.Budget) error {
	s := &p.Spec
	seen := map[string]int{}
	for i, b := range budgets {
		at := fmt.Sprintf("%s[%d]", field, i)
		if b == nil {
			return s.fail(at, "is missing")
		}
		if err := b.Validate(); err != nil {
			return s.src.Wrap(at, err)
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
	said   catalog.Params // those of the file
	// name and parameters: part of cell hashes and of the noise streams' keys
	content string
	budgets []privacy.Budget
	trust   Trust
	floor   float64
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

func (s skips) warn(p *Resolved) {
	for _, g := range s {
		if len(g.policies) == 1 {
			p.warn("policy %s is not played at %s: it takes %s", g.policies[0], g.at, g.takes)
		} else {
			p.warn("policies %s are not played at %s: they take %s", strings.Join(g.policies, ", "),
				g.at, g.takes)
		}
	}
}

// policies are the choices of the kinds whose players are policies.
func (p *Resolved) policies() ([]choice, error) {
	s, bandit := &p.Spec, p.kind.name()
	trusted := keyed.Has(keysOf(p.kind), "trust")
	if len(s.Policies) == 0 {
		return nil, s.fail("policies", "is missing, must be at least one, such as {policy: %s}",
			s.Catalog.For(bandit)[0].Name)
	}
	var out []choice
	var skips skips
	for i, q := range s.Policies {
		at := fmt.Sprintf("policies[%d]", i)
		entry, err := s.entryOf(bandit, q)
		if err != nil {
			return nil, s.src.Wrap(at+".policy", err)
		}
		params, err := entry.Complete(q.Params)
		if err != nil {
			// Blame the parameter, if one alone is enough to fail.
			for _, name := range sorted(q.Params) {
				if _, e := entry.Complete(catalog.Params{name: q.Params[name]}); e != nil {
					return nil, s.src.Wrap(at+"."+name, e)
				}
			}
			return nil, s.src.Wrap(at, err)
		}
		entry = entry.With(params)
		c := choice{label: q.Name, entry: entry, params: params, said: q.Params, content: entry.Content(params)}
		for _, w := range entry.Warnings(params) {
			p.warn("%s", w)
		}
		if entry.Private && entry.PublicContexts && !s.Unclipped {
			p.warn("policy %s protects rewards alone: contexts are public", entry.Name)
		}
		if c.trust, err = p.trustOf(i, entry.Private, trusted); err != nil {
			return nil, err
		}
		c.content += c.trust.content()
		if c.floor = q.Floor; c.floor > 0 {
			c.content += " floor=" + keyed.Number(c.floor)
		}
		if c.trust.on() && entry.Continuous && !c.trust.proves(entry, params) {
			noise := "continuous noise"
			if entry.Discrete {
				noise = "Laplace noise, continuous or discrete, of a server that is believed"
				if entry.Gathers(params) == nil {
					noise += ", of two servers or of each user"
				}
			}
			p.warn("policy %s under trust %s: privacy holds, but its bound is proved for %s",
				entry.Name, c.trust.label(), noise)
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
			if err := p.afford(&c, at, budgets, &skips); err != nil {
				return nil, err
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

// entryOf is the policy's entry: that of its name, or what its program says of itself.
func (s *Spec) entryOf(bandit string, q Policy) (catalog.Entry, error) {
	if q.Program.Args == nil {
		return s.Catalog.Find(bandit, q.Policy)
	}
	if q.Program.Dir == "" {
		q.Program.Dir = s.dir
	}
	return s.Catalog.Start(bandit, q.Program)
}

// afford picks the budgets that a policy meets, and warns of the others.
func (p *Resolved) afford(c *choice, at string, budgets []privacy.Budget, skips *skips) error {
	var skipped []string
	var why error
	for _, b := range budgets {
		err := c.entry.Meets(b)
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
		return p.Spec.src.Wrap(at, fmt.Errorf("meets none of the budgets: %w", why))
	}
	if len(skipped) > 0 {
		if errors.Is(why, errTrust) {
			p.warn("policy %s under trust %s is not played at %s: %v", c.entry.Name,
				c.trust.label(), strings.Join(skipped, ", nor at "), why)
		} else {
			skips.add(c.entry.Name, strings.Join(skipped, ", nor at "),
				strings.Join(c.entry.Budgets, " | "))
		}
	}
	return nil
}

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
func (p *Resolved) label(choices []choice) error {
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
			var differ, trusts, floors []string
			for _, j := range same {
				trusts = append(trusts, choices[j].trust.label())
				floors = append(floors, keyed.Number(choices[j].floor))
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
			if slices.Sort(floors); len(slices.Compact(floors)) > 1 {
				differ = append(differ, "floor="+keyed.Number(choices[i].floor))
			}
			if len(differ) > 0 {
				choices[i].label += " (" + strings.Join(differ, ", ") + ")"
			}
		}
	}
	seen := map[string]int{}
	for i, c := range choices {
		at := fmt.Sprintf("%s[%d]", p.kind.players(), i)
		if err := keyed.CheckLabel(c.label); err != nil {
			return s.fail(at+".name", "%w", err)
		}
		if j, twice := seen[c.label]; twice {
			return s.fail(at, "%q is also the label of %s[%d]: give one of them another name or "+
				"other parameters", c.label, p.kind.players(), j)
		}
		seen[c.label] = i
	}
	return nil
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

func (p *Resolved) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Warnings, w) {
		p.Warnings = append(p.Warnings, w)
	}
}

// cells lists the cells in the order of every output: by instance, then policy, then budget, each
// in the order of the file.
func (p *Resolved) cells(worlds []environment) error {
	choices, err := p.kind.choices(p)
	if err != nil {
		return err
	}
	s := &p.Spec
	n := 0
	for _, c := range choices {
		n += len(c.budgets)
	}
	p.Cells = make([]Cell, 0, n*len(worlds))
	seen := make(map[string]string, cap(p.Cells))
	for i := range worlds {
		for j, c := range choices {
			for _, b := range c.budgets {
				cell := Cell{Instance: worlds[i].label, Policy: c.label, Budget: b.String(),
					world: worlds[i], choice: c, budget: b}
				at := fmt.Sprintf("%s[%d]", p.kind.players(), j)
				if err := p.kind.begin(p, &cell, j); err != nil {
					return s.src.Wrap(at, err)
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

// seal fixes the normal form and the hash of the experiment.
func (p *Resolved) seal() error {
	var err error
	if p.normal, err = p.Spec.JSON(); err != nil {
		return &keyed.Error{Err: err}
	}
	normal := p.normal
	if p.Spec.Bounds { // drawn, not played: asking for them later leaves results as they are
		played := p.Spec
		played.Bounds = false
		if normal, err = played.JSON(); err != nil {
			return &keyed.Error{Err: err}
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "sotto experiment %d\n%s\n", FormatVersion, normal)
	for _, c := range p.Cells {
		fmt.Fprintf(h, "%q %q %q %s\n", c.Instance, c.Policy, c.Budget, c.Hash)
	}
	p.Hash = hex.EncodeToString(h.Sum(nil))
	return nil
}

// warnEndless tells of the cells whose first phase is longer than the horizon.
func (p *Resolved) warnEndless() {
	const most = 3
	n := len(p.endless)
	if n == 0 {
		return
	}
	more := ""
	if n > most {
		more = fmt.Sprintf(", and %d more", n-most)
	}
	p.warn("the first phase is longer than the horizon, so that nothing is released and nothing "+
		"learnt, for %s%s", strings.Join(p.endless[:min(n, most)], ", "), more)
}
