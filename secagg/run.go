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

// Summer is a way to sum clients' messages modulo m of which the summing party learns the sum alone (how far that holds is each
// implementation's to say). Survivors are the clients in the sum, in increasing order.
type Summer interface {
	Sum(ctx context.Context, session Session, messages map[uint32][]uint64) (sum []uint64, survivors []uint32, err error)
}

// Plain sums in the open: the baseline, with the same refusals.
type Plain struct{}

// Sum implements [Summer].
func (Plain) Sum(ctx context.Context, session Session, messages map[uint32][]uint64) ([]uint64, []uint32, error) {
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

// Local runs the protocol with all clients and the server in one process, as [Summer]. Its zero value is ready. Keys are drawn for every
// sum; it protects nobody from the process, and is made for simulation and tests.
type Local struct {
	// Rand is the source of all randomness; nil is the operating system's. A seeded one makes a run reproducible.
	Rand io.Reader
	// Fault, if set, sees every message and returns what arrives in its place: nothing, another one, several.
	Fault func(Frame) [][]byte
	// Timeout is the length of a round on the driver's own clock, which leaps to the deadline when nothing more is under way.
	Timeout time.Duration
	// Report, if set, is given what happened at the end of a run, also of one that failed.
	Report func(Report)
}

// Report is what happened in a run of [Local].
type Report struct {
	Result Result
	// Clients are the errors of clients that met any, Refused what the server said of messages that it did not take.
	Clients map[uint32]error
	Refused []error
	// Up and Down are the bytes that clients sent and received.
	Up, Down map[uint32]int
}

// Sum implements [Summer].
func (l Local) Sum(ctx context.Context, session Session, messages map[uint32][]uint64) ([]uint64, []uint32, error) {
	r, err := l.run(ctx, session, messages)
	if l.Report != nil {
		l.Report(r)
	}
	if err != nil {
		return nil, nil, err
	}
	return r.Result.Sum, r.Result.Survivors, nil
}

func (l Local) run(ctx context.Context, session Session, messages map[uint32][]uint64) (Report, error) {
	rnd := l.Rand
	if rnd == nil {
		rnd = rand.Reader
	}
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	rep := Report{Clients: map[uint32]error{}, Up: map[uint32]int{}, Down: map[uint32]int{}}
	newKey := func() (ed25519.PrivateKey, error) {
		var seed [ed25519.SeedSize]byte
		if _, err := io.ReadFull(rnd, seed[:]); err != nil {
			return nil, fmt.Errorf("secagg: drawing an identity: %w", err)
		}
		return ed25519.NewKeyFromSeed(seed[:]), nil
	}
	serverKey, err := newKey()
	if err != nil {
		return rep, err
	}
	ids := slices.Sorted(maps.Keys(messages))
	keys, public := make(map[uint32]ed25519.PrivateKey, len(ids)), make(map[uint32]ed25519.PublicKey, len(ids))
	for _, id := range ids {
		if keys[id], err = newKey(); err != nil {
			return rep, err
		}
		public[id] = keys[id].Public().(ed25519.PublicKey)
	}
	server, err := NewServer(ServerConfig{Session: session, Identity: serverKey, Clients: public, Rand: rnd, Clock: clock, Timeout: l.Timeout})
	if err != nil {
		return rep, err
	}
	clients := make(map[uint32]*Client, len(ids))
	fault := func(f Frame) [][]byte {
		if l.Fault == nil {
			return [][]byte{f.Message}
		}
		return l.Fault(f)
	}
	var up, down []Envelope
	send := func(id uint32, m []byte) error {
		h, err := Inspect(m)
		if err != nil {
			return err
		}
		rep.Up[id] += len(m)
		for _, x := range fault(Frame{h.Kind, id, m}) {
			up = append(up, Envelope{id, x})
		}
		return nil
	}
	for _, id := range ids {
		c, err := NewClient(ClientConfig{Session: session, ID: id, Identity: keys[id], Server: serverKey.Public().(ed25519.PublicKey),
			Pinned: PinnedKeys(public), Rand: rnd, Clock: clock, Timeout: l.Timeout}, messages[id])
		if err != nil {
			return rep, fmt.Errorf("client %d: %w", id, err)
		}
		clients[id] = c
		m, err := c.Start()
		if err != nil {
			return rep, fmt.Errorf("client %d: %w", id, err)
		}
		if err := send(id, m); err != nil {
			return rep, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return rep, err
		}
		for len(up) > 0 || len(down) > 0 {
			// What goes up was sent by clients before what comes down to them now.
			batch := up
			up = nil
			for _, e := range batch {
				out, err := server.Step(e.To, e.Message)
				if err != nil {
					rep.Refused = append(rep.Refused, err)
				}
				down = append(down, out...)
			}
			batch = down
			down = nil
			for _, e := range batch {
				h, err := Inspect(e.Message)
				if err != nil {
					return rep, err
				}
				for _, m := range fault(Frame{h.Kind, e.To, e.Message}) {
					rep.Down[e.To] += len(m)
					answer, err := clients[e.To].Step(m)
					if err != nil {
						rep.Clients[e.To] = errors.Join(rep.Clients[e.To], err)
					}
					if answer != nil {
						if err := send(e.To, answer); err != nil {
							return rep, err
						}
					}
				}
			}
		}
		if server.Failed() != nil || server.Round() == RoundDone {
			break
		}
		now = server.Deadline().Add(time.Nanosecond)
		out, err := server.Tick()
		if err != nil {
			break
		}
		down = append(down, out...)
	}
	rep.Result, err = server.Result()
	return rep, err
}
