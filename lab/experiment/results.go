package experiment

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
)

// Results are what an experiment found: the manifest, and a summary of each cell in the
// manifest's order.
type Results struct {
	Manifest *Manifest
	Cells    []CellResult
	// Catalog has the policies that the experiment names; the zero value, as from Load and Merge,
	// those of Sotto.
	Catalog catalog.Catalog
}

// A CellResult summarises the runs of a cell.
type CellResult struct {
	CellInfo
	Regret    Curve // pseudo-regret, in units of reward
	PlaysBest Curve // plays of arms with the highest mean
	// FinalRegret and FinalPlaysBest are the values of each run at the last checkpoint, by run:
	// for paired tests.
	FinalRegret, FinalPlaysBest []float64

	// Twin is the place in Results.Cells of the cell's non-private twin, −1 if the experiment has
	// none. Of cells that have one: Difference is regret minus the twin's, paired by run, and
	// Price, the price of privacy, the mean of Difference over the mean of the twin's regret; its
	// SE is by linearisation of that ratio, SD and quantiles are NaN, and all of it is NaN where
	// the twin has no regret yet.
	Twin              int
	Difference, Price Curve
	FinalDifference   []float64

	// Of KindStopping, instead. Samples are of all runs, those that gave up at the cap included;
	// Error is |estimate − μ|/|μ| of the runs that have an estimate. Finals are by run, and the
	// error is NaN where there is no estimate.
	Samples, Error           Curve
	FinalSamples, FinalError []float64
	Failures                 int // runs whose error is above alpha
	Unfinished               int // runs without an estimate

	// Of KindIdentify, instead, with Error, 0 for a right answer and 1 for a wrong one, of the runs
	// that have an answer; Failures, the wrong answers; and Unfinished, the runs that reached the
	// cap first. StoppingTime has these at the cap. Plays and FinalPlays are by arm.
	StoppingTime, Batches           Curve
	FinalStoppingTime, FinalBatches []float64
	Plays                           []Curve
	FinalPlays                      [][]float64
}

// metric is a metric's curve, and its values by run at the last checkpoint.
func (c *CellResult) metric(name string) (*Curve, *[]float64) {
	switch name {
	case MetricRegret:
		return &c.Regret, &c.FinalRegret
	case MetricPlaysBest:
		return &c.PlaysBest, &c.FinalPlaysBest
	case MetricDifference:
		return &c.Difference, &c.FinalDifference
	case MetricPrice:
		return &c.Price, nil
	case MetricSamples:
		return &c.Samples, &c.FinalSamples
	case MetricError:
		return &c.Error, &c.FinalError
	case MetricStoppingTime:
		return &c.StoppingTime, &c.FinalStoppingTime
	case MetricBatches:
		return &c.Batches, &c.FinalBatches
	}
	arm := playsArm(name)
	for len(c.Plays) <= arm {
		c.Plays, c.FinalPlays = append(c.Plays, Curve{}), append(c.FinalPlays, nil)
	}
	return &c.Plays[arm], &c.FinalPlays[arm]
}

// A Curve has one entry a checkpoint: the mean over runs, its standard error, the standard
// deviation and quantiles over runs, and the mean of the largest 5 % of them: of regret, what bad runs
// lose. SE and SD are NaN if there is one run.
type Curve struct {
	Mean, SE, SD, Q05, Q50, Q95, CVaR95 []float64
}

// The metrics, as summary.csv names them.
const (
	MetricRegret     = "regret"
	MetricPlaysBest  = "plays_best"
	MetricDifference = "difference" // regret minus that of the non-private twin
	MetricPrice      = "price"      // the difference over the twin's regret
	MetricSamples    = "samples"
	MetricError      = "error"

	MetricStoppingTime = "stopping_time"
	// rounds of adaptivity: how many times the policy was asked what to play
	MetricBatches = "batches"
	metricPlays   = "plays_" // and the arm, from 1: its plays
)

