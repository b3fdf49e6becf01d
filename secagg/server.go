package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cloudflare/circl/dh/x25519"
)

// ServerConfig is what a server brings to a session.
type ServerConfig struct {
	Session  Session
	Identity ed25519.PrivateKey
	// Clients are the clients who are awaited, with their identity keys as enrolled.
	Clients map[uint32]ed25519.PublicKey
	// Rand is the source of the graph's seed; nil is the operating system's.
	Rand io.Reader
	// Clock is time.Now if nil.
	Clock func() time.Time
	// Timeout is the length of a round at most, [DefaultTimeout] if 0.
	Timeout time.Duration
}

// Envelope is a message of the server with its recipient.
type Envelope struct {
	To      uint32
	Message []byte
}

// Result is what a server learns: the sum modulo m of the survivors' messages, and who came how far.
type Result struct {
	Sum []uint64
	// Survivors are the clients in the sum, in increasing order.
	Survivors []uint32
	// Vanished are those who shared keys and sent no masked message in time.
	Vanished []uint32
	// Params is the graph.
	Params Params
}

// Round is a round of the protocol, named after what clients send in it.
type Round uint8

const (
	RoundAdvertise   Round = 1
	RoundShare       Round = 2
	RoundMask        Round = 3
	RoundConsistency Round = 4
	RoundUnmask      Round = 5
	RoundDone        Round = 6
)

func (r Round) String() string {
	names := [...]string{"", "advertise", "share", "mask", "consistency", "unmask", "done"}
	if r >= 1 && int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Round(%d)", uint8(r))
}

// round is the round that a client's message belongs to.
func (k Kind) round() Round { return Round(k/2 + 1) }

// Server is the server's side of a session, a state machine without input or output of its own:
// [Server.Step] takes a client's message, [Server.Tick] looks at the clock, and both give the
// messages to send when a round has closed. It is not safe for concurrent use.
//
// A client's bad message is refused with a named error and changes nothing. When the session cannot
// go on, every later call gives the same error.
type Server struct {
	cfg    ServerConfig
	env    envelope
	watch  watch
	rnd    io.Reader
	round  Round
	failed error

	probe   x25519.Key // a private key that nobody's secrets depend on
	params  Params
	members map[uint32]*member
	circle  []*member // by place
	said    int       // members who have spoken in this round
	due     int       // members from whom a message is awaited
	hash    [hashSize]byte
	result  Result
}

// member is a client as the server sees it.
type member struct {
	id       uint32
	identity ed25519.PublicKey
	place    int
	reached  Round // the last round it has spoken in
	gone     bool  // its transport has lost it
	ad       advertise
	mask     x25519.Key
	pairs    [][]byte
	masked   []uint64
	mixed    [][]byte // by its seats, its tags that came with the masked message
	tags     [][]byte // by its seats, its tags on the survivors
	// shares by its own seats: of the key if it vanished, of the seed if it survived.
	shares map[int]field
}

// NewServer opens a session; the first round's clock runs.
func NewServer(cfg ServerConfig) (*Server, error) {
	if err := cfg.Session.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Identity) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: identity key of %d bytes, must be %d", ErrSession,
			len(cfg.Identity), ed25519.PrivateKeySize)
	}
	// Refuse now what could not be done even if everybody came.
	if _, err := cfg.Session.Graph(len(cfg.Clients)); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	w, err := newWatch(cfg.Clock, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, env: envelope{cfg.Session.ID, cfg.Session.Digest()}, watch: w,
		rnd: cfg.Rand, round: RoundAdvertise,
		members: make(map[uint32]*member, len(cfg.Clients)), due: len(cfg.Clients), probe: x25519.Key{1}}
	if s.rnd == nil {
		s.rnd = rand.Reader
	}
	for id, key := range cfg.Clients {
		s.members[id] = &member{id: id, identity: key}
	}
	s.watch.start()
	return s, nil
}

// Round is the round that the server is in.
func (s *Server) Round() Round { return s.round }

// Deadline is when the round closes with those who have spoken; zero when the session has ended.
func (s *Server) Deadline() time.Time {
	if s.round == RoundDone || s.failed != nil {
		return time.Time{}
	}
	return s.watch.deadline
}

