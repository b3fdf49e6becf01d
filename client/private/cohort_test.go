package private

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

const shop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: 12}
budget: {epsilon: 64}
unit: {of: visit}
reward: {range: [0, 10], default: 5}
window: 1m
sticky: false
trust: secagg
cohort: {users: 8, every: 1h, wait: 10m}
`

// now is a Sleep that hardly sleeps.
func now(ctx context.Context, _ time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Millisecond):
		return nil
	}
}

// Units over HTTP and TLS: what is released is the sum of their rewards with one noise, and every
// one of them hears so.
func TestCohorts(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub := transport.NewHub(l)
	defer hub.Close()
	c := clock.At(time.UnixMilli(1_000_000_000_000))
	s := servetest.New(t, serve.Config{Clock: c.Now,
		Cohorts: &serve.Cohorts{Hub: hub, Address: l.Addr().String(),
			Round: time.Minute}})
	defer s.Engine.Close()
	decl, err := decl.Reader{}.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Engine.Create(t.Context(), *decl),
		s.Engine.Start(t.Context(), "shop")); err != nil {
		t.Fatal(err)
	}
	key, _, err := s.Engine.NewKey(t.Context(), "shop", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		t.Fatal(err)
	}
	of, err := client.New(s.URL, key)
	if err != nil {
		t.Fatal(err)
	}
	noise, err := decl.Noise()
	if err != nil {
		t.Fatal(err)
	}
	all := &Cohorts{Client: of, Experiment: "shop", Journal: &aggregate.Journal{Dir: t.TempDir()}, Sleep: now,
		Terms: &Terms{Noise: noise, Users: 8, Corrupt: 0.1, Vanish: 0.1, Hi: 10}}
	var first [2]json.RawMessage
	var want [2]float64
	var group sync.WaitGroup
	var over atomic.Int32
	for i := range 24 {
		d, err := of.Decide(t.Context(), "shop", client.Unit{})
		if err != nil {
			t.Fatal(err)
		}
		arm := slices.Index([]string{"red", "blue"}, d.Arm)
		m, err := all.Register(t.Context(), d.Report)
		if err != nil {
			t.Fatal(err)
		}
		first[arm] = d.Report.Terms
		reward, said := float64(i%11), i%3 > 0
		if !said {
			want[arm] += 5
		} else {
			want[arm] += reward
		}
		group.Go(func() {
			defer over.Add(1)
			if err := m.Join(t.Context(), func() (float64, bool) { return reward, said }); err != nil {
				t.Errorf("unit %d: %v", i, err)
			}
			if err := m.Join(t.Context(), func() (float64, bool) { return 0, true }); !errors.Is(err, ErrOver) {
				t.Errorf("unit %d, once more: %v", i, err)
			}
		})
	}
	var task taskJSON
	if err := json.Unmarshal(first[0], &task); err != nil {
		t.Fatal(err)
	}
	ticket, err := base64.RawURLEncoding.DecodeString(task.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	for over.Load() < 24 {
		at, err := s.Engine.Cohort(t.Context(), "shop", ticket)
		if err != nil {
			t.Fatal(err)
		}
		if at.Status == serve.CohortWait {
			c.Add(time.Second)
			if err := s.Engine.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
	}
	group.Wait()
	for {
		info, err := s.Engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if info.Arms[0].Released == 0 {
			c.Add(time.Second)
			time.Sleep(time.Millisecond)
			continue
		}
		for a, arm := range info.Arms {
			// 12 shares of an eighth each of Lap(10/64): beyond 25·10/64 with probability below
			// 1e-9, and 0 below 1e-4, which is not looked at
			if off := math.Abs(arm.Sum*10 - want[a]); arm.Released != 12 || off > 250.0/64 {
				t.Errorf("arm %d: %d rewards sum to %v, with noise, and to %v", a, arm.Released,
					arm.Sum*10, want[a])
			}
		}
		break
	}
}

// A cheat is a service that says what it likes.
type cheat struct {
	t       *testing.T
	hub     *transport.Hub
	key     ed25519.PrivateKey
	report  json.RawMessage // of decision 3 of arm 1
	session atomic.Pointer[string]
	own     atomic.Pointer[string] // the key that was registered
	url     string
}

func newCheat(t *testing.T) *cheat {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cheat{t: t, hub: transport.NewHub(l)}
	t.Cleanup(func() { _ = c.hub.Close() })
	if _, c.key, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	c.report = fmt.Appendf(nil, `{"trust": "secagg", "ticket": %q, "after_ms": 0, "range": [0, 1], "default": 0,
		"law": "laplace", "noise": "67108865/64", "cohort": {"users": 3, "corrupt": 0.1, "vanish": 0.1, "wait_ms": 2,
		"next_ms": 0, "round_ms": 60000, "server": %q}}`,
		base64.RawURLEncoding.EncodeToString(dap.Ticket{Arm: 1, Number: 3, Token: make([]byte, 20)}.Marshal()),
		base64.RawURLEncoding.EncodeToString(c.key.Public().(ed25519.PublicKey)))
	over := `{"status": "over"}`
	c.session.Store(&over)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/reports") {
			var in struct{ Reports []struct{ Key string } }
			if err := json.NewDecoder(r.Body).Decode(&in); err == nil {
				c.own.Store(&in.Reports[0].Key)
			}
			_, _ = w.Write([]byte(`{"results": [{"status": "accepted"}]}`))
			return
		}
		_, _ = w.Write([]byte(*c.session.Load()))
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// cohorts is a client of it.
func (c *cheat) cohorts(journal *aggregate.Journal, terms *Terms) *Cohorts {
	of, err := client.New(c.url, "key")
	if err != nil {
		c.t.Fatal(err)
	}
	return &Cohorts{Client: of, Experiment: "shop", Sleep: now, Journal: journal, Terms: terms}
}

// hold holds a session of the registered client and three others by these terms, and is its sum.
func (c *cheat) hold(of aggregate.Cohort) (sum uint64, err error) {
	var id [32]byte
	if _, err := rand.Read(id[:]); err != nil {
		return 0, err
	}
	own, err := base64.RawURLEncoding.DecodeString(*c.own.Load())
	if err != nil {
		return 0, err
	}
	keys := []string{*c.own.Load()}
	clients := map[uint32]ed25519.PublicKey{1: own}
	private := make([]ed25519.PrivateKey, 5)
	for i := uint32(2); i <= 4; i++ {
		if clients[i], private[i], err = ed25519.GenerateKey(nil); err != nil {
			return 0, err
		}
		keys = append(keys, base64.RawURLEncoding.EncodeToString(clients[i]))
	}
	session, _, err := of.Session(id, 1, 0, 4)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("%x.session", id[:4])
	listener, err := c.hub.Listen(name)
	if err != nil {
		return 0, err
	}
	text, _ := json.Marshal(keys)
	say := fmt.Sprintf(`{"status": "open", "after_ms": 1, "address": %q, "name": %q, "id": "%x", "arm": 1, "start": 0,
		"end": 10, "keys": %s}`, c.hub.Addr(), name, id, text)
	var group sync.WaitGroup
	defer group.Wait()
	for i := uint32(2); i <= 4; i++ {
		group.Go(func() {
			// who meets one who does not share its masks has no luck
			_ = transport.Join(c.t.Context(), c.hub.Addr().String(), transport.ClientConfig{ServerName: name,
				Protocol: secagg.ClientConfig{Session: session, ID: i, Identity: private[i],
					Server: c.key.Public().(ed25519.PublicKey),
					Pinned: secagg.PinnedKeys(clients)}}, []uint64{0})
		})
	}
	c.session.Store(&say)
	// It begins without whoever leaves it.
	result, err := transport.Serve(c.t.Context(), listener, transport.ServerConfig{
		Protocol: secagg.ServerConfig{Session: session, Identity: c.key, Clients: clients}})
	over := `{"status": "over"}`
	c.session.Store(&over)
	if err != nil {
		return 0, err
	}
	if len(result.Survivors) < 4 {
		return 0, secagg.ErrTooFew
	}
	return result.Sum[0], nil
}

// told is a decision's report.
func told(t *testing.T, text json.RawMessage) *client.ReportTask {
	out := &client.ReportTask{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func honest() aggregate.Cohort {
	return aggregate.Cohort{Experiment: "shop",
		Noise: release.Noise{Name: privacy.NoiseLaplace, Num: 67108865, Den: 64},
		Users: 3, Corrupt: 0.1, Vanish: 0.1}
}

func one() (float64, bool) { return 1, true }

// A service that holds a second session of the same decisions, whose noise would be fresh, gets
// nothing of a client in it, also when it is asked by a process that was started again.
func TestSecondSession(t *testing.T) {
	c := newCheat(t)
	journal := &aggregate.Journal{Dir: t.TempDir()}
	for try := range 3 {
		all := c.cohorts(journal, nil)
		m, err := all.Register(t.Context(), told(t, c.report))
		if err != nil {
			t.Fatal(err)
		}
		for again := range 2 {
			done := make(chan error, 1)
			opened := make(chan error, 1)
			go func() {
				_, err := c.hold(honest())
				opened <- err
			}()
			for !strings.Contains(*c.session.Load(), "open") {
				time.Sleep(time.Millisecond)
			}
			go func() { done <- m.Join(t.Context(), one) }()
			first := try+again == 0
			if err := <-done; first != (err == nil) || !first && !errors.Is(err, aggregate.ErrSpent) {
				t.Errorf("process %d, session %d: %v", try, again, err)
			}
			if err := <-opened; first != (err == nil) {
				t.Errorf("process %d, session %d: the service has %v", try, again, err)
			}
		}
	}
}

// A service that says half the noise in a session, or more corrupt clients than it told,
// shares no masks with who was told otherwise; one that says it with the decision is not what
// the program knows.
func TestOtherTerms(t *testing.T) {
	half, more, fewer := honest(), honest(), honest()
	half.Noise.Den *= 2
	more.Vanish = 0.2
	fewer.Users = 2
	for what, of := range map[string]aggregate.Cohort{"half": half, "more": more, "fewer": fewer} {
		c := newCheat(t)
		m, err := c.cohorts(nil, nil).Register(t.Context(), told(t, c.report))
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan error, 1)
		go func() {
			_, err := c.hold(of)
			opened <- err
		}()
		for !strings.Contains(*c.session.Load(), "open") {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Join(ctx, one) }()
		if err := <-opened; err == nil {
			t.Errorf("%s: the sum is opened", what)
		}
		cancel()
		if err := <-done; err == nil {
			t.Errorf("%s: the client has not noticed", what)
		}
	}
	c := newCheat(t)
	terms := Terms{honest().Noise, 3, 0.1, 0.1, 0, 1}
	if _, err := c.cohorts(nil, &terms).Register(t.Context(), told(t, c.report)); err != nil {
		t.Error(err)
	}
	terms.Noise.Den /= 2
	if _, err := c.cohorts(nil, &terms).Register(t.Context(), told(t, c.report)); !errors.Is(err, ErrTerms) {
		t.Errorf("half of what the program knows: %v", err)
	}
}

// What a session leaves out, or puts in, is told by the client: it must be of their decision,
// and have them once.
func TestOtherSessions(t *testing.T) {
	for old, other := range map[string]string{`"arm": 1`: `"arm": 0`, `"start": 0`: `"start": 4`,
		`"end": 10`: `"end": 3`,
		`"keys": [`: `"keys": ["` + base64.RawURLEncoding.EncodeToString(make([]byte, 32)) + `"], "more": [`} {
		c := newCheat(t)
		m, err := c.cohorts(nil, nil).Register(t.Context(), told(t, c.report))
		if err != nil {
			t.Fatal(err)
		}
		say := strings.Replace(`{"status": "open", "after_ms": 1, "address": "127.0.0.1:1", "name": "x", "id": "`+
			strings.Repeat("01", 32)+`", "arm": 1, "start": 0, "end": 10, "keys": ["`+*c.own.Load()+
			`"]}`, old, other, 1)
		c.session.Store(&say)
		if err := m.Join(t.Context(), one); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// The shares of as many as are promised are one whole noise: χ² of their sum against the exact law
// of discrete Laplace, false alarm below 1e-6 (16 degrees: 58.1). Who adds none, one, or half of
// the noise is found out.
func TestSharesAreWhole(t *testing.T) {
	const users, draws, edge, most = 4, 20_000, 8, 58.1
	n, less := release.Noise{Name: privacy.NoiseLaplace, Num: 8, Den: 1},
		release.Noise{Name: privacy.NoiseLaplace, Num: 4, Den: 1}
	whole, err := n.Cohort(users, users)
	if err != nil {
		t.Fatal(err)
	}
	half, err := less.Cohort(users, users)
	if err != nil {
		t.Fatal(err)
	}
	var law [2*edge + 1]float64 // of −8 and below, −7 to 7, 8 and above
	a := math.Exp(-1.0 / 8)
	for i := range law {
		x := math.Abs(float64(i - edge))
		if law[i] = (1 - a) / (1 + a) * math.Pow(a, x); x == edge {
			law[i] /= 1 - a
		}
	}
	chi := func(m privacy.Aggregated, shares int) (out float64) {
		r, err := release.NewRandomizer(m)
		if err != nil {
			t.Fatal(err)
		}
		var got [2*edge + 1]float64
		for range draws {
			total := uint64(0)
			for range shares {
				x, err := r.Messages(nil, 0)
				if err != nil {
					t.Fatal(err)
				}
				total = (total + x[0]) % uint64(m.Modulus)
			}
			sum, err := release.CohortSum(m, total, users)
			if err != nil {
				t.Fatal(err)
			}
			got[min(max(sum, -edge), edge)+edge]++
		}
		for i, x := range got {
			out += (x - draws*law[i]) * (x - draws*law[i]) / (draws * law[i])
		}
		return out
	}
	if x := chi(whole, users); x > most {
		t.Errorf("χ² of whole noise is %v", x)
	}
	for what, x := range map[string]float64{"none": chi(whole, 0), "one share of four": chi(whole, 1),
		"three shares of four": chi(whole, users-1), "half": chi(half, users)} {
		if x < 4*most {
			t.Errorf("χ² of %s is %v: it is not found out", what, x)
		}
	}
}

// Messages are what the randomizer of the cohort draws, and no others.
func TestNoisy(t *testing.T) {
	n := release.Noise{Name: privacy.NoiseLaplace, Num: 1 << 10, Den: 1}
	m, err := n.Cohort(3, 3)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := n.Shares(3)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for range 40 {
		x, err := noisy(m, 0.5, drawn)
		if err != nil || len(x) != 1 || x[0] >= uint64(m.Modulus) {
			t.Fatal(x, err)
		}
		seen[x[0]] = true
	}
	// A share of a third is 0 with probability 1%.
	if len(seen) < 20 {
		t.Errorf("%d of 40 messages differ", len(seen))
	}
}
