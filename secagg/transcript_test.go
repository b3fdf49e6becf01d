package secagg

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The transcripts of testdata/transcripts: a file a scenario. "run" plays a session of n clients,
// client i with the message i+1, and its lines are faults:
//
//	drop    client kind            the message is lost
//	twice   client kind            it arrives twice
//	flip    client kind bit        one bit of it is wrong
//	cut     client kind bytes      its end is missing
//	grow    client kind bytes      zero bytes follow it
//	version client kind            it is of the next version of the format
//	hold    client kind until      it arrives when the first message of another kind is sent
//	replay  client kind            in its place comes one of another session
//	told    client                 the client was told another arm
//	clock   kind by                the clock jumps when the first message of a kind is sent
//	deny    client victim          the server tells a client that a survivor vanished
//	admit   client victim          the server tells a client that one who vanished survives
//	cover   client                 the server passes on the tags of a client who was told other survivors
//	again   client victim          the server names the survivors a second time, with the victim on the other side
//	swap    client victim          the server gives a client another mask key for a neighbour
//	outside client                 a masked message is not below m
//	rubbish client                 a client seals rubbish for its neighbours
//	lie     client                 a client opens wrong shares
//	both    client                 a client opens a key share where a seed share is due
//	weak                           the server offers a threshold that is lower by one
//
// The server of deny, admit, again, swap and weak signs what it says. Wherever a sum comes out, it
// is compared with the sum of its survivors.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			return play(t, d)
		})
	})
}

var kindsByName = map[string]Kind{"advertise": KindAdvertise, "roster": KindRoster,
	"shares": KindShares, "delivery": KindDelivery,
	"masked": KindMasked, "survivors": KindSurvivors, "ack": KindAck, "acks": KindAcks, "open": KindOpen}

// fault is one line.
type fault struct {
	name           string
	client, victim uint32
	kind, until    Kind
	n              int
	by             time.Duration
	held           []byte
	done           bool
}

func parseFault(t *testing.T, d *datadriven.TestData, line string) *fault {
	words := strings.Fields(line)
	f := &fault{name: words[0]}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "client":
			_, err = fmt.Sscan(value, &f.client)
		case "victim":
			_, err = fmt.Sscan(value, &f.victim)
		case "kind":
			f.kind = kindsByName[value]
		case "until":
			f.until = kindsByName[value]
		case "bit", "bytes":
			_, err = fmt.Sscan(value, &f.n)
		case "by":
			f.by, err = time.ParseDuration(value)
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			d.Fatalf(t, "%s: %s: %v", line, w, err)
		}
	}
	switch f.name {
	case "deny", "admit", "again":
		f.kind = KindSurvivors
	case "cover":
		f.kind = KindAck
	case "swap":
		f.kind = KindRoster
	case "outside":
		f.kind = KindMasked
	case "rubbish":
		f.kind = KindShares
	case "lie", "both":
		f.kind = KindOpen
	}
	return f
}

func play(t *testing.T, d *datadriven.TestData) string {
	n, mode := 8, "semi-honest"
	d.MaybeScanArgs(t, "n", &n)
	s := testSession("transcripts", n)
	d.MaybeScanArgs(t, "mode", &mode)
	d.MaybeScanArgs(t, "nmin", &s.NMin)
	d.MaybeScanArgs(t, "m", &s.Modulus)
	s.Delta = .25
	if mode == "malicious" {
		s.Mode = Malicious
	}
	messages := map[uint32][]uint64{}
	for i := range n {
		messages[uint32(i)] = []uint64{uint64(i + 1)}
	}
	w, err := Local{Rand: seeded(fmt.Sprint(d.CmdArgs) + d.Input), Timeout: 10 * time.Second}.setUp(s, messages)
	if err != nil {
		return kindOf(err) + "\n"
	}
	var faults []*fault
	for line := range strings.Lines(d.Input) {
		f := parseFault(t, d, line)
		if f.name == "told" {
			other := s
			other.Arm++
			c := w.clients[f.client]
			cfg := c.cfg
			cfg.Session, cfg.Rand = other, seeded("told")
			if w.clients[f.client], err = NewClient(cfg, messages[f.client]); err != nil {
				t.Fatal(err)
			}
		}
		faults = append(faults, f)
	}
	w.fault = func(m Frame) [][]byte {
		out := [][]byte{m.Message}
		for _, f := range faults {
			if f.name == "hold" && f.until == m.Kind && f.held != nil {
				held := Envelope{f.client, f.held}
				f.held = nil
				if f.kind.fromClient() {
					w.up = append(w.up, held)
				} else {
					w.down = append(w.down, held)
				}
			}
			if f.name == "clock" && f.kind == m.Kind && !f.done {
				f.done = true
				w.now = w.now.Add(f.by)
			}
			if f.name == "weak" && m.Kind == KindRoster {
				x, err := readRoster(m.Message[headerSize : len(m.Message)-signatureSize])
				if err != nil {
					t.Fatal(err)
				}
				x.params.T--
				out = [][]byte{w.sign(m, x.append(nil))}
			}
			if f.kind == m.Kind && f.client == m.Client {
				out = f.apply(t, w, m, out)
			}
		}
		return out
	}
	playErr := w.play(context.Background())
	// Nobody hangs: those who wait come to their deadlines.
	byError := map[string][]uint32{}
	for _, id := range slices.Sorted(maps.Keys(w.clients)) {
		c := w.clients[id]
		if at := c.Deadline(); !at.IsZero() {
			w.now = at.Add(time.Nanosecond)
			err := c.Tick()
			if err == nil {
				t.Errorf("client %d waits for ever", id)
			}
			w.report.Clients[id] = errors.Join(w.report.Clients[id], err)
			w.now = time.Unix(0, 0).Add(1000 * time.Hour)
		}
		if err := w.report.Clients[id]; err != nil {
			byError[kindOf(err)] = append(byError[kindOf(err)], id)
		}
	}
	var b strings.Builder
	for _, err := range w.report.Refused {
		if w.server.Failed() == nil || !errors.Is(err, w.server.Failed()) {
			fmt.Fprintf(&b, "server refuses: %s\n", kindOf(err))
		}
	}
	for _, e := range slices.Sorted(maps.Keys(byError)) {
		fmt.Fprintf(&b, "clients %v: %s\n", byError[e], e)
	}
	if playErr != nil {
		fmt.Fprintf(&b, "no sum: %s\n", kindOf(playErr))
		return b.String()
	}
	r := w.report.Result
	var want uint64
	for _, id := range r.Survivors {
		want = addMod(want, messages[id][0], s.Modulus)
	}
	if r.Sum[0] != want || len(r.Survivors) < s.NMin {
		t.Errorf("the sum is %d, of %v, want %d", r.Sum[0], r.Survivors, want)
	}
	fmt.Fprintf(&b, "sum %d of %v\n", r.Sum[0], r.Survivors)
	return b.String()
}

