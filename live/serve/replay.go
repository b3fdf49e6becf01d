package serve

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// ErrSealed is matched by the error of Replay for a policy that tosses coins, while their seed is
// not in the transcript: it is in the last line, once the experiment has stopped.
var ErrSealed = errors.New("the policy tosses coins, and their seed is told when it has stopped")

// A Replayed is what follows from a transcript, and from nothing else.
type Replayed struct {
	Experiment Experiment // with all changes
	Program    string     // the version that wrote the first line
	Started    time.Time
	// End says why it has stopped: answer, policy, date or operator. It is empty while it has not.
	End     string
	Ended   time.Time
	Keep    int       // the arm that is kept when it has stopped, else −1
	Leader  bool      // by its mean of all that was released, and no answer
	Policy  bool      // it has contexts, and keeps what was learnt
	Answer  int       // of an identification rule, else −1
	Batches int       // as of Info
	Rounds  int       // of adaptivity: how often the policy has decided what to play next
	Arms    []ArmInfo // without decisions, which no transcript has
	// Metrics are as those of Info.
	Metrics [][]float64
	// Cells are as those of Info.
	Cells []CellInfo
	// Contextual is nil where there are arms; it is without decisions.
	Contextual *ContextualInfo
	estimate   []float64
	Spent      privacy.Loss
	Budget     privacy.Budget // of a reward
	Lines      int
	Tip        string // the hash of the last line, in hex

	watch watch
}

// Replay reads a transcript and plays it again: the lines' chain must hold, their times must not go
// back, each batch must be the one that the declared policy plays after the releases before it, what these cost must be within
// the declared budget, and the end must be the policy's where it says so. It believes the sums of
// the releases. An error matches ErrTranscript, or ErrSealed, or is the reader's. A chain that was
// made anew from some line on holds: whoever noted its last hash elsewhere compares it with Tip.
func Replay(in io.Reader, known catalog.Catalog) (*Replayed, error) {
	out := &Replayed{Keep: -1, Answer: -1}
	wrong := func(err error) error {
		return fmt.Errorf("%w: line %d: %w", ErrTranscript, out.Lines, err)
	}
	var all []entry
	var latest time.Time
	for e, err := range entries(out.read(in)) {
		if err != nil {
			return nil, err
		}
		// A release has the time of its tick, and so may be that much behind a line that was written between.
		if !e.at.After(latest.Add(-maxTick * time.Millisecond)) {
			return nil, wrong(fmt.Errorf("its time, %s, is before that of a line above, %s",
				e.at.Format(atForm), latest.Format(atForm)))
		}
		e.line = line{} // which its text has
		if all = append(all, e); e.at.After(latest) {
			latest = e.at
		}
	}
	if len(all) == 0 {
		return nil, wrong(errors.New("there is nothing"))
	}
	h, last := all[0].header, all[len(all)-1].ending
	out.Program, out.Started = h.Program, all[0].at
	if h.Live != transcriptVersion {
		return nil, fmt.Errorf("%w: its version is %d, must be %d", ErrTranscript, h.Live, transcriptVersion)
	}
	decl, err := decl.Reader{Catalog: known}.Parse("declaration", h.Declaration)
	if err == nil {
		err = decl.Check()
	}
	if err == nil {
		out.Experiment = *decl
		out.Budget, err = decl.EachAssignment()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: line 1: %w", ErrTranscript, err)
	}
	if each, err := json.Marshal(out.Budget); err != nil || !bytes.Equal(each, h.Budget) {
		return nil, fmt.Errorf("%w: line 1: its budget is not that of its declaration", ErrTranscript)
	}
	hidden := &sealed{Fast: noise.NewFast(1, 2)}
	var coins policy.Coins = hidden
	if last != nil {
		var seed [16]byte
		if n, err := hex.Decode(seed[:], []byte(last.Coins)); err != nil || n != len(seed) ||
			len(last.Coins) != 2*len(seed) || hashOfCoins(seed) != h.Coins {
			return nil, wrong(errors.New("its coins are not those of the first line"))
		}
		coins = coinsOf(seed)
	}
	at := 1 // the line that is played
	var asked []CohortNote
	for _, e := range all {
		if e.cohort != nil && e.cohort.Asked > 0 {
			asked = append(asked, *e.cohort)
		}
	}
	stopped, err := out.play(decl, coins, asked, played(func(yield func(entry, error) bool) {
		for i, e := range all {
			if at = i + 1; !yield(e, nil) {
				return
			}
		}
	}))
	switch {
	case hidden.tossed:
		return nil, ErrSealed
	case err != nil:
		return nil, fmt.Errorf("%w: line %d: %w", ErrTranscript, at, err)
	}
	if line, err := gatheredAs(decl, all); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrTranscript, line, err)
	}
	if line, err := out.guarded(decl, all); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrTranscript, line, err)
	}
	for i, e := range all {
		if e.change == nil {
			continue
		}
		e.change.done(&out.Experiment)
		terms := out.Experiment
		terms.Traffic = 0 // see served.change
		if err := terms.Check(); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrTranscript, i+1, err)
		}
	}
	if last == nil {
		return out, nil
	}
	out.End, out.Ended, out.Keep, out.Leader = string(last.End), all[len(all)-1].at, last.Keep, last.Leader
	switch last.End {
	case endAnswer, endPolicy:
		if !stopped || last.End == endAnswer && (out.Answer != last.Keep || out.watch.harms(last.Keep)) {
			return nil, wrong(fmt.Errorf("the end is %q, which is not the policy's", last.End))
		}
	case endDate, endOperator:
	default:
		return nil, wrong(fmt.Errorf("the end is %q, must be answer, policy, date or operator", last.End))
	}
	if decl.Contextual != nil {
		switch out.Policy = last.Policy; {
		case last.Keep != -1:
			return nil, wrong(fmt.Errorf("it keeps arm %d, and has none", last.Keep))
		case last.Policy && (out.estimate == nil || out.Contextual.Released == 0):
			return nil, wrong(errors.New("it keeps what was learnt, which is nothing"))
		}
		return out, nil
	}
	if last.Policy {
		return nil, wrong(errors.New("it keeps what was learnt of contexts, and has arms"))
	}
	if last.Keep < 0 || last.Keep >= len(out.Arms) {
		return nil, wrong(fmt.Errorf("it keeps arm %d, of %d", last.Keep, len(out.Arms)))
	}
	leaves := func(a int) bool {
		return out.Arms[a].Off || slices.Contains(last.Without, a) || out.watch.harms(a)
	}
	if last.Leader && leader(out.Arms, leaves) != last.Keep {
		return nil, wrong(fmt.Errorf("it keeps arm %d as the leader, which does not lead", last.Keep))
	}
	return out, nil
}

