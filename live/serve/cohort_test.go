package serve

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/transport"
)

const cohortShop = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: 26}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0.25}
window: 1m
sticky: false
trust: secagg
cohort: {users: 10, corrupt: 0.05, vanish: 0.3, every: 1h, wait: 10m, tries: 2}
`

// smallShop has sessions of eight.
var smallShop = strings.NewReplacer("first: 26", "first: 8", "users: 10", "users: 3").Replace(cohortShop)

// A meeting is a service that holds sessions, on a clock that is set by hand, and who is in them.
type meeting struct {
	t     *testing.T
	c     *clock.Manual
	disk  *store.Memory
	hub   *transport.Hub
	e     *Engine
	hooks func(at string) // what else happens

	mu   sync.Mutex
	seen map[string]int
}

func newMeeting(t *testing.T, text string) *meeting {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meeting{t: t, c: newClock(), disk: store.NewMemory(), hub: transport.NewHub(l),
		seen: map[string]int{}}
	t.Cleanup(func() { _ = m.hub.Close() })
	m.c.Add(time.Hour - time.Duration(m.c.Now().UnixMilli()%time.Hour.Milliseconds())*time.Millisecond +
		time.Minute)
	m.open()
	if text != "" {
		begin(t, m.e, text)
	}
	return m
}

// open opens the engine, as after a crash of the last one.
func (m *meeting) open() {
	m.e = open(m.t, Config{Store: m.disk.Open, Clock: m.c.Now, gatherPause: time.Millisecond, hook: m.hook,
		Cohorts: &Cohorts{Hub: m.hub, Address: m.hub.Addr().String(), Round: time.Minute}})
}

func (m *meeting) hook(at string) {
	m.mu.Lock()
	m.seen[at]++
	also := m.hooks
	m.mu.Unlock()
	if also != nil {
		also(at)
	}
}

// wait waits until something has happened n times in all; the clock stands still.
func (m *meeting) wait(at string, n int) {
	m.t.Helper()
	for {
		m.mu.Lock()
		now := m.seen[at]
		m.mu.Unlock()
		if now >= n {
			return
		}
		if info, err := m.e.Get(m.t.Context(), "shop"); err != nil || info.State == Failed ||
			m.t.Context().Err() != nil {
			m.t.Fatal(at, info.Reason, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// A guest is the client of a decision.
type guest struct {
	Decision
	key ed25519.PrivateKey
}

// invite makes decisions and registers those of them that yes says.
func (m *meeting) invite(n int, yes func(i int) bool) (out []guest) {
	m.t.Helper()
	for i, d := range decided(m.t, m.e, n) {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, guest{d, key})
		if !yes(i) {
			continue
		}
		body := []byte(key.Public().(ed25519.PublicKey))
		for range 2 { // a second report is answered as the first, and changes nothing
			if s := reportOne(m.t, m.e, Message{d.Report.Ticket, body}); s != Accepted {
				m.t.Fatal(s)
			}
		}
	}
	return out
}

// due goes on until sessions are scheduled, and to their time.
func (m *meeting) due(scheduled, sessions int) {
	m.t.Helper()
	m.mu.Lock()
	before, opened := m.seen["scheduled"], m.seen["session"]
	m.mu.Unlock()
	for {
		m.mu.Lock()
		now := m.seen["scheduled"]
		m.mu.Unlock()
		if now > before {
			break
		}
		settle(m.t, m.e, m.c, time.Second, 1)
		time.Sleep(100 * time.Microsecond)
	}
	m.wait("scheduled", before+scheduled)
	m.hour()
	m.wait("session", opened+sessions)
}

// hour goes to the next full hour.
func (m *meeting) hour() {
	m.c.Add(time.Hour - time.Duration(m.c.Now().UnixMilli()%time.Hour.Milliseconds())*time.Millisecond)
}

// vanished is why a client leaves.
var errVanished = errors.New("vanished")

// join takes part with a message of this many steps, which has no noise, and vanishes when gone says.
func (m *meeting) join(g guest, steps int64, gone func(kind secagg.Kind) bool) error {
	s, err := m.e.Cohort(m.t.Context(), "shop", g.Report.Ticket)
	if err != nil {
		return err
	}
	return m.joinSession(g, s, steps, gone)
}

func (m *meeting) joinSession(g guest, s CohortSession, steps int64, gone func(kind secagg.Kind) bool) error {
	if s.Status != CohortOpen {
		return fmt.Errorf("the session is %s", s.Status)
	}
	of := mustFind(m.t, m.e, "shop").gatherer.(*cohorts).of
	session, mechanism, err := of.Session(s.ID, s.Arm, s.Start, len(s.Keys))
	if err != nil {
		return err
	}
	keys, id := map[uint32]ed25519.PublicKey{}, uint32(0)
	for i, k := range s.Keys {
		keys[uint32(i+1)] = k
		if k.Equal(g.key.Public()) {
			id = uint32(i + 1)
		}
	}
	message := uint64(steps)
	if steps < 0 {
		message = uint64(mechanism.Modulus + steps)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	return transport.Join(ctx, s.Address, transport.ClientConfig{
		Protocol: secagg.ClientConfig{Session: session, ID: id, Identity: g.key, Server: g.Report.Cohort.Server,
			Pinned: secagg.PinnedKeys(keys), Timeout: g.Report.Cohort.Round},
		Wait: time.Hour, ServerName: s.Name,
		Begin: func() error {
			if gone(0) {
				return errVanished
			}
			return nil
		},
		Sent: func(k secagg.Kind) error {
			if gone(k) {
				return errVanished
			}
			return nil
		}}, []uint64{message})
}

func stays(secagg.Kind) bool { return false }

// notes are the transcript's lines about sessions.
func (m *meeting) notes() string {
	m.t.Helper()
	lines, err := m.e.Transcript(m.t.Context(), "shop")
	if err != nil {
		m.t.Fatal(err)
	}
	var out []string
	for line, err := range lines {
		if err != nil {
			m.t.Fatal(err)
		}
		if i := bytes.Index(line, []byte(`"cohort":{"arm"`)); i >= 0 {
			out = append(out, string(line[i:]))
		}
	}
	return strings.Join(out, "")
}

// checked is how the experiment is, whose transcript and price must be what follows from its lines.
func (m *meeting) checked() Info {
	m.t.Helper()
	info, err := m.e.Get(m.t.Context(), "shop")
	if err != nil {
		m.t.Fatal(err)
	}
	r := replayed(m.t, m.e)
	pure := privacy.Pure{}
	if r.Batches != info.Batches || r.Arms[0].Sum != info.Arms[0].Sum ||
		r.Spent.In(pure) != info.Spent.In(pure) {
		m.t.Errorf("replayed to %d batches, %v, %v, was %d, %v, %v", r.Batches, r.Arms[0].Sum,
			r.Spent, info.Batches,
			info.Arms[0].Sum, info.Spent)
	}
	if !info.Spent.Within(privacy.Pure{Epsilon: 1}) {
		m.t.Errorf("%v is spent, must be within 1", info.Spent)
	}
	return info
}

// Two sessions at a time, over TLS, of 52 clients: some do not register, do not come, vanish
// at each stage, and one lies. What is released is the sum of those who survive, and the
// default of all others.
func TestCohort(t *testing.T) {
	m := newMeeting(t, cohortShop)
	guests := m.invite(52, func(i int) bool { return i >= 4 })
	if r := guests[0].Report; r.Trust != privacy.TrustSecAgg || r.Noise.Name != privacy.NoiseLaplace ||
		r.Cohort.Terms.Users != 10 || r.Cohort.Next != 59*time.Minute {
		t.Errorf("%+v, %+v", r, r.Cohort)
	}
	if s, err := m.e.Cohort(t.Context(), "shop", guests[0].Report.Ticket); err != nil ||
		s.Status != CohortWait ||
		s.After != 59*time.Minute {
		t.Errorf("before its session: %+v, %v", s, err)
	}
	m.due(2, 2)
	if s := reportOne(t, m.e, Message{guests[0].Report.Ticket, make([]byte, 32)}); s != Late {
		t.Errorf("a key after the window is %s", s)
	}
	const quarter, lie = 1 << 18, 1 << 24
	// The first not to come, and one who vanishes at each stage, of each arm.
	leaves := []secagg.Kind{0, secagg.KindAdvertise, secagg.KindShares, secagg.KindMasked}
	var want [2]int64
	var each [2]int
	var all sync.WaitGroup
	lied := false
	for i, g := range guests {
		n := each[g.Arm]
		steps := int64(i) << 10
		gone := stays
		switch {
		case i < 4: // has not registered
			want[g.Arm] += quarter
			continue
		case n == 0: // does not come
			want[g.Arm] += quarter
			each[g.Arm]++
			continue
		case n <= len(leaves):
			at := leaves[n-1]
			gone = func(k secagg.Kind) bool { return k == at }
			if at == secagg.KindMasked { // what has left counts
				want[g.Arm] += steps
			} else {
				want[g.Arm] += quarter
			}
		case !lied:
			lied = true
			steps = lie
			want[g.Arm] += lie
		default:
			want[g.Arm] += steps
		}
		each[g.Arm]++
		all.Go(func() {
			err := m.join(g, steps, gone)
			if left := gone(0) || gone(secagg.KindAdvertise) || gone(secagg.KindShares) ||
				gone(secagg.KindMasked); left != errors.Is(err, errVanished) || !left && err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	m.wait("came", 52-4-2)
	m.c.Add(10 * time.Minute) // nobody else is waited for
	all.Wait()
	info := until(t, m.e, m.c, released(52))
	for a, got := range info.Arms {
		if got.Sum != float64(want[a])*release.ExactStep {
			t.Errorf("arm %d: the sum is %v, must be %v", a, got.Sum, float64(want[a])*release.ExactStep)
		}
		if n, ok := got.Noise.(privacy.Aggregated); !ok || n.Trust != privacy.TrustSecAgg || n.Users != 10 {
			t.Errorf("the noise is %v", got.Noise)
		}
	}
	if got := strings.Count(m.notes(), `"asked":`); got != 2 || strings.Contains(m.notes(), "missing") {
		t.Errorf("the transcript says %s", m.notes())
	}
	m.checked()
	if s, err := m.e.Cohort(t.Context(), "shop", guests[9].Report.Ticket); err != nil ||
		s.Status != CohortOver {
		t.Errorf("after its session: %+v, %v", s, err)
	}
	if kept(t, m.e) != 0 {
		t.Error("keys are kept after the release")
	}
}

// A session to which too few come tells nothing, and is held again; then the rule applies: the
// rewards count as missing, and the transcript says so.
func TestCohortTooFew(t *testing.T) {
	m := newMeeting(t, smallShop)
	guests := m.invite(16, func(i int) bool { return true })
	m.due(2, 2)
	var all sync.WaitGroup
	few := func() {
		for _, g := range guests[:2] {
			all.Go(func() {
				if err := m.join(g, 1<<20, stays); !errors.Is(err, secagg.ErrTooFew) {
					t.Errorf("a client of few: %v", err)
				}
			})
		}
	}
	few()
	m.wait("came", 2)
	m.c.Add(10 * time.Minute)
	all.Wait()
	m.wait("scheduled", 4)
	info, err := m.e.Get(t.Context(), "shop")
	if err != nil || info.Wait != "sums" || !strings.Contains(info.Trouble,
		"too few came to session 1 of 2 of arm") ||
		!strings.Contains(info.Trouble, "the next is at 04:00") {
		t.Errorf("%s: %q, %v", info.Wait, info.Trouble, err)
	}
	if m.notes() != "" || info.Spent.In(privacy.Pure{}) != (privacy.Pure{}) {
		t.Errorf("the transcript says %s, and %v is spent", m.notes(), info.Spent)
	}
	m.hour()
	m.wait("session", 4)
	few()
	m.wait("came", 4)
	m.c.Add(10 * time.Minute)
	all.Wait()
	info = until(t, m.e, m.c, released(16))
	if got := fmt.Sprint(info.Arms[0].Sum, info.Arms[1].Sum); got != "2 2" {
		t.Errorf("the sums are %s, must be the defaults'", got)
	}
	if got := strings.Count(m.notes(), `"missing":"too few came, 2 times"`); got != 2 {
		t.Errorf("the transcript says %s", m.notes())
	}
	batches, err := m.e.Batches(t.Context(), "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	closed := 0
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		if b.Cohort != nil && b.Cohort.Missing == "too few came, 2 times" && b.Cohort.End-b.Cohort.Start == 8 {
			closed++
		}
	}
	if closed != 2 {
		t.Errorf("the pages have %d slots without a sum, must have 2", closed)
	}
	m.checked()
}

// Too few who have registered are not waited for; by the other rule the experiment ends.
func TestCohortNobodyRegisters(t *testing.T) {
	for rule, want := range map[string]string{"": "", ", otherwise: stop": "0 registered, of 8 decisions"} {
		m := newMeeting(t, strings.NewReplacer(", tries: 2", rule, "range: [0, 1], default: 0.25",
			"range: [-1, 3], default: 0").Replace(smallShop))
		m.invite(16, func(i int) bool { return false })
		for {
			info, err := m.e.Get(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if info.State == Failed {
				if want == "" || !strings.Contains(info.Reason, want) {
					t.Errorf("%q: %s", rule, info.Reason)
				}
				break
			}
			if info.Arms[0].Released > 0 {
				if want != "" || info.Arms[0].Sum != 2 ||
					strings.Count(m.notes(), `"missing":"0 registered`) != 2 {
					t.Errorf("%q: %v, %s", rule, info.Arms[0], m.notes())
				}
				m.checked()
				break
			}
			settle(t, m.e, m.c, time.Second, 1)
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// A process that ends while a session is open opens nothing twice: what was asked is not asked
// again, and counts as missing; what was summed is the sum.
func TestCohortRestarts(t *testing.T) {
	for at, missing := range map[string]bool{"open": true, "gathered": false} {
		t.Run(at, func(t *testing.T) {
			m := newMeeting(t, smallShop)
			reached, on := make(chan bool, 4), make(chan bool)
			m.hooks = func(now string) {
				if now == at {
					reached <- true
					<-on
				}
			}
			guests := m.invite(16, func(int) bool { return true })
			m.due(2, 2)
			var want [2]float64
			var all sync.WaitGroup
			for i, g := range guests {
				want[g.Arm] += float64(i) / 64
				// How it ends for them depends on when the process does.
				all.Go(func() { _ = m.join(g, int64(i)<<14, stays) })
			}
			<-reached
			<-reached
			m.mu.Lock()
			m.hooks = nil
			m.mu.Unlock()
			old := m.e
			m.open() // which has the store from now on
			close(on)
			all.Wait()
			_ = old.Close()
			info := until(t, m.e, m.c, released(16))
			if missing {
				want = [2]float64{2, 2}
			}
			if info.Arms[0].Sum != want[0] || info.Arms[1].Sum != want[1] {
				t.Errorf("the sums are %v, %v, must be %v", info.Arms[0].Sum, info.Arms[1].Sum, want)
			}
			if got := strings.Count(m.notes(), "interrupted"); got != map[bool]int{true: 2}[missing] {
				t.Errorf("the transcript says %s", m.notes())
			}
			if m.seen["session"] != 2 || m.seen["ask"] != 2 {
				t.Errorf("there were %d sessions, %d asked", m.seen["session"], m.seen["ask"])
			}
			m.checked()
		})
	}
}

