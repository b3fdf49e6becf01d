// Package helper is the second of two servers of a live experiment whose rewards nobody sees (trust
// two-server): it is run by another party than the leader, package serve, checks the proofs of
// clients' reports together with it (package secagg/dap), and hands out its share of a slot's sum,
// once, with a whole noise of its own in it. Begin with Open, and Handler.
//
// # What is promised
//
// Whatever the leader asks, in whatever order, again or twice at a time, and whoever its other
// clients are: each ticket is checked once and is in one batch, each batch's share is handed out with
// one whole noise, and of each ticket nothing but that share depends. So what the leader sees of a
// reward costs no more than one release of the experiment's mechanism. That holds on what the store
// remembers: what was answered was durable before. The store is live/serve/store's: one process writes at
// a time, and one that was put out cannot.
//
// # What is not
//
// A store that has gone back has forgotten tickets and noises. Where it is seen to have
// (store.Opened.Older) every task that it knows is closed for good: its leader has to declare a new
// one. A whole directory, or a database server with its journal, that went back together cannot be
// seen to have: do not restore them. The helper does not know that a ticket is a person's; a leader
// that gives a person two tickets has two of their rewards, as it would have with one server.
package helper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

var (
	// ErrUnavailable: nothing can be answered now. What was asked can be asked again.
	ErrUnavailable = errors.New("the helper cannot write now")
	// ErrTask: a task cannot be taken on.
	ErrTask = errors.New("task")
	// ErrClosed: the task was closed, as the store has gone back and does not know all that was answered.
	ErrClosed = errors.New("the task is closed: the helper's store has gone back, and what it has answered is " +
		"not known")
)

// A Task is an experiment that the helper takes part in.
type Task struct {
	Declared *decl.Experiment // of trust two-server: the same file that the leader has
	Secret   []byte           // that the two operators share, at least dap.SecretSize random bytes
}

// A Config is what a Helper is made of.
type Config struct {
	Store  func(context.Context) (store.Store, error) // opens the store, also again after an error
	Tasks  []Task
	Log    *slog.Logger // gets what went wrong, never a ticket; nil for none
	Holder string       // names the process in the store, for people to read

	noise func(release.Noise) (int64, error) // of tests; nil: drawn ahead
}

// A Helper answers a leader. Its methods may be called by many goroutines.
type Helper struct {
	cfg Config

	mu    sync.Mutex // of all that follows
	store store.Store
	key   dap.Key
	down  error // why nothing can be written; the store is to be opened again
	tasks map[dap.TaskID]*task
}

// A task is what is kept of a Task. What is in it is also in the store, as records in their order.
type task struct {
	Task
	task   dap.Task
	id     int64
	verify dap.VerifyKey
	bearer string
	draw   func() (int64, error) // its noise
	stated privacy.Mechanism
	closed bool

	jobs    map[dap.ID]job
	batches map[uint32][]*batch // by arm, by start
	ledger  *privacy.Ledger
	slots   int
	next    int // number of the next job in the store
}

// A job that was answered.
type job struct {
	request  [sha256.Size]byte
	response []byte
}

// A batch is one that a job has named, or a request for its share.
type batch struct {
	dap.Batch
	spent map[uint64]bool // tickets; nil once the share is there
	sum   dap.Aggregate
	jobs  []jobRecord // and their numbers in the store
	rows  []int

	share []byte // nil until it was asked for, for so many reports of this checksum
	count int
	check [32]byte
}

