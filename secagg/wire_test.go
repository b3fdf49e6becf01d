package secagg

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// decode reads a body of a kind and gives back what encodes it.
func decode(k Kind, body []byte) (interface{ append([]byte) []byte }, error) {
	switch k {
	case KindAdvertise:
		m, err := readAdvertise(body)
		return m, err
	case KindRoster:
		m, err := readRoster(body)
		return m, err
	case KindShares, KindDelivery:
		m, err := readSealed(body)
		return m, err
	case KindMasked:
		m, err := readMasked(body)
		return m, err
	case KindSurvivors:
		m, err := readSurvivors(body)
		return m, err
	case KindAck:
		m, err := readAck(body)
		return m, err
	case KindAcks:
		m, err := readAcks(body)
		return m, err
	}
	m, err := readOpened(body)
	return m, err
}

// vectors are all messages to and from one client of a small session in which one other vanishes.
func vectors(t testing.TB, mode Mode, modulus uint64) [][]byte {
	s := testSession("vectors", 5)
	s.Mode, s.Delta, s.Modulus, s.Length = mode, .25, modulus, 2
	var all [][]byte
	messages := map[uint32][]uint64{}
	for i := range uint32(5) {
		messages[i] = []uint64{uint64(i), 7}
	}
	_, _, err := Local{Rand: seeded("vectors"), Fault: func(f Frame) [][]byte {
		if f.Client == 2 {
			all = append(all, bytes.Clone(f.Message))
		}
		if f.Client == 4 && f.Kind == KindMasked {
			return nil
		}
		return [][]byte{f.Message}
	}}.Sum(context.Background(), s, messages)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The golden messages pin the wire format, every derivation and every statement that is signed.
func TestWire(t *testing.T) {
	datadriven.RunTest(t, "testdata/wire.txt", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		switch d.Cmd {
		case "session":
			mode, m := "semi-honest", uint64(0)
			d.ScanArgs(t, "mode", &mode)
			d.MaybeScanArgs(t, "m", &m)
			kind := SemiHonest
			if mode == "malicious" {
				kind = Malicious
			}
			for _, v := range vectors(t, kind, m) {
				h, err := Inspect(v)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%v\n", h.Kind)
				for len(v) > 0 {
					n := min(len(v), 64)
					fmt.Fprintf(&b, "  %x\n", v[:n])
					v = v[n:]
				}
			}
		case "message", "body":
			raw, err := hex.DecodeString(strings.Join(strings.Fields(d.Input), ""))
			if err != nil {
				t.Fatal(err)
			}
			if d.Cmd == "message" {
				_, err = Inspect(raw)
			} else {
				_, err = decode(kindsByName[d.CmdArgs[0].Key], raw)
			}
			if err == nil {
				return "good\n"
			}
			fmt.Fprintln(&b, kindOf(err))
		}
		return b.String()
	})
}

// Every message has one encoding: what is shorter, longer or padded otherwise is refused.
func TestWireRefuses(t *testing.T) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, v := range vectors(t, mode, 1000) {
			h, body, _, err := open(v)
			if err != nil {
				t.Fatal(err)
			}
			m, err := decode(h.Kind, body)
			if err != nil || !bytes.Equal(m.append(nil), body) {
				t.Errorf("%v: does not encode as it was, %v", h.Kind, err)
			}
			for n := range body {
				if _, err := decode(h.Kind, body[:n]); !errors.Is(err, ErrMalformed) {
					t.Errorf("%v cut to %d bytes: %v", h.Kind, n, err)
				}
			}
			if _, err := decode(h.Kind, append(bytes.Clone(body), 0)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%v and a byte: %v", h.Kind, err)
			}
			for n := range v {
				if _, err := Inspect(v[:n]); !errors.Is(err, ErrMalformed) {
					t.Errorf("a message cut to %d bytes: %v", n, err)
				}
			}
		}
	}
}

func fuzzBody(f *testing.F, k Kind) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, v := range vectors(f, mode, 1000) {
			if h, body, _, err := open(v); err == nil && h.Kind == k {
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decode(k, body)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%v", err)
			}
			return
		}
		if got := m.append(nil); !bytes.Equal(got, body) {
			t.Errorf("%x is encoded as %x", body, got)
		}
	})
}

func FuzzAdvertise(f *testing.F) { fuzzBody(f, KindAdvertise) }
func FuzzRoster(f *testing.F)    { fuzzBody(f, KindRoster) }
func FuzzShares(f *testing.F)    { fuzzBody(f, KindShares) }
func FuzzDelivery(f *testing.F)  { fuzzBody(f, KindDelivery) }
func FuzzMasked(f *testing.F)    { fuzzBody(f, KindMasked) }
func FuzzSurvivors(f *testing.F) { fuzzBody(f, KindSurvivors) }
func FuzzAck(f *testing.F)       { fuzzBody(f, KindAck) }
func FuzzAcks(f *testing.F)      { fuzzBody(f, KindAcks) }
func FuzzOpen(f *testing.F)      { fuzzBody(f, KindOpen) }

func FuzzMessage(f *testing.F) {
	for _, v := range vectors(f, Malicious, 0) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if _, err := Inspect(message); err != nil && !errors.Is(err, ErrMalformed) &&
			!errors.Is(err, ErrVersion) {
			t.Errorf("%v", err)
		}
	})
}

// FuzzStep puts a body into one message of a session, signed by its sender: whatever it says, each
// side answers or refuses by a named error, and what comes out is the sum of the survivors.
func FuzzStep(f *testing.F) {
	for k := KindAdvertise; k <= KindOpen; k++ {
		for _, v := range vectors(f, Malicious, 1000) {
			if h, body, _, err := open(v); err == nil && h.Kind == k {
				f.Add(uint8(k), body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		s := testSession("vectors", 5)
		s.Mode, s.Delta, s.Modulus, s.Length = Malicious, .25, 1000, 2
		messages := map[uint32][]uint64{}
		for i := range uint32(5) {
			messages[i] = []uint64{uint64(i), 7}
		}
		w, err := Local{Rand: seeded("vectors")}.setUp(s, messages)
		if err != nil {
			t.Fatal(err)
		}
		w.fault = func(m Frame) [][]byte {
			if m.Client == 2 && m.Kind == Kind(kind) {
				return [][]byte{w.sign(m, body)}
			}
			return [][]byte{m.Message}
		}
		err = w.play(context.Background())
		for _, e := range append(w.report.Refused, err, w.report.Clients[0], w.report.Clients[2]) {
			if e != nil && strings.HasPrefix(kindOf(e), "UNNAMED") {
				t.Errorf("%v", e)
			}
		}
		// Client 2 may say anything for its own message, but not spoil the others' but by its
		// masks; the sum is checked when it tells the truth.
		if err == nil && Kind(kind) != KindMasked {
			want := uint64(0)
			for _, id := range w.report.Result.Survivors {
				want += messages[id][0]
			}
			if w.report.Result.Sum[0] != want%1000 {
				t.Errorf("the sum is %d, of %v", w.report.Result.Sum[0], w.report.Result.Survivors)
			}
		}
	})
}
