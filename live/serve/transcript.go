package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/internal/build"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
)

// A transcript is lines of JSON, stored and published as they are. Each but the first has the
// SHA-256 of the line before it (internal/chain), each has the time, at which everybody may
// see it (a public tick if it is a release), and then:
//
//   - header, the first: the declaration, the budget of one assignment, the version, and the hash
//     of the seed of the policy's coins;
//   - a batch that was played, with what it released, and what was released ahead of a batch, with it
//     or alone, or a segment of decisions with contexts, an arm that was taken off or added, a Change, or the rest,
//     which is released when decisions have ended: play's lines;
//   - a CohortNote, about decisions whose sum comes from a session of clients;
//   - ending, the last, once the experiment has stopped: why, the arm that is kept, and the seed.
//
// The seed is told when there is nothing more to be tossed: before, it would say what the policy is
// going to draw. Draws for contexts follow from the play's epoch too, and are no state: who replays checks estimates
// and releases, and not what was drawn. The transcript is everything that the guarantee is about.
type header struct {
	Live        int             `json:"live"` // version of the format
	Program     string          `json:"program"`
	Declaration json.RawMessage `json:"declaration"`
	Budget      json.RawMessage `json:"budget"`
	Coins       string          `json:"coins"` // SHA-256 of the seed, in hex
}

const transcriptVersion = 1

// ending is the last line.
type ending struct {
	End    endReason `json:"end"`
	Keep   int       `json:"keep"`             // the arm
	Leader bool      `json:"leader,omitempty"` // by its mean of all that was released, and no answer
	Policy bool      `json:"policy,omitempty"` // there is none, and what was learnt of contexts is kept
	// arms that were about to be taken off, of which none is kept
	Without []int  `json:"without,omitempty"`
	Gone    int    `json:"gone,omitempty"` // decisions that were destroyed unreleased
	Coins   string `json:"coins"`          // the seed, in hex
}

// An endReason says why an experiment has stopped.
type endReason string

const (
	endAnswer   endReason = "answer"   // an identification rule has its answer
	endPolicy   endReason = "policy"   // the policy wants nothing more
	endDate     endReason = "date"     // the declared end has come
	endOperator endReason = "operator" // somebody stopped it
)

// ErrTranscript is matched by the error for what is not a transcript, or does not hold.
var ErrTranscript = errors.New("the transcript does not hold")

const atForm = "2006-01-02T15:04:05.000Z"

// say adds a line to those that are written with the next commit.
func (x *served) say(now int64, object any) error {
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	x.sayText(now, b)
	return nil
}

// sayText is say of an object that is written already.
func (x *served) sayText(now int64, object []byte) {
	at := `{"at":"` + time.UnixMilli(now).UTC().Format(atForm) + `",`
	x.out = append(x.out, slices.Concat([]byte(at), object[1:]))
}

// open is the first line.
func (x *served) open(now int64) error {
	x.began = now
	h := header{Live: transcriptVersion, Program: build.This().Version,
		Coins: hashOfCoins(x.rec.Coins)}
	each, err := x.decl.EachAssignment()
	if err != nil {
		return err
	}
	if h.Budget, err = json.Marshal(each); err != nil {
		return err
	}
	if h.Declaration, err = x.decl.JSON(); err != nil {
		return err
	}
	return x.say(now, h)
}

func hashOfCoins(seed [16]byte) string {
	h := sha256.Sum256(seed[:])
	return hex.EncodeToString(h[:])
}

// declared is what the first line declares, held against what is stored beside it.
func (x *served) declared(h header) (*Experiment, error) {
	decl, err := decl.Reader{Catalog: x.decl.Catalog}.Parse("declaration", h.Declaration)
	switch {
	case h.Live != transcriptVersion:
		return nil, fmt.Errorf("its version is %d, must be %d", h.Live, transcriptVersion)
	case err != nil:
		return nil, err
	case h.Coins != hashOfCoins(x.rec.Coins):
		return nil, errors.New("its coins are not the experiment's")
	}
	return decl, nil
}

// equal says whether two declarations are one.
func equal(a, b *Experiment) (bool, error) {
	one, err := a.JSON()
	if err != nil {
		return false, err
	}
	other, err := b.JSON()
	return bytes.Equal(one, other), err
}

// link links what was said to the lines before.
func (x *served) link() (lines [][]byte) {
	for _, object := range x.out {
		if x.lines == x.held {
			x.heldTip = x.tip
		}
		line, tip := chain.Link(x.tip, object)
		lines, x.tip = append(lines, line), tip
		x.lines++
	}
	x.out = nil
	return lines
}

// visible is how many lines everybody may see, and the hash of the last of them.
func (x *served) visible() (lines int, tip string) {
	if x.pending != nil && x.held <= x.durable.lines {
		return x.held, x.heldTip
	}
	return x.durable.lines, x.durable.tip
}

// An entry is a line without its link.
type entry struct {
	at   time.Time
	text []byte // of the object that was said
	line
	header *header
	ending *ending
	change *Change
	cohort *CohortNote
}

// plays says whether it is one of play's lines.
func (e *entry) plays() bool { return e.header == nil && e.ending == nil && e.cohort == nil }

