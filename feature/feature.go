// Package feature maps what is known of a decision to vectors: the context's features and those of
// each action, numbers and words as JSON has them, by a map that was declared beforehand. Begin
// with New.
//
// A Map declares blocks, which stand one after the other: an intercept, which is 1; each feature
// of contexts, by name; each of actions, by name; the action's id; crosses, which are products, in
// the order given. A number is mapped to [0,1] by its range. A word is one-hot among its declared
// values, or among so many buckets by its hash. What is missing leaves its block 0.
//
// Of each block one component at most is not 0, and is in [0,1]: with B blocks the norm is at most
// √B, and the whole is divided by √B, so that ‖a‖₂ ≤ 1 for all that can be given. Components are
// rounded toward 0 to multiples of 2⁻²⁰: a sum of products a·aᵀ then is one of integers, the same
// in any order. All this is done in integers: a component is at most u = ⌊2²⁰/√B⌋ of 2⁻²⁰, and
// B·u² ≤ 2⁴⁰.
//
// A score that is linear in the vector ranks actions by what depends on the action. A feature of
// the context alone is the same for all of them: it helps to explain rewards, and to choose by it,
// it must be in a cross with a feature of the action or with its id.
//
// Hashes are XXH64 (github.com/cespare/xxhash), whose values are specified and never change: of
// each word its hash with seed 0, and of these, eight bytes each, little-endian, the hash with the
// declared seed, modulo the number of buckets. Words that share a bucket are one to the model.
//
// Nothing here is private or needs to be: features are public to whoever sees what is learned,
// and errors name them and their values.
package feature

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of maps and of what is mapped.
const (
	MaxDim         = 1 << 10 // components of a vector
	MaxActions     = 1000    // of a decision
	DefaultActions = 50
	maxFeatures    = 1000 // declared, and given of a context or of an action
	maxName        = 256  // bytes of a name or an id
	maxText        = 1024 // bytes of a word
	maxDepth       = 16   // of nested objects
	maxFactors     = 8    // of a cross
)

// ErrMap is matched by every error in a Map, and ErrFeatures by every one in what is to be mapped.
// Both are *Error.
var (
	ErrMap      = errors.New("no such map")
	ErrFeatures = errors.New("features do not fit the map")
)

// An Error says what is wrong with a field, such as context.device or actions[3].topic.
type Error struct {
	Field, Reason string
	of            error
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }

// Unwrap is ErrMap or ErrFeatures.
func (e *Error) Unwrap() error { return e.of }

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...), of: ErrMap}
}

// A Map is the declared map from features to vectors. The order of its features does not matter.
type Map struct {
	// names differ, also between the two; none is "id"
	Context []Feature `json:"context,omitempty"`
	Action  []Feature `json:"action,omitempty"`
	// ID is the action's id as a feature: its values or buckets, without a name. If it is zero it
	// is in hashed crosses alone.
	ID      Feature `json:"id,omitzero"`
	Cross   []Cross `json:"cross,omitempty"`
	Actions int     `json:"actions"` // of a decision at most, to MaxActions; 0 is DefaultActions
	// features that are not declared, and values that are not, instead of refusing them
	Ignore bool `json:"ignore,omitempty"`
}

// A Feature is one of Values, a range from Lo to Hi, or Buckets. With CrossOnly it may be none of
// them: then it is in hashed crosses alone.
type Feature struct {
	Name    string   `json:"name,omitempty"`        // its path in nested objects, with dots
	Values  []string `json:"values,omitempty"`      // one-hot; numbers and booleans are compared as text, so that 3 is "3"
	Lo      float64  `json:"lo,omitempty"`          // a number from Lo to Hi, mapped to [0,1]; others are refused
	Hi      float64  `json:"hi,omitempty"`          //
	Clip    bool     `json:"clip,omitempty"`        // numbers to the range, instead of refusing those outside
	Buckets int      `json:"buckets,omitempty"`     // one-hot by hash, from 2 to MaxDim
	Seed    uint64   `json:"seed,omitempty,string"` // of the hash
	// CrossOnly: it has no block of its own.
	CrossOnly bool `json:"cross_only,omitempty"`
}

