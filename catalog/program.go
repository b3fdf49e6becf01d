package catalog

import (
	"errors"
	"fmt"
)

// A Program is an outsider's policy: a command that is given releases and asked for plays, line by
// line. Package lab/process starts it, and has the format of the lines.
type Program struct {
	Args    []string // the command and its arguments
	Dir     string   // where it runs, and where relative paths in Args begin
	Seconds float64  // allowed for an answer; 0 for the default
	// Any lets in a program that states less noise than the budget needs: an audit shows what it costs.
	Any bool
	// Hash is of the command and of the files that it names; whoever starts the program sets it.
	Hash string
}

// ErrPrograms is matched by the error of a program that starts no programs of others.
var ErrPrograms = errors.New("programs of others are not started here")

// Programs start programs of others: package lab/process has them.
type Programs interface {
	// Start is the policy of a program.
	Start(Program) (Entry, error)
	// Rewards are some of each arm of a program that pays them.
	Rewards(Program) ([][]float64, error)
}

// Starting returns the catalog with a way to start the programs that files name. Without it they
// are refused.
func (c Catalog) Starting(p Programs) Catalog {
	c.programs = p
	return c
}

// Rewards are some of each arm of a program that pays them.
func (c Catalog) Rewards(p Program) ([][]float64, error) {
	if c.programs == nil {
		return nil, fmt.Errorf("exec is %q: %w", p.Args, ErrPrograms)
	}
	return c.programs.Rewards(p)
}

// Start is the policy of a program, which must be for one kind of bandit.
func (c Catalog) Start(bandit string, p Program) (Entry, error) {
	if c.programs == nil {
		return Entry{}, fmt.Errorf("exec is %q: %w", p.Args, ErrPrograms)
	}
	e, err := c.programs.Start(p)
	if err != nil {
		return Entry{}, err
	}
	e.Bandit = banditOf(e.Bandit)
	if err := (Catalog{}).check(e); err != nil {
		return Entry{}, fmt.Errorf("exec is %q: policy %q: %w", p.Args, e.Name, err)
	}
	if e.Bandit != banditOf(bandit) {
		return Entry{}, fmt.Errorf("exec is %q: its policy is for %s, must be for %s", p.Args,
			banditText(e.Bandit), banditText(bandit))
	}
	return e, nil
}
