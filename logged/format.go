package logged

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Format says what the columns of a log mean. The zero value is a log with columns arm and
// reward, in which every row is of another person.
//
// # A person with several rows
//
// A guarantee protects one contribution: a reward that is added to one sum, once. With User the
// rows of a person, which have the same name in that column, become one contribution: first an arm
// is drawn, uniformly among the arms that they have rows of; then their rows of that arm are clipped to
// [Lo,Hi], and their mean is what they contribute. Their other rows are not used.
//
// The draw is a hash of the person's name and the arm's under a key that is random, or follows from
// Seed: the arm with the smallest one is theirs. So it depends on the columns of persons and of arms
// and on coins, and never on a reward, theirs or another's: not on whether it is missing either.
// Whatever all their rewards are, they contribute to the same arm one number within [Lo,Hi]. So two
// logs that differ in all the rewards of one person give two lists of contributions that differ in
// one, and what is ε-DP of one contribution is ε-DP of the person. That they are in the log, and
// which arms their rows are of, is not protected.
//
// The mean reward of an arm is then a mean over people, each of whom counts once, and not over rows.
//
// # Order
//
// The rewards of an arm are shuffled, with coins that know nothing of them: if they are independent
// draws of one law that somebody sorted, they are so again. It cannot mend rows that depend on each
// other, as those of one person do, nor a law that changes while data come in.
//
// Read also puts the arms in the order of their names then, so that, with the operating system's
// coins, what is read has the same law in whatever order the file is. With InOrder or Seed the
// file's order must say nothing of the rewards: in a sorted file one person's reward decides where
// the others' rows are, and no guarantee is about that.
//
// # Missing rewards
//
// A cell that is no number is an error; with SkipMissing a row whose reward is missing
// (Table.Missing) is left out and counted. Neither that number nor whose reward is missing is
// protected, for it shows in how many rewards there are.
type Format struct {
	Arm, Reward string // names of columns; empty: arm and reward
	User        string // column of persons; empty: every row is of another person
	// Lo and Hi are the range that a person's rows are clipped to, used with User only. They must
	// not depend on the rewards.
	Lo, Hi      float64
	SkipMissing bool
	Dialect             // how the file is written
	InOrder     bool    // keep the order of the file, in which a person stands at their first row
	Seed        *uint64 // of the order and of persons' arms; nil: the operating system's coins
}

// A Summary is what a log has beside its rewards.
type Summary struct {
	// of arms: by number if all are integers; else by name for Read that shuffles, as they first
	// appear for others
	Names   []string
	Rows    int // read, with the missing ones
	Skipped int // rows whose reward is missing: this number is not private
	People  int // persons who contribute a reward, with User; else 0
	// lines where two arms first appear whose names differ in capitals alone; 0 if there are none
	Alike [2]int
	// with User, some row is outside [Lo,Hi]: this is not private, and for simulations only
	Clipped bool
}

// A Log is a log in memory: for each arm, its rewards.
type Log struct {
	Summary
	Rewards [][]float64
}

// Read reads a log and keeps every reward. An error says in which line and column.
func (f Format) Read(r io.Reader) (Log, error) {
	var found [][]float64
	s, order, key, err := f.scan(r, true, !f.InOrder, func(a int, x float64) {
		for a >= len(found) {
			found = append(found, nil)
		}
		found[a] = append(found[a], x)
	})
	if err != nil {
		return Log{}, err
	}
	out := Log{Summary: s, Rewards: make([][]float64, len(order))}
	for i, a := range order {
		out.Rewards[i] = found[a]
	}
	f.shuffle(key, out.Rewards...)
	return out, nil
}

// Column reads the rewards alone, without a column of arms. With User a person contributes the mean
// of all their rows.
func (f Format) Column(r io.Reader) ([]float64, Summary, error) {
	var found []float64
	s, _, key, err := f.scan(r, false, false, func(_ int, x float64) { found = append(found, x) })
	if err != nil {
		return nil, Summary{}, err
	}
	f.shuffle(key, found)
	return found, s, nil
}

// Tally reads a log and counts how often each arm had each reward. Memory grows with the number of
// distinct rewards of each arm, not with the number of rows, unless there is a column of persons.
func (f Format) Tally(r io.Reader) ([]map[float64]int, Summary, error) {
	var found []map[float64]int
	s, order, _, err := f.scan(r, true, false, func(a int, x float64) {
		for a >= len(found) {
			found = append(found, map[float64]int{})
		}
		found[a][x]++
	})
	if err != nil {
		return nil, Summary{}, err
	}
	out := make([]map[float64]int, len(order))
	for i, a := range order {
		out[i] = found[a]
	}
	return out, s, nil
}

