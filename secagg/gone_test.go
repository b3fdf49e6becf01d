package secagg

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Nobody waits for a client whose connection is lost: with the clock at a standstill sessions end,
// whoever is lost and whenever. What was said before stays.
func TestGone(t *testing.T) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, kind := range []Kind{KindAdvertise, KindShares, KindMasked, KindAck, KindOpen} {
			// lost before or after it sends a message of this kind
			for _, before := range []bool{true, false} {
				for _, lost := range []int{2, 8} {
					t.Run(fmt.Sprintf("%v/%v/%v/%d", mode, kind, before, lost), func(t *testing.T) {
						s := testSession("gone", 8)
						s.Mode, s.Delta = mode, .25
						messages := map[uint32][]uint64{}
						for i := range 8 {
							messages[uint32(i)] = []uint64{1 << i}
						}
						w, err := Local{Rand: seeded("gone")}.setUp(s, messages)
						if err != nil {
							t.Fatal(err)
						}
						w.now = time.Unix(1, 0)
						done := map[uint32]bool{}
						step := func(id uint32, m []byte) {
							h, _ := Inspect(m)
							hit := h.Kind == kind && int(id) < lost
							var out []Envelope
							var err error
							if !hit || !before {
								out, err = w.server.Step(id, m)
							}
							w.down = append(w.down, out...)
							if hit && err == nil {
								if out, err = w.server.Gone(id); err == nil {
									w.down = append(w.down, out...)
									again, err := w.server.Gone(id)
									if len(again) > 0 || err != nil && w.server.Failed() == nil {
										t.Errorf("the second time: %v, %v", again, err)
									}
								}
								done[id] = true
							}
						}
						for id := range uint32(8) {
							m, err := w.clients[id].Start()
							if err != nil {
								t.Fatal(err)
							}
							step(id, m)
						}
						for len(w.down) > 0 {
							e := w.down[0]
							w.down = w.down[1:]
							if done[e.To] {
								continue
							}
							if m, err := w.clients[e.To].Step(e.Message); err != nil {
								t.Fatal(err)
							} else {
								step(e.To, m)
							}
						}
						if _, err := w.server.Gone(99); w.server.Failed() == nil && err != nil {
							t.Error(err)
						}
						r, err := w.server.Result()
						if mode == SemiHonest && kind == KindAck { // there is no such message
							lost = 0
						}
						in := kind > KindMasked || kind == KindMasked && !before
						last := kind == KindOpen && !before
						switch {
						case lost == 8 && !last:
							if !errors.Is(err, ErrTooFew) || errors.Is(err, ErrDeadline) {
								t.Errorf("%v, %v, want %v", r, err, ErrTooFew)
							}
						case err != nil:
							t.Error(err)
						default:
							want := uint64(0)
							for id := range 8 {
								if in || id >= lost {
									want += 1 << id
								}
							}
							if r.Sum[0] != want {
								t.Errorf("%b of %v, want %b", r.Sum, r.Survivors, want)
							}
						}
					})
				}
			}
		}
	}
}
