package prio_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cloudflare/circl/vdaf/prio3/sum"

	"github.com/sotto-dp/sotto/secagg/prio"
)

// servers are the two servers of a task, with circl's functions alone and with ours.
type servers struct {
	key    prio.VerifyKey
	nonce  prio.Nonce
	bare   *sum.Sum
	sums   [2]sum.AggShare
	own    *prio.Sum
	totals [2]prio.Total
	share  [2][]byte // a report's input shares
	parsed [2]sum.InputShare
}

func newServers(b *testing.B, grid uint64) *servers {
	b.Helper()
	ctx := []byte("a context of 38 bytes, as a task has it")
	s := &servers{}
	var err error
	if s.key, err = prio.NewVerifyKey(nil); err != nil {
		b.Fatal(err)
	}
	if s.bare, err = sum.New(2, grid, ctx); err != nil {
		b.Fatal(err)
	}
	if s.own, err = prio.NewSum(grid, ctx); err != nil {
		b.Fatal(err)
	}
	for i := range s.sums {
		s.sums[i], s.totals[i] = s.bare.AggregateInit(), s.own.Total()
	}
	if s.share[0], s.share[1], err = s.own.Shard(grid, &s.nonce, rand.Reader); err != nil {
		b.Fatal(err)
	}
	s.parse(b)
	return s
}

func (s *servers) parse(b *testing.B) {
	params := s.bare.Params()
	for i := range s.parsed {
		if err := s.parsed[i].New(&params, uint(i)).UnmarshalBinary(s.share[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// circl is what both servers compute of a report's shares, in VDAF's ping-pong: the helper checks
// for both.
func (s *servers) circl(b *testing.B) {
	var states [2]*sum.PrepState
	var shares [2]sum.PrepShare
	for i, in := range s.parsed {
		state, share, err := s.bare.PrepInit(&s.key, &s.nonce, uint8(i), nil, in)
		if err != nil {
			b.Fatal(err)
		}
		states[i], shares[i] = state, *share
	}
	m, err := s.bare.PrepSharesToPrep(shares[:])
	if err != nil {
		b.Fatal(err)
	}
	for i := range states {
		out, err := s.bare.PrepNext(states[i], m)
		if err != nil {
			b.Fatal(err)
		}
		s.bare.AggregateUpdate(&s.sums[i], out)
	}
}

// sotto is the same from bytes, and to bytes between the servers.
func (s *servers) sotto(b *testing.B) {
	var preps [2]prio.Prep
	for i := range preps {
		var err error
		if preps[i], err = s.own.Prepare(&s.key, &s.nonce, prio.Role(i), s.share[i]); err != nil {
			b.Fatal(err)
		}
	}
	share, err := preps[0].Share()
	if err != nil {
		b.Fatal(err)
	}
	if err := s.own.Check(preps[1], share); err != nil {
		b.Fatal(err)
	}
	for i := range preps {
		if err := s.totals[i].Add(preps[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServers is what both servers compute for one report, circl's functions alone and ours,
// side by side: they take turns, so that a machine with other work is slow for all of them.
func BenchmarkServers(b *testing.B) {
	const turn = 20
	for _, grid := range []uint64{1, 100, 1024, 1 << 20} {
		b.Run(fmt.Sprintf("g=%d", grid), func(b *testing.B) {
			s := newServers(b, grid)
			var sessions *pair
			var reports [turn][2][]byte
			ways := []struct {
				name string
				do   func(i int)
			}{
				{"circl", func(int) { s.circl(b) }},
				{"circl-from-bytes", func(int) { s.parse(b); s.circl(b) }},
				{"sotto", func(int) { s.sotto(b) }},
				{"sotto-sessions", func(i int) {
					if err := sessions.take(reports[i][0], reports[i][1]); err != nil {
						b.Fatal(err)
					}
				}},
			}
			times := make([][]float64, len(ways))
			for b.Loop() {
				sessions = newPair(b, session(b, grid, 2))
				for i := range reports {
					var err error
					reports[i][0], reports[i][1], err = prio.Report(sessions.session, grid, nil)
					if err != nil {
						b.Fatal(err)
					}
				}
				for i, w := range ways {
					start := time.Now()
					for k := range turn {
						w.do(k)
					}
					times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/turn)
				}
			}
			for i, w := range ways {
				slices.Sort(times[i])
				b.ReportMetric(times[i][len(times[i])/2]/1000, w.name+"-µs")
				if i > 0 {
					b.ReportMetric(times[i][len(times[i])/2]/times[0][len(times[0])/2], w.name+"/circl")
				}
			}
		})
	}
}
