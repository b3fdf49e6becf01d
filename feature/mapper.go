package feature

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// grid is how many steps a component has from 0 to 1.
const grid = 1 << 20

// A Mapper is a Map that was checked. It may be used by many goroutines at once.
type Mapper struct {
	features []compiled // the context's, the actions', the id
	context  int        // of them are the context's
	names    [2]map[string]int
	crosses  []cross
	dim      int
	blocks   int
	unit     float64 // what a component of 1 is in steps of the grid, a whole number
	actions  int
	ignore   bool
	free     sync.Pool // of *scratch
}

// compiled is a feature with its place in the vector.
type compiled struct {
	Feature
	at    int            // of its block, −1 if it has none
	width int            // 1 of a number, 0 of a word that is in hashed crosses alone
	index map[string]int // of values
}

func (f *compiled) number() bool { return f.Lo != 0 || f.Hi != 0 }

type cross struct {
	Cross
	of        []int // indices of features
	at, width int
	context   bool // of the context alone
}

// value is what was given of a feature.
type value struct {
	given, ok bool
	place     int     // in the one-hot block
	x         float64 // in [0,1]
	hash      uint64  // of a word
}

// scratch is what a call needs.
type scratch struct {
	values []value
	shared []float64 // what is the same in all vectors
	ids    []uint16  // a hash table of actions, each plus 1
	path   []byte    // of the feature that is read
	text   []byte    // of a number
	given  int
}

// An Action is one that a decision may give.
type Action struct {
	ID       string
	Features map[string]any // values as encoding/json has them, objects in them too
}

// New compiles a map.
func New(m Map) (*Mapper, error) {
	p := &Mapper{dim: 1, blocks: 1, actions: m.Actions, ignore: m.Ignore, context: len(m.Context)}
	if p.actions == 0 {
		p.actions = DefaultActions
	}
	if p.actions < 1 || p.actions > MaxActions {
		return nil, wrong("actions", "is %d, must be from 1 to %d", m.Actions, MaxActions)
	}
	if n := len(m.Context) + len(m.Action) + len(m.Cross); n > maxFeatures {
		return nil, wrong("context", "with action and cross has %d entries, must be at most %d", n, maxFeatures)
	}
	all := map[string]int{}
	for scope, features := range [2][]Feature{m.Context, m.Action} {
		p.names[scope] = map[string]int{}
		for _, f := range slices.SortedFunc(slices.Values(features), func(a, b Feature) int {
			return strings.Compare(a.Name, b.Name)
		}) {
			at := scopes[scope] + "." + f.Name
			if reason := badText(f.Name, maxName); reason != "" {
				return nil, wrong(scopes[scope], "a name %s", reason)
			}
			if _, twice := all[f.Name]; twice {
				return nil, wrong(at, "is the name of another feature: names of contexts and "+
					"actions must differ")
			}
			if f.Name == idName {
				return nil, wrong(at, "is the name of the action's id, must be another")
			}
			if err := p.add(at, f); err != nil {
				return nil, err
			}
			all[f.Name], p.names[scope][f.Name] = len(p.features)-1, len(p.features)-1
		}
	}
	id := m.ID
	if id.Name != "" || id.number() {
		return nil, wrong(idName, "has a name or a range, must have values or buckets")
	}
	if id.Values == nil && id.Buckets == 0 {
		id.CrossOnly = true
	}
	if err := p.add(idName, id); err != nil {
		return nil, err
	}
	all[idName] = len(p.features) - 1
	for i, c := range m.Cross {
		if err := p.cross(fmt.Sprintf("cross[%d]", i), c, all); err != nil {
			return nil, err
		}
	}
	if err := p.unused(); err != nil {
		return nil, err
	}
	p.unit = float64(unitOf(p.blocks))
	p.free.New = func() any {
		return &scratch{values: make([]value, len(p.features)), shared: make([]float64, p.dim)}
	}
	return p, nil
}

var scopes = [2]string{"context", "action"}

func (f Feature) number() bool { return f.Lo != 0 || f.Hi != 0 }

// add gives a feature its place.
func (p *Mapper) add(at string, f Feature) error {
	if err := f.check(at); err != nil {
		return err
	}
	c := compiled{Feature: f, at: -1, width: max(len(f.Values), f.Buckets)}
	if f.number() {
		c.width = 1
	}
	c.index = make(map[string]int, len(f.Values))
	for i, v := range f.Values {
		c.index[v] = i
	}
	if !f.CrossOnly {
		var err error
		if c.at, err = p.block(at, c.width); err != nil {
			return err
		}
	}
	p.features = append(p.features, c)
	return nil
}