// kindOf gives the error's words and checks that it is a named one.
func kindOf(err error) string {
	for _, named := range []error{ErrTooFew, ErrEquivocation, ErrBothShares, ErrReplay, ErrContext,
		ErrLate, ErrEarly, ErrDuplicate, ErrVersion,
		ErrMalformed, ErrSignature, ErrUnknown, ErrSender, ErrRange, ErrDeadline, ErrClock,
		ErrShares, ErrKey, ErrInfeasible, ErrSession} {
		if errors.Is(err, named) {
			return strings.ReplaceAll(strings.ReplaceAll(err.Error(), "\n", "; "), "secagg: ", "")
		}
	}
	return "UNNAMED " + err.Error()
}

// sign frames a body as the one who sent m.
func (w *parties) sign(m Frame, body []byte) []byte {
	key := w.serverKey
	if m.Kind.fromClient() {
		key = w.keys[m.Client]
	}
	return w.server.env.seal(m.Kind, m.Client, body, key)
}

func (f *fault) apply(t *testing.T, w *parties, m Frame, out [][]byte) [][]byte {
	body := m.Message[headerSize : len(m.Message)-signatureSize]
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	changed := bytes.Clone(m.Message)
	switch f.name {
	case "clock", "weak", "told":
		return out
	case "cover":
		x, err := readAck(body)
		must(err)
		x.hash = w.server.hash
		changed = w.sign(m, x.append(nil))
	case "drop":
		return nil
	case "twice":
		return append(out, out...)
	case "flip":
		changed[f.n/8] ^= 1 << (f.n % 8)
	case "cut":
		changed = changed[:len(changed)-f.n]
	case "grow":
		changed = append(changed, make([]byte, f.n)...)
	case "version":
		changed[2]++
	case "hold":
		f.held = changed
		return nil
	case "replay":
		other := envelope{[32]byte{1}, [32]byte{2}}
		key := w.serverKey
		if m.Kind.fromClient() {
			key = w.keys[m.Client]
		}
		changed = other.seal(m.Kind, m.Client, body, key)
	case "deny", "admit":
		x, err := readSurvivors(body)
		must(err)
		x.set[w.server.members[f.victim].place] = f.name == "admit"
		changed = w.sign(m, x.append(nil))
	case "again":
		x, err := readSurvivors(body)
		must(err)
		place := w.server.members[f.victim].place
		x.set[place] = !x.set[place]
		return append(out, w.sign(m, x.append(nil)))
	case "swap":
		x, err := readRoster(body)
		must(err)
		for i := range x.seats {
			if x.seats[i].id == f.victim {
				k := newKeyPair(make([]byte, 32))
				x.seats[i].mask = k.public[:]
			}
		}
		changed = w.sign(m, x.append(nil))
	case "outside":
		x, err := readMasked(body)
		must(err)
		x.values[0] = w.session.Modulus
		changed = w.sign(m, x.append(nil))
	case "rubbish":
		x, err := readSealed(body)
		must(err)
		for _, p := range x.pairs {
			p[0] ^= 1
		}
		changed = w.sign(m, x.append(nil))
	case "lie":
		x, err := readOpened(body)
		must(err)
		for _, b := range x.shares {
			if b != nil {
				b[0] ^= 1
			}
		}
		changed = w.sign(m, x.append(nil))
	case "both":
		x, err := readOpened(body)
		must(err)
		for i, b := range x.shares {
			if b != nil && !x.key[i] {
				x.key[i] = true
				break
			}
		}
		changed = w.sign(m, x.append(nil))
	default:
		t.Fatalf("unknown fault %q", f.name)
	}
	return [][]byte{changed}
}

// A client does not take part twice in a session, nor does a message of its fit a later one.
func TestReuse(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	cfg := ClientConfig{Session: testSession("reuse", 3), ID: 1, Identity: key,
		Server: key.Public().(ed25519.PublicKey),
		Pinned: PinnedKeys(nil), Used: &Used{}}
	for i, want := range []error{nil, ErrReplay} {
		c, err := NewClient(cfg, []uint64{1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Start(); !errors.Is(err, want) {
			t.Errorf("start %d: %v, want %v", i, err, want)
		}
		if _, err := c.Start(); err == nil {
			t.Error("a client starts twice")
		}
	}
}
