// Package report turns results into what people read: a table for the terminal, one SVG a figure,
// and one self-contained HTML page.
//
// It takes plain data, already reduced to means and intervals, and computes no statistics. What it
// writes is a function of that data alone (no time, no map order, fixed number formats), so equal
// results give equal bytes.
//
// A result without a privacy guarantee says so wherever it appears: in the table, beside its line,
// and at the top of the page.
package report

import (
	"fmt"
	"strings"
	"unicode"
)

// A Page is everything one page shows.
type Page struct {
	Name        string   // of the experiment
	Version     string   // of the program that made it; "" leaves it out
	Description string   // one paragraph; "" leaves it out
	Facts       []Fact   // short facts under the title: horizon, seed, runs
	Meters      []Meter  // bars under the facts
	Spec        string   // the experiment file, shown folded; "" leaves it out
	Warnings    []string // shown at the top, before anything else
	Tables      []Table
	Figures     []Figure
	// The figures are what it has to say: they are before the tables.
	FiguresFirst bool
}

// A Table is rows of text. That of a Comparison looks like one.
type Table struct {
	Title  string
	Head   []string // of the columns
	Text   int      // how many columns are words; the others, numbers, end in one line
	Groups []Group
	Notes  []string // footnotes

	of      *Comparison
	verdict int // a further column of words, of a comparison; 0: none
}

// A Group is rows under a head, each as long as the table's head.
type Group struct {
	Head string
	Rows [][]string

	of []Row // of a comparison
}

// A Fact is a named value, such as {"seed", "1"}.
type Fact struct{ Name, Value string }

// A Meter is a bar of which a share, from 0 to 1, is full.
type Meter struct {
	Name, Text string
	Share      float64
}

// A Comparison is of policies at one round, grouped by instance. Rows of one instance must
// follow each other.
type Comparison struct {
	Title  string  // such as "Regret at T = 10000000"
	Metric string  // head of the column of means, such as "regret at T"; "mean" if empty
	Level  float64 // coverage of the ± interval, in (0,1); 0.95 if zero
	Alpha  float64 // significance level of the tests, in (0,1); 0.05 if zero
	// the test behind the p-values, such as "paired t test"; "" if there was none
	Test       string
	Correction string // the correction for their number, such as "Holm"; "" if there was none
	Rows       []Row
	Notes      []string // further footnotes
}

// A Row is one policy at one budget on one instance.
type Row struct {
	Instance, Policy string
	Budget           string  // such as "ε=1", "ρ=0.1", "none"
	Void             bool    // promised privacy, but has no guarantee (unclipped rewards, say)
	Runs             int     // how many runs stand behind the row
	Mean, Half       float64 // mean and half width of its interval: mean ± half
	Ratio            float64 // mean over the mean of the best row
	Best             bool    // the row that the others of its group are compared with
	Unranked         bool    // not to be compared with others, as a note says
	// adjusted p-value of the difference to the best row; NaN if not tested. Ignored for the best row
	P                float64
	Q05, Median, Q95 float64 // quantiles over runs; NaN leaves a cell empty
	Bound            float64 // mean over its asymptotic lower bound; 0 if there is none
}

// A Figure is one drawing: of lines with bands, a metric against rounds or against the budget, or of
// the rows of a Forest.
type Figure struct {
	// file name stem, unique in a report: letters, digits, '.', '_', '-'; see Stem
	ID             string
	Title          string
	Subtitle       string
	XLabel, YLabel string
	LogX, LogY     bool // a logarithmic axis leaves out what is zero or negative
	// X is a whole number, such as that of an arm, and what is beside it is there to be seen
	Whole  bool
	Series []Series
	Forest *Forest // instead of series
	Marks  []Mark  // vertical lines
	Note   string  // small print below, such as what the bands are
}

// A Mark is a vertical line with a label. One outside the range of the series is left out.
type Mark struct {
	X     float64
	Label string
}

// A Series is one line of a figure. A point with a coordinate that is NaN, infinite, beyond ±1e300,
// or below 1e-300 on a logarithmic axis is left out and interrupts the line.
type Series struct {
	Label          string // beside the line; "Policy, Budget" if empty
	Policy, Budget string
	Void           bool // promised privacy, but has no guarantee: the label says so
	Step           bool // a step function: a point's mean and band hold until the next X
	// Policies of one family differ in their privacy alone: one that is plain, without privacy, is
	// dotted in the hue of the family's first private one in the figure.
	Family string
	Plain  bool
	Aside  bool      // grey: it is there to compare with
	X      []float64 // increasing
	Mean   []float64 // as long as X
	Lo, Hi []float64 // the band around the mean; both as long as X, or both empty
	// quantiles over runs, shown by the page's readout; each as long as X or empty
	Q05, Q50, Q95 []float64
}

// NoGuarantee is how a void result is marked everywhere.
const NoGuarantee = "no privacy guarantee"

// label is the text beside the line.
func (s Series) label() string {
	switch {
	case s.Label != "":
		return Clean(s.Label)
	case s.Budget == "":
		return Clean(s.Policy)
	}
	return Clean(s.Policy + ", " + s.Budget)
}

// check refuses what cannot be drawn.
func (f Figure) check() error {
	if f.ID == "" || len(f.ID) > 200 || f.ID != Stem(f.ID) {
		return fmt.Errorf("report: figure ID is %q, must be letters, digits, '.', '_' and '-', "+
			"start with a letter or digit, and have at most 200",
			f.ID)
	}
	if f.Forest != nil && len(f.Series) > 0 {
		return fmt.Errorf("report: figure %s: has both series and a forest", f.ID)
	}
	if f.Forest != nil {
		return f.Forest.check(f.ID)
	}
	if len(f.Series) == 0 {
		return fmt.Errorf("report: figure %s: has no series", f.ID)
	}
	for i, s := range f.Series {
		for _, c := range []struct {
			name     string
			values   []float64
			optional bool
		}{{"Mean", s.Mean, false}, {"Lo", s.Lo, true}, {"Hi", s.Hi, true}, {"Q05", s.Q05, true},
			{"Q50", s.Q50, true}, {"Q95", s.Q95, true}} {
			if n := len(c.values); n != len(s.X) && !(n == 0 && c.optional) {
				return fmt.Errorf("report: figure %s: series %d (%q): %s has %d values, X has %d",
					f.ID, i, s.label(), c.name, n, len(s.X))
			}
		}
		if len(s.Lo) != len(s.Hi) {
			return fmt.Errorf("report: figure %s: series %d (%q): a band needs both Lo and Hi",
				f.ID, i, s.label())
		}
		for j := 1; j < len(s.X); j++ {
			if !(s.X[j-1] < s.X[j]) {
				return fmt.Errorf("report: figure %s: series %d (%q): X[%d] is %v after %v, must "+
					"increase", f.ID, i, s.label(), j, s.X[j], s.X[j-1])
			}
		}
	}
	return nil
}

// Stem turns any text into a file name stem that serves as a figure's ID: what is not a letter or
// digit of ASCII, '.', '_' or '-' becomes '-'. Different texts can have one stem.
func Stem(s string) string {
	stem := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
	stem = strings.TrimLeft(stem, ".-_") // neither hidden files nor options
	if stem == "" {
		return "figure"
	}
	return stem
}

// Clean makes text safe to show on one line: control characters, invisible and direction-changing
// ones, and invalid UTF-8 cannot disturb a terminal or mislead a reader.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, s)
}

// cleanLines is clean for text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}