// Open opens the store, takes it over, and goes on with all that is in it.
func Open(ctx context.Context, cfg Config) (*Helper, error) {
	if cfg.Store == nil {
		return nil, errors.New("helper: store is missing")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Helper{cfg: cfg}
	if err := h.open(ctx); err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	return h, nil
}

// open reads everything from the store.
func (h *Helper) open(ctx context.Context) error {
	st, err := h.cfg.Store(ctx)
	if err != nil {
		return err
	}
	opened, err := st.Begin(ctx, h.cfg.Holder)
	if err == nil {
		err = h.read(ctx, st, opened)
	}
	if err != nil {
		return errors.Join(err, st.Close())
	}
	h.store, h.down = st, nil
	return nil
}

func (h *Helper) read(ctx context.Context, st store.Store, opened store.Opened) (err error) {
	if h.key, err = dap.DeriveKey(opened.Secret[:], 1); err != nil {
		return err
	}
	tasks := map[dap.TaskID]*task{} // those of before stay, where the store cannot be read
	var c store.Commit
	c.Now = opened.Now
	next := int64(1)
	known := map[string]*store.Record{}
	for i, r := range opened.Experiments {
		next = max(next, r.ID+1)
		known[r.Name] = &opened.Experiments[i]
		if opened.Older && string(r.Data) != closedData {
			opened.Experiments[i].Data = []byte(closedData)
			c.Writes = append(c.Writes, store.Write{ID: r.ID, Record: &opened.Experiments[i]})
		}
	}
	if opened.Older && len(opened.Experiments) > 0 {
		h.cfg.Log.Error("the store has gone back: all tasks that it knows are closed for good")
	}
	for i := range h.cfg.Tasks {
		t, err := h.take(h.cfg.Tasks[i])
		if err != nil {
			return fmt.Errorf("%w %q: %w", ErrTask, h.cfg.Tasks[i].name(), err)
		}
		if tasks[t.task.ID] != nil {
			return fmt.Errorf("%w %q is given twice", ErrTask, t.Declared.Name)
		}
		tasks[t.task.ID] = t
		if r := known[t.task.ID.String()]; r != nil {
			t.id, t.closed = r.ID, string(r.Data) == closedData
			if err := t.load(ctx, st); err != nil {
				return fmt.Errorf("%w %q: what is stored of it: %w", ErrTask, t.Declared.Name, err)
			}
			continue
		}
		t.id = next
		next++
		c.Writes = append(c.Writes, store.Write{ID: t.id, Record: &store.Record{ID: t.id,
			Name: t.task.ID.String(), Data: []byte(openData)}})
	}
	if len(c.Writes) > 0 {
		if err := st.Commit(ctx, c); err != nil {
			return err
		}
	}
	h.tasks = tasks
	return nil
}

// What the store's record of a task says.
const (
	openData   = "{}"
	closedData = `{"closed":true}`
)

func (t Task) name() string {
	if t.Declared == nil {
		return ""
	}
	return t.Declared.Name
}

// take checks a task and derives its keys.
func (h *Helper) take(in Task) (*task, error) {
	if in.Declared == nil {
		return nil, errors.New("its declaration is missing")
	}
	if err := in.Declared.Check(); err != nil {
		return nil, err
	}
	t := &task{Task: in, jobs: map[dap.ID]job{}, batches: map[uint32][]*batch{}}
	var err error
	if t.task, err = in.Declared.Task(); err != nil {
		return nil, err
	}
	if own := h.key.Config().String(); in.Declared.Helper.Key != own {
		return nil, fmt.Errorf("helper.key is %q, must be %q, this helper's", in.Declared.Helper.Key, own)
	}
	law, err := in.Declared.Noise()
	if err != nil {
		return nil, err
	}
	drawn, err := law.Stock(1)
	if err != nil {
		return nil, err
	}
	if t.draw = drawn.Draw; h.cfg.noise != nil {
		t.draw = func() (int64, error) { return h.cfg.noise(law) }
	}
	if t.stated, err = in.Declared.Mechanism(); err != nil {
		return nil, err
	}
	if t.verify, err = dap.DeriveVerify(in.Secret, t.task.ID); err != nil {
		return nil, err
	}
	if t.bearer, err = dap.DeriveBearer(in.Secret, t.task.ID); err != nil {
		return nil, err
	}
	each, err := in.Declared.EachTotal()
	if err != nil {
		return nil, err
	}
	var caps []privacy.Option
	switch each.(type) {
	case privacy.Pure, privacy.ZCDP:
		caps = append(caps, privacy.WithCap(each))
	}
	t.ledger = privacy.NewLedger(caps...)
	return t, nil
}

// A jobRecord is a job that was answered, as the store keeps it until the share of its batch is
// handed out: then its sum is not needed any more, and is gone from the store.
type jobRecord struct {
	Batch    dap.Batch `json:"batch"`
	ID       string    `json:"id"`
	Request  []byte    `json:"request"` // its SHA-256
	Response []byte    `json:"response"`
	Spent    []uint64  `json:"spent,omitempty"`
	Sum      []byte    `json:"sum,omitempty"`
}

// A shareRecord is a batch whose share was handed out.
type shareRecord struct {
	Batch    dap.Batch   `json:"batch"`
	Count    int         `json:"count"`
	Checksum []byte      `json:"checksum"`
	Share    []byte      `json:"share"`
	Jobs     []jobRecord `json:"jobs,omitempty"` // without what only the share was made of
}

// load reads a task's records.
func (t *task) load(ctx context.Context, st store.Store) error {
	stored, err := st.Load(ctx, t.id)
	if err != nil {
		return err
	}
	for _, b := range stored.Units {
		var r shareRecord
		if err := strictly(b, &r); err != nil {
			return err
		}
		if err := t.shared(r); err != nil {
			return err
		}
	}
	for _, v := range stored.Events {
		var r jobRecord
		if err := strictly(v.Data, &r); err != nil {
			return err
		}
		if err := t.answered(v.Start, r); err != nil {
			return err
		}
	}
	return nil
}

func strictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// answered keeps a job that is in the store under a number.
func (t *task) answered(number int, r jobRecord) error {
	b, err := t.batch(r.Batch)
	if err != nil {
		return err
	}
	id, err := dap.ParseID(r.ID)
	if err != nil {
		return err
	}
	var sum dap.Aggregate
	if err := sum.UnmarshalBinary(r.Sum); err != nil {
		return err
	}
	if len(r.Request) != sha256.Size || b.share != nil {
		return errors.New("a job is damaged")
	}
	b.sum = b.sum.Add(sum)
	for _, n := range r.Spent {
		b.spent[n] = true
	}
	b.rows = append(b.rows, number)
	r.Spent, r.Sum = nil, nil
	b.jobs = append(b.jobs, r)
	t.jobs[id] = job{[sha256.Size]byte(r.Request), r.Response}
	t.next = max(t.next, number+1)
	t.add(b)
	return nil
}

// shared keeps a batch whose share was handed out, and books it.
func (t *task) shared(r shareRecord) error {
	b, err := t.batch(r.Batch)
	if err != nil {
		return err
	}
	m, err := t.mechanism(b)
	if err != nil {
		return err
	}
	if len(r.Checksum) != len(b.check) || b.share != nil || r.Share == nil {
		return errors.New("a share is damaged")
	}
	if err := t.ledger.Note(t.slots, m); err != nil {
		return err
	}
	t.slots++
	for _, j := range r.Jobs {
		id, err := dap.ParseID(j.ID)
		if err != nil || len(j.Request) != sha256.Size {
			return errors.New("a job is damaged")
		}
		t.jobs[id] = job{[sha256.Size]byte(j.Request), j.Response}
	}
	*b = batch{Batch: b.Batch, count: r.Count, check: [32]byte(r.Checksum), share: r.Share}
	t.add(b)
	return nil
}

// mechanism is what a batch's share costs a reward in it.
func (t *task) mechanism(b *batch) (privacy.Mechanism, error) {
	return release.GatheredMechanism(t.stated, t.Declared.Gathering(), int(b.End-b.Start))
}

// maxBatch is how many tickets a batch may have: as many as a slot.
const maxBatch = 1 << 30

// batch is what is known of a batch, or a new one, which is not kept yet. One that shares a ticket
// with another is BatchOverlap, for ever.
func (t *task) batch(of dap.Batch) (*batch, error) {
	if int64(of.Arm) >= int64(len(t.Declared.Arms)) || of.End-of.Start > maxBatch {
		return nil, dap.BatchInvalid
	}
	all := t.batches[of.Arm]
	i := sort.Search(len(all), func(i int) bool { return all[i].End > of.Start })
	switch {
	case i == len(all) || all[i].Start >= of.End:
		return &batch{Batch: of, spent: map[uint64]bool{}}, nil
	case all[i].Batch == of:
		return all[i], nil
	}
	return nil, dap.BatchOverlap
}

// add keeps a batch that is new.
func (t *task) add(b *batch) {
	all := t.batches[b.Arm]
	i := sort.Search(len(all), func(i int) bool { return all[i].End > b.Start })
	if i == len(all) || all[i] != b {
		t.batches[b.Arm] = slices.Insert(all, i, b)
	}
}

// Key is what clients encrypt the helper's shares to.
func (h *Helper) Key() dap.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.key.Config()
}