// Result is the sum, once the session has ended well; [ErrUnfinished] before, and the session's
// error if it failed.
func (s *Server) Result() (Result, error) {
	switch {
	case s.failed != nil:
		return Result{}, s.failed
	case s.round != RoundDone:
		return Result{}, fmt.Errorf("%w: round %v", ErrUnfinished, s.round)
	}
	return s.result, nil
}

// Failed is the error that ended the session, if any.
func (s *Server) Failed() error { return s.failed }

// Tick closes the round if its deadline has passed, and gives the messages of the next one.
func (s *Server) Tick() ([]Envelope, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.round == RoundDone {
		return nil, nil
	}
	passed, err := s.watch.look()
	if err != nil {
		s.failed = err
		return nil, err
	}
	if !passed {
		return nil, nil
	}
	return s.close(true)
}

// Step takes a message that came from a client, as the transport knows it. When it was the last
// one awaited the round closes, and the messages of the next one are returned. An error that is
// also [Server.Failed] has ended the session; any other is about this message alone, and messages
// that come with it (when it was the clock that closed the round) are to be sent all the same.
func (s *Server) Step(from uint32, message []byte) ([]Envelope, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.round != RoundDone {
		passed, err := s.watch.look()
		if err != nil {
			s.failed = err
			return nil, err
		}
		if passed {
			out, err := s.close(true)
			if err != nil {
				return nil, err
			}
			return out, fmt.Errorf("%w: a message of client %d after the deadline", ErrLate, from)
		}
	}
	if err := s.accept(from, message); err != nil {
		return nil, err
	}
	if s.said < s.due {
		return nil, nil
	}
	return s.close(false)
}

func (s *Server) accept(from uint32, message []byte) error {
	h, body, signature, err := open(message)
	if err != nil {
		return err
	}
	if err := s.env.belongs(h); err != nil {
		return err
	}
	if !h.Kind.fromClient() {
		return fmt.Errorf("%w: a client does not send %v", ErrMalformed, h.Kind)
	}
	if h.Client != from {
		return fmt.Errorf("%w: client %d speaks as %d", ErrSender, from, h.Client)
	}
	m, ok := s.members[from]
	if !ok {
		return fmt.Errorf("%w: %d", ErrUnknown, from)
	}
	if err := s.env.authentic(message, signature, m.identity); err != nil {
		return err
	}
	r := h.Kind.round()
	switch {
	case r == RoundConsistency && s.cfg.Session.Mode != Malicious:
		return fmt.Errorf("%w: %v in %v mode", ErrMalformed, h.Kind, s.cfg.Session.Mode)
	case r <= m.reached:
		return fmt.Errorf("%w: %v of client %d", ErrDuplicate, h.Kind, from)
	case r < s.round:
		return fmt.Errorf("%w: %v of client %d in round %v", ErrLate, h.Kind, from, s.round)
	case r > s.round:
		return fmt.Errorf("%w: %v of client %d in round %v", ErrEarly, h.Kind, from, s.round)
	case r > RoundAdvertise && !s.here(m), m.gone:
		return fmt.Errorf("%w: client %d was counted out", ErrLate, from)
	}
	body = bytes.Clone(body)
	switch h.Kind {
	case KindAdvertise:
		err = s.advertised(m, body)
	case KindShares:
		err = s.shared(m, body)
	case KindMasked:
		err = s.maskedInput(m, body)
	case KindAck:
		err = s.acknowledged(m, body)
	case KindOpen:
		err = s.opened(m, body)
	}
	if err != nil {
		return fmt.Errorf("client %d: %w", from, err)
	}
	m.reached = r
	s.said++
	return nil
}

// before is the round that a client must have spoken in to be awaited in this one.
func (s *Server) before() Round {
	if s.round == RoundUnmask && s.cfg.Session.Mode == SemiHonest {
		return RoundMask
	}
	return s.round - 1
}

// here says whether a client is still awaited: it has spoken in the round before, or
// already in this one.
func (s *Server) here(m *member) bool { return m.reached >= s.before() }

func (s *Server) advertised(m *member, body []byte) error {
	a, err := readAdvertise(body)
	if err != nil {
		return err
	}
	if !verify(m.identity, keysStatement(s.env.digest, m.id, a.mask, a.enc), a.keys) {
		return fmt.Errorf("%w: on keys", ErrSignature)
	}
	// A point of low order would stop every neighbour. Any private key finds it out.
	m.mask = x25519.Key(a.mask)
	var shared x25519.Key
	for _, public := range []x25519.Key{m.mask, x25519.Key(a.enc)} {
		if !x25519.Shared(&shared, &s.probe, &public) {
			return fmt.Errorf("%w: a point of low order", ErrKey)
		}
	}
	m.ad = a
	return nil
}

