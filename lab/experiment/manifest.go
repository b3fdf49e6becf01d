package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// A Manifest says what an output directory holds. It is written when a run begins, to claim the
// directory, and again when it ends.
type Manifest struct {
	Format      int             `json:"format"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Kind        string          `json:"kind,omitempty"` // one of Kinds; the file of KindRegret has none
	Spec        json.RawMessage `json:"spec"`           // the normal form; Parse reads it
	SpecHash    string          `json:"spec_hash"`      // of the spec and its cells
	Seed        uint64          `json:"seed"`
	Horizon     int             `json:"horizon"` // of KindStopping and KindIdentify the cap
	Runs        int             `json:"runs"`
	Block       int             `json:"block"` // runs in a unit
	Unclipped   bool            `json:"unclipped"`
	// some rewards are a log's: all of the directory is as private as it is
	Logged      bool        `json:"logged,omitempty"`
	Delay       string      `json:"delay,omitempty"`     // how late rewards are; empty: they come at once
	Intervals   float64     `json:"intervals,omitempty"` // confidence of those of each run; 0: none
	Checkpoints []int       `json:"checkpoints"`
	Build       build.Build `json:"build"`
	Mixed       bool        `json:"mixed,omitempty"` // merged from shards of different builds
	Shard       *Shard      `json:"shard,omitempty"` // nil: all of it
	Warnings    []string    `json:"warnings,omitempty"`
	// lower bounds to draw, if the experiment asks for them
	Bounds   []BoundLine `json:"bounds,omitempty"`
	Cells    []CellInfo  `json:"cells"`
	Started  time.Time   `json:"started"`
	Finished time.Time   `json:"finished,omitzero"` // zero: not finished

	fingerprint string // of the logs, if Logged: see fingerprintFile
}

// Plays says whether the directory is of this plan: the experiment, and the rewards of its logs.
func (m *Manifest) Plays(p *Resolved) bool {
	return m.SpecHash == p.Hash && m.fingerprint == p.fingerprint
}

// A CellInfo is a cell as the manifest has it.
type CellInfo struct {
	Instance string `json:"instance"`
	Policy   string `json:"policy"`
	Budget   string `json:"budget"`
	Hash     string `json:"hash"`
	// Beside is the budget of the experiment that this one, of the policy's own list, stands
	// beside; empty if it is the experiment's itself, or stands alone.
	Beside string `json:"beside,omitempty"`

	// of KindContextual the most that a round can have
	Arms    int    `json:"arms"`
	Dim     int    `json:"dim,omitempty"` // d, of KindLinear and KindContextual
	World   string `json:"world"`         // the instance's content and the declared range
	Catalog string `json:"catalog"`
	// Twin names the policy that this one is without privacy, of policies that are not Sotto's.
	Twin   string         `json:"twin,omitempty"`
	Params catalog.Params `json:"params,omitempty"`
	// model and noise, as in secagg/polya; empty: continuous noise from a server that is believed
	Trust   string `json:"trust,omitempty"`
	Assumes string `json:"assumes,omitempty"` // who has to be believed under Trust
	// Private says that the policy adds noise, and Guarantee what the catalog then says
	// about it. Loss is what the ledger charged the worst run, once the runs are there:
	// none, if it has no bound.
	Private   bool   `json:"private"`
	Guarantee string `json:"guarantee,omitempty"`
	Loss      string `json:"loss,omitempty"`

	// Clipped says that rewards are clipped to the declared range, and that regret is of the means
	// before. Unranked says why policies are not ranked by it.
	Clipped  bool   `json:"clipped,omitempty"`
	Unranked string `json:"unranked,omitempty"`

	Stopping *StoppingCell `json:"stopping,omitempty"` // of KindStopping
	Identify *IdentifyCell `json:"identify,omitempty"` // of KindIdentify
	// Gap is what the best choice of a round earns above a uniform one, of KindContextual with clicks.
	Gap float64 `json:"gap,omitempty"`
	// LowerBound is log T · Σ Δ_a/d_ε(μ_a, μ*) for Bernoulli arms at ε-DP, or none: see
	// bound.BernoulliRegret. It is asymptotic; 0 is no bound.
	LowerBound float64 `json:"lower_bound,omitempty"`
	// Intervals are what those of the runs were, by arm, once the runs are there.
	Intervals []ArmIntervals `json:"intervals,omitempty"`

	budget privacy.Budget // as a value; nil in one that a program has put together
}

// PrivacyBudget is the budget as a value: Budget is how it is printed.
func (c *CellInfo) PrivacyBudget() privacy.Budget {
	if c.budget != nil {
		return c.budget
	}
	b, err := privacy.ParseBudget(c.Budget)
	if err != nil { // ReadManifest refuses such a cell
		return privacy.None{}
	}
	return b
}

// Row is the budget of the experiment that the cell is compared at.
func (c *CellInfo) Row() string {
	if c.Beside != "" {
		return c.Beside
	}
	return c.Budget
}

// Label is instance / policy / budget.
func (c *CellInfo) Label() string { return c.Instance + " / " + c.Policy + " / " + c.Budget }

// A Shard is part I of N of the units, I from 0 to N−1.
type Shard struct {
	I int `json:"i"`
	N int `json:"n"`
}

// String is I/N.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.I, s.N) }

// Manifest is the plan as a manifest, without times.
func (p *Resolved) Manifest() *Manifest {
	s := &p.Spec
	m := &Manifest{
		Format: FormatVersion, Name: s.Name, Description: s.Description, Kind: s.Kind,
		Spec: p.normal, SpecHash: p.Hash, Seed: s.Seed,
		Horizon: p.Checkpoints[len(p.Checkpoints)-1], Runs: int(s.Runs), Block: p.Block,
		Unclipped: s.Unclipped, Delay: s.Delay.String(), Intervals: s.Intervals, Checkpoints: p.Checkpoints,
		Build: build.This(), Warnings: p.Warnings, Logged: p.fingerprint != "", fingerprint: p.fingerprint,
	}
	known := ownTwins(s.Kind)
	for i := range p.Cells {
		c := &p.Cells[i]
		info := CellInfo{Instance: c.Instance, Policy: c.Policy, Budget: c.Budget, budget: c.budget,
			Hash:   c.Hash,
			Beside: c.choice.beside[c.Budget], Arms: c.world.arms, Dim: c.world.dim, World: c.world.public,
			Catalog: c.choice.entry.Name, Params: c.choice.params, Private: c.choice.entry.Private,
			Clipped: c.world.clipped, Unranked: c.world.unranked}
		if _, own := known[info.Catalog]; !own {
			info.Twin = c.choice.entry.Twin
		}
		if info.Private {
			info.Guarantee = c.choice.entry.Guarantee
			if s.Unclipped {
				info.Guarantee = "none: rewards are not clipped"
			}
			if c.trust(0.5) != nil {
				info.Trust, info.Assumes = c.choice.trust.label(), c.choice.trust.assumes()
			}
		}
		p.kind.tell(s, c, &info)
		m.Cells = append(m.Cells, info)
	}
	if s.Bounds {
		m.Bounds, _ = p.boundLines() // what has none is among the warnings
	}
	return m
}

const manifestFile = "manifest.json"

// ReadManifest reads the manifest of an output directory.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s holds no %s, so no results: %w", ErrOutput, dir,
			manifestFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrOutput, path, err)
	}
	if m.Format != FormatVersion {
		return nil, fmt.Errorf("%w: %s is of format %d, this program reads format %d", ErrOutput,
			path, m.Format, FormatVersion)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrOutput, path, err)
	}
	if m.Logged { // a copy to be published has none
		b, err := os.ReadFile(filepath.Join(dir, fingerprintFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", ErrOutput, err)
		}
		m.fingerprint = strings.TrimSpace(string(b))
	}
	// Indentation is the file's, not the spec's.
	var compact bytes.Buffer
	if err := json.Compact(&compact, m.Spec); err == nil {
		m.Spec = compact.Bytes()
	}
	return m, nil
}

// kind is the experiment's: that of a file which does not say is one that ReadManifest refuses.
func (m *Manifest) kind() kind {
	if k, err := kindOf(m.Kind); err == nil {
		return k
	}
	return kinds()[0]
}

// check refuses a manifest that was edited into something that cannot be.
func (m *Manifest) check() error {
	k, err := kindOf(m.Kind)
	if err != nil {
		return fmt.Errorf("it says kind %q", keyed.Clip(m.Kind))
	}
	m.Kind = k.name()
	switch {
	case m.Runs < 1 || m.Runs > MaxRuns || m.Block < 1 || m.Block > MaxRuns:
		return fmt.Errorf("it says %d runs in blocks of %d", m.Runs, m.Block)
	case len(m.Checkpoints) == 0 || len(m.Checkpoints) > MaxPoints || len(m.Cells) == 0:
		return fmt.Errorf("it says %d checkpoints and %d cells", len(m.Checkpoints), len(m.Cells))
	case m.Shard != nil && (m.Shard.N < 1 || m.Shard.I < 0 || m.Shard.I >= m.Shard.N):
		return fmt.Errorf("it says shard %v", m.Shard)
	}
	if err := m.checkIntervals(); err != nil {
		return err
	}
	for _, b := range m.Bounds {
		if len(b.Regret) != len(m.Checkpoints) {
			return fmt.Errorf("it says %d values of the bound %q at %d checkpoints", len(b.Regret),
				keyed.Clip(b.Name), len(m.Checkpoints))
		}
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.budget, err = privacy.ParseBudget(c.Budget); err != nil {
			return fmt.Errorf("cell %s: %w", c.Label(), err)
		}
		if len(c.Hash) != 64 || strings.Trim(c.Hash, "0123456789abcdef") != "" {
			return fmt.Errorf("cell %s has the hash %q", c.Label(), keyed.Clip(c.Hash))
		}
		if err := k.checkTold(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) write(dir string, write writer) error {
	out := *m
	if out.Kind == KindRegret {
		out.Kind = "" // as in the normal form
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	// A list of numbers goes on one line. Text cannot look like one: it has no line breaks.
	b = numbers.ReplaceAllFunc(b, func(list []byte) []byte { return bytes.Join(bytes.Fields(list), nil) })
	if m.fingerprint != "" {
		if err := write(filepath.Join(dir, fingerprintFile), []byte(m.fingerprint+"\n")); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, manifestFile), append(b, '\n'))
}

// Mode is that of the directory's files, and Dir that of the directory.
func (m *Manifest) Mode() os.FileMode {
	if m.Logged {
		return 0o600
	}
	return 0o644
}

func (m *Manifest) dirMode() os.FileMode {
	if m.Logged {
		return 0o700
	}
	return 0o755
}

// writeFile writes a file of the directory in full or not at all.
func (m *Manifest) writeFile(path string, data []byte) error { return writeFile(path, data, m.Mode()) }

var numbers = regexp.MustCompile(`\[\n\s+[-+.0-9eE]+(,\n\s+[-+.0-9eE]+)*\n\s+\]`)

func (m *Manifest) blocks() int { return (m.Runs + m.Block - 1) / m.Block }

func (m *Manifest) runsOf(block int) (first, n int) {
	first = block * m.Block
	return first, min(m.Block, m.Runs-first)
}

// A unitID is a unit by the place of its cell and its block.
type unitID struct{ cell, block int }

// unitsOf lists the units of a shard, in order; those of the whole if it is nil. Units are dealt
// out one by one, so that every shard gets its part of every cell.
func (m *Manifest) unitsOf(s *Shard) []unitID {
	var out []unitID
	i := 0
	for c := range m.Cells {
		for b := range m.blocks() {
			if s == nil || i%s.N == s.I {
				out = append(out, unitID{c, b})
			}
			i++
		}
	}
	return out
}
