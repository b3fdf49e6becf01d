package aggregate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg"
)

// ErrSpent is matched by the error for a batch of which something has left before. It is
// secagg.ErrReplay.
var ErrSpent = fmt.Errorf("%w: spent before", secagg.ErrReplay)

// A Charge is what may have been released of one batch: of a client its reward in it,
// of a server the sum.
type Charge struct {
	Experiment string
	Arm, Batch uint64
	Session    [32]byte
	Mechanism  privacy.Mechanism // nil: not known, so that the loss is ∞
}

// ChargeOf is the charge of a session whose messages were made by m.
func ChargeOf(s secagg.Session, m privacy.Mechanism) Charge {
	return Charge{Experiment: s.Experiment, Arm: s.Arm, Batch: s.Batch, Session: s.ID, Mechanism: m}
}

// A Journal is a durable memory of charges, in a directory that is made when there is something to
// remember: a file a charge, numbered, written before anything leaves and never changed. Each batch
// is charged once, whatever the session: a second sum of a batch has other noise, and the mean of
// many has none. It holds across restarts, and against other processes with the same directory.
type Journal struct {
	Dir string
	// Cap is the budget that charges must keep within, nil for none: together if Together, since
	// they are of one person, and else each batch for itself.
	Cap      privacy.Budget
	Together bool
}

// Limit is the cap, privacy.None for none.
func (j Journal) Limit() privacy.Budget {
	if j.Cap == nil {
		return privacy.None{}
	}
	return j.Cap
}

// Spent is what a journal holds.
type Spent struct {
	Charges  int
	Reward   privacy.Loss // of any one reward
	Together privacy.Loss // of all of them, should they be one person's
}

// chargeFile is a charge as it is written down.
type chargeFile struct {
	Experiment string          `json:"experiment"`
	Arm        uint64          `json:"arm"`
	Batch      uint64          `json:"batch"`
	Session    []byte          `json:"session"`
	Mechanism  json.RawMessage `json:"mechanism"`
}

var chargeName = regexp.MustCompile(`^[0-9]{8}\.json$`)

func (j Journal) file(n int) string { return filepath.Join(j.Dir, fmt.Sprintf("%08d.json", n)) }

// charges reads them all. One that is missing between others, or is not what was written, is an
// error: it may be what is asked for.
func (j Journal) charges() ([]Charge, error) {
	entries, err := os.ReadDir(j.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("aggregate: journal: %w", err)
	}
	var out []Charge
	for _, e := range entries {
		if !chargeName.MatchString(e.Name()) {
			continue
		}
		path := j.file(len(out) + 1)
		if filepath.Base(path) != e.Name() {
			return nil, fmt.Errorf("aggregate: journal: %s is missing: what has left is not "+
				"known, and nothing more may", path)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("aggregate: journal: %w", err)
		}
		c, err := readCharge(b)
		if err != nil {
			return nil, fmt.Errorf("aggregate: journal: %s: %w", path, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func readCharge(b []byte) (c Charge, err error) {
	var f chargeFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return c, err
	}
	if d.More() || len(f.Session) != len(c.Session) || f.Mechanism == nil {
		return c, errors.New("is no charge, with experiment, arm, batch, a session of 32 bytes " +
			"and a mechanism or null")
	}
	c = Charge{Experiment: f.Experiment, Arm: f.Arm, Batch: f.Batch, Session: [32]byte(f.Session)}
	if string(f.Mechanism) != "null" {
		c.Mechanism, err = privacy.UnmarshalMechanism(f.Mechanism)
	}
	return c, err
}

// ledger prices charges.
func (j Journal) ledger(all []Charge, limit privacy.Budget, together bool) (*privacy.Ledger, error) {
	l := privacy.NewLedger(privacy.WithCap(limit))
	for i, c := range all {
		if together {
			i = 0
		}
		if err := l.Record(i, c.Mechanism); err != nil {
			return nil, fmt.Errorf("aggregate: %s, arm %d, batch %d: %w", c.Experiment, c.Arm, c.Batch, err)
		}
	}
	return l, nil
}

// written is the charge as it is written down, which must be the charge that is read back.
func written(c Charge) ([]byte, error) {
	f := chargeFile{c.Experiment, c.Arm, c.Batch, c.Session[:], json.RawMessage("null")}
	var err error
	if c.Mechanism != nil {
		if f.Mechanism, err = json.Marshal(c.Mechanism); err != nil {
			return nil, fmt.Errorf("aggregate: journal: mechanism: %w", err)
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("aggregate: journal: %w", err)
	}
	switch again, err := readCharge(b); {
	case err != nil:
		return nil, fmt.Errorf("aggregate: journal: %w", err)
	case again.Experiment != c.Experiment:
		return nil, fmt.Errorf("aggregate: journal: experiment %q must be UTF-8: it would be "+
			"read back as another one", c.Experiment)
	}
	return append(b, '\n'), nil
}

// allow is the number of the charge, and what is to be written, if it may be made.
func (j Journal) allow(c Charge) (int, []byte, error) {
	all, err := j.charges()
	if err != nil {
		return 0, nil, err
	}
	b, err := written(c)
	if err != nil {
		return 0, nil, err
	}
	for _, x := range all {
		if x.Experiment == c.Experiment && x.Arm == c.Arm && x.Batch == c.Batch {
			return 0, nil, fmt.Errorf("%w: %q, arm %d, batch %d, in session %x…, says %s: what "+
				"was sent may have been released, and is not sent again",
				ErrSpent, c.Experiment, c.Arm, c.Batch, x.Session[:8], j.Dir)
		}
	}
	all = append(all, c)
	_, err = j.ledger(all, j.Limit(), j.Together)
	return len(all), b, err
}

// Allow says what Spend would, and charges nothing: ErrSpent if something of the batch has left
// before, privacy.ErrBudget if the cap does not allow it.
func (j Journal) Allow(c Charge) error {
	_, _, err := j.allow(c)
	return err
}

// Spend charges, and has written it down when it returns: then something may leave. Its errors are
// Allow's; of two processes that would charge the last of a budget one is refused.
func (j Journal) Spend(c Charge) error {
	if _, _, err := j.allow(c); err != nil {
		return err
	}
	if err := atomicfile.MakeDir(j.Dir); err != nil {
		return fmt.Errorf("aggregate: journal: %w", err)
	}
	for {
		n, b, err := j.allow(c)
		if err != nil {
			return err
		}
		// Another process may have taken the number: then there is one more charge to look at.
		if err := atomicfile.WriteOnce(j.file(n), b); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// Spent prices what was charged.
func (j Journal) Spent() (Spent, error) {
	all, err := j.charges()
	if err != nil {
		return Spent{}, err
	}
	each, err := j.ledger(all, privacy.None{}, false)
	if err != nil {
		return Spent{}, err
	}
	together, err := j.ledger(all, privacy.None{}, true)
	if err != nil {
		return Spent{}, err
	}
	return Spent{Charges: len(all), Reward: each.Total(), Together: together.Total()}, nil
}
