package play

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/privacy"
)

// Cells partition the decisions by something public that is known when they are made, such as a device:
// each decision is in one cell (Decision.Cell), for good. Every release is then of cells: where a row of
// an arm's decisions had one noisy sum, it has one for each of its cells, of the reward and of every
// metric, and the row's own sum is the sum of these. It is never released beside them.
//
// So a unit loses what it lost without cells. Its decision is in one row and one cell, so its reward is
// in one slot, of fresh noise, and slots compose in parallel. (A total with a noise of its own beside the
// cells would be a second release of every reward.) All cells of a row close at once, by the row's counts
// and clock: a rare cell is not waited for. One with fewer than Least decisions joins the last cell,
// that of all else, in that release, which depends on the cells of decisions and on which were withdrawn, and both are public: no
// reward has a say in it.
//
// In a joint batch the decisions that are held against Least are those of all arms together. So whether
// a cell is released for itself does not depend on how its coins fell, and the arms of a cell met the
// same times. E's test (interval.Effect) is right of a cell where Least is 1, as of the whole; and above, as long
// as how many decisions of a batch are in the cell does not follow from arms or outcomes within the batch.
//
// The policy is given the totals, whose noise is that of all cells that are in them (privacy.Released.Fold):
// it must be one whose proofs read the noise of a release in the release (catalog.Entry.Gathers).
type Cells struct {
	Count int // of the partition, 0 for none; the last is of all else
	Least int // decisions of a cell that is released for itself, at least 1
}

// maxCells is far beyond what traffic can bear.
const maxCells = 1000

// check says what is wrong with cells, for so many arms.
func (c Cells) check(cfg *Config) error {
	switch {
	case c == Cells{}:
		return nil
	case c.Count < 2 || c.Count > maxCells || c.Count*cfg.Arms > maxArms:
		return fmt.Errorf("play: cells are %d, must be from 2 to %d", c.Count, min(maxCells, maxArms/max(1, cfg.Arms)))
	case c.Least < 1 || c.Least > maxIssued:
		return fmt.Errorf("play: the least of a cell is %d, must be at least 1", c.Least)
	case cfg.Gathering.On():
		return fmt.Errorf("play: there are cells, must be none under trust %s: sums are gathered by arm",
			cfg.Gathering.Trust)
	case cfg.Drop:
		return errors.New("play: there are cells, and drop is true: counts of cells would follow from reports")
	}
	return nil
}

// String is empty of no cells.
func (c Cells) String() string {
	if c.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d cells, of at least %d", c.Count, c.Least)
}

// each is how many sums an arm has in a release.
func (c Cells) each() int { return max(1, c.Count) }

// CellSums are what was released of a cell of an arm, added up, and of its metrics.
type CellSums struct {
	interval.Sums
	Metrics []float64
}

// enter puts a decision that was made into its cell.
func (l *Live) enterCell(q *Queue, number, cell int) {
	if l.cfg.Cells.Count > 0 {
		s := q.last()
		if s.Cells == nil {
			s.Cells = make([]Set, l.cfg.Cells.Count)
		}
		s.Cells[cell].add(number - s.Start)
	}
}

// cellOf is the cell of a decision, less Start.
func (s *Segment) cellOf(i int) int {
	return slices.IndexFunc(s.Cells, func(c Set) bool { return c.Has(i) })
}

// checkCells says what no segment has, whose decisions are so many.
func (s *Segment) checkCells(cells, size int) error {
	if len(s.Cells) != cells {
		return fmt.Errorf("it has %d cells, must have %d", len(s.Cells), cells)
	}
	seen, n := Set{}, 0
	for _, c := range s.Cells {
		if !c.fits(size) || seen.common(c) > 0 {
			return errors.New("its cells are not of its decisions, each in one")
		}
		n += c.Len()
		for len(seen) < len(c) {
			seen = append(seen, 0)
		}
		for i := range c {
			seen[i] |= c[i]
		}
	}
	if cells > 0 && n != size {
		return fmt.Errorf("%d of its %d decisions are in a cell", n, size)
	}
	return nil
}

// A part is what a row has of a cell: so many decisions that count, and the sums of rewards and metrics,
// as those of Queue.take.
type part struct {
	n    int
	sums []int64
}

