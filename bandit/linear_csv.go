package bandit

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/noise"
)

// ReadLinearCSV reads logged rewards of actions with features, with the header x1,…,xd,reward and one row a reward. Each distinct feature vector
// is an action, in the order of first appearance, whose rewards are drawn from those that were logged for it. Their means need not be linear in
// the features, so Theta is nil.
//
// Norms are at most 1. With normalise all features are divided by the largest norm, if that is above 1; a common scale is no change to a linear
// model. It is strict as ReadCSV is, and streamed as well: an error names the line, the column and the value.
func ReadLinearCSV(r io.Reader, normalise bool) (LinearInstance, error) {
	in, err := readLinearCSV(r, normalise)
	if err != nil {
		return LinearInstance{}, fmt.Errorf("linear rewards: %w", err)
	}
	return in, nil
}

func readLinearCSV(r io.Reader, normalise bool) (LinearInstance, error) {
	t, err := newFeatureTable(r, false)
	if err != nil {
		return LinearInstance{}, err
	}
	var (
		actions [][]float64
		lines   []int // of first appearance
		counts  []map[float64]int
		index   = map[string]int{}
		key     []byte
	)
	for {
		err := t.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return LinearInstance{}, err
		}
		key = vectorKey(key[:0], t.x)
		i, known := index[string(key)]
		if !known {
			if i = len(actions); i == MaxArms {
				return LinearInstance{}, fmt.Errorf("line %d: this is action %d: there must be at most %d", t.line, i+1, MaxArms)
			}
			index[string(key)] = i
			actions, lines, counts = append(actions, slices.Clone(t.x)), append(lines, t.line), append(counts, map[float64]int{})
		}
		counts[i][t.reward]++
	}
	switch len(actions) {
	case 0:
		return LinearInstance{}, errors.New("there is a header but no rewards: want at least one for each of two actions")
	case 1:
		return LinearInstance{}, errors.New("all rewards are of one feature vector: want at least 2 actions")
	}
	most, at := 0., 0
	for i, a := range actions {
		if r := norm(a); r > most {
			most, at = r, i
		}
	}
	if most > 1+normSlack {
		if !normalise {
			return LinearInstance{}, fmt.Errorf("line %d: the features %s have norm %v, the largest: it must be at most 1 (or normalise: true)",
				lines[at], vector(actions[at]), most)
		}
		for _, a := range actions {
			for j := range a {
				a[j] /= most
			}
		}
	}
	in := LinearInstance{Actions: actions}
	for i, c := range counts {
		l, err := NewEmpirical(c)
		if err != nil {
			return LinearInstance{}, fmt.Errorf("line %d: action %s: %w", lines[i], vector(actions[i]), err)
		}
		in.Arms = append(in.Arms, l)
	}
	return in, in.Validate() // tiny features may have become equal
}

// A ContextLog is logged rounds: in each a decision set, and one reward for each of its actions, which is the action's mean reward and is what it
// pays. A run draws rounds uniformly with replacement; regret is against the best logged reward of each round. It is a source and its own instance.
type ContextLog struct {
	dim     int
	most    int       // actions of the largest round
	start   []int     // round i has rows start[i] to start[i+1]
	x       []float64 // dim numbers a row
	rewards []float64
	bounded bool
	text    string
}

// ReadContextualCSV reads logged rounds, with the header round,x1,…,xd,reward and one row an action. The rows of a round are together; a round is an
// integer, and rounds increase from one to the next (they need not be numbered without gaps). A log with the reward of the played action alone
// has decision sets of one action, on which no policy can be told from another: a round with one action is allowed, but not all may be so.
//
// Norms are at most 1. With normalise all features are divided by the largest norm, if that is above 1. It is strict as ReadCSV is: an error names the
// line, the column and the value.
func ReadContextualCSV(r io.Reader, normalise bool) (*ContextLog, error) {
	l, err := readContextualCSV(r, normalise)
	if err != nil {
		return nil, fmt.Errorf("logged rounds: %w", err)
	}
	return l, nil
}

func readContextualCSV(r io.Reader, normalise bool) (*ContextLog, error) {
	t, err := newFeatureTable(r, true)
	if err != nil {
		return nil, err
	}
	l := &ContextLog{dim: len(t.x), bounded: true}
	var largest float64
	var round int64
	for {
		err := t.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case len(l.start) == 0 || t.round > round:
			l.start = append(l.start, len(l.rewards))
		case t.round < round:
			return nil, fmt.Errorf("line %d, column round: the value %d comes after %d: rounds must increase, and the rows of a round be together",
				t.line, t.round, round)
		case len(l.rewards)-l.start[len(l.start)-1] == MaxArms:
			return nil, fmt.Errorf("line %d, column round: round %d has more than %d actions", t.line, t.round, MaxArms)
		}
		round = t.round
		largest = max(largest, norm(t.x))
		if largest > 1+normSlack && !normalise {
			return nil, fmt.Errorf("line %d: the features %s have norm %v: it must be at most 1 (or normalise: true)", t.line, vector(t.x), largest)
		}
		l.x, l.rewards = append(l.x, t.x...), append(l.rewards, t.reward)
		l.bounded = l.bounded && math.Abs(t.reward) <= 1
		l.most = max(l.most, len(l.rewards)-l.start[len(l.start)-1])
	}
	switch l.most {
	case 0:
		return nil, errors.New("there is a header but no rounds: want at least one")
	case 1:
		return nil, errors.New("column round: every round has one action: want at least one round with 2 actions or more")
	}
	l.start = append(l.start, len(l.rewards))
	if largest > 1+normSlack {
		for i := range l.x {
			l.x[i] /= largest
		}
	}
	h := sha256.New()
	for i := range l.Rounds() {
		hashVector(h, l.x[l.start[i]*l.dim:l.start[i+1]*l.dim])
		hashVector(h, l.rewards[l.start[i]:l.start[i+1]])
	}
	l.text = fmt.Sprintf("context-log(rounds=%d,dim=%d,sha256=%s)", l.Rounds(), l.dim, hex.EncodeToString(h.Sum(nil)))
	return l, nil
}

