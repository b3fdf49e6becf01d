package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

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
}

type actor struct{}

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
