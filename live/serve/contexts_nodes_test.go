//go:build unix

package serve

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// On real disks too an experiment with contexts goes on where it was, offers too, after a restart or
// when another takes over; who only reads sees the same, and its blocks go with their releases.
func TestContextsStores(t *testing.T) {
	dir, address := t.TempDir(), pgtest.Database(t)
	read, err := store.PostgresReader(address)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string][2]func(context.Context) (store.Store, error){
		"sqlite": {store.SQLite(dir), store.SQLiteReader(dir)}, "postgres": {postgresAt(t, address), read},
	} {
		t.Run(name, func(t *testing.T) {
			c, got := newClock(), &vectorSums{}
			cfg := Config{Store: at[0], Clock: c.Now, VectorCurator: got.curator,
				Curator: silent(func(int, int, int64) {})}
			e := open(t, cfg)
			lead := func() {
				t.Helper()
				if err := e.Lead(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			lead()
			begin(t, e, news)
			var all, offered []newsDecision
			for i := range 90 {
				settle(t, e, c, 300*time.Millisecond, 1)
				ask := newsAsk(i)
				ask.Deferred = i%3 == 0
				d := decideNews(t, e, ask)
				if ask.Deferred {
					offered = append(offered, d)
				} else {
					all = append(all, d)
				}
				if i%30 != 29 {
					continue
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
				lead()
				for _, d := range offered {
					want := Accepted
					if !c.Now().Before(d.ranking.ActivateBy) {
						want = Late
					}
					s, err := e.ActivateEvent(t.Context(), "news", d.ask.Event)
					if s != want || err != nil {
						t.Fatalf("%s: %v, %v, want %v", d.ask.Event, s, err, want)
					}
					if s == Accepted {
						all = append(all, d)
					}
				}
				offered = nil
			}
			settle(t, e, c, time.Second, 25)
			want, err := e.Get(t.Context(), "news")
			if err != nil || want.Contextual.Released < 30 || want.Contextual.Decisions != len(all) {
				t.Fatalf("%+v, %+v, %v", want, want.Contextual, err)
			}
			if sums := products(all[:got.released()]); !slices.Equal(sums, got.sums) {
				t.Errorf("released %v, must be %v", got.sums, sums)
			}
			x := mustFind(t, e, "news")
			stored, err := e.store.Load(t.Context(), x.id)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, v := range stored.Events {
				events, err := readEvents(v.Data, v.Start, want.Contextual.Dim, len(want.Contextual.Rules))
				if err != nil || v.Start < want.Contextual.Released {
					t.Errorf("a block from %d on, %v: released are %d", v.Start, err, want.Contextual.Released)
				}
				n += len(events)
			}
			if must := want.Contextual.Decisions - want.Contextual.Released; n != must {
				t.Errorf("%d events are stored, must be %d", n, must)
			}
			reader := open(t, Config{Store: at[1], Clock: c.Now, ReadOnly: true})
			info, err := reader.Get(t.Context(), "news")
			if err != nil || !reflect.DeepEqual(info.Contextual, want.Contextual) || info.State != want.State {
				t.Errorf("who only reads sees %s, %v", cmp.Diff(info.Contextual, want.Contextual), err)
			}
			if _, err := reader.Rank(t.Context(), "news", newsAsk(999)); !errors.Is(err, ErrReadOnly) {
				t.Errorf("who only reads ranks: %v", err)
			}
			text := strings.Join(newsTranscript(t, reader), "\n") + "\n"
			if _, err := Replay(strings.NewReader(text), catalog.Catalog{}); err == nil {
				t.Error("a transcript whose noise is too small is believed")
			}
		})
	}
}
