package serve

import (
	"encoding/json"
	"iter"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
)

// A game is what an experiment's decisions are about, arms or contexts: the one door between what all
// experiments have and what is of their kind. It is there from the declaration on, also where
// nothing is played, and has what everybody may see of releases. Its methods are called under
// live.mu.
type game interface {
	queues() int // of decisions
	// begin makes the play at its beginning, and resume from what is stored and the transcript's
	// lines that are play's.
	begin(e *Engine, epoch play.Epoch) (machine, error)
	resume(e *Engine, epoch play.Epoch, s store.Stored, lines iter.Seq2[[]byte, error]) (machine, error)
	// read is told what is stored of the queues.
	read(arms []store.Arm)

	// rank decides an event; what was made must be durable before it is told.
	rank(ask RankAsk, now int64) (Ranking, given, error)
	// activate makes an offer a decision; ok is false if it is none any more.
	activate(r reported, now int64) (k play.Ticket, ok bool, err error)
	// reward takes the reward of a decision, and withdraw takes one out.
	reward(k play.Ticket, r reported, now int64) (play.Status, error)
	withdraw(k play.Ticket, now int64) (play.Status, error)
	gone(arm int) bool // it was taken off

	// off are the numbers of arms that can be taken off, by their names. change does the next thing
	// of the game's own that is to be changed, nil if there is none.
	off(names []string) ([]int, error)
	change(now int64) (*play.Commit, error)
	// over says that the play has ended by itself, why, and which arm is kept.
	over() (keep int, why endReason, ok bool)
	// kept is the arm of a name that can be kept at the end; the game's own choice if it is empty.
	kept(name string) (int, error)
	// waits is what decisions wait for, and until when; for nothing if it is empty.
	waits(now int64) (wait string, until int64)

	// show lets everybody see a line that is durable, and book one of before a restart, which it
	// books on the ledger too.
	show(line []byte) error
	book(ledger *privacy.Ledger, line []byte) error
	tell(out *Info)

	// write adds what is to be stored of the game alone.
	write(w *store.Write)
	plan(to *plan)
	more(sums []int64) string // of a segment, as it is stored
	// extra adds what is kept of a unit beside its assignment, readExtra reads it, and forget and
	// forgetAll forget it.
	extra(b []byte, t tag) []byte
	readExtra(b []byte, t tag) (rest []byte, err error)
	forget(t tag)
	forgetAll()
	// end forgets the play, with the sums of rewards that were not released and the noise that was
	// kept: none of it is asked for again.
	end()
	// batch reads a line that is play's; played is false if it is none of the game's own.
	batch(line []byte, to *Batch) (played bool, err error)
}

func newGame(x *live) (game, error) {
	if x.decl.Contextual != nil {
		return newContexts(x)
	}
	return newArms(x), nil
}

// A machine is a play of any kind.
type machine interface {
	Due(now int64) (at int64, ok bool)
	Close(now int64) (*play.Commit, error)
	Commit(c *play.Commit) error
	Note(change json.RawMessage) (*play.Commit, error)
	Stopped() bool
	Ledger() *privacy.Ledger
	Segment(arm, number int) (play.Segment, bool)
	Queue(arm, from int) play.Queue
	SetWindow(window, cut int64) error
}
