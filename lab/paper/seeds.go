package paper

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// MaxSeeds is the largest number of replays.
const MaxSeeds = 1000

// freshSeed is a seed of a replay: all seeds move by the same distance, so that experiments and
// computations that share a seed, and with it their worlds, share the fresh one.
func freshSeed(printed uint64, replay int) uint64 { return printed + uint64(replay)<<32 }

// A Replayed is a claim whose numbers the seed changes, and what replays with fresh seeds found of it.
type Replayed struct {
	ID     string
	Preset Preset
	Found  string   // with the seeds that are printed: the verdict; of our findings, the answer too
	Seeds  int      // replays
	Moved  int      // of these, replays that found something else
	To     []string // what they found, each once, in the order of the seeds
}

const (
	seedsFile = "seeds.csv"
	againFile = "found.gob"
)

// A decided is what one replay found of the claims of a figure, in their order.
type decided struct {
	Key   string // of the program and the preset
	Data  string // of Figure
	Found []foundAgain
}

type foundAgain struct{ Verdict, Finding string }

// said is what must not move: the verdict, or the answer where there is no verdict.
func said(v Verdict, f Finding) string {
	if v == OurFinding {
		return string(v) + ": " + string(f.Answer)
	}
	return string(v)
}

// foundText is a finding as text, by which equal ones are told.
func foundText(f Finding) string { return fmt.Sprint(f.Answer, f.Value, f.Low, f.High, f.Runs) }

