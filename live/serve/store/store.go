// Package store keeps live experiments durably: their declarations, counts, pending sums,
// assignments and releases. It knows nothing of policies, noise or time; what it is told to write
// is there whole after Commit has returned, also after a loss of power, or not at all. Begin with SQLite, Postgres or NewMemory.
//
// There is one writer at a time. Whoever begins takes the store over, and the commits of all who
// began before are refused from then on, each inside its own transaction: a process that was
// stopped, forgotten, and woke up again cannot write.
//
// What is stored holds sums of rewards, for a moment of single ones, and where several reports of a
// decision count its total until that is released: whoever reads the files is the curator. What a release has taken is gone from the store with the same transaction, and is
// overwritten, not just unlinked.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sotto-dp/sotto/play"
)

var (
	// ErrFenced is matched when somebody else has begun to write since.
	ErrFenced = errors.New("another process has taken the store over")
	// ErrSchema is matched when the store was written by another version of the program.
	ErrSchema = errors.New("the store is of another version")
	// ErrShares is matched, and ErrSchema too, when a database has more shares than it was opened as, which does
	// not pass.
	ErrShares = fmt.Errorf("%w", ErrSchema)
	// ErrReplaced is matched when the tables are not those that this process has had open: a dump was
	// restored beneath it, or they were dropped.
	ErrReplaced = errors.New("the store was replaced beneath this process, as pg_restore --clean does; " +
		"end every process on it, restore, and start them again")
	// ErrReadOnly is matched when the store was opened to be read.
	ErrReadOnly = errors.New("the store was opened to be read")
)

// A Store keeps experiments. It serves many goroutines; commits are made one after the other. After
// an error of Commit nobody knows whether it was made: close the store, open it again, and read.
type Store interface {
	// Begin takes the store over for a holder, a name for people to read, and says what is in it.
	// It comes before everything else, once.
	Begin(ctx context.Context, holder string) (Opened, error)
	// Held says whether the store may still write: nil, or an error, which matches ErrFenced if
	// somebody else has begun since. It only reads, and does not wait for who writes.
	Held(ctx context.Context) error
	// Load is all of an experiment but its lines.
	Load(ctx context.Context, id int64) (Stored, error)
	// Lines are those of an experiment's transcript from number from on, 0 being the first.
	Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error]
	// Reports are those that an experiment has of an arm's decisions from number start up to end, by
	// number.
	Reports(ctx context.Context, id int64, arm, start, end int) iter.Seq2[Hidden, error]
	// Units are the assignments of an experiment, block by block, in the order in which they were added. A
	// block that is written anew meanwhile comes once more, at the end.
	Units(ctx context.Context, id int64) iter.Seq2[[]byte, error]
	// Heads are what there is of all experiments but their decisions, rewards, units and lines, as of one
	// moment. It may be called before Begin, and takes nothing over.
	Heads(ctx context.Context) (Heads, error)
	// Audit is the journal of what operators did, from line from on, 0 being the first.
	Audit(ctx context.Context, from int) iter.Seq2[[]byte, error]
	// Commit writes all of it, in one transaction, durably.
	Commit(ctx context.Context, c Commit) error
	Close() error
}

// A Roomy store can say whether there is room for more than the next few commits. A disk that was full
// gives some pages back when files are closed, which is no end of that.
type Roomy interface {
	Store
	// Room is nil if there is. It may be called before Begin.
	Room() error
}

// A Tidier is a store that gives room back to the file system when what was in it has been dropped: some of
// it a call, between commits, by whoever commits.
type Tidier interface {
	// Tidy says whether there is more to give back.
	Tidy(ctx context.Context) (more bool, err error)
}

// A Shared store is one that many processes have open. One writes, and the others watch it.
type Shared interface {
	Store
	// Look says who writes. It does not wait for it, and may be called before Begin.
	Look(ctx context.Context) (Writer, error)
	// Claim is Begin for one whom the others find at an address. Its error matches ErrFenced if
	// somebody has begun since after was seen.
	Claim(ctx context.Context, after Writer, holder, address string) (Opened, error)
}

