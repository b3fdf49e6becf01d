package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/helper"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

var writePast = flag.String("past", "", "write what later programs must read into this new directory")

// pastDir has what programs before have written; its README says what and which.
const pastDir = "../../testdata/v0"

// kinds are the experiments of pastDir. Two servers' needs its helper's key.
var kinds = map[string]string{
	"arms":     strings.Replace(shop, "window: 1m", "window: 1m\nmetrics: [{name: returned, budget: {epsilon: 0.5}}]", 1),
	"retract":  with("exposure: retract"),
	"contexts": news,
	"joint":    clinic,
	"local":    localShop,
	"secagg":   smallShop,
	"two-server": strings.Replace(localShop, "trust: local",
		`trust: two-server
grid: 1024
helper: {url: "https://helper.invalid", key: KEY}`, 1),
}

type opener = func(context.Context) (store.Store, error)

// A past is what a program said of its experiment when it left it.
type past struct {
	Now   int64
	Known pastInfo
	Plan  json.RawMessage // as it was stored
	// SQLite's, beside the databases of the service and of its helper
	Mark, HelperMark string         `json:",omitempty"`
	Open             []pastDecision // decisions that are reported on by the next program
	From             int            // the number of the first visitor who has not come yet
}

type pastInfo struct {
	State         State
	Why           string
	Keep          int
	Batches       int
	Lines         int
	Tip           string
	Arms          []pastArm
	Decisions     int // with contexts
	Released      int
	Rules         []pastArm
	Metrics       [][]float64
	Epsilon, Zcdp string // spent
}

type pastArm struct {
	Name                          string
	Decisions, Released, Releases int
	Sum                           float64
}

// A pastDecision is a decision with what its client sends.
type pastDecision struct {
	Visitor int
	Arm     int
	Token   string `json:",omitempty"`
	Message Message
}

func pastOf(i Info) pastInfo {
	out := pastInfo{State: i.State, Why: i.Why, Keep: i.Keep, Batches: i.Batches, Lines: i.Lines, Tip: i.Tip,
		Metrics: i.Metrics, Epsilon: fmt.Sprint(i.Spent.Pure()), Zcdp: fmt.Sprint(i.Spent.ZCDP())}
	for _, a := range i.Arms {
		out.Arms = append(out.Arms, pastArm{"", a.Decisions, a.Released, a.Releases, a.Sum})
	}
	if c := i.Contextual; c != nil {
		out.Decisions, out.Released = c.Decisions, c.Released
		for _, r := range c.Rules {
			out.Rules = append(out.Rules, pastArm{Name: r.Name, Released: r.N, Releases: r.Releases, Sum: r.Sum})
		}
	}
	return out
}

// A site is a service with one experiment of a kind on a store, and who is around it: clients, who hold
// sessions under secure aggregation, and the helper of two servers.
type site struct {
	*meeting
	kind, name string
	text       string
	helper     *helper.Helper
	key        dap.Config
}

func newSite(t *testing.T, kind string, now int64, at, helperAt opener) *site {
	t.Helper()
	s := &site{meeting: &meeting{t: t, c: clock.At(time.UnixMilli(now)), seen: map[string]int{}}, kind: kind,
		text: kinds[kind]}
	cfg := Config{Store: at, Clock: s.c.Now, gatherPause: time.Millisecond, hook: s.hook}
	switch kind {
	case "secagg":
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.hub = transport.NewHub(l)
		t.Cleanup(func() { _ = s.hub.Close() })
		cfg.Cohorts = &Cohorts{Hub: s.hub, Address: s.hub.Addr().String(), Round: time.Minute}
	case "two-server":
		var h *helper.Helper
		var err error
		if h, err = helper.Open(t.Context(), helper.Config{Store: helperAt}); err != nil {
			t.Fatal(err)
		}
		s.key = h.Key()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		s.text = strings.Replace(s.text, "KEY", s.key.String(), 1)
		x := parse(t, s.text)
		if s.helper, err = helper.Open(t.Context(), helper.Config{Store: helperAt,
			Tasks: []helper.Task{{Declared: &x, Secret: shared}}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.helper.Close() })
	}
	s.name = parse(t, s.text).Name
	var reached atomic.Bool // until the address of the helper is this process
	cfg.HelperSecret = func(string) []byte {
		if !reached.Load() {
			return nil
		}
		return shared
	}
	s.e = open(t, cfg)
	reach := func() {
		if s.helper != nil {
			mustFind(t, s.e, s.name).gatherer.(*twoServer).client.Transport = inProcess{helper.Handler(s.helper, nil, nil)}
			reached.Store(true)
		}
	}
	if _, err := s.e.Get(t.Context(), s.name); err == nil {
		reach()
		return s
	}
	if err := s.e.Create(t.Context(), parse(t, s.text)); err != nil {
		t.Fatal(err)
	}
	reach()
	if err := s.e.Start(t.Context(), s.name); err != nil {
		t.Fatal(err)
	}
	return s
}

