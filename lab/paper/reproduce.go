package paper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
)

//go:embed settings
var embedded embed.FS

// ErrOutput is matched when an output directory cannot be used: it holds something else, or another
// preset. It matches experiment.ErrOutput too.
var ErrOutput = fmt.Errorf("reproduction: %w", experiment.ErrOutput)

// ErrData is matched when Data cannot be used.
var ErrData = errors.New("real data")

// Options say how to reproduce. None but Preset changes a number in what is found.
type Options struct {
	Out     string // output directory; it is made if it is not there
	Preset  Preset
	Workers int  // 0: one a processor
	Mixed   bool // go on with another build than the one that began
	// Data is a directory with real data: its CSV files replace those of the same name beside the
	// settings, and what a figure's Real finds in it is played. Empty: there are none, samples are
	// played, and pages say so.
	Data string
	// Flags are those of the command line that pages show beside --preset, such as --out DIR; they
	// change nothing else.
	Flags string
	// DataFlag is --data DIR likewise, on the pages of what was played on real data.
	DataFlag string
	// Seeds is how often the figures are played again after that, each time with other seeds, from
	// what decides a claim: Replays, and seeds.csv, have which verdicts moved.
	Seeds int
	// Progress is told what happens, one event at a time; nil tells nobody.
	Progress func(Event)

	settings fs.FS             // for tests; nil: the settings of this package
	real     map[string]string // files of Data, by the names they replace
}

// An Event is one step of a reproduction.
type Event struct {
	Figure     string
	I, N       int                  // the figure is the I-th of N, from 1
	Experiment string               // that it is about; empty: the figure
	Plan       *experiment.Resolved // the experiment begins
	Step       *experiment.Step     // the experiment goes on
	Done       *Result              // the figure is finished
	Replay     int                  // the figure is finished with the seeds of this replay, from 1
	Moved      int                  // verdicts that are others then
}

// An Outcome is a claim and what was found of it.
type Outcome struct {
	// of the figure and the claim: thesis-5.2/slope
	ID                                         string
	Text, Where, Statistic, Proof, Why, Reader string
	Verdict                                    Verdict
	Finding
}

// A FigureRun is one of the experiments of a figure as it was played.
type FigureRun struct {
	Name, File    string
	Played        bool // else the preset leaves it out
	YAML          string
	Seed          uint64
	Runs, Horizon int // of a cell
	Cells         int
	Warnings      []string
	Void          bool // some cells promised privacy and have no guarantee
	Sampled       bool // a sample stood for the source's data
}

// A Result is what came of a figure. It is kept beside the figure's data.
type Result struct {
	ID, Source, Where, Title string
	About, Chosen, Voids     string
	Settings                 []FigureRun
	Outcomes                 []Outcome
	Notes                    []string // of the data and the computation
	Real                     bool     // real data was played
	Failed                   string   // what went wrong with the figure as a whole; empty: nothing
	Runs                     float64  // of all cells of all experiments
	Time                     Time
	Decides                  parts // policies of experiments that claims follow from; with Seeds
}

// Time is what a figure took, over all sessions that worked on it.
type Time struct {
	Seconds float64 `json:"seconds"`        // of the clock
	Playing float64 `json:"playing"`        // of these, in experiments
	Worker  float64 `json:"worker_seconds"` // Playing, times the workers at the time
	// Experiments has the part of each in Playing, by name.
	Experiments map[string]float64 `json:"experiments,omitempty"`
}

// A Reproduction is what Reproduce found.
type Reproduction struct {
	Dir    string
	Preset Preset
	Flags  string // of the command on pages
	// DataFlag is that of the command on pages of real data.
	DataFlag string
	Build    build.Build
	Mixed    bool     // more than one build had a part
	Real     bool     // there was a directory with real data
	Results  []Result // of the figures that were asked for, in that order
	All      []Result // of all figures in the directory, by source and ID
	Left     []string // IDs that were not reached, since it was stopped
	// Replays are the claims of Results whose numbers a fresh seed changes, if there are Seeds.
	Replays []Replayed
}