func (s *Server) shared(m *member, body []byte) error {
	x, err := readSealed(body)
	if err != nil {
		return err
	}
	if len(x.pairs) != s.params.K || slices.ContainsFunc(x.pairs, func(p []byte) bool { return p == nil }) {
		return fmt.Errorf("%w: shares for %d neighbours, must be all of %d", ErrMalformed,
			len(x.pairs), s.params.K)
	}
	m.pairs = x.pairs
	return nil
}

func (s *Server) maskedInput(m *member, body []byte) error {
	x, err := readMasked(body)
	if err != nil {
		return err
	}
	if w := widthOf(s.cfg.Session.Modulus); x.width != w {
		return fmt.Errorf("%w: numbers of %d bytes, must be %d", ErrMalformed, x.width, w)
	}
	if err := checkMessage(x.values, s.cfg.Session); err != nil {
		return err
	}
	if want := s.tagged(); len(x.tags) != want {
		return fmt.Errorf("%w: tags for %d neighbours, must be %d", ErrMalformed, len(x.tags), want)
	}
	m.masked, m.mixed = x.values, x.tags
	return nil
}

// tagged is the number of neighbours for whom tags are awaited.
func (s *Server) tagged() int {
	if s.cfg.Session.Mode == Malicious {
		return s.params.K
	}
	return 0
}

func (s *Server) acknowledged(m *member, body []byte) error {
	x, err := readAck(body)
	if err != nil {
		return err
	}
	if x.hash != s.hash {
		return fmt.Errorf("%w: an ack of other survivors", ErrContext)
	}
	if len(x.tags) != s.params.K {
		return fmt.Errorf("%w: tags for %d neighbours, must be %d", ErrMalformed, len(x.tags), s.params.K)
	}
	m.tags = x.tags
	return nil
}

func (s *Server) opened(m *member, body []byte) error {
	x, err := readOpened(body)
	if err != nil {
		return err
	}
	if len(x.shares) != s.params.K {
		return fmt.Errorf("%w: shares of %d neighbours, must be %d", ErrMalformed, len(x.shares), s.params.K)
	}
	values := make([]field, len(x.shares))
	for i, b := range x.shares {
		if b == nil {
			continue
		}
		j := s.circle[s.params.neighbour(m.place, i+1)]
		switch alive := j.masked != nil; {
		case j.pairs == nil:
			return fmt.Errorf("%w: a share of client %d, who shared nothing", ErrShares, j.id)
		case x.key[i] && alive:
			return fmt.Errorf("%w: a key share of client %d, who survives", ErrBothShares, j.id)
		case !x.key[i] && !alive:
			return fmt.Errorf("%w: a seed share of client %d, who vanished", ErrBothShares, j.id)
		}
		if values[i], err = readField(b); err != nil {
			return fmt.Errorf("%w: a share of client %d: %w", ErrMalformed, j.id, err)
		}
	}
	for i, b := range x.shares {
		if b == nil {
			continue
		}
		j := s.circle[s.params.neighbour(m.place, i+1)]
		if j.shares == nil {
			j.shares = make(map[int]field, s.params.K)
		}
		j.shares[s.params.mirror(i+1)] = values[i]
	}
	return nil
}

// close ends the round with those who have spoken.
func (s *Server) close(late bool) ([]Envelope, error) {
	var out []Envelope
	var err error
	ended := s.round
	switch s.round {
	case RoundAdvertise:
		out, err = s.sendRoster()
	case RoundShare:
		out, err = s.deliver()
	case RoundMask:
		out, err = s.nameSurvivors()
	case RoundConsistency:
		out, err = s.sendAcks()
	case RoundUnmask:
		err = s.unmask()
	}
	if err != nil {
		if late && errors.Is(err, ErrTooFew) {
			err = fmt.Errorf("%w of round %v: %w", ErrDeadline, ended, err)
		}
		s.failed = err
		return nil, err
	}
	switch {
	case s.round == RoundMask && s.cfg.Session.Mode == SemiHonest:
		s.round = RoundUnmask
	default:
		s.round++
	}
	s.said, s.due = 0, 0
	for _, e := range out {
		if !s.members[e.To].gone {
			s.due++
		}
	}
	s.watch.start()
	if s.due == 0 && s.round != RoundDone {
		return s.close(false) // nobody is left to wait for: it is refused
	}
	return out, nil
}

