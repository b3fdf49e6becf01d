package secagg

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
)

// The wire format, version 1. Numbers are big endian. Every message is
//
//	"SA" ‖ version (1) ‖ kind (1) ‖ session (8) ‖ context (8) ‖ client (4) ‖ length (4) ‖ body (length) ‖ signature (64)
//
// where session is the head of the session's id, context the head of its digest, and client is who
// sends it, or to whom the server sends it. The signature is Ed25519 by the sender's identity key
// over "sotto secagg 1 message", a zero byte, the whole digest, and all that stands before it. Sets
// are bitmaps, least significant bit first, with zeros for padding. There is one encoding of a
// message: decoding refuses any other.

// Version is the version of the wire format.
const Version = 1

// Kind is the kind of a message. Odd kinds but the last go up to the server.
type Kind uint8

const (
	// KindAdvertise (client): public keys, the seed's check value, a signature for the neighbours.
	KindAdvertise Kind = 1
	// KindRoster (server): the graph's shape and the neighbours' keys.
	KindRoster Kind = 2
	// KindShares (client): for every neighbour a sealed pair of shares.
	KindShares Kind = 3
	// KindDelivery (server): the pairs that neighbours have sealed for this client.
	KindDelivery Kind = 4
	// KindMasked (client): the masked message.
	KindMasked Kind = 5
	// KindSurvivors (server): who is in the sum.
	KindSurvivors Kind = 6
	// KindAck (client, malicious server): for every surviving neighbour a tag on the survivors.
	KindAck Kind = 7
	// KindAcks (server, malicious server): the tags of the neighbours.
	KindAcks Kind = 8
	// KindOpen (client): for every neighbour one share, of the seed of a survivor or of the key of
	// one who vanished.
	KindOpen Kind = 9
)

