package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// An Entry is a line of the journal of what operators did. It has nothing of a unit or a reward.
type Entry struct {
	Time time.Time `json:"time"`
	// Key is the ID of whose it was, 0 for the program itself, and By its name.
	Key int64  `json:"key,omitempty"`
	By  string `json:"by"`
	// Issuer is of identities, and named who it was; empty for keys.
	Issuer     string `json:"issuer,omitempty"`
	Did        string `json:"did"` // such as create, stop or revoke key
	Experiment string `json:"experiment,omitempty"`
	// With is what it was done with: the arm, or the name of the key.
	With string `json:"with,omitempty"`
	// Reason is why, as who did it said (Because). Whoever may see the experiment may read it.
	Reason string `json:"reason,omitempty"`
}

type (
	actor struct{}
	cause struct{}
)

// MaxReason is how many characters a reason has at most.
const MaxReason = 200

// Because returns a context whose operations stand in the journal with a reason: a line of text, empty for none. The
// error is a decl.Error of the field reason.
func Because(ctx context.Context, reason string) (context.Context, error) {
	switch n := utf8.RuneCountInString(reason); {
	case n > MaxReason:
		return nil, fieldError("reason", "is %d characters long, must have at most %d", n, MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, fieldError("reason", "has a character that cannot be seen, such as a new line, must be a line of text")
	}
	return context.WithValue(ctx, cause{}, strings.TrimSpace(reason)), nil
}

// As returns a context whose operations stand in the journal as those of a key, or of a person. Without, they are
// the program's.
func As(ctx context.Context, k Key) context.Context { return context.WithValue(ctx, actor{}, k) }

// By is the key whose operations those of a context are, none if they are the program's.
func By(ctx context.Context) (k Key, ok bool) {
	k, ok = ctx.Value(actor{}).(Key)
	return k, ok
}

// note adds to the journal, in the transaction of what was done.
func note(ctx context.Context, c *store.Commit, did Entry) {
	did.Time, did.By = time.UnixMilli(c.Now).UTC(), "the program"
	if k, ok := By(ctx); ok {
		did.Key, did.By, did.Issuer = k.ID, k.Name, k.Issuer
	}
	did.Reason, _ = ctx.Value(cause{}).(string)
	line, _ := json.Marshal(did) // there is nothing in it that JSON cannot hold
	c.Audit = append(c.Audit, append(line, '\n'))
}

// Audit is the journal of what operators did, from number from on, 0 being the first: as JSON, one
// line each. What is in it is durable with what was done, and is never changed.
func (e *Engine) Audit(ctx context.Context, from int) (iter.Seq2[[]byte, error], error) {
	if from < 0 {
		return nil, fmt.Errorf("from is %d, must be at least 0", from)
	}
	if !e.here() {
		return nil, errElsewhere
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.read(e.reading, e.reading.Audit(ctx, from)), nil
}

// told says whether whoever may see the experiment may know of it: of what concerns a unit nobody may.
func (did *Entry) told() bool {
	switch did.Did {
	case "create", "start", "pause", "resume", "stop", "stop now", "take off", "change", "guard", "ramp", "archive":
		return true
	}
	return false
}

// Acts are what was done to an experiment, the oldest first: Entries of the journal that tell of no unit. Who did it is
// for who may read the journal.
func (e *Engine) Acts(ctx context.Context, name string) (out []Entry, err error) {
	e.mu.RLock()
	lines := e.read(e.reading, e.reading.Audit(ctx, 0))
	e.mu.RUnlock()
	quoted, _ := json.Marshal(name)
	of := append([]byte(`"experiment":`), quoted...)
	for line, err := range lines {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, of) { // most are of others
			continue
		}
		var did Entry
		if err := json.Unmarshal(line, &did); err != nil {
			return nil, fmt.Errorf("%w: the journal cannot be read: %w", ErrUnavailable, err)
		}
		if did.Experiment == name && did.told() {
			out = append(out, did)
		}
	}
	return out, nil
}
