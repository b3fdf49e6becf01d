package experiment

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// Options say how to run an experiment. None of them changes a number in its results.
type Options struct {
	Out     string // output directory; it is made if it is not there
	Workers int    // 0: one a processor
	// ShardI and ShardN play part I of N, I from 0 to N−1; N = 0 plays everything. A shard leaves
	// units and a manifest, for Merge.
	ShardI, ShardN int
	Resume         bool // go on in a directory that holds part of this experiment
	Mixed          bool // go on with another build than the one that began
	Progress       func(Step)

	write writer // for tests; nil: writeFile
}

// A writer writes a file in full or not at all.
type writer func(path string, data []byte) error

// A Step is told after every unit, one at a time. Counts are in runs.
type Step struct {
	Cell                string // label of the cell that the unit belongs to
	CellDone, CellTotal int    // of that cell, in this shard
	Done, Total         int    // of this shard; what was there before is done
}

// Run resolves an experiment and plays it into a directory: units first, then, if the directory has
// them all, summary.csv, results.parquet and manifest.json. A shard of several leaves its units and
// manifest, and no results (nil).
//
// A cancelled context stops it promptly: finished units stay, nothing is half-written, and the
// error matches the context's. Run again with Resume goes on, and the outputs are the same bytes as
// without the stop.
func Run(ctx context.Context, s *Spec, o Options) (*Results, error) {
	p, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, o)
}

// Run is the package's Run for a plan.
func (p *Resolved) Run(ctx context.Context, o Options) (*Results, error) {
	m := p.Manifest()
	m.Started = time.Now().UTC().Truncate(time.Second)
	if o.Out == "" {
		return nil, fmt.Errorf("%w: none is given", ErrOutput)
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("workers is %d, must be at least 1, or 0 for one a processor", o.Workers)
	}
	if o.ShardN != 0 || o.ShardI != 0 {
		if o.ShardN < 1 || o.ShardI < 0 || o.ShardI >= o.ShardN {
			return nil, fmt.Errorf("shard %d/%d, must be I/N with I from 0 to N-1", o.ShardI, o.ShardN)
		}
		if o.ShardN > 1 {
			m.Shard = &Shard{o.ShardI, o.ShardN}
		}
	}
	if o.write == nil {
		o.write = m.writeFile
	}
	if err := claim(o.Out, m, o.Resume, o.Mixed, o.write); err != nil {
		return nil, err
	}
	if err := p.playAll(ctx, m, o); err != nil {
		return nil, err
	}
	if m.Shard == nil {
		return finish(ctx, o.Out, m, o.write)
	}
	m.Finished = time.Now().UTC().Truncate(time.Second)
	return nil, m.write(o.Out, o.write)
}

// claim makes the output directory this experiment's, or says why not.
func claim(dir string, m *Manifest, resume, mixed bool, write writer) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w %s: "+format, append([]any{ErrOutput, dir}, args...)...)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fail("%w", err)
	case len(entries) > 0:
		old, err := ReadManifest(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if len(entries) == 1 && entries[0].Name() == unitsDir {
				break // a run that could not even write its manifest
			}
			return fail("it is not empty, and it holds no results: choose another directory with --out")
		}
		if err != nil {
			return err
		}
		switch {
		case old.SpecHash != m.SpecHash && old.Name != m.Name:
			return fail("it holds another experiment, %q: choose another directory with --out", old.Name)
		case old.SpecHash != m.SpecHash:
			return fail("it holds another experiment of the same name, %q: its file or its flags "+
				"have changed; choose another directory with --out", old.Name)
		case old.fingerprint != m.fingerprint:
			return fail("it holds this experiment on other logged rewards, or has lost its %s, "+
				"which tells: choose another directory with --out", fingerprintFile)
		case shardText(old.Shard) != shardText(m.Shard):
			return fail("it holds %s of this experiment, not %s: choose another directory with "+
				"--out", shardText(old.Shard), shardText(m.Shard))
		case !resume && !old.Finished.IsZero():
			return fail("it holds this experiment, finished: choose another directory with " +
				"--out, or use --resume to write its outputs again")
		case !resume:
			return fail("it holds part of this experiment: use --resume to go on")
		case old.Build != m.Build && !mixed:
			return fail("it was begun by another build (%v) than this one (%v), whose numbers "+
				"may differ in the last bits: choose another directory with --out", old.Build, m.Build)
		}
		m.Started = old.Started
		m.Mixed = old.Mixed || old.Build != m.Build
	}
	if err := os.MkdirAll(filepath.Join(dir, unitsDir), m.dirMode()); err != nil {
		return fail("%w", err)
	}
	sweep(filepath.Join(dir, unitsDir))
	return m.write(dir, write)
}