// readEntry reads an object of a transcript.
func readEntry(object []byte) (entry, error) {
	var e entry
	rest, ok := bytes.CutPrefix(object, []byte(`{"at":"`))
	if ok = ok && len(rest) > len(atForm)+3 && string(rest[len(atForm):len(atForm)+2]) == `",`; !ok {
		return e, errors.New("it has no time")
	}
	var err error
	if e.at, err = time.Parse(atForm, string(rest[:len(atForm)])); err != nil {
		return e, errors.New("it has no time")
	}
	e.text = append([]byte("{"), rest[len(atForm)+2:]...)
	if e.line, err = readLine(e.text); err != nil {
		return e, err
	}
	switch {
	case e.Live != nil:
		e.header = &header{}
		err = asWritten(e.text, e.header)
	case e.End != nil:
		e.ending = &ending{}
		err = asWritten(e.text, e.ending)
	case e.Change != nil:
		e.change = &Change{}
		if err = asWritten(e.Change, e.change); err == nil && (e.Add != nil) != (len(e.change.Add) == 1) {
			err = errors.New("an arm is added without its name, or named without being added")
		}
	case e.Cohort != nil:
		line := &cohortLine{}
		err = asWritten(e.text, line)
		e.cohort = &line.Cohort
	case e.Plays == nil && e.Ahead == nil && e.Off == nil && e.N == nil && e.Rest == nil:
		err = errors.New("it is of no known kind")
	}
	return e, err
}

// asWritten reads an object, and refuses one that another reader could read otherwise: with a field
// twice, in other letters or not at all, or with something besides.
func asWritten(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if again, err := json.Marshal(to); err != nil || !bytes.Equal(again, text) {
		return errors.New("it is not written as a transcript's lines are")
	}
	return nil
}

// entries reads linked lines. An error of what is in them matches ErrTranscript and names the line;
// others are of the lines.
func entries(lines iter.Seq2[[]byte, error]) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		tip, n, ended := "", 0, false
		for line, err := range lines {
			n++
			var e entry
			if err == nil { // else it is the lines' own
				var object []byte
				object, tip, err = chain.Unlink(tip, line)
				if err == nil {
					e, err = readEntry(object)
				}
				switch {
				case err != nil:
				case (n == 1) != (e.header != nil):
					err = errors.New("a declaration must be the first line, and no other")
				case ended:
					err = errors.New("it follows the end")
				}
				ended = ended || e.ending != nil
				if err != nil {
					err = fmt.Errorf("%w: line %d: %w", ErrTranscript, n, err)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// played are the lines that are play's.
func played(all iter.Seq2[entry, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for e, err := range all {
			if err == nil && !e.plays() {
				continue
			}
			if !yield(e.text, err) {
				return
			}
		}
	}
}

// A Point is a release of one arm, as everybody may see it. Where there are no arms there are none.
type Point struct {
	At   time.Time
	Arm  int
	Sums interval.Sums // all of the arm so far
}

// An Earning is what a rule of an experiment with contexts would have earned a decision, as of a release.
type Earning struct {
	At       time.Time
	Rule     int
	N        int // decisions that were released
	Mean     float64
	Interval [2]float64 // holds together with those of all rules at all times
}

// Earnings are how the estimates of an experiment's rules have gone up to what is known of it, from the lines of
// its transcript.
func (e *Engine) Earnings(ctx context.Context, info Info) (iter.Seq2[Earning, error], error) {
	x, err := e.find(info.Experiment.Name)
	if err != nil {
		return nil, err
	}
	lines := e.lines(ctx, x, 0)
	return func(yield func(Earning, error) bool) {
		b, err := newBoard(&info.Experiment)
		n := 0
		for line, failed := range lines {
			if n++; err != nil || n > info.Lines {
				break
			}
			var at entry
			if err = failed; err == nil { // it was verified when it was read first
				at, err = readEntry(chain.Object(line))
			}
			before := b.queues[0].Releases
			if err == nil {
				err = b.show(&at.line, at.at)
			}
			if err != nil {
				err = fmt.Errorf("%w: line %d: %w", ErrTranscript, n, err)
				break
			}
			for i, r := range b.rules {
				mean, within, ok := (&ContextualInfo{Rules: b.rules}).Earned(i)
				if ok && b.queues[0].Releases > before && !yield(Earning{at.at, i, r.N, mean, within}, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Earning{}, err)
		}
	}, nil
}

// Course is how an experiment is, and all of its releases up to then, from the lines of its
// transcript.
func (e *Engine) Course(ctx context.Context, name string) (Info, iter.Seq2[Point, error], error) {
	info, err := e.Get(ctx, name)
	if err != nil {
		return Info{}, nil, err
	}
	lines, err := e.Transcript(ctx, name)
	if err != nil {
		return Info{}, nil, err
	}
	return info, func(yield func(Point, error) bool) {
		if info.Contextual != nil {
			return
		}
		b, err := newBoard(&info.Experiment)
		if err != nil {
			yield(Point{}, err)
			return
		}
		n := 0
		for at, err := range entries(lines) {
			if n++; n > info.Lines {
				return // it was written since
			}
			before := slices.Clone(b.queues)
			if err == nil {
				err = b.show(&at.line, at.at)
			}
			if err != nil {
				yield(Point{}, err)
				return
			}
			for a, arm := range b.queues {
				if (a >= len(before) || arm.Releases > before[a].Releases) && arm.Releases > 0 && !yield(Point{at.at, a, arm.Sums()}, nil) {
					return
				}
			}
		}
	}, nil
}