// A Writer is who has begun last, as Look sees it.
type Writer struct {
	Term    int64  // how many began
	Commits int64  // how many there were: while it writes they grow
	Address string // where others find it; empty if they do not
	Busy    bool   // the database is at work on what it sent
	Gone    bool   // its connection has ended
	// Broken: it has, and it did not say that it ends. Its process may live, and not know it yet.
	Broken bool
	// Database names what is looked at, and nothing that was copied or restored from it: the name is in
	// no dump. Who has not read the database cannot know it.
	Database string
}

// After says whether w writes: there are commits that there were not when was was seen.
func (w Writer) After(was Writer) bool { return w.Term == was.Term && w.Commits > was.Commits }

// Opened is what a store says when it is taken over.
type Opened struct {
	Secret [32]byte // drawn when the store was made; keys of tokens and tags come from it
	Now    int64    // the time of the last commit
	Clock  int64    // the time that the store's own clock says, which all who share it have; else 0
	// Elsewhere: that clock is another machine's than this process's.
	Elsewhere bool
	// Older: the store has gone back, a backup was restored. What it says was assigned and
	// released may be less than what was.
	Older       bool
	Experiments []Record
	Keys        []Record
}

// A Record is a name and what the store's user makes of it.
type Record struct {
	ID   int64
	Name string
	Data []byte
}

// Heads are what a store has, without what grows with decisions and rewards.
type Heads struct {
	Secret      [32]byte
	Keys        []Record
	Experiments []Head
}

// A Head is an experiment's.
type Head struct {
	Record
	Plan  []byte // the batch that is out, as the store's user writes it
	Lines int    // of its transcript
}

// Stored is the state of an experiment.
type Stored struct {
	Plan     []byte // the batch that is out, as its user writes it
	Lines    int
	Arms     []Arm // by arm
	Segments []Segment
	Parts    []Part   // by arm, start and number
	Totals   []Total  // by arm and number
	Events   []Events // by start
	Units    [][]byte // in the order in which they were added
	Hours    []Hour   // by time
}

// An Arm is what is kept of the queue of an arm beside its segments.
type Arm struct {
	Arm, Head, Issued, Asked int
	Off                      bool
	Runs                     []play.Run
}

// An Hour is how many decisions were issued in an hour.
type Hour struct {
	At        int64  // hours since 1970
	Decisions []byte // as the store's user writes them
}

// A Segment is a row of decisions of an arm and the sum of the rewards that came.
type Segment struct {
	Arm, Start, End int
	Cut, Settles    int64
	Sum             int64
	More            string // further sums, as the store's user writes them
}

// A Part says which decisions of a segment have had their rewards, in addition to those of the
// parts with lower numbers. Part 0 takes the place of all.
type Part struct {
	Arm, Start int // of the segment
	Number     int
	Redeemed   []byte // as the store's user writes it
}

// A Hidden is what came of a decision where rewards are hidden from the store's user. It is kept until
// the decision is released, and goes with its segment.
type Hidden struct {
	Arm, Number int
	Data        []byte // as the store's user writes it
}

// A Total is what has come of a decision of which several reports count: one person's. It is kept until
// the decision is released, and goes with its segment.
type Total struct {
	Arm, Number int
	Data        []byte // as the store's user writes it
}

// Events are what must be known of decisions of arm 0 until they are released, from number Start on.
// They are of one segment, and go with it.
type Events struct {
	Start int
	Data  []byte // as the store's user writes them
}

// A Commit is one transaction.
type Commit struct {
	Now    int64
	Writes []Write
	Keys   []Record // that are new or changed
	Audit  [][]byte // lines for the journal of what operators did
}

// A Write is what is new of one experiment. What is left empty stays.
type Write struct {
	ID       int64
	Record   *Record // its declaration and state
	Plan     []byte
	Arms     []Arm
	Segments []Segment
	Parts    []Part
	Events   []Events // that are new
	Reports  []Hidden // the first of a decision stays
	Totals   []Total  // the last of a decision stays
	Units    []byte
	Hours    []Hour
	// Lines are the next of the transcript, the first of them number Number; the decisions of Taken
	// are in them, and their segments, parts, events, reports and totals go.
	Lines  [][]byte
	Number int
	Taken  []play.Taken
	// DropSums destroys all segments, parts, events, reports and totals, DropUnits all units.
	DropSums, DropUnits bool
}