// block makes room for one more.
func (p *Mapper) block(at string, width int) (start int, err error) {
	if p.dim+width > MaxDim {
		return 0, wrong(at, "makes the vector longer than %d components", MaxDim)
	}
	start = p.dim
	p.dim += width
	p.blocks++
	return start, nil
}

func (p *Mapper) cross(at string, c Cross, all map[string]int) error {
	if len(c.Of) < 2 || len(c.Of) > maxFactors {
		return wrong(at+".of", "has %d features, must be from 2 to %d", len(c.Of), maxFactors)
	}
	out := cross{Cross: c, width: 1, context: true}
	words := false
	for i, name := range c.Of {
		place := fmt.Sprintf("%s.of[%d]", at, i)
		j, known := all[name]
		switch {
		case !known:
			return wrong(place, "%s is no declared feature and not id", quoted(name))
		case slices.Contains(out.of, j):
			return wrong(place, "%s is in it before", quoted(name))
		case c.Buckets == 0 && p.features[j].width == 0:
			return wrong(place, "%s has no values, range or buckets, which a cross without buckets needs",
				quoted(name))
		}
		out.of = append(out.of, j)
		out.context = out.context && j < p.context
		words = words || !p.features[j].number()
		if out.width *= p.features[j].width; c.Buckets == 0 && out.width > MaxDim {
			return wrong(at, "makes the vector longer than %d components", MaxDim)
		}
		out.width = min(out.width, MaxDim+1) // not looked at where there are buckets
	}
	switch {
	case c.Buckets != 0:
		if err := checkBuckets(at, c.Buckets); err != nil {
			return err
		}
		if !words {
			return wrong(at+".buckets", "is given, and the cross has no words to hash")
		}
		out.width = c.Buckets
	case c.Seed != 0:
		return wrong(at+".seed", "is given without buckets")
	}
	for i, old := range p.crosses {
		if old.Buckets == c.Buckets && old.Seed == c.Seed && sameSet(old.of, out.of) {
			return wrong(at, "is cross[%d] once more", i)
		}
	}
	var err error
	if out.at, err = p.block(at, out.width); err != nil {
		return err
	}
	p.crosses = append(p.crosses, out)
	return nil
}

func sameSet(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// unused refuses a feature that no component depends on.
func (p *Mapper) unused() error {
	for i, f := range p.features[:len(p.features)-1] {
		if f.at < 0 && !slices.ContainsFunc(p.crosses, func(c cross) bool { return slices.Contains(c.of, i) }) {
			return wrong(scopes[p.scope(i)]+"."+f.Name, "is for crosses only, and in none")
		}
	}
	return nil
}

func (p *Mapper) scope(i int) int {
	if i < p.context {
		return 0
	}
	return 1
}

// unitOf is ⌊2²⁰/√b⌋, exactly: the largest u with b·u² ≤ 2⁴⁰.
func unitOf(b int) int64 {
	const square int64 = grid * grid
	u := int64(math.Sqrt(float64(square / int64(b))))
	for int64(b)*u*u > square {
		u--
	}
	for int64(b)*(u+1)*(u+1) <= square {
		u++
	}
	return u
}

// Dim is the number of components of a vector.
func (p *Mapper) Dim() int { return p.dim }

// Norm is what blocks are divided by.
func (p *Mapper) Norm() float64 { return grid / p.unit }

// Names says of each component what it is 1 of, such as "device=phone × topic=news".
func (p *Mapper) Names() []string {
	out := []string{"intercept"}
	for _, f := range p.features {
		if f.at >= 0 {
			out = append(out, f.names()...)
		}
	}
	for _, c := range p.crosses {
		parts, labels := []string{""}, make([]string, len(c.of))
		for i, j := range c.of {
			f := &p.features[j]
			labels[i] = f.label()
			if c.Buckets > 0 {
				continue
			}
			var more []string
			for _, a := range parts {
				for _, b := range f.names() {
					more = append(more, strings.TrimPrefix(a+" × "+b, " × "))
				}
			}
			parts = more
		}
		if c.Buckets > 0 {
			parts = numbered(strings.Join(labels, " × "), c.Buckets)
		}
		out = append(out, parts...)
	}
	return out
}

func (f *compiled) label() string {
	if f.Name == "" {
		return idName
	}
	return f.Name
}

// names are those of the feature's components.
func (f *compiled) names() []string {
	switch {
	case f.number():
		return []string{f.Name}
	case f.Buckets > 0:
		return numbered(f.label(), f.Buckets)
	}
	out := make([]string, len(f.Values))
	for i, v := range f.Values {
		out[i] = f.label() + "=" + v
	}
	return out
}

func numbered(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s#%d", name, i)
	}
	return out
}