// scan calls add for each contribution, in the order of the file. It numbers arms as they first
// appear; order is the one to show them in, and the summary's: by name, if not as they appear.
func (f Format) scan(r io.Reader, arms, byName bool, add func(arm int, reward float64)) (s Summary,
	order []int, key []byte, err error) {
	fail := func(err error) (Summary, []int, []byte, error) { return Summary{}, nil, nil, err }
	if f.User != "" && !(f.Lo < f.Hi) {
		return fail(fmt.Errorf("range is [%v, %v], must be two numbers, the lower one first, to "+
			"clip a person's rewards to", f.Lo, f.Hi))
	}
	if key, err = f.key(); err != nil {
		return fail(err)
	}
	t, err := f.NewTable(r)
	if err != nil {
		return fail(err)
	}
	arm, reward, user, err := f.columns(t, arms)
	if err != nil {
		return fail(err)
	}

	var (
		names []string
		lines []int // where an arm first is
		index = map[string]int{}
		// lines of arms by their names without capitals
		folded = map[string]int{}
		given  []bool // an arm has a reward
		crowd  = newCrowd(key, f.Lo, f.Hi)
	)
	counted := func(a int, x float64) {
		given[a] = true
		add(a, x)
	}
	if !arms {
		names, given = []string{""}, []bool{false}
	}
	for {
		err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail(err)
		}
		s.Rows++
		a := 0
		if arms {
			name, err := t.Name(arm)
			if err != nil {
				return fail(err)
			}
			known := false
			if a, known = index[name]; !known {
				a, name = len(names), strings.Clone(name) // or it would keep the whole row
				index[name] = a
				if s.Alike == [2]int{} {
					s.Alike = alike(folded, name, t.Line())
				}
				names, lines, given = append(names, name), append(lines, t.Line()), append(given, false)
			}
		}
		var x float64
		missing := f.SkipMissing && t.Missing(reward)
		if missing {
			s.Skipped++
		} else if x, err = f.number(t, reward); err != nil {
			return fail(err)
		}
		if f.User != "" {
			who, err := t.Name(user)
			if err != nil {
				return fail(err)
			}
			crowd.add(who, a, names[a], x, missing)
		} else if !missing {
			counted(a, x)
		}
	}
	s.People, s.Clipped = crowd.contribute(counted), crowd.beyond
	if s.Rows == 0 {
		return fail(errors.New("there is a header but no row"))
	}
	if !arms {
		if !given[0] {
			return fail(errors.New("every reward is missing"))
		}
		return s, nil, key, nil
	}
	if err := everyArm(lines, given); err != nil {
		return fail(err)
	}
	if order, err = armOrder(names, lines, byName); err != nil {
		return fail(err)
	}
	for _, a := range order {
		s.Names = append(s.Names, names[a])
	}
	return s, order, key, nil
}

// number is a row's reward.
func (f Format) number(t *Table, reward int) (float64, error) {
	x, err := t.Number(reward)
	if err != nil && !f.SkipMissing && t.Missing(reward) {
		err = fmt.Errorf("%w; rows without a reward are left out by --skip-missing, in "+
			"an experiment skip_missing: true", err)
	}
	return x, err
}

// everyArm wants two arms or more, each with a reward. lines is where each first is.
func everyArm(lines []int, given []bool) error {
	if len(lines) == 1 {
		return errors.New("all rows are of one arm, must be of at least 2 arms")
	}
	for i, ok := range given {
		if !ok {
			return fmt.Errorf("the arm that first appears in line %d has no rewards: all of "+
				"them are missing, or its people have other arms too and were drawn for those", lines[i])
		}
	}
	return nil
}

