// Package flags is what the values of flags may be. A kind of value has one type, which reads and
// checks it where the command line is parsed, so that a command begins with numbers, policies and
// budgets and not with text. What is wrong is said in one form: a field is this, must be that.
//
// The types are kong's mappers. A tag narrows what they take: in:"(0,1]" of numbers and counts, an
// interval, and of:"a,b" of choices.
package flags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/logged"
)

// An Error says that a field has a value that it must not have.
type Error struct {
	Field string // as the command line has it, such as --seed
	Value string // as it was given
	Hint  string // which one was probably meant, or empty
	Must  string // what is allowed, after "must be"
	Err   error  // instead of all but Field: an error that says all this itself
}

// Error is the one form of all of them.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Field + ": " + e.Err.Error()
	}
	value := e.Value
	if _, err := strconv.ParseFloat(value, 64); err != nil {
		value = strconv.Quote(value)
	}
	return e.Field + " is " + value + e.Hint + ", must be " + e.Must
}

// Unwrap is what is wrong, if another package said it.
func (e *Error) Unwrap() error { return e.Err }

// Bad is the error of a field whose value is refused for a reason that its type does not know.
func Bad(field string, value any, must string, args ...any) error {
	return &Error{Field: field, Value: fmt.Sprint(value), Must: fmt.Sprintf(must, args...)}
}

// field is how people call a value: a flag by its name, an argument by its placeholder.
func field(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return v.Name
}

// pop is the text of a value, and its error that says what must be there.
func pop(ctx *kong.DecodeContext) (text string, bad func(must string) error, err error) {
	err = ctx.Scan.PopValueInto("value", &text)
	return text, func(must string) error {
		return &Error{Field: field(ctx.Value), Value: text, Must: must}
	}, err
}

// A Seed is that of all simulated randomness.
type Seed struct {
	X   uint64
	Set bool // given, or by default
}

// Decode implements kong.MapperValue.
func (s *Seed) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	if s.X, err = strconv.ParseUint(text, 10, 64); err != nil {
		return bad("a whole number from 0 to 2^64−1")
	}
	s.Set = true
	return nil
}

// Or is the seed, or another one if none was given.
func (s Seed) Or(other uint64) uint64 {
	if s.Set {
		return s.X
	}
	return other
}

// Workers are how many runs are played at a time; 0 is one a processor.
type Workers int

// Decode implements kong.MapperValue.
func (w *Workers) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return bad("at least 1, or 0 for one a processor")
	}
	*w = Workers(n)
	return nil
}

// A Shard is part I of N of a work, I from 0 to N−1; N = 0 is all of it.
type Shard struct{ I, N int }

// Decode implements kong.MapperValue.
func (s *Shard) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	a, b, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
		return bad("I/N with I from 0 to N-1, such as 0/3")
	}
	*s = Shard{i, n}
	return nil
}

// A Separator is what divides the cells of a CSV file (logged.Dialect).
type Separator string

// Decode implements kong.MapperValue.
func (s *Separator) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	if (logged.Dialect{Separator: text}).Check() != nil {
		return bad("one of , and ; and | and tab")
	}
	*s = Separator(text)
	return nil
}

// A Choice is one of the names in the tag of.
type Choice string

// Decode implements kong.MapperValue.
func (c *Choice) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	if err := oneOf(ctx.Value, text); err != nil {
		return err
	}
	*c = Choice(text)
	return nil
}

// Index is the place of the choice among some names, 0 if it is none of them.
func (c Choice) Index(names ...string) int { return max(slices.Index(names, string(c)), 0) }

// Choices are some of the names in the tag of, each once.
type Choices struct{ Names []string }

// Decode implements kong.MapperValue.
func (c *Choices) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	c.Names = nil
	seen := map[string]bool{}
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		if err := oneOf(ctx.Value, name); err != nil {
			return err
		}
		if seen[name] {
			return bad("names that differ: " + name + " is given twice")
		}
		seen[name] = true
		c.Names = append(c.Names, name)
	}
	return nil
}

func oneOf(v *kong.Value, name string) error {
	return OneOf(field(v), name, strings.Split(v.Tag.Get("of"), ",")...)
}

// OneOf wants a name to be a known one.
func OneOf(field, name string, known ...string) error {
	for _, k := range known {
		if name == k {
			return nil
		}
	}
	return &Error{Field: field, Value: name, Hint: catalog.Hint(name, known),
		Must: "one of " + strings.Join(known, ", ")}
}