// parts are those of the k oldest segments, by cell.
func (q *Queue) parts(k int, missing []int64, cells int) []part {
	out := make([]part, cells)
	for c := range out {
		p := &out[c]
		p.sums = make([]int64, len(missing))
		for i := range q.Segments[:k] {
			s := &q.Segments[i]
			of := s.Cells[c]
			both := 0
			for w := range min(len(of), len(s.Came), len(s.Gone)) {
				both += Set{of[w] & s.Came[w] & s.Gone[w]}.Len()
			}
			n := of.Len() - of.common(s.Gone)
			p.n += n
			for j, x := range missing {
				p.sums[j] += x * int64(n-of.common(s.Came)+both)
				if s.More != nil {
					p.sums[j] += s.More[c*len(missing)+j]
				}
			}
		}
	}
	return out
}

// few has the cells that join the last one: by row, or of joint batches in all rows of a release.
func (l *Live) few(rows []row) [][]bool {
	of := l.cfg.Cells
	out := make([][]bool, len(rows))
	if of.Count == 0 {
		return out
	}
	all := make([]int, of.Count)
	for i, r := range rows {
		n := make([]int, of.Count)
		for c, p := range l.s.Arms[r.arm].parts(r.segments, l.missing, of.Count) {
			n[c], all[c] = p.n, all[c]+p.n
		}
		if l.rows != nil {
			n = all
		}
		out[i] = make([]bool, of.Count)
		for c := range of.Count - 1 {
			out[i][c] = n[c] < of.Least
		}
	}
	if l.rows != nil {
		for i := range out {
			out[i] = out[len(out)-1]
		}
	}
	return out
}

// joined are the parts of a row with those of few decisions in the last, each cut as Queue.take does.
func joined(parts []part, few []bool) []part {
	last := &parts[len(parts)-1]
	for c := range parts[:len(parts)-1] {
		if p := &parts[c]; few[c] {
			last.n += p.n
			for j, x := range p.sums {
				last.sums[j] += x
			}
			*p = part{}
		}
	}
	for _, p := range parts {
		for j := range p.sums {
			p.sums[j] = min(p.sums[j], int64(p.n)*oneStep)
		}
	}
	return parts
}

// slots are those of rows, as the curators number them: arms, or the cells that are released of each.
func (l *Live) slots(rows []row) []int {
	if l.cfg.Cells.Count == 0 {
		return armsIn(rows)
	}
	var out []int
	for _, r := range rows {
		for _, c := range r.at.Cells {
			out = append(out, r.arm*l.cfg.Cells.Count+c)
		}
	}
	return out
}

// fold has a sum of each row of what was released of its cells.
func (l *Live) fold(rows []row, got privacy.Released) (privacy.Released, error) {
	if l.cfg.Cells.Count == 0 || len(rows) == 0 {
		return got, nil
	}
	sizes := make([]int, len(rows))
	for i, r := range rows {
		sizes[i] = len(r.at.Cells)
	}
	return got.Fold(sizes)
}

// isCells says whether a row of a line can have these cells.
func (c Cells) isCells(in []int, released bool) error {
	ok := (len(in) > 0) == (released && c.Count > 0)
	for i, cell := range in {
		ok = ok && cell >= 0 && cell < c.Count && (i == 0 || cell > in[i-1])
	}
	if !ok {
		return fmt.Errorf("its cells are %v, must be of %d, each once and in their order", in, c.Count)
	}
	return nil
}

// addCells holds what a line has released of cells, with this noise, against Least, and adds it up.
func (p *past) addCells(rows []row, released privacy.Released, noise privacy.Mechanism) error {
	of := p.of.cfg.Cells
	if of.Count == 0 {
		return nil
	}
	all, i := make([]int, of.Count), 0
	for _, r := range rows {
		if p.of.rows == nil {
			clear(all)
		}
		for _, c := range r.at.Cells {
			n := released.N(i)
			all[c] += n
			s := &p.Cells[r.arm][c]
			s.N, s.Sum, s.Releases, s.Noise = s.N+n, s.Sum+released.Sum(i), s.Releases+1, noise
			i++
		}
		if p.of.rows == nil {
			if err := of.least(all); err != nil {
				return err
			}
		}
	}
	if p.of.rows == nil {
		return nil
	}
	return of.least(all)
}

// least says whether cells have too few decisions to be released for themselves.
func (c Cells) least(n []int) error {
	for cell, n := range n[:c.Count-1] {
		if n > 0 && n < c.Least {
			return fmt.Errorf("it releases cell %d with %d decisions, must have at least %d", cell, n, c.Least)
		}
	}
	return nil
}
