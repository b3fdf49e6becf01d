package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Merge joins the shards of one experiment in dirs, given in any order, into out, which gets all
// their units and the outputs: the same bytes as from one run. Shards must be of the same
// experiment and of the same build, unless mixed; together they must be complete, or the error,
// which matches ErrShards, says what is missing.
func Merge(ctx context.Context, dirs []string, out string, mixed bool) (*Results, error) {
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w: none is given", ErrShards)
	}
	var m *Manifest
	var shards []*Manifest
	for _, dir := range dirs {
		s, err := ReadManifest(dir)
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
		if m == nil {
			first := *s
			m = &first
			m.Shard, m.Finished = nil, time.Time{}
			continue
		}
		if s.SpecHash != m.SpecHash {
			return nil, fmt.Errorf("%w: %s holds experiment %q and %s another one, %q (their "+
				"specifications differ)", ErrShards, dirs[0], m.Name, dir, s.Name)
		}
		if s.fingerprint != m.fingerprint {
			return nil, fmt.Errorf("%w: %s and %s have played other logged rewards, or one has "+
				"lost its %s, which tells", ErrShards, dirs[0], dir, fingerprintFile)
		}
		if s.Build != m.Build {
			if !mixed {
				return nil, fmt.Errorf("%w: %s was made by %v and %s by %v: numbers may differ "+
					"in the last bits; --mixed joins them anyway",
					ErrShards, dirs[0], m.Build, dir, s.Build)
			}
			m.Mixed = true
		}
		m.Mixed = m.Mixed || s.Mixed
		if s.Started.Before(m.Started) {
			m.Started = s.Started
		}
	}

	// Where each unit is, before anything is written.
	from := map[unitID]string{}
	var missing []unitID
	for _, id := range m.unitsOf(nil) {
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, unitsDir,
				unitName(m.Cells[id.cell].Hash, id.block))); err == nil {
				from[id] = dir
				break
			}
		}
		if from[id] == "" {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrShards, m.whatIsMissing(missing, shards))
	}
	if err := claim(out, m, true, mixed, m.writeFile); err != nil {
		return nil, err
	}
	for _, id := range m.unitsOf(nil) {
		if ctx.Err() != nil {
			return nil, stopped(ctx)
		}
		u, err := readUnit(from[id], m, &m.Cells[id.cell], id.block)
		if err != nil {
			return nil, err
		}
		b, err := u.encode()
		if err != nil {
			return nil, err
		}
		if err := m.writeFile(filepath.Join(out, unitsDir,
			unitName(m.Cells[id.cell].Hash, id.block)), b); err != nil {
			return nil, err
		}
	}
	return finish(ctx, out, m, m.writeFile)
}

// whatIsMissing names the shards that were not given, or else the runs that are not there.
func (m *Manifest) whatIsMissing(missing []unitID, shards []*Manifest) string {
	n := 0
	for _, s := range shards {
		if s.Shard != nil && (n == 0 || n == s.Shard.N) {
			n = s.Shard.N
		}
	}
	var absent []string
	for i := range n {
		if !slices.ContainsFunc(shards, func(s *Manifest) bool {
			return s.Shard != nil && s.Shard.I == i && s.Shard.N == n
		}) {
			absent = append(absent, Shard{i, n}.String())
		}
	}
	text := fmt.Sprintf("%d of %d units are missing", len(missing), len(m.Cells)*m.blocks())
	if len(absent) > 0 {
		text += fmt.Sprintf("; not given: shard %s", strings.Join(absent, ", "))
	}
	var names []string
	for _, id := range missing[:min(3, len(missing))] {
		first, k := m.runsOf(id.block)
		names = append(names, fmt.Sprintf("%s, runs %d to %d", m.Cells[id.cell].Label(), first, first+k-1))
	}
	text += "; the first: " + strings.Join(names, "; ")
	return text
}