// A Cross is the product of features: of numbers, and one-hot of the combination of words. With
// Buckets the combination is hashed.
type Cross struct {
	Of      []string `json:"of"`                // 2 to 8 names of features, or "id"
	Buckets int      `json:"buckets,omitempty"` // 0, or from 2 to MaxDim
	Seed    uint64   `json:"seed,omitempty,string"`
}

// idName is what a cross calls the action's id.
const idName = "id"

// Check says what is wrong with the map, field by field: nil, or an Error that matches ErrMap.
func (m Map) Check() error {
	_, err := New(m)
	return err
}

// Dim is the number of components of a vector, 0 of a map that Check refuses.
func (m Map) Dim() int {
	p, err := New(m)
	if err != nil {
		return 0
	}
	return p.dim
}

// Norm is what blocks are divided by: the root of their number, or a little more through rounding.
// It is 0 of a map that Check refuses.
func (m Map) Norm() float64 {
	p, err := New(m)
	if err != nil {
		return 0
	}
	return p.Norm()
}

// Steers says whether the context can matter to which action is best: whether a cross joins one of
// its features with the action's.
func (m Map) Steers() bool {
	of := func(fs []Feature, name string) bool {
		return slices.ContainsFunc(fs, func(f Feature) bool { return f.Name == name })
	}
	return slices.ContainsFunc(m.Cross, func(c Cross) bool {
		return slices.ContainsFunc(c.Of, func(n string) bool { return of(m.Context, n) }) &&
			slices.ContainsFunc(c.Of, func(n string) bool { return n == idName || of(m.Action, n) })
	})
}

// check looks at a feature by itself.
func (f Feature) check(at string) error {
	ways := 0
	for _, given := range []bool{f.Values != nil, f.Lo != 0 || f.Hi != 0, f.Buckets != 0} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return wrong(at, "has more than one of values, range and buckets")
	}
	if ways == 0 && !f.CrossOnly {
		return wrong(at, "has no values, range or buckets, and is not for crosses only")
	}
	switch {
	case f.Values != nil && (len(f.Values) == 0 || len(f.Values) > MaxDim):
		return wrong(at+".values", "has %d, must be from 1 to %d", len(f.Values), MaxDim)
	case f.Lo != 0 || f.Hi != 0:
		if width := f.Hi - f.Lo; !(width > 0 && width <= math.MaxFloat64) {
			return wrong(at+".range", "is from %v to %v, must be two finite numbers, the first the less",
				f.Lo, f.Hi)
		}
	case f.Clip:
		return wrong(at+".clip", "is given without a range")
	}
	if f.Buckets != 0 {
		if err := checkBuckets(at, f.Buckets); err != nil {
			return err
		}
	} else if f.Seed != 0 {
		return wrong(at+".seed", "is given without buckets")
	}
	for i, v := range f.Values {
		place := fmt.Sprintf("%s.values[%d]", at, i)
		if reason := badText(v, maxText); reason != "" {
			return wrong(place, "%s", reason)
		}
		if slices.Contains(f.Values[:i], v) {
			return wrong(place, "%s is a value before: values must differ", quoted(v))
		}
	}
	return nil
}

func checkBuckets(at string, n int) error {
	if n < 2 || n > MaxDim {
		return wrong(at+".buckets", "is %d, must be from 2 to %d", n, MaxDim)
	}
	return nil
}

// badText says what is wrong with a name or a word.
func badText(s string, longest int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > longest:
		return fmt.Sprintf("is %d bytes long, must be at most %d", len(s), longest)
	case printable(s):
		return ""
	case !utf8.ValidString(s):
		return "is no UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return quoted(s) + " has a control character"
	}
	return ""
}

// printable says whether a text is of ASCII's printable characters, as most are.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// quoted is a text for an error: of a long one its beginning.
func quoted(s string) string {
	const most = 40
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%q…", s[:n])
}