// Authorised says whether a bearer token is that of a task's leader. Whoever has none is told so
// of every task, known or not.
func (h *Helper) Authorised(id dap.TaskID, bearer string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.tasks[id]
	want := "no such task"
	if t != nil {
		want = t.bearer
	}
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(bearer))
	return a == b && t != nil
}

// begin locks the helper, opens the store again if that is needed, and finds the task.
func (h *Helper) begin(ctx context.Context, id dap.TaskID) (*task, error) {
	if h.down != nil {
		if errors.Is(h.down, store.ErrFenced) {
			return nil, fmt.Errorf("%w: another process has taken the store over", ErrUnavailable)
		}
		if h.store != nil {
			_ = h.store.Close()
			h.store = nil
		}
		if err := h.open(context.WithoutCancel(ctx)); err != nil {
			h.down = err
			h.cfg.Log.Error("the store cannot be opened", "error", err)
			return nil, ErrUnavailable
		}
	}
	t := h.tasks[id]
	switch {
	case t == nil:
		return nil, dap.UnrecognizedTask
	case t.closed:
		return nil, ErrClosed
	}
	return t, nil
}

// write makes an answer durable. After an error nobody knows whether it is: everything is read anew
// before the next answer.
func (h *Helper) write(ctx context.Context, w store.Write) error {
	err := h.store.Commit(context.WithoutCancel(ctx), store.Commit{Writes: []store.Write{w}})
	if err != nil {
		h.down = err
		h.cfg.Log.Error("the store cannot be written", "error", err)
		return ErrUnavailable
	}
	return nil
}