// replay plays figures again with fresh seeds: what decides a claim, and nothing else. What a
// replay found of a figure is kept, so that the same call goes on.
func (r *Reproduction) replay(ctx context.Context, figures []Figure, o *Options) error {
	if o.Seeds == 0 {
		return nil
	}
	all, err := r.replaysOf(o)
	if err != nil {
		return err
	}
	for k := 1; k <= o.Seeds; k++ {
		for i := range figures {
			f, base := &figures[i], &r.Results[i]
			if base.Failed != "" {
				continue
			}
			p := player{figure: f, o: o, dir: replayDir(o, k, f.ID), replay: k, decides: base.Decides,
				tell: func(Event) {}}
			again, err := p.again(ctx)
			if ctx.Err() != nil {
				return stopped(ctx)
			}
			if err != nil {
				return err
			}
			all[f.ID][k] = again
			moved := 0
			for j, found := range again {
				if found.Verdict != said(base.Outcomes[j].Verdict, base.Outcomes[j].Finding) {
					moved++
				}
			}
			o.Progress(Event{Figure: f.ID, I: i + 1, N: len(figures), Replay: k, Moved: moved})
			r.Replays = replayed(r.All, all, o.Preset)
			var b bytes.Buffer
			if err := WriteSeeds(&b, r.Replays); err != nil {
				return err
			}
			if err := writeFile(filepath.Join(o.Out, seedsFile), b.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Moved says of how many verdicts that replays found, of claims whose numbers the seed changes, how
// many are others than with the seeds that are printed.
func (r *Reproduction) Moved() (verdicts, moved int) {
	for _, x := range r.Replays {
		verdicts, moved = verdicts+x.Seeds, moved+x.Moved
	}
	return verdicts, moved
}

// replays are what replays found of the claims of a figure, by its ID and the number of the replay.
type replays map[string]map[int][]foundAgain

func replayDir(o *Options, k int, figure string) string {
	return filepath.Join(o.Out, "seeds", strconv.Itoa(k), figure)
}

// replaysOf are those that a directory holds of this program.
func (r *Reproduction) replaysOf(o *Options) (replays, error) {
	key, err := againKey(o)
	if err != nil {
		return nil, err
	}
	out := replays{}
	for i := range r.All {
		f := &r.All[i]
		out[f.ID] = map[int][]foundAgain{}
		for k := 1; k <= MaxSeeds; k++ {
			var old decided
			err := readGob(filepath.Join(replayDir(o, k, f.ID), againFile), &old)
			if err == nil && len(old.Found) == len(f.Outcomes) && (old.Key == key || o.Mixed) {
				out[f.ID][k] = old.Found
			}
		}
	}
	return out, nil
}

// againKey tells apart programs and presets whose replays may differ.
func againKey(o *Options) (string, error) {
	key, err := programKey()
	return string(o.Preset) + " " + key, err
}

// replayed says of each claim whose numbers a seed has changed how often its verdict moved.
func replayed(results []Result, of replays, p Preset) (out []Replayed) {
	for i := range results {
		for j := range results[i].Outcomes {
			c := &results[i].Outcomes[j]
			x := Replayed{ID: c.ID, Preset: p, Found: said(c.Verdict, c.Finding)}
			random := false
			for _, k := range slices.Sorted(maps.Keys(of[results[i].ID])) {
				again := of[results[i].ID][k][j]
				x.Seeds++
				random = random || again.Finding != foundText(c.Finding)
				if again.Verdict != x.Found {
					x.Moved++
					if !slices.Contains(x.To, again.Verdict) {
						x.To = append(x.To, again.Verdict)
					}
				}
			}
			if random {
				out = append(out, x)
			}
		}
	}
	return out
}

// again is what a replay finds of the figure's claims. What was played for it is not kept: its
// seed makes it again.
func (p *player) again(ctx context.Context) ([]foundAgain, error) {
	key, err := againKey(p.o)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(p.dir, againFile)
	var old decided
	if err := readGob(path, &old); err == nil && len(old.Found) == len(p.figure.Claims) &&
		old.Data == p.figure.Data && (old.Key == key || p.o.Mixed) {
		return old.Found, nil
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrOutput, p.dir, err)
	}
	evidence, err := p.evidence(ctx, &Result{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	now := decided{Key: key, Data: p.figure.Data}
	for i := range p.figure.Claims {
		if err != nil {
			now.Found = append(now.Found, foundAgain{Verdict: string(Errored), Finding: err.Error()})
			continue
		}
		f, v := decide(&p.figure.Claims[i], evidence)
		now.Found = append(now.Found, foundAgain{said(v, f), foundText(f)})
	}
	if err := writeGob(path, now); err != nil {
		return nil, err
	}
	for i := range p.figure.Experiments {
		if err := os.RemoveAll(filepath.Join(p.dir, p.figure.Experiments[i].Name)); err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrOutput, p.dir, err)
		}
	}
	if err := os.Remove(filepath.Join(p.dir, numbersFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w %s: %w", ErrOutput, p.dir, err)
	}
	return now.Found, nil
}

// parts are the policies of experiments that some claim follows from.
type parts map[string][]string

// deciding are the parts of an experiment without which some claim would be found otherwise, or
// found by other numbers. Each is left out in turn; if what is left does not find the same
// together, everything decides.
func deciding(f *Figure, e *Evidence) parts {
	all := parts{}
	for name, r := range e.Experiments {
		all[name] = policiesOf(r)
	}
	same := checked(f, e)
	out := parts{}
	for name, policies := range all {
		if checked(f, e.only(all.without(name, policies...))) == same {
			continue
		}
		for _, policy := range policies {
			if checked(f, e.only(all.without(name, policy))) != same {
				out[name] = append(out[name], policy)
			}
		}
	}
	if checked(f, e.only(out)) != same {
		return all
	}
	return out
}

// checked is what all checks of the figure find, as text.
func checked(f *Figure, e *Evidence) string {
	var b strings.Builder
	for i := range f.Claims {
		c := &f.Claims[i]
		for _, check := range []Check{c.Decide, c.Weaker, c.Stronger} {
			if check == nil {
				continue
			}
			alone := Claim{Decide: check, Own: true}
			found, v := decide(&alone, e)
			fmt.Fprintln(&b, v, foundText(found), found.Detail)
		}
	}
	return b.String()
}

func policiesOf(r *experiment.Results) (out []string) {
	for i := range r.Cells {
		if c := r.Cells[i].Policy; !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// without leaves policies of an experiment out, and the experiment if it has no other.
func (p parts) without(name string, policies ...string) parts {
	out := parts{}
	for n, all := range p {
		if n == name {
			all = slices.DeleteFunc(slices.Clone(all), func(s string) bool {
				return slices.Contains(policies, s)
			})
		}
		if len(all) > 0 {
			out[n] = all
		}
	}
	return out
}

// only is the evidence of some of its parts.
func (e *Evidence) only(of parts) *Evidence {
	out := *e
	out.Experiments = map[string]*experiment.Results{}
	for name, policies := range of {
		r := *e.Experiments[name]
		r.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c experiment.CellResult) bool {
			return !slices.Contains(policies, c.Policy)
		})
		out.Experiments[name] = &r
	}
	return &out
}

// keep leaves policies of a spec out; those that stay keep their labels, by which checks find them.
// Rules of stopping all stay.
func keep(s *experiment.Spec, plan *experiment.Resolved, policies []string) {
	var labels []string
	for _, c := range plan.Cells {
		if !slices.Contains(labels, c.Policy) {
			labels = append(labels, c.Policy)
		}
	}
	if len(labels) != len(s.Policies) {
		return
	}
	var kept []experiment.Policy
	for i, p := range s.Policies {
		if slices.Contains(policies, labels[i]) {
			p.Name = labels[i]
			kept = append(kept, p)
		}
	}
	s.Policies = kept
}

// WriteSeeds writes seeds.csv: a line a claim whose numbers the seed changes, after a head.
func WriteSeeds(w io.Writer, of []Replayed) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"id", "preset", "found", "seeds", "moved", "to"}}
	for _, x := range of {
		rows = append(rows, []string{x.ID, string(x.Preset), x.Found, strconv.Itoa(x.Seeds),
			strconv.Itoa(x.Moved), strings.Join(x.To, "; ")})
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write seeds: %w", err)
	}
	return nil
}

// ReadSeeds reads what WriteSeeds writes.
func ReadSeeds(r io.Reader) (of []Replayed, err error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read seeds: %w", err)
	}
	for i, row := range rows {
		if len(row) != 6 {
			return nil, fmt.Errorf("read seeds: line %d has %d fields, must have 6", i+1, len(row))
		}
		if i == 0 {
			continue
		}
		x := Replayed{ID: row[0], Preset: Preset(row[1]), Found: row[2]}
		var err2 error
		x.Seeds, err = strconv.Atoi(row[3])
		x.Moved, err2 = strconv.Atoi(row[4])
		if err := cmp.Or(err, err2); err != nil || x.Moved < 0 || x.Seeds < max(1, x.Moved) {
			return nil, fmt.Errorf("read seeds: line %d has %q moved of %q, must be whole numbers, at "+
				"least 1 seed and no more moved than seeds", i+1, row[4], row[3])
		}
		if row[5] != "" {
			x.To = strings.Split(row[5], "; ")
		}
		of = append(of, x)
	}
	return of, nil
}

