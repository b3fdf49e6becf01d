// Command peers plays contextual policies, private ones of the catalog and other people's without
// privacy, in the same worlds, and writes what each won of what is to be won as CSV:
//
//	go run ./lab/peers -vw PATH -runs 24 -horizon 100000 -out DIR examples/worlds.yaml > won.csv
//
// Without -vw Vowpal Wabbit is left out. All see rewards equally late; peers see each by itself.
package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/experiment"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, told io.Writer) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(told)
	program := f.String("vw", "", "Vowpal Wabbit's program")
	runs := f.String("runs", "", "instead of the file's")
	horizon := f.String("horizon", "", "instead of the file's")
	checkpoints := f.String("checkpoints", "", "instead of the file's")
	dir := f.String("out", "", "directory of results, which is gone on with if it is there")
	only := f.String("only", "", "play the policies alone whose name begins with this")
	workers := f.Int("workers", 0, "0: one a processor")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 || *dir == "" {
		return wrong("usage: peers [flags] -out DIR FILE")
	}
	known, err := catalog.Catalog{}.With(all(*program)...)
	if err != nil {
		return err
	}
	spec, err := experiment.Reader{Catalog: known}.Read(f.Arg(0))
	if err != nil {
		return err
	}
	for field, value := range map[string]string{"runs": *runs, "horizon": *horizon, "checkpoints": *checkpoints} {
		if value == "" {
			continue
		}
		if err := spec.Override(field, "-"+field, value); err != nil {
			return err
		}
	}
	spec.Policies = append(spec.Policies, settings(*program != "")...)
	spec.Policies = slices.DeleteFunc(spec.Policies, func(p experiment.Policy) bool {
		return !strings.HasPrefix(cmp.Or(p.Name, p.Policy), *only)
	})
	r, err := experiment.Run(ctx, spec, experiment.Options{Out: *dir, Workers: *workers, Resume: true,
		Progress: func(s experiment.Step) { fmt.Fprintf(told, "%s  %d of %d\n", s.Cell, s.Done, s.Total) }})
	if err != nil {
		return err
	}
	return write(out, r)
}

// settings are the peers that are played, each at what its authors or the best of a small search say.
func settings(vw bool) (out []experiment.Policy) {
	add := func(policy, name string, p catalog.Params) {
		out = append(out, experiment.Policy{Policy: policy, Name: name, Params: p})
	}
	add("linucb", "", nil)
	add("lints", "", nil)
	add("squarecb", "", nil)
	add("epsilon-greedy", "", nil)
	add("bagged-ts", "", nil)
	if vw {
		for _, scale := range []float64{10, 100, 1000} {
			add("vw", fmt.Sprint("vw --squarecb --gamma_scale ", scale), catalog.Params{"explore": 0, "scale": scale})
		}
		add("vw", "vw --epsilon 0.05", catalog.Params{"explore": 1, "scale": 0.05})
		add("vw", "vw --regcb", catalog.Params{"explore": 2, "scale": 0.1})
		add("vw", "vw --bag 5", catalog.Params{"explore": 3, "scale": 5})
	}
	return out
}

// write is a line for each cell and checkpoint that tables show.
func write(to io.Writer, r *experiment.Results) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{"instance", "policy", "budget", "runs", "t", "won", "half"}); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
	for i := range r.Cells {
		c := &r.Cells[i]
		for _, j := range r.Shown() {
			won, half := r.Won(c, j)
			if err := w.Write([]string{c.Instance, c.Policy, c.Budget, strconv.Itoa(r.Manifest.Runs),
				strconv.Itoa(r.Manifest.Checkpoints[j]), number(won), number(half)}); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