// Gone tells the server that a client's connection is lost for good, so that nobody waits for it
// until the round's deadline. What it has said stays. When it was the last one awaited the round
// closes, as in [Server.Step]. A client who is gone, or was never there, makes no difference.
func (s *Server) Gone(client uint32) ([]Envelope, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	m, ok := s.members[client]
	if !ok || m.gone || s.round == RoundDone {
		return nil, nil
	}
	m.gone = true
	if s.here(m) && m.reached < s.round {
		s.due--
	}
	out, err := s.Tick()
	if err != nil || out != nil || s.round == RoundDone || s.said < s.due {
		return out, err
	}
	return s.close(false)
}

func (s *Server) send(m *member, kind Kind, body []byte) Envelope {
	return Envelope{m.id, s.env.seal(kind, m.id, body, s.cfg.Identity)}
}

// sendRoster draws the graph, now that the clients are fixed.
func (s *Server) sendRoster() ([]Envelope, error) {
	var ids []uint32
	for id, m := range s.members {
		if m.reached == RoundAdvertise {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	p, err := s.cfg.Session.Graph(len(ids))
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	if _, err := io.ReadFull(s.rnd, seed[:]); err != nil {
		return nil, fmt.Errorf("secagg: drawing the graph: %w", err)
	}
	if err := permute(ids, seed); err != nil {
		return nil, err
	}
	s.params, s.circle = p, make([]*member, len(ids))
	for place, id := range ids {
		s.circle[place] = s.members[id]
		s.members[id].place = place
	}
	out := make([]Envelope, 0, len(ids))
	for place, m := range s.circle {
		r := roster{params: p, place: place, seats: make([]rosterSeat, p.K)}
		for i := range r.seats {
			j := s.circle[p.neighbour(place, i+1)]
			r.seats[i] = rosterSeat{j.id, j.ad.mask, j.ad.enc, j.ad.keys}
		}
		out = append(out, s.send(m, KindRoster, r.append(nil)))
	}
	return out, nil
}

// deliver passes the sealed pairs on. A client with fewer than T neighbours left could not be
// unmasked, so it is taken for one who said nothing, which may leave others with too few, and so on.
func (s *Server) deliver() ([]Envelope, error) {
	p := s.params
	left := func(m *member) (n int) {
		for x := 1; x <= p.K; x++ {
			if s.circle[p.neighbour(m.place, x)].pairs != nil {
				n++
			}
		}
		return n
	}
	for again := true; again; {
		again = false
		for _, m := range s.circle {
			if m.pairs != nil && left(m) < p.T {
				m.pairs, again = nil, true
				m.reached = RoundAdvertise
			}
		}
	}
	var out []Envelope
	for place, m := range s.circle {
		if m.pairs == nil {
			continue
		}
		d := sealed{make([][]byte, p.K)}
		for x := 1; x <= p.K; x++ {
			if j := s.circle[p.neighbour(place, x)]; j.pairs != nil {
				d.pairs[x-1] = j.pairs[p.mirror(x)-1]
			}
		}
		out = append(out, s.send(m, KindDelivery, d.append(nil)))
	}
	if least := s.cfg.Session.fewest(p); len(out) < least {
		return nil, fmt.Errorf("%w: %d clients shared their keys, at least %d must survive",
			ErrTooFew, len(out), least)
	}
	return out, nil
}

func (s *Server) nameSurvivors() ([]Envelope, error) {
	set := make([]bool, s.params.N)
	n := 0
	for place, m := range s.circle {
		if m.masked != nil {
			set[place] = true
			n++
		}
	}
	if least := s.cfg.Session.fewest(s.params); n < least {
		return nil, fmt.Errorf("%w: %d clients sent a masked message, at least %d must survive",
			ErrTooFew, n, least)
	}
	s.hash = survivorsHash(s.env.digest, set, s.order())
	out := make([]Envelope, 0, n)
	for place, m := range s.circle {
		if m.masked == nil {
			continue
		}
		x := survivors{set, make([][]byte, s.tagged())}
		for i := range x.tags {
			if j := s.circle[s.params.neighbour(place, i+1)]; j.masked != nil {
				x.tags[i] = j.mixed[s.params.mirror(i+1)-1]
			}
		}
		out = append(out, s.send(m, KindSurvivors, x.append(nil)))
	}
	return out, nil
}

// order is who sits at which place, where clients know it: in the complete graph.
func (s *Server) order() (ids []uint32) {
	if s.params.sparse() {
		return nil
	}
	for _, m := range s.circle {
		ids = append(ids, m.id)
	}
	return ids
}

func (s *Server) sendAcks() ([]Envelope, error) {
	p := s.params
	var out []Envelope
	for place, m := range s.circle {
		if m.tags == nil {
			continue
		}
		a := acks{make([][]byte, p.K)}
		for x := 1; x <= p.K; x++ {
			if j := s.circle[p.neighbour(place, x)]; j.tags != nil {
				a.tags[x-1] = j.tags[p.mirror(x)-1]
			}
		}
		out = append(out, s.send(m, KindAcks, a.append(nil)))
	}
	if len(out) < p.T {
		return nil, fmt.Errorf("%w: %d clients acknowledge the survivors, the threshold is %d",
			ErrTooFew, len(out), p.T)
	}
	return out, nil
}

// unmask opens the self masks of the survivors and the keys of those who vanished, and takes all
// masks off the sum.
func (s *Server) unmask() error {
	mod := s.cfg.Session.Modulus
	sum := make([]uint64, s.cfg.Session.Length)
	known := map[string][]field{}
	var res Result
	for place, m := range s.circle {
		if m.pairs == nil {
			continue
		}
		if m.masked == nil {
			key, err := s.recoverKey(m, known)
			if err != nil {
				return err
			}
			res.Vanished = append(res.Vanished, m.id)
			for x := 1; x <= s.params.K; x++ {
				j := s.circle[s.params.neighbour(place, x)]
				if j.masked == nil {
					continue
				}
				// What m would have added is what j has taken away.
				pair, err := pairMask(&key, m.id, &j.mask, j.id, s.env.digest)
				if err != nil {
					return err
				}
				if err := addMasks(sum, mod, []mask{pair}); err != nil {
					return err
				}
			}
			continue
		}
		own, err := s.recoverSeed(m, known)
		if err != nil {
			return err
		}
		if err := addMasks(sum, mod, []mask{{own, true}}); err != nil {
			return err
		}
		for i, v := range m.masked {
			sum[i] = addMod(sum[i], v, mod)
		}
		res.Survivors = append(res.Survivors, m.id)
	}
	slices.Sort(res.Survivors)
	slices.Sort(res.Vanished)
	res.Sum, res.Params = sum, s.params
	s.result = res
	return nil
}

func (s *Server) recoverKey(m *member, known map[string][]field) (key keyPair, err error) {
	err = s.recover(m, known, func(f field) (bool, error) {
		if key, err = maskKey(&f, s.env.digest, m.id); err != nil {
			return false, err
		}
		return key.public == m.mask, nil
	})
	return key, err
}

func (s *Server) recoverSeed(m *member, known map[string][]field) (own []byte, err error) {
	err = s.recover(m, known, func(f field) (bool, error) {
		var check []byte
		if own, check, err = selfMask(&f, s.env.digest, m.id); err != nil {
			return false, err
		}
		return bytes.Equal(check, m.ad.check), nil
	})
	return own, err
}

// recover combines T shares of a client, and checks the secret. When it is not the one it
// committed to, one of the shares is wrong: every window of T shares around the circle of those at
// hand is tried once.
func (s *Server) recover(m *member, known map[string][]field, right func(field) (bool, error)) error {
	t := s.params.T
	all := make([]int, 0, len(m.shares))
	for x := range m.shares {
		all = append(all, x)
	}
	slices.Sort(all)
	if len(all) < t {
		return fmt.Errorf("%w: %d shares of client %d, the threshold is %d", ErrTooFew, len(all), m.id, t)
	}
	seats, shares := make([]int, t), make([]field, t)
	for first := range all {
		for i := range t {
			seats[i] = all[(first+i)%len(all)]
			shares[i] = m.shares[seats[i]]
		}
		key := seatsKey(seats)
		w, ok := known[key]
		if !ok {
			w = weights(seats)
			if len(known) < 1<<12 {
				known[key] = w
			}
		}
		if ok, err := right(combine(w, shares)); ok || err != nil {
			return err
		}
		if len(all) == t {
			break
		}
	}
	return fmt.Errorf("%w: of client %d", ErrShares, m.id)
}
