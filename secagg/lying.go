package secagg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Leak is what a lying server came to know of one client: see [Local.TwoStories].
type Leak struct {
	// KeyShares and SeedShares are how many shares of the client's two secrets it holds. Threshold
	// of either open it.
	KeyShares, SeedShares, Threshold int
	// Message is its own, if both are open; else nil.
	Message []uint64
	// Clients are the errors of clients that met any.
	Clients map[uint32]error
}

// TwoStories plays a session whose server lies, for audits and tests: the clients of messages are
// those whom it lets in, of session.Enrolled, some of whom are corrupt and give it all they know.
// It tells those who believe that all survive, and the other honest ones that the victim has
// vanished, so that the former open their shares of the victim's seed and the latter theirs of its
// key; the corrupt give both, and acknowledge to each client what it was told. Against the
// thresholds of [Choose] it learns too little. An error is about what could not be played.
func (l Local) TwoStories(ctx context.Context, session Session, messages map[uint32][]uint64,
	victim uint32, corrupt, believers []uint32) (Leak, error) {
	w, err := l.setUp(session, messages)
	if err != nil {
		return Leak{}, err
	}
	if w.clients[victim] == nil || slices.Contains(corrupt, victim) || session.Mode != Malicious {
		return Leak{}, fmt.Errorf("%w: the victim must be an honest client of a session against "+
			"a malicious server", ErrSession)
	}
	x := &liar{world: w, victim: victim, corrupt: corrupt,
		believers: append([]uint32{victim}, believers...), shares: map[bool]map[int]field{true: {}, false: {}},
		channels: map[[2]uint32]channel{}}
	w.fault = x.hear
	// Its own state machine may refuse what a liar would take: what counts is what it has heard.
	if err := w.play(ctx); ctx.Err() != nil {
		return Leak{}, err
	}
	leak := Leak{Threshold: w.server.params.T, Clients: w.report.Clients}
	if x.err != nil {
		return leak, x.err
	}
	leak.KeyShares, leak.SeedShares = len(x.shares[true]), len(x.shares[false])
	leak.Message, err = x.unmask()
	return leak, err
}

// liar is the server of TwoStories.
type liar struct {
	world              *parties
	victim             uint32
	corrupt, believers []uint32
	shares             map[bool]map[int]field // of the victim by seats: of its key, of its seed
	channels           map[[2]uint32]channel  // of a corrupt client to a neighbour
	told               [hashSize]byte         // the hash of the other story
	err                error
}

func (x *liar) sign(f Frame, body []byte) [][]byte {
	w := x.world
	key := w.serverKey
	if f.Kind.fromClient() {
		key = w.keys[f.Client]
	}
	return [][]byte{w.server.env.seal(f.Kind, f.Client, body, key)}
}

// hear is what becomes of a message.
func (x *liar) hear(f Frame) [][]byte {
	body := f.Message[headerSize : len(f.Message)-signatureSize]
	corrupt, believes := slices.Contains(x.corrupt, f.Client), slices.Contains(x.believers, f.Client)
	out := [][]byte{f.Message}
	var err error
	switch {
	case corrupt && f.Kind == KindMasked:
		x.confess(f.Client)
	case corrupt:
	case f.Kind == KindSurvivors && !believes:
		var m survivors
		if m, err = readSurvivors(body); err == nil {
			m.set[x.world.server.members[x.victim].place] = false
			x.told = survivorsHash(x.world.server.env.digest, m.set, x.world.server.order())
			out = x.sign(f, m.append(nil))
		}
	case f.Kind == KindAck && !believes:
		var m ack
		if m, err = readAck(body); err == nil {
			m.hash = x.world.server.hash
			out = x.sign(f, m.append(nil))
		}
	case f.Kind == KindAcks:
		var m acks
		if m, err = readAcks(body); err == nil {
			x.vouch(f.Client, m.tags, believes)
			out = x.sign(f, m.append(nil))
		}
	case f.Kind == KindOpen:
		var m opened
		if m, err = readOpened(body); err == nil {
			err = x.collect(f.Client, m)
		}
	}
	x.err = errors.Join(x.err, err)
	return out
}

// confess is what a corrupt client knows: its shares of the victim's secrets, and its channels.
func (x *liar) confess(client uint32) {
	c := x.world.clients[client]
	for i, s := range c.seats {
		x.channels[[2]uint32{client, s.id}] = channel{bytes.Clone(s.send.key), bytes.Clone(s.send.tagKey)}
		if s.id == x.victim && s.held {
			at := c.params.mirror(i + 1)
			x.shares[true][at], x.shares[false][at] = s.key, s.seed
		}
	}
}

// vouch makes the corrupt clients' tags say what an honest client was told.
func (x *liar) vouch(client uint32, tags [][]byte, believes bool) {
	v, hash := x.world.server, x.told
	if believes {
		hash = v.hash
	}
	for i := range tags {
		id := v.circle[v.params.neighbour(v.members[client].place, i+1)].id
		if c, ok := x.channels[[2]uint32{id, client}]; ok {
			tags[i] = c.survivorTag(hash)
		}
	}
}

// collect takes the share of the victim out of what an honest client opens.
func (x *liar) collect(client uint32, m opened) error {
	v := x.world.server
	for i, b := range m.shares {
		if b == nil || v.circle[v.params.neighbour(v.members[client].place, i+1)].id != x.victim {
			continue
		}
		f, err := readField(b)
		if err != nil {
			return err
		}
		x.shares[m.key[i]][v.params.mirror(i+1)] = f
	}
	return nil
}

// unmask takes all masks off the victim's message, if both its secrets are open.
func (x *liar) unmask() ([]uint64, error) {
	s := x.world.server
	v, known := s.members[x.victim], map[string][]field{}
	if v.masked == nil {
		return nil, nil
	}
	v.shares = x.shares[true]
	key, err := s.recoverKey(v, known)
	if errors.Is(err, ErrTooFew) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.shares = x.shares[false]
	own, err := s.recoverSeed(v, known)
	if errors.Is(err, ErrTooFew) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	masks := []mask{{own, true}}
	for _, m := range s.circle {
		if m == v || m.pairs == nil {
			continue
		}
		p, err := pairMask(&key, v.id, &m.mask, m.id, s.env.digest)
		if err != nil {
			return nil, err
		}
		p.negative = !p.negative
		masks = append(masks, p)
	}
	out := slices.Clone(v.masked)
	return out, addMasks(out, s.cfg.Session.Modulus, masks)
}