// Count is how many claims have a verdict.
func (r *Reproduction) Count(v Verdict) int { return countOf(v, r.Results...) }

func countOf(v Verdict, results ...Result) (n int) {
	for i := range results {
		n += results[i].Count(v)
	}
	return n
}

// Failed are the IDs of figures that something went wrong with.
func (r *Reproduction) Failed() []string {
	var out []string
	for i := range r.Results {
		if f := &r.Results[i]; f.wrong() {
			out = append(out, f.ID)
		}
	}
	return out
}

// wrong says that the figure, or a check of it, had an error.
func (r *Result) wrong() bool { return r.Failed != "" || r.Count(Errored) > 0 }

// Count is how many claims have a verdict.
func (r *Result) Count(v Verdict) int {
	n := 0
	for i := range r.Outcomes {
		if r.Outcomes[i].Verdict == v {
			n++
		}
	}
	return n
}

// Reproduce plays figures into a directory, decides their claims, and writes a site (index.html)
// and claims.csv there.
//
// What is there already of the same preset and build is not played again: a cancelled context stops
// it promptly, with an error that matches the context's, and the same call goes on. Other figures
// in the directory stay, and stay on the index. An error in one figure is told on its page, in its
// Result and in Failed; the others are played all the same.
func Reproduce(ctx context.Context, figures []Figure, o Options) (*Reproduction, error) {
	if err := check(figures); err != nil {
		return nil, err
	}
	switch {
	case o.Out == "":
		return nil, fmt.Errorf("%w: none is given", ErrOutput)
	case o.Preset != Quick && o.Preset != Full:
		return nil, fmt.Errorf("preset is %q, must be %s or %s", o.Preset, Quick, Full)
	case o.Workers < 0:
		return nil, fmt.Errorf("workers is %d, must be at least 1, or 0 for one a processor", o.Workers)
	case o.Seeds < 0 || o.Seeds > MaxSeeds:
		return nil, fmt.Errorf("seeds is %d, must be from 0 to %d", o.Seeds, MaxSeeds)
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.settings == nil {
		sub, err := fs.Sub(embedded, "settings")
		if err != nil {
			return nil, err
		}
		o.settings = sub
	}
	var err error
	if figures, err = onRealFiles(figures, &o); err != nil {
		return nil, err
	}
	s, err := claimDir(&o)
	if err != nil {
		return nil, err
	}
	if err := unpack(o.settings, filepath.Join(o.Out, "settings"), o.real); err != nil {
		return nil, err
	}
	r := &Reproduction{Dir: o.Out, Preset: o.Preset, Flags: o.Flags, Build: s.Build, Mixed: s.Mixed,
		Real: o.Data != "", DataFlag: o.DataFlag}
	for i := range figures {
		f := &figures[i]
		p := player{figure: f, o: &o, dir: filepath.Join(o.Out, "data", f.ID), tell: func(e Event) {
			e.Figure, e.I, e.N = f.ID, i+1, len(figures)
			o.Progress(e)
		}}
		result, err := p.play(ctx)
		if ctx.Err() != nil {
			for _, f := range figures[i:] {
				r.Left = append(r.Left, f.ID)
			}
			if err := r.write(o.Out); err != nil {
				return nil, err
			}
			return r, stopped(ctx)
		}
		if err != nil { // of the disk, not of the figure
			return nil, err
		}
		r.Results = append(r.Results, *result)
		p.tell(Event{Done: result})
		// The index is whole after every figure, also if the next one takes an hour.
		if i < len(figures)-1 {
			r.Left = r.Left[:0]
			for _, f := range figures[i+1:] {
				r.Left = append(r.Left, f.ID)
			}
		} else {
			r.Left = nil
		}
		if err := r.write(o.Out); err != nil {
			return nil, err
		}
	}
	if len(figures) == 0 {
		return r, r.write(o.Out)
	}
	return r, r.replay(ctx, figures, &o)
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped; what is finished is kept, and the same command goes on: %w", ctx.Err())
}

var names = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9.-]*$`)

// check refuses figures whose names cannot be files, or are not unique.
func check(figures []Figure) error {
	seen := map[string]bool{}
	for i := range figures {
		f := &figures[i]
		switch {
		case !names.MatchString(f.ID):
			return fmt.Errorf("figure %q: its ID must be of letters, digits, '.' and '-'", f.ID)
		case f.ID == "index" || strings.HasPrefix(f.ID, "source-"):
			return fmt.Errorf("figure %q: its ID is the name of another page", f.ID)
		case !names.MatchString(f.Source):
			return fmt.Errorf("figure %s: source %q must be of letters, digits, '.' and '-'", f.ID, f.Source)
		case seen[f.ID]:
			return fmt.Errorf("figure %s: is there twice", f.ID)
		}
		seen[f.ID] = true
		inner := map[string]bool{}
		for _, e := range f.Experiments {
			if !names.MatchString(e.Name) || inner[e.Name] {
				return fmt.Errorf("figure %s: experiment %q: names must be unique, of letters, "+
					"digits, '.' and '-'", f.ID, e.Name)
			}
			inner[e.Name] = true
		}
		inner = map[string]bool{}
		for _, c := range f.Claims {
			if !names.MatchString(c.ID) || inner[c.ID] {
				return fmt.Errorf("figure %s: claim %q: IDs must be unique, of letters, digits, "+
					"'.' and '-'", f.ID, c.ID)
			}
			inner[c.ID] = true
			if err := c.checkMeaning(); err != nil {
				return fmt.Errorf("figure %s: claim %s: %w", f.ID, c.ID, err)
			}
		}
	}
	return nil
}

// An UnknownError says that there is no figure, source or prefix of a name.
type UnknownError struct {
	Name  string
	Known []string // the IDs there are
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%q is no figure, no source and begins no figure's ID: there are %s", e.Name,
		strings.Join(e.Known, ", "))
}

// Select are the figures of names, in the order of figures: a name is an ID, a source, or how IDs
// begin. No names are all figures. The error is an *UnknownError.
func Select(figures []Figure, wanted []string) ([]Figure, error) {
	if len(wanted) == 0 {
		return figures, nil
	}
	chosen := make([]bool, len(figures))
	for _, name := range wanted {
		found := false
		for _, match := range []func(f *Figure) bool{
			func(f *Figure) bool { return f.ID == name },
			func(f *Figure) bool { return f.Source == name },
			func(f *Figure) bool { return name != "" && strings.HasPrefix(f.ID, name) },
		} {
			for i := range figures {
				if match(&figures[i]) {
					chosen[i], found = true, true
				}
			}
			if found {
				break
			}
		}
		if !found {
			e := &UnknownError{Name: name}
			for i := range figures {
				e.Known = append(e.Known, figures[i].ID)
			}
			return nil, e
		}
	}
	var out []Figure
	for i := range figures {
		if chosen[i] {
			out = append(out, figures[i])
		}
	}
	return out, nil
}

// state is reproduction.json, by which a directory is known.
type state struct {
	Format int         `json:"format"`
	Preset Preset      `json:"preset"`
	Build  build.Build `json:"build"`
	Mixed  bool        `json:"mixed,omitempty"`
}

const stateFile = "reproduction.json"

// claimDir makes the directory this reproduction's, or says why not.
func claimDir(o *Options) (*state, error) {
	fail := func(format string, args ...any) (*state, error) {
		return nil, fmt.Errorf("%w %s: "+format, append([]any{ErrOutput, o.Out}, args...)...)
	}
	s := &state{Format: 1, Preset: o.Preset, Build: build.This()}
	path := filepath.Join(o.Out, stateFile)
	entries, err := os.ReadDir(o.Out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fail("%w", err)
	case len(entries) > 0:
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fail("it is not empty, and it holds no reproduction: choose another directory with --out")
		}
		if err != nil {
			return fail("%w", err)
		}
		old := &state{}
		if err := json.Unmarshal(b, old); err != nil || old.Format != 1 {
			return fail("its %s is none of this program's: choose another directory with --out", stateFile)
		}
		switch {
		case old.Preset != o.Preset:
			return fail("it holds a reproduction at preset %s, not %s: choose another directory "+
				"with --out", old.Preset, o.Preset)
		case old.Build != s.Build && !o.Mixed:
			return fail("it was begun by another build (%v) than this one (%v), whose numbers "+
				"may differ: choose another directory with --out, or go on with --mixed", old.Build, s.Build)
		}
		s.Mixed = old.Mixed || old.Build != s.Build
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fail("%w", err)
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return s, writeFile(path, append(b, '\n'))
}

// onRealFiles are the figures as they are on what Data holds.
func onRealFiles(figures []Figure, o *Options) ([]Figure, error) {
	if o.Data == "" {
		return figures, nil
	}
	samples, err := fs.Glob(o.settings, "*.csv")
	if err != nil {
		return nil, err
	}
	if o.real, err = realData(samples, o.Data); err != nil {
		return nil, err
	}
	figures = slices.Clone(figures)
	found := len(o.real)
	for i := range figures {
		real := figures[i].Real
		if real == nil {
			continue
		}
		f, err := real(o.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrData, figures[i].ID, err)
		}
		if f != nil {
			figures[i] = *f
			found++
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("%w: %s has nothing that these figures play: neither %s nor, for "+
			"thesis-7.2, the training files of Fashion-MNIST",
			ErrData, o.Data, strings.Join(samples, ", "))
	}
	return figures, check(figures)
}

// realData are the files of a directory that stand for samples.
func realData(samples []string, dir string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range samples {
		path := filepath.Join(dir, name)
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrData, err)
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%w: %s is no regular file", ErrData, path)
		default:
			out[name] = path
		}
	}
	return out, nil
}

// unpack writes settings, and the data that they name, into a directory. Files of real replace
// those of their names.
func unpack(from fs.FS, to string, real map[string]string) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if d.IsDir() {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return fmt.Errorf("%w %s: %w", ErrOutput, to, err)
			}
			return nil
		}
		b, err := fs.ReadFile(from, name)
		if other, ok := real[name]; ok {
			b, err = os.ReadFile(other)
		}
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
			return nil
		}
		return writeFile(path, b)
	})
}

func writeFile(path string, b []byte) error {
	if err := atomicfile.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// player plays one figure.
type player struct {
	figure *Figure
	o      *Options
	dir    string // of its data
	time   Time
	tell   func(Event)

	replay  int   // whose seeds are played; 0: those that are printed
	decides parts // of a replay: all that is played
}

const timeFile = "time.json"

// play makes the figure's page and its result. The error is of the disk, or the context's; what
// goes wrong with the figure is in the result.
func (p *player) play(ctx context.Context) (*Result, error) {
	f := p.figure
	r := &Result{ID: f.ID, Source: f.Source, Where: f.Where, Title: f.Title, About: f.About,
		Chosen: f.Chosen, Voids: f.Voids}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrOutput, p.dir, err)
	}
	if b, err := os.ReadFile(filepath.Join(p.dir, timeFile)); err == nil && json.Unmarshal(b, &p.time) != nil {
		p.time = Time{} // a time is worth no error
	}
	evidence, err := p.evidence(ctx, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		r.Failed = err.Error()
	}
	for _, c := range f.Claims {
		o := Outcome{
			ID: f.ID + "/" + c.ID, Text: c.Text, Where: c.Where, Statistic: c.Statistic,
			Proof: c.Proof, Why: c.Why, Reader: c.Reader,
		}
		if o.Where == "" {
			o.Where = f.Where
		}
		o.Where = passage(f.Source, o.Where, f.Where)
		switch {
		case err != nil:
			o.Finding, o.Verdict = nothing("", "the figure could not be played"), Errored
		default:
			o.Finding, o.Verdict = decide(&c, evidence)
		}
		if o.Verdict == NotTested { // advice is for what was found
			o.Reader = ""
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	if p.o.Seeds > 0 && err == nil {
		r.Decides = deciding(f, evidence)
	}
	var d drawn
	if err == nil {
		if d, err = draw(f, evidence); err != nil {
			r.Failed = "its figures: " + err.Error()
		}
	}
	r.Time = p.time
	page, err := figurePage(r, d, p.o.Preset, flagsOf(p.o.Flags, p.o.DataFlag, *r))
	if err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(p.o.Out, f.ID+".html"), page); err != nil {
		return nil, err
	}
	if err := p.saveFigures(d.figures); err != nil {
		return nil, err
	}
	return r, writeGob(filepath.Join(p.dir, resultFile), r)
}

// flagsOf are the flags of a command line that plays these figures again.
func flagsOf(flags, data string, figures ...Result) string {
	if data == "" || !slices.ContainsFunc(figures, func(r Result) bool { return r.Real }) {
		return flags
	}
	return strings.TrimSpace(flags + " " + data)
}

// saveFigures puts the page's figures into files too, for whoever wants to show one elsewhere. What
// cannot be drawn is told on the page.
func (p *player) saveFigures(figures []report.Figure) error {
	dir := filepath.Join(p.dir, "figures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%w %s: %w", ErrOutput, dir, err)
	}
	for _, f := range figures {
		var wide, narrow bytes.Buffer
		if f.WriteSVG(&wide) != nil || f.WriteNarrowSVG(&narrow) != nil {
			continue
		}
		if err := writeFile(filepath.Join(dir, f.ID+".svg"), wide.Bytes()); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.ID+"-narrow.svg"), narrow.Bytes()); err != nil {
			return err
		}
		about, numbers, err := dataOf(f)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.ID+".json"), about); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, f.ID+".csv"), numbers); err != nil {
			return err
		}
	}
	return nil
}

const (
	resultFile  = "figure.gob"
	numbersFile = "numbers.gob"
)

// evidence plays the experiments and computes what is computed.
func (p *player) evidence(ctx context.Context, r *Result) (*Evidence, error) {
	e := &Evidence{Preset: p.o.Preset, Experiments: map[string]*experiment.Results{},
		Sampled: map[string]bool{}}
	for i := range p.figure.Experiments {
		x := &p.figure.Experiments[i]
		r.Settings = append(r.Settings, FigureRun{Name: x.Name, File: x.File})
		if p.o.Preset == Quick && x.Quick == nil || p.replay > 0 && len(p.decides[x.Name]) == 0 {
			continue
		}
		results, err := p.experiment(ctx, x, r, &r.Settings[i])
		if err != nil {
			return nil, fmt.Errorf("experiment %s: %w", x.Name, err)
		}
		e.Experiments[x.Name], e.Sampled[x.Name] = results, r.Settings[i].Sampled
		r.Settings[i].Cells = len(results.Cells)
		r.Runs += float64(len(results.Cells) * results.Manifest.Runs)
	}
	if p.figure.Compute != nil {
		n, err := p.compute(ctx)
		if err != nil {
			return nil, fmt.Errorf("computation: %w", err)
		}
		e.Numbers, r.Notes = n, append(r.Notes, n.Notes...)
		r.Real = r.Real || p.figure.Data != ""
	}
	return e, nil
}

func (p *player) experiment(ctx context.Context, x *Experiment, r *Result,
	s *FigureRun) (*experiment.Results, error) {
	spec, err := experiment.Reader{}.Read(filepath.Join(p.o.Out, "settings", filepath.FromSlash(x.File)))
	if err != nil {
		return nil, err
	}
	if p.o.Preset == Quick {
		x.Quick(spec)
	}
	plan, err := spec.Resolve()
	if err != nil {
		return nil, err
	}
	if p.replay > 0 {
		spec.Seed = freshSeed(spec.Seed, p.replay)
		keep(spec, plan, p.decides[x.Name])
		if plan, err = spec.Resolve(); err != nil {
			return nil, err
		}
	}
	text, err := plan.Spec.YAML()
	if err != nil {
		return nil, err
	}
	for _, in := range spec.Instances {
		if in.CSV == "" {
			continue
		}
		note := "no real data was given: " + in.CSV + " is the sample that comes with Sotto, and " +
			"--data DIR plays another file of this name."
		if path, ok := p.o.real[in.CSV]; !ok {
			s.Sampled = true
		} else {
			note, r.Real = "real data: "+in.CSV+" is "+path+".", true
		}
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
	dir := filepath.Join(p.dir, x.Name)
	p.tell(Event{Experiment: x.Name, Plan: plan})
	results := finished(dir, plan, p.o.Mixed)
	if results == nil {
		from := time.Now()
		results, err = plan.Run(ctx, experiment.Options{Out: dir, Workers: p.o.Workers,
			Resume: true, Mixed: p.o.Mixed, Progress: func(step experiment.Step) {
				p.tell(Event{Experiment: x.Name, Step: &step})
			}})
		took := time.Since(from).Seconds()
		workers := p.o.Workers
		if workers == 0 {
			workers = runtime.GOMAXPROCS(0)
		}
		if err := errors.Join(err, p.spend(Time{Seconds: took, Playing: took,
			Worker: took * float64(workers), Experiments: map[string]float64{x.Name: took}})); err != nil {
			return nil, err
		}
	}
	if p.replay == 0 {
		if err := results.Draw(dir); err != nil {
			return nil, err
		}
	}
	m := results.Manifest
	s.Played, s.YAML, s.Seed, s.Runs, s.Horizon, s.Warnings = true, string(text), m.Seed, m.Runs,
		m.Horizon, m.Warnings
	for i := range results.Cells {
		c := &results.Cells[i]
		s.Void = s.Void || m.Unclipped && c.Private && c.Budget != "none"
	}
	return results, nil
}

// finished are the results in a directory that has all of the plan; nil if it has not, or if
// something there is damaged: playing it again mends that.
func finished(dir string, plan *experiment.Resolved, mixed bool) *experiment.Results {
	m, err := experiment.ReadManifest(dir)
	if err != nil || m.Finished.IsZero() || m.Shard != nil || !m.Plays(plan) ||
		m.Build != build.This() && !mixed {
		return nil
	}
	r, err := experiment.Load(dir)
	if err != nil {
		return nil
	}
	return r
}

// spend adds time, and keeps it.
func (p *player) spend(t Time) error {
	p.time.Seconds += t.Seconds
	p.time.Playing += t.Playing
	p.time.Worker += t.Worker
	for name, took := range t.Experiments {
		if p.time.Experiments == nil {
			p.time.Experiments = map[string]float64{}
		}
		p.time.Experiments[name] += took
	}
	b, err := json.Marshal(p.time)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(p.dir, timeFile), append(b, '\n'))
}

// kept is a computation as it is kept.
type kept struct {
	Key     string
	Data    string // of Figure
	Numbers Numbers
}

// compute is the computation, or what is kept of it from before.
func (p *player) compute(ctx context.Context) (*Numbers, error) {
	path := filepath.Join(p.dir, numbersFile)
	key, err := programKey()
	if err != nil {
		return nil, err
	}
	key = string(p.o.Preset) + " " + key
	var old kept
	if err := readGob(path, &old); err == nil && old.Data == p.figure.Data && (old.Key == key || p.o.Mixed) {
		return &old.Numbers, nil
	}
	if p.replay > 0 { // what is exact is taken as it was found
		base := filepath.Join(p.o.Out, "data", p.figure.ID, numbersFile)
		if err := readGob(base, &old); err == nil && !old.Numbers.Random && (old.Key == key || p.o.Mixed) {
			return &old.Numbers, nil
		}
	}
	from := time.Now()
	n, err := p.figure.Compute.of(ctx, p.o.Preset, p.replay)
	if err := errors.Join(err, p.spend(Time{Seconds: time.Since(from).Seconds()})); err != nil {
		return nil, err
	}
	if err := writeGob(path, kept{key, p.figure.Data, *n}); err != nil {
		return nil, err
	}
	// Read back, so that a run that was stopped and one that was not see the same.
	var again kept
	if err := readGob(path, &again); err != nil {
		return nil, err
	}
	return &again.Numbers, nil
}

// programKey tells programs apart whose computations may differ: by the build, and by the binary
// itself if the build's commit does not say it all.
func programKey() (string, error) {
	b := build.This()
	if b.Commit != "" && !b.Modified && b.Program == "" {
		return b.String(), nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	return b.String() + " " + hex.EncodeToString(h.Sum(nil)), nil
}

func writeGob(path string, v any) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, b.Bytes())
}

func readGob(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return gob.NewDecoder(f).Decode(v)
}

// drawn is what a page shows beside the claims.
type drawn struct {
	figures []report.Figure
	tables  []report.Table
}

// draw is the figure's own choice, or what package report makes of each experiment, and
// what was computed.
func draw(f *Figure, e *Evidence) (d drawn, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case ended:
			err = x.error
		default:
			err = fmt.Errorf("drawing broke: %v", x)
		}
	}()
	if f.Draw != nil {
		d.figures, d.tables = f.Draw(e)
		return d, nil
	}
	for _, x := range f.Experiments {
		r, ok := e.Experiments[x.Name]
		if !ok {
			continue
		}
		page, err := r.Report()
		if err != nil {
			return d, err
		}
		several := len(e.Experiments) > 1
		for _, t := range page.Tables {
			if several {
				t.Title = x.Name + ": " + t.Title
			}
			d.tables = append(d.tables, t)
		}
		for _, g := range page.Figures {
			if f.Show != nil && !f.Show(x.Name, g.ID) {
				continue
			}
			if several {
				g.ID = report.Stem(x.Name + "-" + g.ID)
			}
			d.figures = append(d.figures, g)
		}
	}
	if e.Numbers != nil {
		d.figures = append(d.figures, e.Numbers.Figures...)
		d.tables = append(d.tables, e.Numbers.Tables...)
	}
	return d, nil
}

// write makes the index, the pages of sources and claims.csv of all figures in the directory.
func (r *Reproduction) write(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w %s: %w", ErrOutput, dir, err)
	}
	r.All = r.All[:0]
	for _, e := range entries {
		var f Result
		err := readGob(filepath.Join(dir, "data", e.Name(), resultFile), &f)
		switch {
		case errors.Is(err, fs.ErrNotExist): // not finished
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", filepath.Join(dir, "data", e.Name(), resultFile), err)
		}
		r.All = append(r.All, f)
	}
	slices.SortFunc(r.All, func(a, b Result) int {
		if a.Source != b.Source {
			return strings.Compare(a.Source, b.Source)
		}
		return natural(a.ID, b.ID)
	})
	var csv bytes.Buffer
	if err := WriteClaims(&csv, r.All); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "claims.csv"), csv.Bytes()); err != nil {
		return err
	}
	pages, err := r.pages()
	if err != nil {
		return err
	}
	for _, p := range pages {
		if err := writeFile(filepath.Join(dir, p.name), p.text); err != nil {
			return err
		}
	}
	return nil
}

// natural compares names so that 5.2 comes before 5.10.
func natural(a, b string) int {
	number := func(s string) int {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return n
	}
	for a != "" && b != "" {
		i, j := number(a), number(b)
		if i == 0 || j == 0 {
			if a[0] != b[0] {
				return strings.Compare(a[:1], b[:1])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		a, b = a[i:], b[j:]
	}
	return len(a) - len(b)
}
