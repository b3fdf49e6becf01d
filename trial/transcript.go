package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A transcript is lines of JSON: the trial (a header), then for each batch its plays and, if it
// released anything, the release as the ledger writes it (privacy.WithTranscript), and at last how
// the trial ended. It is everything that the guarantee is about, and may be published.
//
// Each line has the hash of the one before it (internal/chain), and only the last says how the trial ended:
// a file that was cut has no end. That finds what was damaged or lost, and who changes a line has
// to rewrite all that follow; it has no key, so who does rewrite them is found only by a hash of
// the file that was noted elsewhere.

// header is the first line of a transcript.
type header struct {
	Trial  int             `json:"trial"` // version of the format
	Rule   string          `json:"rule"`
	Params catalog.Params  `json:"params"`
	Budget json.RawMessage `json:"budget"`
	Risk   float64         `json:"risk"`
	Arms   []string        `json:"arms"`
	Range  [2]float64      `json:"range"`
	// Simulated says that rewards and noise came from a seed: nobody is in the trial.
	Simulated bool `json:"simulated,omitempty"`
}

const transcriptVersion = 2 // 1 had no chain

type played struct {
	Arm     int  `json:"arm"`
	Rounds  int  `json:"rounds"`
	Release bool `json:"release,omitempty"`
}

// batchLine is what was played between two looks of the rule, in the public order of policy.Batch.
type batchLine struct {
	Plays []played `json:"plays"`
}

func playsLine(b *policy.Batch) batchLine {
	out := batchLine{Plays: make([]played, len(b.Plays))}
	for i, p := range b.Plays {
		out.Plays[i] = played{p.Arm, p.Rounds, p.Release}
	}
	return out
}

// endLine is the last line.
type endLine struct {
	End    string `json:"end"` // answer, cap, data or interrupted
	Answer int    `json:"answer"`
	Tau    int    `json:"tau"`
	Total  []int  `json:"total"` // plays of each arm
}

// Ends of a trial.
const (
	endAnswer      = "answer"
	endCap         = "cap"
	endData        = "data"
	endInterrupted = "interrupted"
)

func writeHeader(w io.Writer, r Rule, names []string, lo, hi float64, simulated bool) error {
	b, err := json.Marshal(r.budget)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	return writeLine(w, header{transcriptVersion, r.Name(), r.params, b, r.risk, names,
		[2]float64{lo, hi}, simulated})
}

// ErrTranscript is matched by the error of Replay for what is no transcript, or not of this trial.
var ErrTranscript = errors.New("not the transcript of a trial")

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	return nil
}

// A Replayed is a trial as its transcript has it.
type Replayed struct {
	Rule      Rule
	Names     []string // of the arms
	Simulated bool
	End       string // answer, cap, data or interrupted
	Result
	lo, hi float64
}

// Range is the declared range of rewards.
func (r *Replayed) Range() (lo, hi float64) { return r.lo, r.hi }

