package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/live/load"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// serveBench is "sotto serve bench". A command of kong's has flags or commands and not both, so
// this one has a name of two words, which benchCommand puts together.
type serveBench struct {
	Data     string      `help:"${benchData}" placeholder:"DIR" type:"path"`
	Database string      `help:"${benchDatabase}" placeholder:"URL"`
	Clients  flags.Count `in:"[1,10000]" default:"64" help:"Connections, each with one request at a time." placeholder:"N"`
	Requests flags.Count `in:"[1,10000000]" default:"50000" help:"${benchRequests}" placeholder:"N"`
	JSON     bool        `help:"As JSON, for programs."`
}

// serveBenchTexts are help texts that are too long for their flags.
var serveBenchTexts = kong.Vars{
	"benchData": "Directory in which the database is made, and removed at the end; that for temporary files " +
		"if not given. It should be on the disk that is to be measured: some systems keep temporary files in " +
		"memory.",
	"benchDatabase": "An empty PostgreSQL database, as postgres://USER@HOST/DATABASE, instead of " +
		"SQLite; what " +
		"is measured stays in it.",
	"benchRequests": "Requests of each kind; of rewards in hundreds a tenth of it.",
	"serve bench": `Clients and service are in this process, and speak HTTP over the loopback: what is measured includes
the clients. A reward is answered when it is on disk. Peers: a handler that answers and does no more, and one
that appends to a log and syncs it for all who wait. Another load on the machine is in the rates and times, and little in the
processor's time for one decision or reward, which is this process's alone.

Examples:
  sotto serve bench --data .
  sotto serve bench --database postgres:///bench --json`,
}

// benchCommand puts the two words of the command together.
func benchCommand(args []string) []string {
	if len(args) > 1 && args[0] == "serve" && args[1] == "bench" {
		return append([]string{"serve bench"}, args[2:]...)
	}
	return args
}

// benchJSON is what was measured, where.
type benchJSON struct {
	Store   string        `json:"store"`
	CPUs    int           `json:"cpus"` // that this program uses
	System  string        `json:"system"`
	Go      string        `json:"go"`
	Load    string        `json:"load,omitempty"` // of the machine before, as its system says it
	Clients int           `json:"clients"`
	Figures []load.Figure `json:"figures"`
}

func (c *serveBench) Run(ctx context.Context, s streams) (err error) {
	if c.Data != "" && c.Database != "" {
		return usagef("--data is the directory of a database of its own: --database is not for it")
	}
	dir, err := os.MkdirTemp(c.Data, "sotto-bench-")
	if err != nil {
		return usagef("--data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := benchJSON{Store: "SQLite", CPUs: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Clients: int(c.Clients)}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		out.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	cfg := load.Config{Store: store.SQLite(dir), Dir: dir, Clients: int(c.Clients), Requests: int(c.Requests),
		CPU: cpuTime, Progress: func(what string) { fmt.Fprintln(s.err, what) }}
	if c.Database != "" {
		out.Store = "PostgreSQL"
		if err := unused(ctx, c.Database); err != nil {
			return usagef("--database: %w", err)
		}
		if cfg.Store, err = store.Postgres(c.Database); err != nil {
			return usagef("--database: %w", err)
		}
	}
	if out.Figures, err = load.Run(ctx, cfg); err != nil {
		if ctx.Err() != nil {
			return interrupted("stopped; nothing was measured")
		}
		return err
	}
	if c.JSON {
		return printJSON(s, out)
	}
	fmt.Fprintf(s.out, "%s, %d processors, %s, %s, %d clients", out.Store, out.CPUs, out.System, out.Go,
		out.Clients)
	if out.Load != "" {
		fmt.Fprintf(s.out, ", load before %s", out.Load)
	}
	fmt.Fprint(s.out, "\n\n")
	w := report.NewColumns(s.out)
	fmt.Fprintln(w, "\ta second\tp50 ms\tp99 ms\tCPU µs\tasked for\t")
	for _, f := range out.Figures {
		p50, p99, asked, met := "", "", "", ""
		if f.P99 > 0 {
			p50, p99 = fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99)
		}
		if f.AtLeast > 0 {
			asked, met = fmt.Sprintf("%.0f", f.AtLeast), "missed"
			if f.AtMost > 0 {
				asked += fmt.Sprintf(", p99 %g", f.AtMost)
			}
			if f.Met() {
				met = "met"
			}
		}
		fmt.Fprintf(w, "%s\t%7.0f\t%6s\t%6s\t%6.1f\t%s\t%s\n", f.Name, f.Rate, p50, p99, f.CPU,
			asked, met)
	}
	return w.Flush()
}

// unused looks into a database without taking it from who writes there.
func unused(ctx context.Context, address string) error {
	open, err := store.PostgresReader(address)
	if err != nil {
		return err
	}
	e, err := serve.Open(ctx, serve.Config{Store: open, ReadOnly: true})
	if errors.Is(err, store.ErrSchema) { // there are no tables yet, or load.Run says which
		return nil
	}
	if err != nil {
		return err
	}
	defer e.Close()
	if len(e.List(ctx)) > 0 || len(e.Keys()) > 0 {
		return load.ErrUsed
	}
	return nil
}