// Rounds is how many rounds were logged.
func (l *ContextLog) Rounds() int { return len(l.start) - 1 }

// Contextual is the log itself; the stream may be nil.
func (l *ContextLog) Contextual(*noise.Fast) (ContextualInstance, error) { return l, nil }

// Redrawn is false.
func (l *ContextLog) Redrawn() bool { return false }

// String is context-log(rounds=…,dim=…,sha256=…), a key to its content.
func (l *ContextLog) String() string { return l.text }

// Dim is the dimension of the features.
func (l *ContextLog) Dim() int { return l.dim }

// MaxActions is the number of actions in the largest round.
func (l *ContextLog) MaxActions() int { return l.most }

// Bounded says whether all logged rewards are in [−1,1].
func (l *ContextLog) Bounded() bool { return l.bounded }

// Reward is the mean itself, without a draw: what was logged.
func (l *ContextLog) Reward(mean float64, _ *noise.Fast) float64 { return mean }

// Round is one of the logged rounds.
func (l *ContextLog) Round(actions, means []float64, s *noise.Fast) (a, m []float64) {
	i, _ := bits.Mul64(s.Uint64(), uint64(l.Rounds()))
	from, to := l.start[i], l.start[i+1]
	return append(actions[:0], l.x[from*l.dim:to*l.dim]...), append(means[:0], l.rewards[from:to]...)
}

// A featureTable reads rows of [round,]x1,…,xd,reward one by one.
type featureTable struct {
	rows    *csv.Reader
	columns []string
	rounds  bool // there is a column round

	// The last row.
	line   int
	round  int64
	x      []float64
	reward float64
}

func newFeatureTable(r io.Reader, rounds bool) (*featureTable, error) {
	t := &featureTable{rows: csv.NewReader(r), rounds: rounds}
	t.rows.ReuseRecord = true
	t.rows.FieldsPerRecord = -1 // counted in next: with a better message
	want := "x1,…,xd,reward"
	if rounds {
		want = "round," + want
	}
	header, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is empty: want the header %s", want)
	}
	if err != nil {
		return nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	d := len(header) - 1
	if rounds {
		d--
	}
	if d > MaxDim {
		return nil, fmt.Errorf("line 1: the header has %d features: there must be at most %d", d, MaxDim)
	}
	if rounds {
		t.columns = append(t.columns, "round")
	}
	for j := range max(d, 1) {
		t.columns = append(t.columns, "x"+strconv.Itoa(j+1))
	}
	t.columns = append(t.columns, "reward")
	if !slices.Equal(header, t.columns) {
		return nil, fmt.Errorf("line 1: the header is %q: want %s", shown(strings.Join(header, ",")), want)
	}
	t.x = make([]float64, d)
	return t, nil
}

// next reads a row. It returns io.EOF after the last.
func (t *featureTable) next() error {
	row, err := t.rows.Read()
	if err != nil {
		return err // one that is not io.EOF names the line
	}
	t.line, _ = t.rows.FieldPos(0)
	if len(row) != len(t.columns) {
		return fmt.Errorf("line %d: the row has %d fields: want %d (%s,…,reward)", t.line, len(row), len(t.columns), t.columns[0])
	}
	first := 0
	if t.rounds {
		first = 1
		if t.round, err = strconv.ParseInt(row[0], 10, 64); err != nil {
			return fmt.Errorf("line %d, column round: the value %q must be an integer", t.line, shown(row[0]))
		}
	}
	for i := first; i < len(row); i++ {
		v, err := parseNumber(row[i])
		if err != nil || !(math.Abs(v) <= MaxAbs) {
			line, _ := t.rows.FieldPos(i)
			return fmt.Errorf("line %d, column %s: the value %q must be a finite decimal number, at most %v in absolute value",
				line, t.columns[i], shown(row[i]), MaxAbs)
		}
		if i == len(row)-1 {
			t.reward = unsigned(v)
		} else {
			t.x[i-first] = unsigned(v)
		}
	}
	return nil
}

// shown is a value short enough for an error.
func shown(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	return s
}