func shardText(s *Shard) string {
	if s == nil {
		return "all"
	}
	return "shard " + s.String()
}

// sweep removes what a killed process left under a temporary name. Younger ones may belong
// to a living one.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), ".") &&
			time.Since(info.ModTime()) > time.Hour {
			os.Remove(filepath.Join(dir, e.Name())) // if not, it is only clutter
		}
	}
}

// playAll plays the shard's units that are not there yet.
func (p *Resolved) playAll(ctx context.Context, m *Manifest, o Options) error {
	units := m.unitsOf(m.Shard)
	progress := newProgress(m, units, o.Progress)
	var missing []unitID
	for _, u := range units {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		if _, err := readUnit(o.Out, m, &m.Cells[u.cell], u.block); err != nil {
			missing = append(missing, u) // also a damaged one: it is played again
			continue
		}
		progress.skip(u)
	}
	err := pool.Run(ctx, o.Workers, len(missing), func() func(context.Context, int) error {
		var r sim.Result
		return func(ctx context.Context, i int) error {
			if err := p.playUnit(ctx, m, missing[i], o, &r); err != nil {
				return err
			}
			progress.done(missing[i])
			return nil
		}
	})
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return err
}

// stopped says that somebody stopped it, and matches the context's error; its cause may be
// a signal's name.
func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped; what is finished is kept, and --resume goes on: %w", pool.Stopped(ctx))
}

// playUnit plays a block of runs and writes it.
func (p *Resolved) playUnit(ctx context.Context, m *Manifest, id unitID, o Options, r *sim.Result) error {
	c := &p.Cells[id.cell]
	first, n := m.runsOf(id.block)
	u := unit{first: first, runs: n, checkpoints: p.Checkpoints,
		metrics: len(m.metrics(&m.Cells[id.cell])), ends: m.ends(&m.Cells[id.cell])}
	u.data = make([]float64, 0, n*(u.metrics*len(p.Checkpoints)+u.ends))
	if _, err := hex.Decode(u.cell[:], []byte(c.Hash)); err != nil {
		return fmt.Errorf("%s: %w", c.Label(), err)
	}
	for run := first; run < first+n; run++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var loss privacy.Loss
		var err error
		if u.data, loss, err = p.play(ctx, c, run, r, u.data); err != nil {
			return err
		}
		u.loss = u.loss.Max(loss)
	}
	b, err := u.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Label(), err)
	}
	return o.write(filepath.Join(o.Out, unitsDir, unitName(c.Hash, id.block)), b)
}

// play plays one run: see player.
func (p *Resolved) play(ctx context.Context, c *Cell, run int, room *sim.Result, to []float64) ([]float64,
	privacy.Loss, error) {
	to, loss, err := p.kind.play(ctx, p, c, run, room, to)
	if err != nil {
		return nil, loss, fmt.Errorf("%s, run %d: %w", c.Label(), run, err)
	}
	return to, loss, nil
}

// progress counts finished runs and tells them on.
type progress struct {
	mu    sync.Mutex
	m     *Manifest
	tell  func(Step)
	cells []struct{ done, total int }
	step  Step
}

func newProgress(m *Manifest, units []unitID, tell func(Step)) *progress {
	p := &progress{m: m, tell: tell, cells: make([]struct{ done, total int }, len(m.Cells))}
	for _, u := range units {
		_, n := m.runsOf(u.block)
		p.cells[u.cell].total += n
		p.step.Total += n
	}
	return p
}

func (p *progress) skip(u unitID) {
	_, n := p.m.runsOf(u.block)
	p.cells[u.cell].done += n
	p.step.Done += n
}

func (p *progress) done(u unitID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skip(u)
	if p.tell != nil {
		p.step.Cell = p.m.Cells[u.cell].Label()
		p.step.CellDone, p.step.CellTotal = p.cells[u.cell].done, p.cells[u.cell].total
		p.tell(p.step)
	}
}
