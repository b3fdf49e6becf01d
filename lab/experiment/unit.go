package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// A unit is a block of runs of a cell, and a file:
//
//	"sotto unit 1\n"
//	cell hash             32 bytes
//	first run             uint64
//	runs R                uint32
//	checkpoints C         uint32
//	checkpoints           C × uint64
//	length of the loss    uint32
//	loss                  JSON: the largest of the runs' privacy losses, as their ledgers priced them
//	regret, plays_best    R × (C + C) × float64, run by run; of stopping rules samples and error, see noEstimate
//	SHA-256               32 bytes, of everything above
//
// all little endian. It holds no label and no time, so the same runs are the same bytes. Where
// there are not two metrics but M, the first line is "sotto unit 2\n" and M, a uint32, stands
// before the checkpoints' number; a run then has M × C values, metric by metric. Where a run has E
// values more, of its end, the first line is "sotto unit 3\n", and E, a uint32, stands after M.
type unit struct {
	cell        [sha256.Size]byte
	first       int
	runs        int
	checkpoints []int
	metrics     int // M
	ends        int // E
	loss        privacy.Loss
	data        []float64 // run by run: C values of the first metric, then C of the next, then E
}

const (
	unitMagic     = "sotto unit 1\n" // of two metrics
	unitMagicMany = "sotto unit 2\n" // of another number
	unitMagicEnds = "sotto unit 3\n" // of any number, with values of the end
	pair          = 2
	maxMetrics    = bandit.MaxArms + 16
)

// metric is the curve of the unit's r-th run in its k-th metric, from 0.
func (u *unit) metric(r, k int) []float64 {
	c := len(u.checkpoints)
	return u.run(r)[k*c : (k+1)*c]
}

// run is all values of the r-th run.
func (u *unit) run(r int) []float64 {
	n := u.metrics*len(u.checkpoints) + u.ends
	return u.data[r*n : (r+1)*n]
}

func (u *unit) encode() ([]byte, error) {
	loss, err := json.Marshal(u.loss)
	if err != nil {
		return nil, fmt.Errorf("loss: %w", err)
	}
	b := make([]byte, 0, len(unitMagic)+sha256.Size*2+24+8*len(u.checkpoints)+len(loss)+8*len(u.data))
	magic := keyed.Either(u.metrics == pair, unitMagic, unitMagicMany)
	if u.ends > 0 {
		magic = unitMagicEnds
	}
	b = append(b, magic...)
	b = append(b, u.cell[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(u.first))
	b = binary.LittleEndian.AppendUint32(b, uint32(u.runs))
	if magic != unitMagic {
		b = binary.LittleEndian.AppendUint32(b, uint32(u.metrics))
	}
	if magic == unitMagicEnds {
		b = binary.LittleEndian.AppendUint32(b, uint32(u.ends))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(u.checkpoints)))
	for _, t := range u.checkpoints {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(loss)))
	b = append(b, loss...)
	for _, x := range u.data {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// decodeUnit reads what encode writes, and nothing else: sizes are checked against the length
// before anything is allocated.
func decodeUnit(b []byte) (*unit, error) {
	bad := func(format string, args ...any) (*unit, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrUnit}, args...)...)
	}
	const head = len(unitMagic) + sha256.Size + 8 + 4 + 4
	ends := bytes.HasPrefix(b, []byte(unitMagicEnds))
	many := ends || bytes.HasPrefix(b, []byte(unitMagicMany))
	if len(b) < head+12+sha256.Size || !many && !bytes.HasPrefix(b, []byte(unitMagic)) {
		return bad("it is no unit of this version, or cut short")
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return bad("its checksum is wrong: the file is damaged")
	}
	u := &unit{metrics: pair}
	body = body[len(unitMagic):]
	copy(u.cell[:], body)
	body = body[sha256.Size:]
	first := binary.LittleEndian.Uint64(body)
	runs := int(binary.LittleEndian.Uint32(body[8:]))
	body = body[12:]
	if many {
		if u.metrics = int(binary.LittleEndian.Uint32(body)); u.metrics < 1 ||
			u.metrics == pair && !ends || u.metrics > maxMetrics {
			return bad("it says %d metrics", u.metrics)
		}
		body = body[4:]
	}
	if ends {
		if u.ends = int(binary.LittleEndian.Uint32(body)); u.ends < 1 || u.ends > maxEnds {
			return bad("it says %d values of the end", u.ends)
		}
		body = body[4:]
	}
	c := int(binary.LittleEndian.Uint32(body))
	body = body[4:]
	if first > keyed.MaxCount || runs < 1 || runs > MaxRuns || c < 1 || c > MaxPoints {
		return bad("it says run %d, %d runs, %d checkpoints", first, runs, c)
	}
	u.first, u.runs = int(first), runs
	if len(body) < 8*c+4 {
		return bad("it is cut short")
	}
	last := uint64(0)
	for range c {
		t := binary.LittleEndian.Uint64(body)
		if t <= last || t > keyed.MaxCount {
			return bad("checkpoint %d after %d", t, last)
		}
		last = t
		u.checkpoints = append(u.checkpoints, int(t))
		body = body[8:]
	}
	n := int64(binary.LittleEndian.Uint32(body))
	body = body[4:]
	values := (int64(u.metrics)*int64(c) + int64(u.ends)) * int64(runs) // below 2⁶²
	if left := int64(len(body)) - n; left < 0 || left%8 != 0 || left/8 != values {
		return bad("it has %d bytes of data, not %d values", left, values)
	}
	if err := json.Unmarshal(body[:n], &u.loss); err != nil {
		return bad("%v", err)
	}
	body = body[n:]
	u.data = make([]float64, values)
	for i := range u.data {
		u.data[i] = math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:]))
		if math.IsNaN(u.data[i]) || math.IsInf(u.data[i], 0) {
			return bad("value %d is %v", i, u.data[i])
		}
	}
	return u, nil
}

// unitsDir is where an output directory keeps its units.
const unitsDir = "units"

// writeFile writes a file so that it is there in full or not at all: under another name,
// synced, renamed.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := atomicfile.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readUnit reads the unit of a block and checks that it is that one.
func readUnit(dir string, m *Manifest, cell *CellInfo, block int) (*unit, error) {
	path := filepath.Join(dir, unitsDir, unitName(cell.Hash, block))
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u, err := decodeUnit(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	first, n := m.runsOf(block)
	if hex.EncodeToString(u.cell[:]) != cell.Hash || u.first != first || u.runs != n ||
		u.metrics != len(m.metrics(cell)) || u.ends != m.ends(cell) ||
		!slices.Equal(u.checkpoints, m.Checkpoints) {
		return nil, fmt.Errorf("%s: %w: it holds something else than its name says", path, ErrUnit)
	}
	return u, nil
}