// What was asked and is never released is charged all the same.
func TestCohortIsChargedWhenAsked(t *testing.T) {
	m := newMeeting(t, smallShop)
	guests := m.invite(16, func(i int) bool { return true })
	m.due(2, 2)
	var all sync.WaitGroup
	for _, g := range guests {
		all.Go(func() { _ = m.join(g, 1, stays) })
	}
	m.wait("gathered", 2)
	all.Wait()
	if err := m.e.Stop(t.Context(), "shop", ""); err != nil {
		t.Fatal(err)
	}
	if info := m.checked(); info.Arms[0].Releases > 0 || info.Spent.In(privacy.Pure{}) == (privacy.Pure{}) {
		t.Errorf("%v is spent, with %d releases", info.Spent, info.Arms[0].Releases)
	}
}

// A transcript that itself says that too few were asked for noise, or nobody, does not hold.
func TestCohortNoiseWasAskedFor(t *testing.T) {
	const asked = `{"arm":0,"start":0,"end":26,"asked":24}`
	for file, changes := range map[string]map[string]string{
		"cohort": {
			asked:                                 asked,
			strings.Replace(asked, "24", "9", 1):  "9 were asked for the noise of decisions 0 to 25 of arm 0, must be from 10 to 26",
			strings.Replace(asked, "24", "27", 1): "27 were asked for the noise",
			"":                                    "decisions 0 to 25 of arm 0 is told without a session",
		},
		"stopped": {"": "decisions 0 to 3 of arm 0 is told without a session"},
	} {
		text, err := os.ReadFile("testdata/certificates/" + file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for to, want := range changes {
			var out []byte
			tip := ""
			for line := range bytes.Lines(text) {
				object := chain.Object(line)
				if bytes.Contains(object, []byte(`"cohort":{"arm":0`)) {
					if to == "" {
						continue
					}
					object = bytes.Replace(object, []byte(asked), []byte(to), 1)
				}
				var linked []byte
				linked, tip = chain.Link(tip, object)
				out = append(out, linked...)
			}
			_, err := Replay(bytes.NewReader(out), catalog.Catalog{})
			if to == asked && err != nil || to != asked && (!errors.Is(err, ErrTranscript) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s with %q: %v, must be %q", file, to, err, want)
			}
		}
	}
}

// Without a listener no such experiment starts, one that does not need sessions has none, and a
// ticket of nothing is refused.
func TestCohortIsChecked(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	if err := e.Create(t.Context(), parse(t, smallShop)); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "shop"); !errors.Is(err, ErrCohort) || !errors.Is(err, ErrState) {
		t.Errorf("without a listener: %v", err)
	}
	begin(t, e, strings.Replace(localShop, "name: shop", "name: other", 1))
	if _, err := e.Cohort(t.Context(), "other", nil); !errors.Is(err, ErrCohort) {
		t.Errorf("under another trust: %v", err)
	}
	m := newMeeting(t, smallShop)
	if _, err := m.e.Cohort(t.Context(), "shop", []byte("x")); !errors.Is(err, ErrToken) {
		t.Errorf("without a ticket: %v", err)
	}
	d := decided(t, m.e, 1)[0]
	for _, body := range []string{"", "1", strings.Repeat("x", 33)} {
		out, err := m.e.Reports(t.Context(), "shop", []Message{{d.Report.Ticket, []byte(body)}})
		if err != nil || out[0].Err == nil {
			t.Errorf("%q: %v, %v", body, out, err)
		}
	}
}