// Vectors maps actions in a context: d numbers an action, one after the other, in dst if it is
// large enough. It allocates nothing then. The order of keys does not matter, to errors either. An
// error is an Error that matches ErrFeatures.
func (p *Mapper) Vectors(dst []float64, context map[string]any, actions []Action) ([]float64, error) {
	if len(actions) == 0 || len(actions) > p.actions {
		return nil, &Error{Field: "actions", of: ErrFeatures,
			Reason: fmt.Sprintf("has %d, must be from 1 to %d", len(actions), p.actions)}
	}
	s := p.free.Get().(*scratch)
	defer p.free.Put(s)
	if err := p.unique(s, actions); err != nil {
		return nil, err
	}
	clear(s.values)
	if err := p.read(s, context, -1); err != nil {
		return nil, err
	}
	clear(s.shared)
	s.shared[0] = p.unit / grid
	for i := range p.context {
		p.place(s.shared, &p.features[i], &s.values[i])
	}
	for i := range p.crosses {
		if c := &p.crosses[i]; c.context {
			p.product(s.shared, c, s.values)
		}
	}
	dst = slices.Grow(dst[:0], len(actions)*p.dim)[:len(actions)*p.dim]
	for i := range actions {
		row := dst[i*p.dim:][:p.dim]
		copy(row, s.shared)
		clear(s.values[p.context:])
		if err := p.read(s, actions[i].Features, i); err != nil {
			return nil, err
		}
		if err := p.id(s, actions[i].ID, i); err != nil {
			return nil, err
		}
		for j := p.context; j < len(p.features); j++ {
			p.place(row, &p.features[j], &s.values[j])
		}
		for j := range p.crosses {
			if c := &p.crosses[j]; !c.context {
				p.product(row, c, s.values)
			}
		}
	}
	return dst, nil
}

// step is x, in [0,1], as a component: a multiple of 1/grid, toward 0.
func (p *Mapper) step(x float64) float64 { return math.Trunc(x*p.unit) / grid }

func (p *Mapper) place(row []float64, f *compiled, v *value) {
	if f.at >= 0 && v.ok {
		row[f.at+v.place] = p.step(v.x)
	}
}

func (p *Mapper) product(row []float64, c *cross, values []value) {
	x, place := 1.0, 0
	for _, j := range c.of {
		v := &values[j]
		if !v.ok {
			return
		}
		x *= v.x
		if c.Buckets == 0 {
			place = place*p.features[j].width + v.place
		}
	}
	if c.Buckets > 0 {
		var h xxhash.Digest
		h.ResetWithSeed(c.Seed)
		for _, j := range c.of {
			if !p.features[j].number() {
				write(&h, values[j].hash)
			}
		}
		place = int(h.Sum64() % uint64(c.Buckets))
	}
	row[c.at+place] = p.step(x)
}

func write(h *xxhash.Digest, x uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	h.Write(b[:]) //nolint:errcheck // a hash has no errors
}

// unique refuses ids that are no names, and actions with one id.
func (p *Mapper) unique(s *scratch, actions []Action) error {
	size := 2
	for size < 2*len(actions) {
		size *= 2
	}
	s.ids = slices.Grow(s.ids[:0], size)[:size]
	clear(s.ids)
	for i := range actions {
		id := actions[i].ID
		if reason := badText(id, maxName); reason != "" {
			return &Error{Field: fmt.Sprintf("actions[%d].id", i), Reason: reason, of: ErrFeatures}
		}
		at := xxhash.Sum64String(id) % uint64(size)
		for s.ids[at] != 0 {
			if j := s.ids[at] - 1; actions[j].ID == id {
				return &Error{Field: fmt.Sprintf("actions[%d].id", i), of: ErrFeatures,
					Reason: fmt.Sprintf("%s is the id of actions[%d]", quoted(id), j)}
			}
			at = (at + 1) % uint64(size)
		}
		s.ids[at] = uint16(i + 1)
	}
	return nil
}

// id reads an action's.
func (p *Mapper) id(s *scratch, id string, action int) error {
	last := len(p.features) - 1
	if reason := p.word(&p.features[last], &s.values[last], id); reason != "" {
		return &Error{Field: fmt.Sprintf("actions[%d].id", action), Reason: reason, of: ErrFeatures}
	}
	return nil
}

// read reads the features of an action, or of the context for −1. If something is wrong it reads
// them once more in the order of their names, so that the error does not depend on chance.
func (p *Mapper) read(s *scratch, given map[string]any, action int) error {
	from, to := 0, p.context
	if action >= 0 {
		from, to = p.context, len(p.features)-1
	}
	if p.flat(s, given, from, to) {
		return nil
	}
	walk := func(sorted bool) error {
		clear(s.values[from:to])
		s.path, s.given = s.path[:0], 0
		return p.walk(s, given, action, 0, sorted)
	}
	if walk(false) == nil {
		return nil
	}
	return walk(true)
}

