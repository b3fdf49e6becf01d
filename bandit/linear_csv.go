package bandit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
)

// ReadLinearCSV reads logged rewards of actions with features, in columns x1,…,xd and reward, one
// row a reward. Further columns are ignored. Each distinct feature vector is an action, in the
// order of first appearance, whose rewards are drawn from those that were logged for it. Their
// means need not be linear in the features, so Theta is nil.
//
// Norms are at most 1. With normalise all features are divided by the largest norm, if that is
// above 1; a common scale is no change to a linear model. It is strict as ReadCSV is, and streamed
// as well: an error names the line and the column.
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
				return LinearInstance{}, fmt.Errorf("line %d: this is action %d, must have "+
					"at most %d", t.line, i+1, MaxArms)
			}
			index[string(key)] = i
			actions, lines, counts = append(actions, slices.Clone(t.x)), append(lines, t.line),
				append(counts, map[float64]int{})
		}
		counts[i][t.reward]++
	}
	switch len(actions) {
	case 0:
		return LinearInstance{}, errors.New("there is a header but no rewards, must have at least one " +
			"for each of two actions")
	case 1:
		return LinearInstance{}, errors.New("all rewards are of one feature vector, must be of " +
			"at least 2 actions")
	}
	most, at := 0., 0
	for i, a := range actions {
		if r := norm(a); r > most {
			most, at = r, i
		}
	}
	if most > 1+unitball.Slack {
		if !normalise {
			return LinearInstance{}, fmt.Errorf("line %d: the norm of the features must be at "+
				"most 1 (or normalise: true)", lines[at])
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
			return LinearInstance{}, fmt.Errorf("line %d: %w", lines[i], err)
		}
		in.Arms = append(in.Arms, l)
	}
	return in, in.Validate() // tiny features may have become equal
}

// A ContextLog is logged rounds: in each a decision set, and one reward for each of its
// actions, which is the action's mean reward and is what it pays. A run draws rounds uniformly
// with replacement; regret is against the best logged reward of each round. It is a source and
// its own instance.
type ContextLog struct {
	dim     int
	most    int       // actions of the largest round
	start   []int     // round i has rows start[i] to start[i+1]
	x       []float64 // dim numbers a row
	rewards []float64
	bounded bool
	text    string
}

// ReadContextualCSV reads logged rounds, in columns round, x1,…,xd and reward, one row an action.
// Further columns are ignored. The rows of a round are together; a round is an integer, and rounds
// increase from one to the next (they need not be numbered without gaps). A log with the reward of
// the played action alone has decision sets of one action, on which no policy can be told from
// another: a round with one action is allowed, but not all may be so.
//
// Norms are at most 1. With normalise all features are divided by the largest norm, if that is
// above 1. It is strict as ReadCSV is: an error names the line and the column.
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
			return nil, t.Errorf(t.roundAt, "comes after a larger one: rounds must increase, and "+
				"the rows of a round be together")
		case len(l.rewards)-l.start[len(l.start)-1] == MaxArms:
			return nil, t.Errorf(t.roundAt, "the round has more than %d actions", MaxArms)
		}
		round = t.round
		largest = max(largest, norm(t.x))
		if largest > 1+unitball.Slack && !normalise {
			return nil, fmt.Errorf("line %d: the norm of the features must be at most 1 (or "+
				"normalise: true)", t.line)
		}
		l.x, l.rewards = append(l.x, t.x...), append(l.rewards, t.reward)
		l.bounded = l.bounded && math.Abs(t.reward) <= 1
		l.most = max(l.most, len(l.rewards)-l.start[len(l.start)-1])
	}
	switch l.most {
	case 0:
		return nil, errors.New("there is a header but no rounds, must have at least one")
	case 1:
		return nil, errors.New("column round: every round has one action, must have at least one " +
			"round with 2 actions or more")
	}
	l.start = append(l.start, len(l.rewards))
	if largest > 1+unitball.Slack {
		for i := range l.x {
			l.x[i] /= largest
		}
	}
	h := sha256.New()
	for i := range l.Rounds() {
		hashVector(h, l.x[l.start[i]*l.dim:l.start[i+1]*l.dim])
		hashVector(h, l.rewards[l.start[i]:l.start[i+1]])
	}
	l.text = fmt.Sprintf("context-log(rounds=%d,dim=%d,sha256=%s)", l.Rounds(), l.dim,
		hex.EncodeToString(h.Sum(nil)))
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

// A featureTable reads rows with columns x1, …, xd, reward and perhaps round, one by one.
type featureTable struct {
	*logged.Table
	columns        []int // of x1, …, xd
	rounds         bool  // there is a column round
	roundAt, payAt int

	// The last row.
	line   int
	round  int64
	x      []float64
	reward float64
}

func newFeatureTable(r io.Reader, rounds bool) (*featureTable, error) {
	table, err := logged.NewTable(r)
	if err != nil {
		return nil, err
	}
	t := &featureTable{Table: table, rounds: rounds}
	if t.payAt, err = t.Column("reward"); err != nil {
		return nil, err
	}
	if rounds {
		if t.roundAt, err = t.Column("round"); err != nil {
			return nil, err
		}
	}
	d := 0
	for _, name := range t.Columns() {
		if _, err := strconv.ParseUint(strings.TrimPrefix(name, "x"), 10, 64); err == nil &&
			strings.HasPrefix(name, "x") {
			d++
		}
	}
	if d > MaxDim {
		return nil, fmt.Errorf("line 1: the header has %d features, must have at most %d", d, MaxDim)
	}
	for j := range max(d, 1) { // so that none is left out for a gap in their numbers
		at, err := t.Column("x" + strconv.Itoa(j+1))
		if err != nil {
			return nil, fmt.Errorf("%w: features are x1, x2, … without a gap", err)
		}
		t.columns = append(t.columns, at)
	}
	t.x = make([]float64, d)
	return t, nil
}

// next reads a row. It returns io.EOF after the last.
func (t *featureTable) next() error {
	err := t.Next()
	if err != nil {
		return err
	}
	t.line = t.Line()
	if t.rounds {
		if t.round, err = t.Integer(t.roundAt); err != nil {
			return err
		}
	}
	for j, at := range t.columns {
		if t.x[j], err = t.Number(at); err != nil {
			return err
		}
	}
	t.reward, err = t.Number(t.payAt)
	return err
}
