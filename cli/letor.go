package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/letor"
)

type letorCommand struct {
	File     string      `arg:"" help:"${letorFile}" type:"path"`
	Out      string      `required:"" help:"${letorOut}" placeholder:"FILE.csv" type:"path"`
	Clusters flags.Count `in:"[2,1e6]" default:"50" help:"Clusters, which are the arms." placeholder:"K"`
	Seed     flags.Seed  `default:"1" help:"Seed of the sample and of k-means++." placeholder:"S"`
	Features int         `help:"Features of a row; as many as the first row has if not given." placeholder:"D"`
	Sample   flags.Count `in:"[1,1e8]" help:"${letorSample}" placeholder:"N"`
	Starts   int         `help:"Draws of k-means++, of which the best end is taken; 5 if not given." placeholder:"N"`
	Raw      bool        `help:"Leave features as they are. Otherwise each is divided by its standard deviation."`
	JSON     bool        `help:"As JSON, for programs."`
}

// letorTexts are help texts that are too long for their flags.
var letorTexts = kong.Vars{
	"letorFile": "Learning-to-rank data in the LETOR form, as text or compressed by gzip.",
	"letorOut":  "CSV of logged rewards to write, for an experiment's instance: csv: FILE.",
	"letorSample": "Rows that centres are fitted to, drawn at random; 50000 if not given. All rows then " +
		"go to the nearest centre.",
	"letor": `Rows are clustered by their features with k-means. A cluster is an arm, and the ratings of its rows, over 4, are its logged rewards [Chowdhury and Zhou 2023, §7].

[Chowdhury and Zhou 2023] has MSLR-WEB10K, which Microsoft Research offers as "Microsoft Learning to Rank Datasets"; it is not part of Sotto. Put Fold1/train.txt (or
train, vali and test of a fold one after another: 1 200 192 rows) anywhere, and name it here. examples/letor-sample.txt is a small made-up file of the same form.

Examples:
  sotto letor examples/letor-sample.txt --out arms.csv
  sotto letor MSLR-WEB10K/Fold1/train.txt --clusters 50 --out examples/letor-arms.csv
  sotto run examples/letor.yaml`,
}

func (c *letorCommand) Run(ctx context.Context, s streams) error {
	open := func() (io.ReadCloser, error) { return os.Open(c.File) }
	if f, err := open(); err != nil {
		return usage(err)
	} else if err := f.Close(); err != nil {
		return err
	}
	bar := waiting(s, "letor", 0)
	arms, err := letor.Cluster(ctx, open, letor.Options{Clusters: int(c.Clusters), Seed: c.Seed.X,
		Features: c.Features, Sample: int(c.Sample), Starts: c.Starts, Raw: c.Raw,
		Progress: func(done, all int) {
			bar.of(all)
			bar.tell(done, "")
		}})
	bar.end()
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted("stopped; nothing was written")
	case err != nil:
		return usagef("%s: %w", c.File, err)
	}
	if err := save("--out", c.Out, privateFile, arms.WriteCSV); err != nil {
		return err
	}
	best, second := 0, -1
	for a := range arms.Counts {
		switch m := arms.Mean(a); {
		case m > arms.Mean(best):
			best, second = a, best
		case a != best && (second < 0 || m > arms.Mean(second)):
			second = a
		}
	}
	if c.JSON {
		return printJSON(s, struct {
			Rows     int     `json:"rows"`
			Features int     `json:"features"`
			Queries  int     `json:"queries"`
			Clusters int     `json:"clusters"`
			Inertia  float64 `json:"mean_squared_distance"`
			Best     int     `json:"best_arm"`
			Mean     float64 `json:"best_mean"`
			Written  string  `json:"written"`
		}{arms.Rows, arms.Dim, arms.Queries, len(arms.Counts), arms.Inertia, best + 1, arms.Mean(best), c.Out})
	}
	w := report.NewColumns(s.out)
	fmt.Fprintf(w, "rows\t%d of %d features, %d queries\n", arms.Rows, arms.Dim, arms.Queries)
	fmt.Fprintf(w, "k-means\t%d clusters, fitted to %d rows in %d steps, mean squared distance "+
		"%.6g\n", len(arms.Counts), arms.Fitted, arms.Steps, arms.Inertia)
	fmt.Fprintf(w, "best arm\t%d, mean reward %.4f of %d rows; the next is %d, %.4f\n", best+1,
		arms.Mean(best), arms.Len(best), second+1, arms.Mean(second))
	fmt.Fprintf(w, "written\t%s\n", c.Out)
	return w.Flush()
}
