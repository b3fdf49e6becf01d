package secagg

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Summer is a way to sum clients' messages modulo m of which the summing party learns the sum alone
// (how far that holds is each implementation's to say). Survivors are the clients in the sum, in
// increasing order.
type Summer interface {
	Sum(ctx context.Context, session Session, messages map[uint32][]uint64) (sum []uint64,
		survivors []uint32, err error)
}

// Plain sums in the open: the baseline, with the same refusals.
type Plain struct{}

// Sum implements [Summer].
func (Plain) Sum(ctx context.Context, session Session, messages map[uint32][]uint64) ([]uint64,
	[]uint32, error) {
	if err := session.Validate(); err != nil {
		return nil, nil, err
	}
	ids := slices.Sorted(maps.Keys(messages))
	if len(ids) < session.NMin {
		return nil, nil, fmt.Errorf("%w: %d clients, n_min is %d", ErrTooFew, len(ids), session.NMin)
	}
	sum := make([]uint64, session.Length)
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if err := checkMessage(messages[id], session); err != nil {
			return nil, nil, fmt.Errorf("client %d: %w", id, err)
		}
		for i, v := range messages[id] {
			sum[i] = addMod(sum[i], v, session.Modulus)
		}
	}
	return sum, ids, nil
}

// Frame is a message under way in [Local].
type Frame struct {
	Kind    Kind
	Client  uint32
	Message []byte
}

// Local runs the protocol with all clients and the server in one process, as [Summer]. Its zero
// value is ready. Keys are drawn for every sum; it protects nobody from the process, and is made
// for simulation and tests.
type Local struct {
	// Rand is the source of all randomness; nil is the operating system's. A seeded one makes a
	// run reproducible.
	Rand io.Reader
	// Fault, if set, sees every message and returns what arrives in its place: nothing,
	// another one, several.
	Fault func(Frame) [][]byte
	// Timeout is the length of a round on the driver's own clock, which leaps to the deadline when
	// nothing more is under way.
	Timeout time.Duration
	// Report, if set, is given what happened at the end of a run, also of one that failed.
	Report func(Outcome)
}

// Outcome is what happened in a run of [Local].
type Outcome struct {
	Result Result
	// Clients are the errors of clients that met any, Refused what the server said of messages that
	// it did not take.
	Clients map[uint32]error
	Refused []error
	// Up and Down are the bytes that clients sent and received.
	Up, Down map[uint32]int
}

// Sum implements [Summer].
func (l Local) Sum(ctx context.Context, session Session, messages map[uint32][]uint64) ([]uint64,
	[]uint32, error) {
	r, err := l.run(ctx, session, messages)
	if l.Report != nil {
		l.Report(r)
	}
	if err != nil {
		return nil, nil, err
	}
	return r.Result.Sum, r.Result.Survivors, nil
}

// parties are everybody in one process.
type parties struct {
	session   Session
	now       time.Time
	serverKey ed25519.PrivateKey
	keys      map[uint32]ed25519.PrivateKey
	server    *Server
	clients   map[uint32]*Client
	up, down  []Envelope // under way
	fault     func(Frame) [][]byte
	report    Outcome
}

func (l Local) run(ctx context.Context, session Session, messages map[uint32][]uint64) (Outcome, error) {
	w, err := l.setUp(session, messages)
	if err != nil {
		return w.report, err
	}
	err = w.play(ctx)
	return w.report, err
}

func (l Local) setUp(session Session, messages map[uint32][]uint64) (*parties, error) {
	rnd := l.Rand
	if rnd == nil {
		rnd = rand.Reader
	}
	w := &parties{session: session, now: time.Unix(0, 0), keys: map[uint32]ed25519.PrivateKey{},
		clients: map[uint32]*Client{}, fault: l.Fault,
		report: Outcome{Clients: map[uint32]error{}, Up: map[uint32]int{}, Down: map[uint32]int{}}}
	clock := func() time.Time { return w.now }
	newKey := func() (ed25519.PrivateKey, error) {
		var seed [ed25519.SeedSize]byte
		if _, err := io.ReadFull(rnd, seed[:]); err != nil {
			return nil, fmt.Errorf("secagg: drawing an identity: %w", err)
		}
		return ed25519.NewKeyFromSeed(seed[:]), nil
	}
	var err error
	if w.serverKey, err = newKey(); err != nil {
		return w, err
	}
	ids := slices.Sorted(maps.Keys(messages))
	public := make(map[uint32]ed25519.PublicKey, len(ids))
	for _, id := range ids {
		if w.keys[id], err = newKey(); err != nil {
			return w, err
		}
		public[id] = w.keys[id].Public().(ed25519.PublicKey)
	}
	w.server, err = NewServer(ServerConfig{Session: session, Identity: w.serverKey, Clients: public,
		Rand: rnd, Clock: clock, Timeout: l.Timeout})
	if err != nil {
		return w, err
	}
	for _, id := range ids {
		c, err := NewClient(ClientConfig{Session: session, ID: id, Identity: w.keys[id],
			Server: w.serverKey.Public().(ed25519.PublicKey),
			Pinned: PinnedKeys(public), Rand: rnd, Clock: clock, Timeout: l.Timeout}, messages[id])
		if err != nil {
			return w, fmt.Errorf("client %d: %w", id, err)
		}
		w.clients[id] = c
	}
	return w, nil
}

// through is what arrives of a message.
func (w *parties) through(client uint32, message []byte) ([][]byte, error) {
	h, err := Inspect(message)
	if err != nil {
		return nil, err
	}
	if w.fault == nil {
		return [][]byte{message}, nil
	}
	return w.fault(Frame{h.Kind, client, message}), nil
}

func (w *parties) send(client uint32, message []byte) error {
	w.report.Up[client] += len(message)
	arrive, err := w.through(client, message)
	for _, m := range arrive {
		w.up = append(w.up, Envelope{client, m})
	}
	return err
}

func (w *parties) play(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		m, err := w.clients[id].Start()
		if err == nil {
			err = w.send(id, m)
		}
		if err != nil {
			return fmt.Errorf("client %d: %w", id, err)
		}
	}
	for w.server.Failed() == nil && w.server.Round() != RoundDone {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(w.up) == 0 && len(w.down) == 0 {
			w.now = w.server.Deadline().Add(time.Nanosecond)
			out, err := w.server.Tick()
			if err != nil {
				break
			}
			w.down = append(w.down, out...)
		}
		if err := w.deliver(); err != nil {
			return err
		}
	}
	var err error
	w.report.Result, err = w.server.Result()
	return err
}

// deliver brings what is under way to where it goes: first what clients have sent, then
// what the server has.
func (w *parties) deliver() error {
	batch := w.up
	w.up = nil
	for _, e := range batch {
		out, err := w.server.Step(e.To, e.Message)
		if err != nil {
			w.report.Refused = append(w.report.Refused, err)
		}
		w.down = append(w.down, out...)
	}
	batch = w.down
	w.down = nil
	for _, e := range batch {
		arrive, err := w.through(e.To, e.Message)
		if err != nil {
			return err
		}
		for _, m := range arrive {
			w.report.Down[e.To] += len(m)
			answer, err := w.clients[e.To].Step(m)
			if err != nil {
				w.report.Clients[e.To] = errors.Join(w.report.Clients[e.To], err)
			}
			if answer == nil {
				continue
			}
			if err := w.send(e.To, answer); err != nil {
				return err
			}
		}
	}
	return nil
}