func (k Kind) String() string {
	names := [...]string{"", "advertise", "roster", "shares", "delivery", "masked", "survivors",
		"ack", "acks", "open"}
	if k >= 1 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// fromClient says whether clients send messages of this kind.
func (k Kind) fromClient() bool { return k%2 == 1 }

const (
	headerSize    = 28
	signatureSize = ed25519.SignatureSize
	// MaxMessage bounds the length of a message in bytes: what a transport should read at most.
	MaxMessage = headerSize + 5 + 8*maxLength + 2 + maxDegree/8 + tagSize*maxDegree + signatureSize
)

// Header is what can be read off a message without knowing the session. Nothing in it is
// checked but its form.
type Header struct {
	Kind             Kind
	Session, Context [8]byte
	Client           uint32
}

// Inspect reads a message's header and checks version, kind and length.
func Inspect(message []byte) (Header, error) {
	h, _, _, err := open(message)
	return h, err
}

func open(message []byte) (h Header, body, signature []byte, err error) {
	fail := func(format string, args ...any) (Header, []byte, []byte, error) {
		return Header{}, nil, nil, fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	switch {
	case len(message) < headerSize+signatureSize:
		return fail("%d bytes, a message has at least %d", len(message), headerSize+signatureSize)
	case message[0] != 'S' || message[1] != 'A':
		return fail("it begins with %q, must be \"SA\"", message[:2])
	case message[2] != Version:
		return Header{}, nil, nil, fmt.Errorf("%w: %d, this is version %d", ErrVersion, message[2], Version)
	case message[3] < byte(KindAdvertise) || message[3] > byte(KindOpen):
		return fail("kind %d", message[3])
	}
	n := binary.BigEndian.Uint32(message[24:28])
	if uint64(len(message)) != uint64(headerSize)+uint64(n)+signatureSize {
		return fail("%d bytes, but its body claims %d", len(message), n)
	}
	h = Header{Kind: Kind(message[3]), Client: binary.BigEndian.Uint32(message[20:24])}
	copy(h.Session[:], message[4:12])
	copy(h.Context[:], message[12:20])
	return h, message[headerSize : headerSize+n], message[headerSize+n:], nil
}

// envelope signs and frames the messages of one session.
type envelope struct {
	id, digest [32]byte
}

func (e envelope) seal(kind Kind, client uint32, body []byte, key ed25519.PrivateKey) []byte {
	m := make([]byte, 0, headerSize+len(body)+signatureSize)
	m = append(m, 'S', 'A', Version, byte(kind))
	m = append(m, e.id[:8]...)
	m = append(m, e.digest[:8]...)
	m = binary.BigEndian.AppendUint32(m, client)
	m = binary.BigEndian.AppendUint32(m, uint32(len(body)))
	m = append(m, body...)
	return append(m, ed25519.Sign(key, statement("message", e.digest, m))...)
}

// belongs checks that a header is of this session and these parameters.
func (e envelope) belongs(h Header) error {
	if h.Session != [8]byte(e.id[:8]) {
		return fmt.Errorf("%w: a message of session %x in session %x", ErrReplay, h.Session, e.id[:8])
	}
	if h.Context != [8]byte(e.digest[:8]) {
		return fmt.Errorf("%w: %x, here %x", ErrContext, h.Context, e.digest[:8])
	}
	return nil
}

func (e envelope) authentic(message, signature []byte, key ed25519.PublicKey) error {
	if !verify(key, statement("message", e.digest, message[:len(message)-signatureSize]), signature) {
		return fmt.Errorf("%w: on a message", ErrSignature)
	}
	return nil
}

// reader takes a body apart. After the first failure everything reads as zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.fail("%d bytes left, must be %d", len(r.b), n)
	}
	if r.err != nil {
		return make([]byte, min(n, 64))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }

// count reads a number of things of a size each, at most most, and checks that so many bytes are
// left, before anything is allocated.
func (r *reader) count(n uint32, most, size int) int {
	if r.err == nil && (n > uint32(most) || uint64(n)*uint64(size) > uint64(len(r.b))) {
		r.fail("a count of %d with %d bytes left", n, len(r.b))
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) bitmap(n int) []bool {
	b := r.take((n + 7) / 8)
	if r.err != nil {
		return nil
	}
	set := make([]bool, n)
	for i := range set {
		set[i] = b[i/8]>>(i%8)&1 == 1
	}
	if n%8 != 0 && b[len(b)-1]>>(n%8) != 0 {
		r.fail("padding of a bitmap is not zero")
	}
	return set
}

func (r *reader) end() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}

func appendBitmap(b []byte, set []bool) []byte {
	at := len(b)
	b = append(b, make([]byte, (len(set)+7)/8)...)
	for i, in := range set {
		if in {
			b[at+i/8] |= 1 << (i % 8)
		}
	}
	return b
}

// records reads one fixed-length record for every member of a set.
func (r *reader) records(set []bool, size int) [][]byte {
	n := 0
	for _, in := range set {
		if in {
			n++
		}
	}
	if r.count(uint32(n), n, size) != n {
		return nil
	}
	out := make([][]byte, len(set))
	for i, in := range set {
		if in {
			out[i] = r.take(size)
		}
	}
	return out
}

func appendRecords(b []byte, records [][]byte) []byte {
	for _, x := range records {
		b = append(b, x...)
	}
	return b
}

// advertise: mask key (32) ‖ channel key (32) ‖ check (32) ‖ signature on both keys (64).
type advertise struct {
	mask, enc, check, keys []byte
}

func (a advertise) append(b []byte) []byte {
	return append(append(append(append(b, a.mask...), a.enc...), a.check...), a.keys...)
}

func readAdvertise(b []byte) (advertise, error) {
	r := &reader{b: b}
	a := advertise{r.take(publicSize), r.take(publicSize), r.take(checkSize), r.take(signatureSize)}
	return a, r.end()
}

// roster: n (4) ‖ k (2) ‖ t (2) ‖ place (4) ‖ k × [id (4) ‖ mask key ‖ channel key ‖ signature].
type roster struct {
	params Params
	place  int
	seats  []rosterSeat
}

type rosterSeat struct {
	id              uint32
	mask, enc, keys []byte
}

func (m roster) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.params.N))
	b = binary.BigEndian.AppendUint16(b, uint16(m.params.K))
	b = binary.BigEndian.AppendUint16(b, uint16(m.params.T))
	b = binary.BigEndian.AppendUint32(b, uint32(m.place))
	for _, s := range m.seats {
		b = binary.BigEndian.AppendUint32(b, s.id)
		b = append(append(append(b, s.mask...), s.enc...), s.keys...)
	}
	return b
}

func readRoster(b []byte) (roster, error) {
	r := &reader{b: b}
	m := roster{params: Params{N: r.count(r.u32(), maxClients, 0)}}
	k := r.u16()
	m.params.T = int(r.u16())
	m.place = r.count(r.u32(), maxClients, 0)
	m.params.K = r.count(uint32(k), maxDegree, 4+2*publicSize+signatureSize)
	if p := m.params; r.err == nil && (p.K < 2 || p.K >= p.N || p.T < 2 || p.T > p.K ||
		m.place >= p.N || p.K%2 != 0 && p.K != p.N-1) {
		r.fail("a graph of n=%d, k=%d, t=%d, place %d", p.N, p.K, p.T, m.place)
	}
	if r.err != nil {
		return roster{}, r.err
	}
	m.seats = make([]rosterSeat, m.params.K)
	for i := range m.seats {
		m.seats[i] = rosterSeat{r.u32(), r.take(publicSize), r.take(publicSize), r.take(signatureSize)}
	}
	return m, r.end()
}