// Load reads the results in an output directory, from its units.
func Load(dir string) (*Results, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Finished.IsZero() || m.Shard != nil {
		if m.Shard != nil {
			return nil, fmt.Errorf("%w %s: it holds shard %s of experiment %q: merge all shards "+
				"first", ErrOutput, dir, m.Shard, m.Name)
		}
		return nil, fmt.Errorf("%w %s: it holds experiment %q, not finished: go on with --resume",
			ErrOutput, dir, m.Name)
	}
	return summariseAll(context.Background(), dir, m)
}

// summariseAll is the results of every cell, in the manifest's order.
func summariseAll(ctx context.Context, dir string, m *Manifest) (*Results, error) {
	r := &Results{Manifest: m}
	twins := m.twins()
	for i := range m.Cells {
		c, err := summarise(ctx, dir, m, &m.Cells[i])
		if err != nil {
			return nil, err
		}
		if m.Intervals != 0 {
			if c.Intervals, err = intervalsOf(ctx, dir, m, &m.Cells[i], columns); err != nil {
				return nil, err
			}
		}
		if c.Twin = twins[i]; c.Twin >= 0 {
			if err := c.price(ctx, dir, m, &m.Cells[c.Twin], columns); err != nil {
				return nil, err
			}
		}
		r.Cells = append(r.Cells, c)
	}
	return r, nil
}