// columns are where arms, if there are any, rewards and persons are.
func (f Format) columns(t *Table, arms bool) (arm, reward, user int, err error) {
	column := func(name, usual string) (int, error) {
		at, err := t.Column(cmp.Or(name, usual))
		if err != nil && name == "" && len(t.columns) > 1 {
			err = fmt.Errorf("%w; another name is given by --%s-column, in an experiment "+
				"%[2]s_column", err, usual)
		}
		return at, err
	}
	if reward, err = column(f.Reward, "reward"); err != nil {
		return 0, 0, 0, err
	}
	if arms {
		if arm, err = column(f.Arm, "arm"); err != nil {
			return 0, 0, 0, err
		}
	}
	if f.User != "" {
		if user, err = t.Column(f.User); err != nil {
			return 0, 0, 0, err
		}
	}
	if arms && arm == reward || f.User != "" && (user == reward || arms && user == arm) {
		return 0, 0, 0, errors.New("one column has two uses: arms, rewards and persons must be in " +
			"columns of their own")
	}
	return arm, reward, user, nil
}

// alike are the lines of an earlier arm and of this one if their names differ in capitals alone.
func alike(lines map[string]int, name string, line int) [2]int {
	name = strings.ToLower(strings.ToUpper(name)) // some capitals are those of two letters
	if first, known := lines[name]; known {
		return [2]int{first, line}
	}
	lines[name] = line
	return [2]int{}
}

// armOrder is the order of the arms: by number if every name is an integer, else by name or as they
// came. Which arm comes first in a file that is sorted by its rewards tells of a reward.
func armOrder(names []string, lines []int, byName bool) ([]int, error) {
	order := make([]int, len(names))
	number := make([]int64, len(names))
	integers := true
	for i, name := range names {
		order[i] = i
		x, err := strconv.ParseInt(name, 10, 64)
		number[i], integers = x, integers && err == nil
	}
	if !integers && byName {
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	}
	if !integers {
		return order, nil
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(number[a], number[b]) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; number[a] == number[b] {
			return nil, fmt.Errorf("line %d: the arm is the same number as the one of line %d, "+
				"written otherwise: write an arm in one way",
				max(lines[a], lines[b]), min(lines[a], lines[b]))
		}
	}
	return order, nil
}

// key is what the order and the arms of persons are drawn with.
func (f Format) key() ([]byte, error) {
	key := make([]byte, sha256.Size)
	if f.Seed == nil {
		if _, err := crand.Read(key); err != nil {
			return nil, fmt.Errorf("the operating system gives no randomness: %w", err)
		}
		return key, nil
	}
	seeded := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("sotto logged data "), *f.Seed))
	return seeded[:], nil
}

// shuffle puts the rewards of each arm in an order drawn with the key.
func (f Format) shuffle(key []byte, arms ...[]float64) {
	if f.InOrder {
		return
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("order"))
	random := rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))
	for _, x := range arms {
		random.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
	}
}

// A crowd is the people of a log.
type crowd struct {
	keyed  hash.Hash
	lo, hi float64
	index  map[string]int
	people []person
	beyond bool // some row was clipped
}

// A person has the arm that they were drawn for, among those seen so far.
type person struct {
	arm     int
	draw    []byte
	rewards []float64 // of that arm, clipped
}

func newCrowd(key []byte, lo, hi float64) *crowd {
	return &crowd{keyed: hmac.New(sha256.New, key), lo: lo, hi: hi, index: map[string]int{}}
}

// add is a row of a person. It decides on their arm before it looks at the reward, and whether
// that is missing.
func (c *crowd) add(who string, arm int, name string, reward float64, missing bool) {
	i, known := c.index[who]
	if !known {
		i = len(c.people)
		who = strings.Clone(who)
		c.index[who] = i
		c.people = append(c.people, person{arm: -1})
	}
	p := &c.people[i]
	if arm != p.arm {
		c.keyed.Reset()
		c.keyed.Write([]byte(who + "\x00" + name)) // names have no control characters
		draw := c.keyed.Sum(nil)
		if p.arm >= 0 && bytes.Compare(draw, p.draw) >= 0 {
			return
		}
		*p = person{arm: arm, draw: draw}
	}
	if !missing {
		x := min(max(reward, c.lo), c.hi)
		p.rewards, c.beyond = append(p.rewards, x), c.beyond || x != reward
	}
}

// contribute adds the mean of each person who has one, and says how many did.
func (c *crowd) contribute(add func(arm int, reward float64)) int {
	n := 0
	for _, p := range c.people {
		if len(p.rewards) == 0 {
			continue
		}
		slices.Sort(p.rewards) // so that the last bits of a sum do not depend on the order of rows
		sum := 0.0
		for _, x := range p.rewards {
			sum += x
		}
		add(p.arm, min(max(sum/float64(len(p.rewards)), c.lo), c.hi))
		n++
	}
	return n
}