// sealed is the body of shares and of delivery: k (2) ‖ set (⌈k/8⌉) ‖ for every member a sealed
// pair (48). In shares the set is full.
type sealed struct {
	pairs [][]byte // nil where there is none
}

func (m sealed) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.pairs)))
	return appendRecords(appendBitmap(b, present(m.pairs)), m.pairs)
}

func readSealed(b []byte) (sealed, error) {
	r := &reader{b: b}
	k := r.count(uint32(r.u16()), maxDegree, 0)
	m := sealed{r.records(r.bitmap(k), sealedSize)}
	return m, r.end()
}

func present(records [][]byte) []bool {
	set := make([]bool, len(records))
	for i, x := range records {
		set[i] = x != nil
	}
	return set
}

// tags: k (2) ‖ set (⌈k/8⌉) ‖ for every member a tag (16). k is 0 when the server is semi-honest.
func appendTags(b []byte, tags [][]byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(tags)))
	return appendRecords(appendBitmap(b, present(tags)), tags)
}

func (r *reader) tags() [][]byte {
	k := r.count(uint32(r.u16()), maxDegree, 0)
	return r.records(r.bitmap(k), tagSize)
}

// masked: width (1) ‖ length (4) ‖ length × value (width) ‖ tags, by which a neighbour knows that
// its mask is in the message.
type masked struct {
	width  int
	values []uint64
	tags   [][]byte // nil where there is none
}

// widthOf is the number of bytes of a value below m.
func widthOf(m uint64) int {
	w := 1
	for v := (m - 1) >> 8; v != 0; v >>= 8 {
		w++
	}
	return w
}

func (m masked) append(b []byte) []byte {
	b = append(b, byte(m.width))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.values)))
	for _, v := range m.values {
		for i := m.width - 1; i >= 0; i-- {
			b = append(b, byte(v>>(8*i)))
		}
	}
	return appendTags(b, m.tags)
}

func readMasked(b []byte) (masked, error) {
	r := &reader{b: b}
	m := masked{width: int(r.u8())}
	if r.err == nil && (m.width < 1 || m.width > 8) {
		r.fail("values of %d bytes", m.width)
	}
	m.values = make([]uint64, r.count(r.u32(), maxLength, m.width))
	for i := range m.values {
		for _, c := range r.take(m.width) {
			m.values[i] = m.values[i]<<8 | uint64(c)
		}
	}
	m.tags = r.tags()
	return m, r.end()
}

// survivors: n (4) ‖ set of places (⌈n/8⌉) ‖ tags, those that the neighbours have made for this
// client with their masked messages.
type survivors struct {
	set  []bool
	tags [][]byte // nil where there is none
}

func (m survivors) append(b []byte) []byte { return appendTags(m.head(b), m.tags) }

// head is what is the same for all clients.
func (m survivors) head(b []byte) []byte {
	return appendBitmap(binary.BigEndian.AppendUint32(b, uint32(len(m.set))), m.set)
}

func readSurvivors(b []byte) (survivors, error) {
	r := &reader{b: b}
	m := survivors{set: r.bitmap(r.count(r.u32(), maxClients, 0))}
	m.tags = r.tags()
	return m, r.end()
}

// ack: hash of the survivors (32) ‖ tags, by which a neighbour knows that this client counts it in.
type ack struct {
	hash [hashSize]byte
	tags [][]byte // nil where there is none
}

func (m ack) append(b []byte) []byte { return appendTags(append(b, m.hash[:]...), m.tags) }

func readAck(b []byte) (ack, error) {
	r := &reader{b: b}
	m := ack{hash: [hashSize]byte(r.take(hashSize))}
	m.tags = r.tags()
	return m, r.end()
}

// acks: tags, those that the neighbours have made for this client.
type acks struct {
	tags [][]byte // nil where there is none
}

func (m acks) append(b []byte) []byte { return appendTags(b, m.tags) }

func readAcks(b []byte) (acks, error) {
	r := &reader{b: b}
	m := acks{r.tags()}
	return m, r.end()
}

// opened: k (2) ‖ set of neighbours whose share is here ‖ set of those whose share is of the key ‖
// for every member of the first a share (16). There is no way to write two shares of one client.
type opened struct {
	shares [][]byte // nil where there is none
	key    []bool
}

func (m opened) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.shares)))
	b = appendBitmap(b, present(m.shares))
	return appendRecords(appendBitmap(b, m.key), m.shares)
}

func readOpened(b []byte) (opened, error) {
	r := &reader{b: b}
	k := r.count(uint32(r.u16()), maxDegree, 0)
	set := r.bitmap(k)
	m := opened{key: r.bitmap(k)}
	for i := range m.key {
		if m.key[i] && !set[i] {
			r.fail("a key share that is not there")
		}
	}
	m.shares = r.records(set, shareSize)
	return m, r.end()
}