// finish makes every output from units alone, in the manifest's order, and marks the
// directory as finished.
func finish(ctx context.Context, dir string, m *Manifest, write writer) (*Results, error) {
	// While outputs are not all there the directory is not finished, whatever it was before.
	if err := writeStream(filepath.Join(dir, "results.parquet"), m.Mode(), func(w io.Writer) error {
		return m.kind().writeRows(ctx, w, dir, m)
	}); err != nil {
		return nil, err
	}
	r, err := summariseAll(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	for i := range r.Cells {
		m.Cells[i].Loss, m.Cells[i].Intervals = r.Cells[i].Loss, r.Cells[i].Intervals
	}
	if m.Intervals != 0 {
		if err := writeStream(filepath.Join(dir, intervalsFile), m.Mode(), r.writeIntervals); err != nil {
			return nil, err
		}
	}
	if err := writeStream(filepath.Join(dir, "summary.csv"), m.Mode(), r.writeSummary); err != nil {
		return nil, err
	}
	m.Finished = time.Now().UTC().Truncate(time.Second)
	return r, m.write(dir, write)
}

// writeStream is writeFile for what is too large to hold.
func writeStream(path string, mode fs.FileMode, produce func(io.Writer) error) error {
	f, err := atomicfile.Create(path, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Discard() // nothing, once it has its name
	if err := produce(f); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Replace(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// eachUnit calls f for the units of a cell, in order.
func eachUnit(ctx context.Context, dir string, m *Manifest, cell *CellInfo, f func(*unit) error) error {
	for b := range m.blocks() {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		u, err := readUnit(dir, m, cell, b)
		if errors.Is(err, fs.ErrNotExist) {
			first, n := m.runsOf(b)
			return fmt.Errorf("%w: the unit of %s, runs %d to %d, is missing: %w", ErrUnit,
				cell.Label(), first, first+n-1, err)
		}
		if err != nil {
			return err
		}
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

// metrics are the numbers that a unit holds of each run and checkpoint of a cell.
func (m *Manifest) metrics(c *CellInfo) []string { return m.kind().metrics(c) }

// regret says whether there is regret to compare.
func (m *Manifest) regret() bool { return m.metrics(&CellInfo{})[0] == MetricRegret }

// columns is how many numbers summarise holds at once: 64 MB of them.
const columns = 8 << 20

func summarise(ctx context.Context, dir string, m *Manifest, cell *CellInfo) (CellResult, error) {
	return summariseIn(ctx, dir, m, cell, columns)
}

// summariseIn reads the units of a cell, for as many checkpoints at a time as there is room
// for, in numbers.
func summariseIn(ctx context.Context, dir string, m *Manifest, cell *CellInfo, room int) (CellResult, error) {
	out := CellResult{CellInfo: *cell, Twin: -1}
	points, names := len(m.Checkpoints), m.metrics(cell)
	values := points * len(names) // of a run, metric by metric
	group := max(1, min(values, room/m.Runs))
	column := make([][]float64, group)
	for i := range column {
		column[i] = make([]float64, m.Runs)
	}
	var loss privacy.Loss
	for from := 0; from < values; from += group {
		to := min(from+group, values)
		err := eachUnit(ctx, dir, m, cell, func(u *unit) error {
			if from == 0 {
				loss = loss.Max(u.loss)
			}
			for r := range u.runs {
				for i, x := range u.run(r)[from:to] {
					column[i][u.first+r] = x
				}
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		for i := range to - from {
			x, name := column[i], names[(from+i)/points]
			curve, final := out.metric(name)
			if name == MetricError {
				for r := range x {
					x[r] = fromUnit(x[r])
				}
			}
			if (from+i)%points == points-1 {
				*final = slices.Clone(x)
			}
			if name == MetricError {
				x = slices.DeleteFunc(slices.Clone(x), math.IsNaN)
			}
			curve.add(x)
		}
	}
	m.kind().judge(&out)
	out.Loss = loss.String()
	if loss.Pure() == 0 {
		out.Loss = "nothing" // no run got as far as a release
	}
	if !m.Unclipped && !loss.Within(cell.PrivacyBudget()) {
		return out, fmt.Errorf("%s: the ledger charged %v, more than the budget: a defect of the "+
			"policy or of the program", cell.Label(), loss)
	}
	return out, nil
}

// add appends the summary of one checkpoint. It sorts x.
func (c *Curve) add(x []float64) {
	mean, sd, se := stats.Mean(x)
	slices.Sort(x)
	c.append(mean, se, sd, stats.Quantile(x, 0.05), stats.Quantile(x, 0.5), stats.Quantile(x, 0.95),
		stats.Beyond(x, 0.95))
}

func (c *Curve) append(mean, se, sd, q05, q50, q95, cvar95 float64) {
	c.Mean, c.SE, c.SD = append(c.Mean, mean), append(c.SE, se), append(c.SD, sd)
	c.Q05, c.Q50, c.Q95 = append(c.Q05, q05), append(c.Q50, q50), append(c.Q95, q95)
	c.CVaR95 = append(c.CVaR95, cvar95)
}

// summaryHeader is summary.csv's first line; where rewards come late a column says how late.
func summaryHeader(delayed bool) []string {
	out := append([]string{"experiment", "instance", "policy", "budget"}, numberColumns()...)
	if delayed {
		out = append(out, "delay")
	}
	return append(out, "metric", "t", "runs", "mean", "se", "sd", "q05", "q50", "q95", "cvar95")
}

// writeSummary writes summary.csv: a line a cell, metric and checkpoint. What is not defined, such
// as sd of one run, is empty.
func (r *Results) writeSummary(w io.Writer) error {
	out := csv.NewWriter(w)
	m := r.Manifest
	if err := out.Write(summaryHeader(m.Delay != "")); err != nil {
		return err
	}
	text := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return keyed.Number(x)
	}
	var row []string
	for i := range r.Cells {
		c := &r.Cells[i]
		cell := c.columns(m.Name)
		if m.Delay != "" {
			cell = append(cell, m.Delay)
		}
		rows := m.metrics(&c.CellInfo)
		if c.Twin >= 0 {
			rows = append(rows, MetricDifference, MetricPrice)
		}
		for _, name := range rows {
			v, _ := c.metric(name)
			runs := m.Runs
			if name == MetricError {
				runs -= c.Unfinished
			}
			for k, t := range m.Checkpoints {
				row = append(append(row[:0], cell...), name, strconv.Itoa(t), strconv.Itoa(runs))
				for _, x := range [...]float64{v.Mean[k], v.SE[k], v.SD[k], v.Q05[k], v.Q50[k], v.Q95[k], v.CVaR95[k]} {
					row = append(row, text(x))
				}
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// columns say which cell a row is of.
func (c *CellResult) columns(experiment string) []string {
	row := []string{experiment, c.Instance, c.Policy, c.Budget}
	for _, name := range numberColumns() {
		column := ""
		if x := c.number(name); x != 0 {
			column = keyed.Number(x)
		}
		row = append(row, column)
	}
	return row
}

// A RunRow is what every row of results.parquet begins with: which run of which cell, and when.
type RunRow struct {
	Experiment string `parquet:"experiment,dict"`
	Instance   string `parquet:"instance,dict"`
	Policy     string `parquet:"policy,dict"` // or the rule
	Budget     string `parquet:"budget,dict"`
	// the numbers of the budget, all above 0; where it has none of the name 0, and null in the file
	Epsilon float64 `parquet:"epsilon,optional"`
	Rho     float64 `parquet:"rho,optional"`
	Delta   float64 `parquet:"delta,optional"`
	Alpha   float64 `parquet:"alpha,optional"`
	Run     int64   `parquet:"run"`
	T       int64   `parquet:"t"` // the checkpoint, or the cap
}

// A Row is a row of results.parquet: one run at one checkpoint.
type Row struct {
	RunRow
	Regret    float64 `parquet:"regret"`
	PlaysBest float64 `parquet:"plays_best"`
}

// A StoppingRow is a row of results.parquet of KindStopping: one run.
type StoppingRow struct {
	RunRow
	Samples float64  `parquet:"samples"`
	Error   *float64 `parquet:"error,optional"` // null without an estimate
}

// An IdentifyRow is a row of results.parquet of KindIdentify: one run.
type IdentifyRow struct {
	RunRow
	StoppingTime float64   `parquet:"stopping_time"`
	Error        *float64  `parquet:"error,optional"` // null without an answer
	Batches      float64   `parquet:"batches"`
	Plays        []float64 `parquet:"plays,list"` // of each arm
}

// The bytes of a parquet file depend on how its rows are cut into writes and groups: both are
// fixed, whatever units they come from.
const (
	rowsWrite = 4096
	rowsGroup = 1 << 18
)

// numberColumns are the columns of a budget's numbers.
func numberColumns() []string { return []string{"epsilon", "rho", "delta", "alpha"} }

// number is that of the budget by this name, 0 if it has none.
func (c *CellInfo) number(name string) float64 {
	for _, f := range keyed.BudgetFields(c.PrivacyBudget()) {
		if x, ok := f.Value.(float64); ok && f.Key == name {
			return x
		}
	}
	return 0
}

// writeRows writes a row a run and checkpoint, made by row of its metrics.
func writeRows[R any](ctx context.Context, w io.Writer, dir string, m *Manifest,
	row func(c *CellInfo, at RunRow, metric func(k int) float64) R) error {
	out := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowsGroup),
		parquet.CreatedBy(build.Module, strconv.Itoa(FormatVersion), ""))
	rows := make([]R, 0, rowsWrite)
	flush := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		return err
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		at := RunRow{Experiment: m.Name, Instance: c.Instance, Policy: c.Policy, Budget: c.Budget,
			Epsilon: c.number("epsilon"), Rho: c.number("rho"), Delta: c.number("delta"),
			Alpha: c.number("alpha")}
		err := eachUnit(ctx, dir, m, c, func(u *unit) error {
			for r := range u.runs {
				for k, t := range u.checkpoints {
					at.Run, at.T = int64(u.first+r), int64(t)
					rows = append(rows, row(c, at, func(i int) float64 {
						return u.metric(r, i)[k]
					}))
					if len(rows) == rowsWrite {
						if err := flush(); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}