// recorded are the replays whose rate reproduction.md prints where a directory has none.
//
//go:embed seeds.csv
var recorded []byte

// seeds are the replays of a reproduction, or those that are recorded.
func (r *Reproduction) seeds() ([]Replayed, error) {
	if len(r.Replays) > 0 {
		return r.Replays, nil
	}
	return ReadSeeds(bytes.NewReader(recorded))
}

// seedsText says in Markdown how many verdicts moved, by preset, and which. There are so many pages.
func seedsText(of []Replayed, pages int) (lines []string) {
	for _, p := range []Preset{Full, Quick} {
		var claims, verdicts, moved, fewest, most, against int
		fewest = math.MaxInt
		var which []string
		on := map[string]bool{}
		for _, x := range of {
			if x.Preset != p {
				continue
			}
			claims, verdicts, moved = claims+1, verdicts+x.Seeds, moved+x.Moved
			fewest, most = min(fewest, x.Seeds), max(most, x.Seeds)
			page, _, _ := strings.Cut(x.ID, "/")
			on[page] = true
			if x.Moved > 0 {
				which = append(which, fmt.Sprintf("%s (%s; %d of %d: %s)", markdown(x.ID), x.Found,
					x.Moved, x.Seeds, strings.Join(x.To, ", ")))
			}
			if x.Moved > 0 && turned(x) {
				against++
			}
		}
		if claims == 0 {
			continue
		}
		seeds := words.Several(most, "fresh seed")
		if fewest < most {
			seeds = fmt.Sprintf("%d to %d fresh seeds", fewest, most)
		}
		lo, hi := share(moved, verdicts, 1)
		percent := func(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) }
		line := fmt.Sprintf("- Preset %s, %s: %s on %d of %s were decided again, and **%d of %s "+
			"verdicts moved: %s %%**, 99 %% interval from %s to %s %%, as if claims moved independently.",
			p, seeds, words.Several(claims, "claim"), len(on), words.Several(pages, "page"), moved,
			words.Whole(verdicts), percent(float64(moved)/float64(verdicts)), percent(lo), percent(hi))
		if len(which) > 0 {
			line += fmt.Sprintf(" Of the claims that moved, %d turned; the others were open with one "+
				"seed and decided with another: %s.", against, strings.Join(which, ", "))
		}
		lines = append(lines, line)
	}
	return lines
}

// turned says that a claim moved to something else than between decided and undecided.
func turned(x Replayed) bool {
	open := func(s string) bool {
		return s == string(NotTested) || s == said(OurFinding, Finding{Answer: Undecided})
	}
	return !open(x.Found) && slices.ContainsFunc(x.To, func(s string) bool { return !open(s) })
}