// Model is what was learnt by these releases, the same as Engine.Model has.
func (r *Replayed) Model() (*feature.Model, error) {
	if r.Contextual == nil {
		return nil, errArms
	}
	return modelOf(&r.Experiment, r.Contextual.Released, r.Contextual.Releases, r.Contextual.Noise, r.estimate)
}

// play plays the lines that are play's, and says whether nothing more was to come.
func (r *Replayed) play(decl *Experiment, coins policy.Coins, asked []CohortNote,
	lines iter.Seq2[[]byte, error]) (stopped bool, err error) {
	cfg, answer, err := configOf(decl, coins)
	if err != nil {
		return false, err
	}
	again, err := play.Replay(cfg, lines)
	if err != nil {
		return false, err
	}
	if err := chargeCohorts(again.Ledger, decl, asked, 0); err != nil {
		return false, err
	}
	r.Batches, r.Rounds, r.Spent = again.Lines, again.Batches, again.Ledger.Total()
	if again.Stopped && answer != nil {
		r.Answer = answer()
	}
	if decl.Contextual != nil {
		mapper, err := decl.Mapper()
		if err != nil {
			return false, err
		}
		r.estimate = again.Estimate
		r.Contextual = &ContextualInfo{Released: again.Released[0], Releases: again.Releases[0], Dim: mapper.Dim(),
			Norm: mapper.Norm(), Noise: again.Noise, Rules: again.Rules}
		return again.Stopped, nil
	}
	r.Metrics, r.Cells = again.Metrics, cellsOf(decl, again.Cells)
	for a := range again.Off {
		arm := ArmInfo{Released: again.Released[a], Releases: again.Releases[a], Sum: again.Sums[a],
			Off: again.Off[a]}
		if again.Cells != nil {
			arm.Releases = 0
			for _, c := range again.Cells[a] {
				arm.Releases += c.Releases
			}
		}
		if arm.Releases > 0 {
			arm.Noise = again.Noise
		}
		r.Arms = append(r.Arms, arm)
	}
	return again.Stopped, nil
}

// read are the lines, which it counts.
func (r *Replayed) read(in io.Reader) iter.Seq2[[]byte, error] {
	lines := bufio.NewReader(in)
	return func(yield func([]byte, error) bool) {
		for {
			line, err := lines.ReadBytes('\n')
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return
			case errors.Is(err, io.EOF):
				yield(nil, fmt.Errorf("%w: line %d: %w", ErrTranscript, r.Lines+1, chain.ErrCut))
				return
			case err == nil:
				r.Lines++
				_, r.Tip, _ = chain.Unlink("", line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// sealed are coins that are not known. What they say is of no use, but it is drawn: a policy may toss
// until it is content.
type sealed struct {
	noise.Fast
	tossed bool
}

func (s *sealed) Float64() float64          { s.tossed = true; return s.Fast.Float64() }
func (s *sealed) Normal() float64           { s.tossed = true; return s.Fast.Normal() }
func (s *sealed) Beta(a, b float64) float64 { s.tossed = true; return s.Fast.Beta(a, b) }
