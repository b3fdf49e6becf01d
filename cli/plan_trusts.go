package cli

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// allTrusts is the value of --trust that compares them.
const allTrusts = "all"

// mostUsers bounds the batches that are looked at: more than there are people.
const mostUsers = min(1<<33, math.MaxInt/4)

// A trustRow is what one trust model does to the mean of a batch.
type trustRow struct {
	Trust    privacy.Trust `json:"trust"`
	Live     bool          `json:"live"`          // of live experiments
	Sum      float64       `json:"noise_in_sum"`  // at most, with probability 0.95
	Mean     float64       `json:"noise_in_mean"` // of the batch
	Smallest *int          `json:"smallest_batch,omitempty"`
	Days     *float64      `json:"days_to_fill,omitempty"`
	Why      string        `json:"not_possible,omitempty"`
}

// compare asks every trust model.
func (c *planRelease) compare(s streams) error {
	switch {
	case c.Traffic.Set && !c.Error.Set:
		return usage(errors.New("--traffic goes with --error"))
	case c.Noise != "" || c.Returning > 1:
		return usage(errors.New("--noise and --returning go with one trust model, not with --trust all"))
	}
	stated, err := c.stated()
	if err != nil {
		return usage(err)
	}
	var rows []trustRow
	for _, t := range []privacy.Trust{privacy.TrustCentral, privacy.TrustTwoServer, privacy.TrustSecAgg,
		privacy.TrustShuffle, privacy.TrustLocal} {
		rows = append(rows, c.trust(t, stated))
	}
	if c.JSON {
		return printJSON(s, rows)
	}
	w := report.NewColumns(s.out)
	fmt.Fprintf(w, "trust\tnoise in the sum of %d\tin their mean", int(c.Users))
	if c.Error.Set {
		fmt.Fprintf(w, "\tsmallest batch for %v", c.Error.X)
	}
	if c.Traffic.Set {
		fmt.Fprint(w, "\tfills in")
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		if r.Why != "" {
			continue
		}
		name := string(r.Trust)
		if !r.Live {
			name += " (not live)"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.4g", name, r.Sum, r.Mean)
		if c.Error.Set && r.Smallest == nil {
			fmt.Fprint(w, "\t–")
		} else if c.Error.Set {
			fmt.Fprintf(w, "\t%d", *r.Smallest)
		}
		if r.Days != nil {
			fmt.Fprint(w, "\t"+span(time.Duration(min(*r.Days*24*float64(time.Hour), math.MaxInt64/2))))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Why != "" {
			fmt.Fprintf(s.out, "%s: not possible: %s\n", r.Trust, r.Why)
		}
	}
	_, err = fmt.Fprintf(s.out, "\nAt %v; noise: at most so many rewards, or so much in the mean, with "+
		"probability 0.95, beside what the rewards vary.\n", c.Budget.Budget)
	return err
}

// trust is the row of a trust model.
func (c *planRelease) trust(t privacy.Trust, stated privacy.Mechanism) trustRow {
	row := trustRow{Trust: t, Live: t != privacy.TrustShuffle}
	sum, err := c.noiseOf(t, stated, int(c.Users))
	if err != nil {
		row.Why = err.Error()
		return row
	}
	row.Sum, row.Mean = sum, sum/float64(c.Users)
	if !c.Error.Set {
		return row
	}
	within := func(n int) bool {
		sum, err := c.noiseOf(t, stated, n)
		return err == nil && sum/float64(n) <= c.Error.X
	}
	most := 1
	for most < mostUsers && !within(most) {
		most *= 2
	}
	if most >= mostUsers {
		return row
	}
	n := most/2 + 1 + sort.Search(most-most/2-1, func(i int) bool { return within(most/2 + 1 + i) })
	if most == 1 {
		n = 1
	}
	row.Smallest = &n
	if c.Traffic.Set {
		days := float64(n) / c.Traffic.Day
		row.Days = &days
	}
	return row
}

// noiseOf is what the noise in a sum of so many is at most, with probability 0.95.
func (c *planRelease) noiseOf(t privacy.Trust, stated privacy.Mechanism, users int) (float64, error) {
	cfg := release.Config{Arms: 1, Mechanism: stated}
	gathering := release.Gathering{Trust: t}
	switch t {
	case privacy.TrustShuffle:
		m, err := (release.Trust{Model: t, Like: c.Budget.Budget, S: c.Precision.X, Promised: c.Promised.X,
			P: c.Misread.X}).Mechanism(stated, users)
		if err != nil {
			return 0, err
		}
		return m.(interface{ Tail() privacy.Tail }).Tail().Both(math.Log(20)), nil
	case privacy.TrustCentral:
		outline, err := release.NewOutline(cfg, true)
		if err != nil {
			return 0, err
		}
		return widthOf(outline, users)
	case privacy.TrustSecAgg:
		gathering.Users = max(2, int(math.Ceil(float64(c.Promised.X*float64(users))*(1-1e-12))))
	}
	m, err := release.GatheredMechanism(stated, gathering, users)
	if err != nil {
		return 0, err
	}
	if !m.Loss().Within(c.Budget.Budget) {
		return 0, fmt.Errorf("a release costs %v; of a budget in ρ it would cost that",
			m.Loss().In(c.Budget.Budget))
	}
	outline, err := release.NewGatheredOutline(cfg, gathering)
	if err != nil {
		return 0, err
	}
	return widthOf(outline, users)
}

// widthOf is what the noise in the sum of so many is at most, with probability 0.95.
func widthOf(o *release.Outline, users int) (float64, error) {
	if err := o.Play(0, users); err != nil {
		return 0, err
	}
	form, err := o.Release([]int{0})
	return form.Tail.Both(math.Log(20)), err
}