// Replay reads a transcript and plays the trial again from its releases alone, on no data. That
// every play and the answer come out the same shows that they are post-processing of the releases,
// and so that the trial has cost what these have. Of a release only its sums are believed: its
// mechanism, slots, tail and numbers of rewards must be those that the rule's curator has. It
// checks a transcript; it does not vouch for where it comes from: the lines' chain has no key. It
// takes as long as the rule takes for a trial like that.
func Replay(in io.Reader) (*Replayed, error) {
	lines := chain.NewReader(in)
	fail := func(format string, args ...any) (*Replayed, error) {
		return nil, fmt.Errorf("%w: line %d: "+format, append([]any{ErrTranscript, lines.At()}, args...)...)
	}
	text, err := lines.Next()
	if errors.Is(err, io.EOF) {
		return fail("there is nothing")
	} else if err != nil {
		return fail("%w", err)
	}
	rule, h, err := readHeader(text)
	if err != nil {
		return fail("%w", err)
	}
	p, err := rule.policy(nil)
	if err != nil {
		return fail("%w", err)
	}
	outline, err := release.NewOutline(release.Config{Arms: rule.arms, Lo: h.Range[0],
		Hi: h.Range[1], Mechanism: p.Mechanism()}, !h.Simulated)
	if err != nil {
		return fail("%w", err)
	}
	rec := newRecorder(p, rule.arms, nil)
	options := []privacy.Option{privacy.Covering(identify.Output)}
	if rule.Private() { // releases that cost more than the header says are not this trial's
		options = append(options, privacy.WithCap(rule.budget))
	}
	ledger := privacy.NewLedger(options...)
	plays := make([]int, rule.arms)
	var last *policy.Batch // what is out, played but not yet released
	var released privacy.Released
	settle := func() { // a batch that asked for no release left no line
		if last != nil && !waits(last) {
			count(plays, last)
			last = nil
		}
	}
	for {
		if text, err = lines.Next(); errors.Is(err, io.EOF) {
			return fail("the trial has no end: a last line with \"end\" is missing")
		} else if errors.Is(err, chain.ErrBroken) {
			return fail("%w", err)
		} else if err != nil {
			return fail("the trial has no end: %w", err)
		}
		var kind struct {
			Plays, Slots json.RawMessage
			End          string
		}
		if err := json.Unmarshal(text, &kind); err != nil {
			return fail("%w", err)
		}
		switch {
		case kind.Plays != nil:
			var line batchLine
			if err := strict(text, &line); err != nil {
				return fail("%w", err)
			}
			if err := asWritten(text, line); err != nil {
				return fail("%w", err)
			}
			if settle(); last != nil {
				return fail("the batch before released nothing")
			}
			if last = rec.Next(released); last == nil || !slices.Equal(playsLine(last).Plays, line.Plays) {
				return fail("the rule does not play this after these releases")
			}
			released = privacy.Released{}
			for _, p := range last.Plays {
				if err := outline.Play(p.Arm, p.Rounds); err != nil {
					return fail("%w", err)
				}
			}
		case kind.Slots != nil:
			if last == nil || !waits(last) {
				return fail("a release that nobody asked for")
			}
			form, err := outline.Release(releasing(last))
			if err == nil {
				err = compare(text, form)
			}
			if err == nil {
				released, err = ledger.Restore(text)
			}
			if err != nil {
				return fail("%w", err)
			}
			count(plays, last)
			last = nil
		default:
			var end endLine
			if err := strict(text, &end); err != nil {
				return fail("%w", err)
			}
			if err := asWritten(text, end); err != nil {
				return fail("%w", err)
			}
			settle()
			out := &Replayed{Rule: rule, Names: h.Arms, Simulated: h.Simulated, End: end.End,
				lo: h.Range[0], hi: h.Range[1]}
			stopped := last == nil && rec.Next(released) == nil
			switch {
			case stopped != (end.End == endAnswer):
				return fail("the end is %q, which is not the rule's", end.End)
			case stopped && (rec.Answer() != end.Answer || !slices.Equal(plays, end.Total)):
				return fail("the answer %d after %v plays is not the rule's: it says %d after %v",
					end.Answer, end.Total, rec.Answer(), plays)
			case !stopped && end.Answer != -1:
				return fail("the answer is %d, but the rule has given none", end.Answer)
			case !slices.Contains([]string{endAnswer, endCap, endData, endInterrupted}, end.End):
				return fail("the end is %q, must be answer, cap, data or interrupted", end.End)
			case len(end.Total) != rule.arms || below(end.Total, plays) || total(end.Total) != end.Tau:
				return fail("the plays %v are not those of a trial of %d plays of %d arms, of "+
					"which %v were released", end.Total, end.Tau, rule.arms, plays)
			}
			if text, err := lines.Next(); !errors.Is(err, io.EOF) || len(text) > 0 {
				return fail("there is something after the end")
			}
			out.Result = rec.result(end.Tau, end.Total, h.Range[0], h.Range[1], ledger.Total())
			if !stopped {
				out.Answer = -1
			}
			return out, nil
		}
	}
}