// inProcess is a way to a server in this process.
type inProcess struct{ to http.Handler }

func (w inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	w.to.ServeHTTP(rec, r)
	return rec.Result(), nil
}

func (s *site) info() Info {
	s.t.Helper()
	info, err := s.e.Get(s.t.Context(), s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

func (s *site) contextual() bool { return s.kind == "contexts" || s.kind == "joint" }

// clientKey is that of a visitor under secure aggregation.
func clientKey(visitor int) ed25519.PrivateKey {
	seed := sha256.Sum256(fmt.Append(nil, "visitor ", visitor))
	return ed25519.NewKeyFromSeed(seed[:])
}

// decide decides for a visitor.
func (s *site) decide(visitor int) pastDecision {
	s.t.Helper()
	out := pastDecision{Visitor: visitor}
	if s.contextual() {
		decideNews(s.t, s.e, newsAsk(visitor))
		return out
	}
	unit := ""
	if s.kind == "arms" || s.kind == "retract" {
		unit = fmt.Sprint("unit ", visitor)
	}
	d, err := s.e.Decide(s.t.Context(), s.name, unit)
	if err != nil || d.Reason != Split {
		s.t.Fatalf("%+v, %v", d, err)
	}
	out.Arm, out.Token = d.Arm, d.Token
	if d.Report == nil {
		return out
	}
	out.Message.Ticket = d.Report.Ticket
	switch s.kind {
	case "local":
		out.Message.Body = []byte("5")
	case "secagg":
		out.Message.Body = []byte(clientKey(visitor).Public().(ed25519.PublicKey))
	case "two-server":
		out.Message = (&party{config: s.key}).report(s.t, s.e, d, 512)
	}
	return out
}

// report sends what a visitor has to send.
func (s *site) report(d pastDecision) {
	s.t.Helper()
	var got Status
	var err error
	switch {
	case s.contextual():
		got, err = s.e.RewardEvent(s.t.Context(), s.name, newsAsk(d.Visitor).Event, 0.75)
	case s.kind == "retract" && d.Visitor%5 == 0:
		got, err = s.e.Activate(s.t.Context(), s.name, d.Token, false)
	case d.Message.Ticket != nil:
		got = reportOne(s.t, s.e, d.Message)
	default:
		got, err = s.e.Reward(s.t.Context(), s.name, Report{d.Token, 0.75})
	}
	if got != Accepted || err != nil {
		s.t.Fatalf("the report of visitor %d is %q, %v", d.Visitor, got, err)
	}
}

// release has time pass until there is one more release. Under secure aggregation some of the visitors
// who registered come.
func (s *site) release(guests []pastDecision) {
	s.t.Helper()
	before := s.info().Batches
	if s.kind == "secagg" {
		s.meet(guests)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		switch info := s.info(); {
		case info.Batches > before:
			return
		case info.State == Failed || time.Now().After(deadline):
			s.t.Fatalf("nothing is released: %s, %s, %s", info.State, info.Reason, info.Trouble)
		}
		settle(s.t, s.e, s.c, s.info().Tick, 1)
	}
}

// meet holds the sessions of the batch that is out.
func (s *site) meet(guests []pastDecision) {
	s.t.Helper()
	x := mustFind(s.t, s.e, s.name)
	x.mu.Lock()
	out := x.play.Out()
	x.mu.Unlock()
	s.mu.Lock()
	came := s.seen["came"]
	s.mu.Unlock()
	server := decided(s.t, s.e, 1)[0].Report.Cohort
	s.due(len(out), len(out))
	var all sync.WaitGroup
	for _, d := range guests {
		in, err := s.e.Cohort(s.t.Context(), s.name, d.Message.Ticket)
		if err != nil {
			s.t.Fatal(err)
		}
		if in.Status != CohortOpen {
			continue
		}
		came++
		g := guest{Decision{Arm: d.Arm, Report: &ReportTask{Ticket: d.Message.Ticket, Cohort: server}},
			clientKey(d.Visitor)}
		all.Go(func() {
			if err := s.joinSession(g, in, 1<<19, stays); err != nil {
				s.t.Errorf("visitor %d: %v", d.Visitor, err)
			}
		})
	}
	s.wait("came", came)
	s.c.Add(10 * time.Minute)
	all.Wait()
}

// storedPlan is the batch that is out as the store has it.
func storedPlan(t testing.TB, at opener) []byte {
	t.Helper()
	s, err := at(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stored, err := s.Load(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return stored.Plan
}

// lived has an experiment decide, take reports and release, and leaves it in the middle of a batch.
func (s *site) lived() past {
	s.t.Helper()
	if s.kind == "secagg" { // sessions are at full hours
		s.hour()
		s.c.Add(time.Minute)
	}
	var out past
	var guests []pastDecision
	come := func(n int) {
		for range n {
			d := s.decide(out.From)
			if out.From++; out.From%3 > 0 || s.kind == "secagg" {
				s.report(d)
			}
			guests = append(guests, d)
			settle(s.t, s.e, s.c, 100*time.Millisecond, 1)
		}
	}
	come(60)
	s.release(guests)
	guests = nil
	come(map[bool]int{true: 40, false: 20}[s.kind == "secagg"])
	out.Open = guests // who have registered
	if s.kind != "secagg" {
		for out.Open = nil; len(out.Open) < 5; out.From++ {
			out.Open = append(out.Open, s.decide(out.From))
		}
	}
	for settled := false; !settled; { // a release that is durable and not shown yet would be
		settle(s.t, s.e, s.c, s.info().Tick, 1)
		x := mustFind(s.t, s.e, s.name)
		x.mu.Lock()
		settled = x.pending == nil
		x.mu.Unlock()
	}
	out.Known, out.Now = pastOf(s.info()), s.e.now()
	return out
}

// goesOn is what a later program must do: it gives who comes again the same answer, takes what is sent,
// decides and releases.
func (s *site) goesOn(was past) {
	s.t.Helper()
	before := s.published()
	for _, d := range was.Open {
		if s.kind == "arms" || s.kind == "retract" {
			again, err := s.e.Decide(s.t.Context(), s.name, fmt.Sprint("unit ", d.Visitor))
			if err != nil || again.Token != d.Token || again.Arm != d.Arm {
				s.t.Errorf("visitor %d is given %+v, %v, was %+v", d.Visitor, again, err, d)
			}
		}
		s.report(d)
	}
	s.release(was.Open)
	for i := range 3 {
		s.report(s.decide(was.From + i))
	}
	after := s.published()
	if len(after) <= len(before) || !slices.Equal(after[:len(before)], before) {
		s.t.Errorf("%d lines have become %d, which are others", len(before), len(after))
	}
	s.replay(after)
}

func (s *site) published() []string {
	s.t.Helper()
	if s.contextual() {
		return newsTranscript(s.t, s.e)
	}
	return transcript(s.t, s.e)
}

// replay holds a transcript against what the service says.
func (s *site) replay(lines []string) {
	s.t.Helper()
	r, err := Replay(strings.NewReader(strings.Join(lines, "\n")+"\n"), catalog.Catalog{})
	if err != nil {
		if !errors.Is(err, ErrSealed) {
			s.t.Fatal(err)
		}
		return
	}
	wasReplayed(s.t, r, pastOf(s.info()))
}

// wasReplayed says whether what was replayed is what was known.
func wasReplayed(t testing.TB, r *Replayed, was pastInfo) {
	t.Helper()
	got := pastInfo{State: was.State, Why: r.End, Keep: r.Keep, Batches: r.Batches, Lines: r.Lines, Tip: r.Tip,
		Metrics: r.Metrics, Epsilon: fmt.Sprint(r.Spent.Pure()), Zcdp: fmt.Sprint(r.Spent.ZCDP()),
		Decisions: was.Decisions}
	for i, a := range r.Arms {
		got.Arms = append(got.Arms, pastArm{"", was.Arms[i].Decisions, a.Released, a.Releases, a.Sum})
	}
	if c := r.Contextual; c != nil {
		got.Released = c.Released
		for _, r := range c.Rules {
			got.Rules = append(got.Rules, pastArm{Name: r.Name, Released: r.N, Releases: r.Releases, Sum: r.Sum})
		}
	}
	if !reflect.DeepEqual(got, was) {
		t.Errorf("it is replayed to\n%+v, was\n%+v", got, was)
	}
}

// A saved store is one that was put back, on another machine as far as it can tell until it is at home.
type saved struct {
	at, reads opener
	home      func()
}

// A database keeps stores, and has them saved as files.
type database interface {
	ext() string
	// empty is a store with nothing in it, and what writes it to a file, and says its mark.
	empty(t *testing.T) (at opener, save func(path string) (mark string))
	restore(t *testing.T, path, mark string) saved
}

var databases = map[string]database{"sqlite": inSQLite{}, "postgres": inPostgres{}}

type inSQLite struct{}

func (inSQLite) ext() string { return ".db.gz" }

func (inSQLite) empty(t *testing.T) (opener, func(string) string) {
	dir := t.TempDir()
	return store.SQLite(dir), func(path string) string {
		write(t, path, zipped(t, read(t, filepath.Join(dir, "sotto.db"))))
		return string(read(t, filepath.Join(dir, "mark")))
	}
}

func (inSQLite) restore(t *testing.T, path, mark string) saved {
	dir := t.TempDir()
	in, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sotto.db"), data)
	return saved{store.SQLite(dir), store.SQLiteReader(dir),
		func() { write(t, filepath.Join(dir, "mark"), []byte(mark)) }}
}

type inPostgres struct{}

func (inPostgres) ext() string { return ".sql" }

func (inPostgres) empty(t *testing.T) (opener, func(string) string) {
	address := pgtest.Database(t)
	return postgresAt(t, address), func(path string) string {
		write(t, path, pgtest.Dump(t, address))
		return ""
	}
}

func (inPostgres) restore(t *testing.T, path, _ string) saved {
	address := pgtest.Database(t)
	pgtest.Run(t, address, `\i `+path)
	reads, err := store.PostgresReader(address)
	if err != nil {
		t.Fatal(err)
	}
	return saved{postgresAt(t, address), reads,
		func() { pgtest.Run(t, address, "UPDATE sotto.lease SET origin = ''") }}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWritePast writes what the next programs have to read:
//
//	go test ./live/serve -run TestWritePast -past DIR
func TestWritePast(t *testing.T) {
	if *writePast == "" {
		t.Skip("-past names no directory")
	}
	for on, db := range databases {
		for kind := range kinds {
			t.Run(on+"/"+kind, func(t *testing.T) {
				dir := filepath.Join(*writePast, on, kind)
				leader, save := db.empty(t)
				other, saveHelper := db.empty(t)
				leave := func(s *site, state string, was past) {
					if err := s.e.Close(); err != nil {
						t.Fatal(err)
					}
					if s.helper != nil {
						if err := s.helper.Close(); err != nil {
							t.Fatal(err)
						}
						was.HelperMark = saveHelper(filepath.Join(dir, "helper-"+state+db.ext()))
					}
					was.Mark = save(filepath.Join(dir, state+db.ext()))
					was.Plan = storedPlan(t, leader)
					text, err := json.MarshalIndent(was, "", "\t")
					if err != nil {
						t.Fatal(err)
					}
					write(t, filepath.Join(dir, state+".json"), append(text, '\n'))
				}
				s := newSite(t, kind, newClock().Now().UnixMilli(), leader, other)
				was := s.lived()
				leave(s, "running", was)
				s = newSite(t, kind, was.Now, leader, other)
				arm := "blue"
				if s.contextual() {
					arm = ""
				}
				if err := s.e.StopNow(t.Context(), s.name, arm, s.name); err != nil {
					t.Fatal(err)
				}
				text := strings.Join(s.published(), "\n") + "\n"
				write(t, filepath.Join(dir, "transcript.jsonl"), []byte(text))
				leave(s, "stopped", past{Now: s.e.now(), Known: pastOf(s.info())})
			})
		}
	}
}

// What earlier programs have written is read: a running experiment goes on from a copy, one that was
// stopped says what it said, each transcript is replayed to the same answer, and one with a line changed is
// refused, alone and in its store, which is also refused where it was not.
func TestPast(t *testing.T) {
	testkit.RacedBefore(t)
	for on, db := range databases {
		for kind := range kinds {
			t.Run(on+"/"+kind, func(t *testing.T) {
				dir := filepath.Join(pastDir, on, kind)
				text := string(read(t, filepath.Join(dir, "transcript.jsonl")))
				lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
				lines[len(lines)-1] += "\n"
				back := func(state string) (was past, s *site) {
					if err := json.Unmarshal(read(t, filepath.Join(dir, state+".json")), &was); err != nil {
						t.Fatal(err)
					}
					to := db.restore(t, filepath.Join(dir, state+db.ext()), was.Mark)
					if state == "running" {
						refused(t, to.reads, was.Now, "gone back")
					}
					to.home()
					if last := was.Known.Lines - 1; state == "running" {
						refused(t, func(ctx context.Context) (store.Store, error) {
							s, err := to.reads(ctx)
							return tampered{s, flipped(lines[:last+1], last)}, err
						}, was.Now, fmt.Sprintf("line %d: ", last+1))
					}
					var other saved
					if kind == "two-server" {
						other = db.restore(t, filepath.Join(dir, "helper-"+state+db.ext()), was.HelperMark)
						other.home()
					}
					s = newSite(t, kind, was.Now, to.at, other.at)
					if got := pastOf(s.info()); !reflect.DeepEqual(got, was.Known) {
						t.Fatalf("it is\n%+v (%s), was\n%+v", got, s.info().Reason, was.Known)
					}
					if got := strings.Join(s.published(), "\n") + "\n"; got !=
						strings.Join(lines[:was.Known.Lines], "") {
						t.Errorf("the transcript is\n%s", got)
					}
					return was, s
				}
				was, s := back("running")
				out, err := readPlan(was.Plan)
				if err != nil || out.Tip != was.Known.Tip || (kind == "contexts") != (len(out.Plays) == 0) &&
					kind != "joint" || (kind == "joint") != (len(out.Kept) > 0) {
					t.Errorf("the plan %s is read as %+v, %v", was.Plan, out, err)
				}
				x := mustFind(t, s.e, s.name)
				x.mu.Lock()
				again, err := readPlan(x.plan())
				if x.lines > was.Known.Lines { // what had settled was released ahead since
					again.Tip = out.Tip
				}
				x.mu.Unlock()
				if err != nil || !reflect.DeepEqual(again, out) {
					t.Errorf("the plan is %+v, %v, was %+v", again, err, out)
				}
				s.goesOn(was)

				was, _ = back("stopped")
				r, err := Replay(strings.NewReader(text), catalog.Catalog{})
				if err != nil {
					t.Fatal(err)
				}
				wasReplayed(t, r, was.Known)
				for i := range lines[:len(lines)-1] { // the tip tells of the last
					_, err := Replay(strings.NewReader(strings.Join(flipped(lines, i), "")), catalog.Catalog{})
					if !errors.Is(err, ErrTranscript) {
						t.Errorf("with line %d flipped it is replayed: %v", i+1, err)
					}
				}
			})
		}
	}
}

// flipped are lines of which one has another time.
func flipped(lines []string, i int) []string {
	out := slices.Clone(lines)
	out[i] = strings.Replace(out[i], `"at":"20`, `"at":"21`, 1)
	return out
}

// refused has a store read whose experiment cannot go on, and says why.
func refused(t *testing.T, at opener, now int64, want string) {
	t.Helper()
	e := open(t, Config{Store: at, Clock: clock.At(time.UnixMilli(now)).Now, ReadOnly: true})
	if all := e.List(t.Context()); len(all) != 1 || all[0].State != Failed ||
		!strings.Contains(all[0].Reason, want) {
		t.Errorf("it is %+v, must have failed by %q", all, want)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