// flat is the quick way, without looking at each key, where features from and below to, by their
// own names, are all that is given and nothing is wrong with them.
func (p *Mapper) flat(s *scratch, given map[string]any, from, to int) bool {
	if len(given) > to-from {
		return false
	}
	left := len(given)
	for i := from; i < to && left > 0; i++ {
		if v, ok := given[p.features[i].Name]; ok {
			if left--; p.take(s, &p.features[i], &s.values[i], v) != "" {
				return false
			}
		}
	}
	return left == 0
}

func (p *Mapper) walk(s *scratch, given map[string]any, action, depth int, sorted bool) error {
	start := len(s.path)
	if !sorted {
		for name, v := range given {
			if err := p.one(s, start, name, v, action, depth, false); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := p.one(s, start, name, given[name], action, depth, true); err != nil {
			return err
		}
	}
	return nil
}

// one reads what is given under a name, in the object whose path is s.path[:start].
func (p *Mapper) one(s *scratch, start int, name string, v any, action, depth int, sorted bool) error {
	s.path = s.path[:start]
	if depth > 0 {
		s.path = append(s.path, '.')
	}
	s.path = append(s.path, name...)
	fail := func(reason string) error {
		field := "context."
		if action >= 0 {
			field = fmt.Sprintf("actions[%d].", action)
		}
		return &Error{Field: field + short(string(s.path)), Reason: reason, of: ErrFeatures}
	}
	if in, nested := v.(map[string]any); nested {
		if depth == maxDepth {
			return fail(fmt.Sprintf("is nested more than %d deep", maxDepth))
		}
		return p.walk(s, in, action, depth+1, sorted)
	}
	if s.given++; s.given > maxFeatures {
		return fail(fmt.Sprintf("is one of more than %d features", maxFeatures))
	}
	scope := 0
	if action >= 0 {
		scope = 1
	}
	i, known := p.names[scope][string(s.path)]
	switch {
	case !known && p.ignore:
		return nil
	case !known:
		return fail("is not declared")
	case s.values[i].given:
		return fail("is given twice")
	}
	s.values[i].given = true
	if reason := p.take(s, &p.features[i], &s.values[i], v); reason != "" {
		return fail(reason)
	}
	return nil
}

// take reads a value, or says what is wrong with it.
func (p *Mapper) take(s *scratch, f *compiled, to *value, v any) (wrong string) {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if f.number() {
			return fmt.Sprintf("is %s, must be a number", quoted(v))
		}
		return p.word(f, to, v)
	case bool:
		if f.number() {
			return fmt.Sprintf("is %v, must be a number", v)
		}
		return p.word(f, to, strconv.FormatBool(v))
	case int:
		return p.take(s, f, to, float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("is %v, must be a finite number", v)
		}
		if f.number() {
			return f.scale(to, v)
		}
		s.text = strconv.AppendFloat(s.text[:0], v+0, 'g', -1, 64) // −0 is 0
		return p.word(f, to, string(s.text))
	case []any:
		return "is a list, must be a string, a number or a boolean"
	}
	return "is no string, number or boolean"
}

func (f *compiled) scale(to *value, x float64) (wrong string) {
	switch {
	case f.Clip:
		x = min(max(x, f.Lo), f.Hi)
	case x < f.Lo || x > f.Hi:
		return fmt.Sprintf("is %v, must be from %v to %v", x, f.Lo, f.Hi)
	}
	to.ok, to.x = true, min(max((x-f.Lo)/(f.Hi-f.Lo), 0), 1)
	return ""
}

func (p *Mapper) word(f *compiled, to *value, text string) (wrong string) {
	if len(text) > maxText {
		return fmt.Sprintf("is %d bytes long, must be at most %d", len(text), maxText)
	}
	if f.Values != nil {
		place, known := f.index[text]
		switch {
		case !known && p.ignore:
			return ""
		case !known:
			return fmt.Sprintf("is %s, must be %s", quoted(strings.Clone(text)), oneOf(f.Values))
		}
		to.place = place
	}
	to.ok, to.x, to.hash = true, 1, xxhash.Sum64String(text)
	if f.Buckets > 0 {
		var h xxhash.Digest
		h.ResetWithSeed(f.Seed)
		write(&h, to.hash)
		to.place = int(h.Sum64() % uint64(f.Buckets))
	}
	return ""
}

// oneOf lists some of the values.
func oneOf(values []string) string {
	const most = 5
	var b strings.Builder
	for i, v := range values[:min(len(values), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(short(v))
	}
	if n := len(values) - most; n > 0 {
		fmt.Fprintf(&b, " or one of %d others", n)
	}
	return b.String()
}

// short is a text as it is, or quoted if it is long.
func short(s string) string {
	if q := quoted(s); len(q) != len(s)+2 {
		return q
	}
	return s
}