// compare holds a release against what the rule's curator makes: all of it but the sums, which only
// the curator can know.
func compare(text []byte, want release.Form) error {
	var in struct {
		Slots     []int           `json:"slots"`
		Mechanism json.RawMessage `json:"mechanism"`
		N         []int           `json:"n"`
		Sum       []float64       `json:"sum"`
		Tail      privacy.Tail    `json:"tail"`
	}
	if err := strict(text, &in); err != nil {
		return err
	}
	m, err := privacy.UnmarshalMechanism(in.Mechanism)
	switch {
	case err != nil:
		return err
	case m != want.Mechanism:
		return fmt.Errorf("the mechanism of the release is %v, and the rule's is %v", m, want.Mechanism)
	case !slices.Equal(in.Slots, want.Slots):
		return fmt.Errorf("the slots of the release are %v, and the rule's are %v", in.Slots, want.Slots)
	case !slices.Equal(in.N, want.N):
		return fmt.Errorf("the counts of the release are %v, and the rule's are %v", in.N, want.N)
	case in.Tail != want.Tail:
		return fmt.Errorf("the tail of the release is %+v, and the rule's is %+v", in.Tail, want.Tail)
	case len(in.Sum) != len(want.N):
		return fmt.Errorf("%d sums where the rule asked for %d", len(in.Sum), len(want.N))
	}
	if in.Mechanism, err = json.Marshal(m); err != nil {
		return err
	}
	return asWritten(text, in)
}

func readHeader(text []byte) (Rule, header, error) {
	var h header
	if err := strict(text, &h); err != nil {
		return Rule{}, h, err
	}
	if h.Trial != transcriptVersion {
		return Rule{}, h, fmt.Errorf("the version is %d, must be %d", h.Trial, transcriptVersion)
	}
	budget, err := privacy.UnmarshalBudget(h.Budget)
	if err != nil {
		return Rule{}, h, err
	}
	if err := checkRange(h.Range[0], h.Range[1]); err != nil {
		return Rule{}, h, err
	}
	if h.Budget, err = json.Marshal(budget); err != nil {
		return Rule{}, h, err
	}
	if err := asWritten(text, h); err != nil {
		return Rule{}, h, err
	}
	rule, err := NewRule(h.Rule, len(h.Arms), h.Risk, budget, h.Params)
	return rule, h, err
}

func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// asWritten refuses what a trial does not write, though it reads as v: a field that is there
// twice, in other letters or not at all, or something behind the object. Another reader could
// take it for something else.
func asWritten(text []byte, v any) error {
	b, err := json.Marshal(v)
	if err == nil && !bytes.Equal(b, text) {
		err = errors.New("it reads as what a trial may write, and is not written so: a field is " +
			"there twice, missing or in other letters, " +
			"or there are spaces or something else besides")
	}
	return err
}

func waits(b *policy.Batch) bool { return len(releasing(b)) > 0 }

// releasing are the arms that a batch releases.
func releasing(b *policy.Batch) []int {
	var arms []int
	for _, p := range b.Plays {
		if p.Release {
			arms = append(arms, p.Arm)
		}
	}
	return arms
}

func count(plays []int, b *policy.Batch) {
	for _, p := range b.Plays {
		plays[p.Arm] += p.Rounds
	}
}

// below says that some arm has fewer plays than the batches that were released.
func below(plays, released []int) bool {
	for a, n := range released {
		if plays[a] < n {
			return true
		}
	}
	return false
}

func total(plays []int) int {
	sum := 0
	for _, n := range plays {
		sum += n
	}
	return sum
}

func checkRange(lo, hi float64) error {
	if !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) || math.IsInf(hi-lo, 0) ||
		math.IsInf(1/(hi-lo), 0) {
		return fmt.Errorf("range is [%v, %v], must be two finite numbers, the lower one first", lo, hi)
	}
	return nil
}
