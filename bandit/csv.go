package bandit

import (
	"fmt"
	"io"

	"github.com/sotto-dp/sotto/logged"
)

// ReadCSV reads logged rewards, and returns the instance whose arms draw from them. Rows are drawn
// with replacement, so their order does not matter. The arms of persons with several rows are drawn
// with the format's seed, 0 if it has none, so that an instance is a function of its file.
//
// It is as strict as the format: an error names the line and the column, and no value. Memory grows
// with the number of distinct rewards of each arm, not with the number of rows, unless there is a
// column of persons.
func ReadCSV(r io.Reader, f logged.Format) (Instance, logged.Summary, error) {
	if f.Seed == nil {
		f.Seed = new(uint64)
	}
	fail := func(err error) (Instance, logged.Summary, error) {
		return Instance{}, logged.Summary{}, fmt.Errorf("rewards: %w", err)
	}
	counts, s, err := f.Tally(r)
	if err != nil {
		return fail(err)
	}
	arms := make([]Law, len(counts))
	for a, c := range counts {
		if arms[a], err = NewEmpirical(c); err != nil {
			return fail(fmt.Errorf("arm %q: %w", s.Names[a], err))
		}
	}
	in, err := NewInstance(arms...)
	if err != nil {
		return fail(err)
	}
	return in, s, nil
}