// Job answers an AggregationJobInitReq: which of its reports pass, which are then in the helper's
// share of the batch. Each ticket of a report that is looked at is spent. The same request under the
// same id has the same answer for ever. An error is a dap.Problem, or matches ErrUnavailable or
// ErrClosed.
func (h *Helper) Job(ctx context.Context, id dap.TaskID, name dap.ID, request []byte) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, err := h.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(request)
	if was, ok := t.jobs[name]; ok {
		if was.request != hash {
			return nil, dap.StepMismatch
		}
		return was.response, nil
	}
	in, err := dap.ParseJob(t.task, request)
	if err != nil {
		return nil, err
	}
	b, err := t.batch(in.Batch)
	switch {
	case err != nil:
		return nil, err
	case b.share != nil:
		return nil, dap.BatchMismatch
	}
	var spent []uint64
	response, sum, err := in.Help(h.key, t.verify, func(m dap.Metadata) error {
		if b.spent[m.Ticket.Number] {
			return dap.ReportReplayed
		}
		spent = append(spent, m.Ticket.Number)
		return nil
	})
	if err != nil {
		return nil, err
	}
	part, err := sum.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	r := jobRecord{Batch: in.Batch, ID: name.String(), Request: hash[:], Response: response, Spent: spent,
		Sum: part}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	at := t.next
	if err := h.write(ctx, store.Write{ID: t.id, Events: []store.Events{{Start: at, Data: data}}}); err != nil {
		return nil, err
	}
	if err := t.answered(at, r); err != nil {
		return nil, h.damaged(err)
	}
	return response, nil
}

// damaged is about what was written and cannot be read: it is read again from the store.
func (h *Helper) damaged(err error) error {
	h.down = err
	h.cfg.Log.Error("what was written cannot be kept", "error", err)
	return ErrUnavailable
}

// Share answers an AggregateShareReq: the helper's share of the batch's sum with its noise in it,
// which is drawn once. The same question has the same answer for ever; one about other reports than
// the helper has is refused, before anything is drawn. A batch of few reports, or of none, has the
// whole noise too.
func (h *Helper) Share(ctx context.Context, id dap.TaskID, request []byte) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, err := h.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := dap.ParseShareRequest(request)
	if err != nil {
		return nil, err
	}
	b, err := t.batch(in.Batch)
	if err != nil {
		return nil, err
	}
	if b.share != nil {
		if in.Count != b.count || in.Checksum != b.check {
			return nil, dap.BatchMismatch
		}
		return b.share, nil
	}
	if err := in.Check(t.task, b.sum); err != nil {
		return nil, err
	}
	m, err := t.mechanism(b)
	if err == nil {
		err = t.ledger.Allow([]int{t.slots}, m)
	}
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	z, err := t.draw()
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	share, err := b.sum.Share(t.task, z)
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	r := shareRecord{Batch: in.Batch, Count: in.Count, Checksum: in.Checksum[:], Share: share, Jobs: b.jobs}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	w := store.Write{ID: t.id, Units: data}
	for _, n := range b.rows { // what the share was made of
		w.Taken = append(w.Taken, play.Taken{Start: n, End: n + 1})
	}
	if err := h.write(ctx, w); err != nil {
		return nil, err
	}
	if err := t.shared(r); err != nil {
		return nil, h.damaged(err)
	}
	return share, nil
}

// A Status is what everybody may know of a task.
type Status struct {
	Name    string
	ID      dap.TaskID
	Closed  bool
	Shares  int          // how many batches' shares were handed out
	Tickets uint64       // in them
	Promise string       // the experiment's guarantee
	Spent   privacy.Loss // what a reward has lost to the leader by this helper's shares, at most
}

// Tasks says how the tasks are, by name.
func (h *Helper) Tasks() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Status
	for id, t := range h.tasks {
		s := Status{Name: t.Declared.Name, ID: id, Closed: t.closed, Shares: t.slots, Spent: t.ledger.Total()}
		s.Promise, _ = t.Declared.Guarantee() // was checked
		for _, all := range t.batches {
			for _, b := range all {
				if b.share != nil {
					s.Tickets += b.End - b.Start
				}
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return out
}

// Ready says whether the helper can write: nil, or an error that matches ErrUnavailable.
func (h *Helper) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down != nil {
		return ErrUnavailable
	}
	return nil
}

// Close closes the store.
func (h *Helper) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store == nil {
		return nil
	}
	err := h.store.Close()
	h.store, h.down = nil, ErrUnavailable
	return err
}
