package helper

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/prio"
)

// Two worlds that differ in the reward of one of two visitors, 0 or 1, and all that each server
// sees of their slot: what it is sent, what it keeps in memory and in its store, and what is
// released. A coin says for each slot in which world it is. Among the slots where something was
// seen that has the same law in both, the worlds are then as so many fair coins, and where it is
// protected by one noise, as coins of which neither side has more than e^ε/(1+e^ε): those bounds
// are tested, of each thing that was seen.

// reward is one, in steps.
const reward = 1 << 20

// An attack is on a slot.
type attack int

const (
	both  attack = iota // nobody lies, and both visitors report
	lone                // the other one does not report
	lying               // the helper's share puts the sum where the field has its edge
	attacks
)

// A fault is a way in which servers or clients can be wrong: the zero value is none.
type fault struct {
	helperNoise func(release.Noise) (int64, error)
	// what it releases, in steps
	leader  func(n release.Noise, sum int64, answers int) (int64, error)
	client  func(p *pair, ticket dap.Ticket, value uint64, rnd []byte) (dap.Report, error)
	retried bool // asked again, the helper draws again
}

// A tally has how often something was seen in each world.
type tally struct {
	same, noisy map[string]*[2]int
	world       int
}

func newTally() *tally { return &tally{same: map[string]*[2]int{}, noisy: map[string]*[2]int{}} }

func (t *tally) add(to map[string]*[2]int, what string, n int) {
	k := to[what]
	if k == nil {
		k = new([2]int)
		to[what] = k
	}
	k[t.world] += n
}

// saw is about what has one law in both worlds.
func (t *tally) saw(what string, is any) { t.add(t.same, fmt.Sprint(what, " is ", is), 1) }

// bytes are seen in words of eight: small numbers, which are no shares, as they are, of others the
// highest bits.
func (t *tally) bytes(what string, b []byte) {
	for i := 0; len(b) >= 8; i, b = i+1, b[8:] {
		name := fmt.Sprint(what, ", word ", i)
		x := int64(binary.LittleEndian.Uint64(b))
		if x > -4 && x < 4 {
			t.saw(name, x)
		} else {
			t.saw(name, fmt.Sprint("from ", uint64(x)>>61))
		}
	}
	t.saw(what+", rest", len(b))
}

// cell is where a noisy sum lies: every half of a reward, and beyond two at the ends.
func cell(steps int64) int { return int(min(max(math.Floor(float64(steps)*2/reward), -4), 6)) }

// sum is about what is protected by a noise: the cell, and all that are not below.
func (t *tally) sum(what string, steps int64) {
	c := cell(steps)
	t.add(t.noisy, fmt.Sprint(what, " in ", c), 1)
	for from := -3; from <= 6; from++ {
		side := "below"
		if c >= from {
			side = "from"
		}
		t.add(t.noisy, fmt.Sprint(what, " ", side, " ", from), 1)
	}
}

func (t *tally) merge(u *tally) {
	for _, m := range [][2]map[string]*[2]int{{t.same, u.same}, {t.noisy, u.noisy}} {
		for what, k := range m[1] {
			for t.world = range k {
				t.add(m[0], what, k[t.world])
			}
		}
	}
}

// worst is the least of the probabilities that a sound service has of what was seen, times how many
// there are, and where it is. Chernoff's bound of a binomial tail is at least the tail.
func (t *tally) worst(epsilon float64) (p float64, where string) {
	tests, p := 0, 1.0
	for _, m := range []struct {
		seen map[string]*[2]int
		most float64
	}{{t.same, 0.5}, {t.noisy, 1 / (1 + math.Exp(-epsilon))}} {
		for what, k := range m.seen {
			for _, x := range k {
				tests++
				n := float64(k[0] + k[1])
				if q := tail(float64(x)/n, m.most, n); q < p {
					p, where = q, fmt.Sprint(what, ": ", *k)
				}
			}
		}
	}
	return min(1, p*float64(tests)), where
}

// tail bounds the probability that of n coins a share of x at least shows what each does with
// probability q at most.
func tail(x, q, n float64) float64 {
	if x <= q {
		return 1
	}
	kl := x * math.Log(x/q)
	if x < 1 {
		kl += (1 - x) * math.Log((1-x)/(1-q))
	}
	return math.Exp(-n * kl)
}

// A tap is a store of which everything that is written is seen.
type tap struct {
	store.Store
	rows *[]store.Write
}

func (d tap) Commit(ctx context.Context, c store.Commit) error {
	*d.rows = append(*d.rows, c.Writes...)
	return d.Store.Commit(ctx, c)
}

// A game is slots of one helper and one leader.
type game struct {
	*pair
	t     testing.TB
	fault fault
	noise release.Noise
	stood *release.Gathered // the leader's
	sum   *prio.Sum
	rows  []store.Write // what was written since
	drawn int64         // the helper's last noise
	next  uint64        // the next ticket
	seen  *tally
}

// lives is after how many slots everything begins anew.
const lives = 4000

func newGame(t testing.TB, f fault, seen *tally) *game {
	g := &game{t: t, fault: f, seen: seen}
	memory := store.NewMemory()
	draw := f.helperNoise
	if draw == nil {
		draw = release.Noise.Draw
	}
	g.pair = newPair(t, func(ctx context.Context) (store.Store, error) {
		s, err := memory.Open(ctx)
		return tap{s, &g.rows}, err
	}, 1, func(c *Config) {
		c.noise = func(n release.Noise) (z int64, err error) {
			g.drawn, err = draw(n)
			return g.drawn, err
		}
	})
	l := g.cfg.Tasks[0].Declared
	stated, err := l.Mechanism()
	g.must(err)
	g.noise, err = l.Noise()
	g.must(err)
	g.stood, err = release.RealGathered(release.Config{Arms: 1, Mechanism: stated, Ledger: privacy.NewLedger()},
		l.Gathering())
	g.must(err)
	g.sum, err = prio.NewSum(1, append([]byte(dap.Version), g.task.ID[:]...))
	g.must(err)
	return g
}

func (g *game) must(err error) {
	if err != nil {
		g.t.Error(err)
		runtime.Goexit()
	}
}

// release is what the leader releases, in steps.
func (g *game) release(sum int64, answers int) int64 {
	if g.fault.leader != nil {
		x, err := g.fault.leader(g.noise, sum, answers)
		g.must(err)
		return x
	}
	g.must(g.stood.AddSteps(0, 2, 0))
	g.must(g.stood.AddNoisy(0, answers, sum))
	r, err := g.stood.Release([]int{0})
	g.must(err)
	return int64(math.Round(r.Sum(0) * reward))
}

// made is a report, and what it was made of.
type made struct {
	dap.Report
	rnd [144]byte
}

func (g *game) made(number, value uint64) (m made) {
	_, err := rand.Read(m.rnd[:])
	g.must(err)
	ticket := dap.Ticket{Number: number, Token: make([]byte, 32)}
	_, err = rand.Read(ticket.Token)
	g.must(err)
	make := g.fault.client
	if make == nil {
		make = honest
	}
	m.Report, err = make(g.pair, ticket, value, m.rnd[:])
	g.must(err)
	return m
}

func honest(p *pair, ticket dap.Ticket, value uint64, rnd []byte) (dap.Report, error) {
	return dap.NewReport(p.task, p.key.Config(), p.Key(), 1, ticket, value, strings.NewReader(string(rnd)))
}

// slot plays a slot in a world.
func (g *game) slot(world int, as attack) {
	ctx, v := context.Background(), g.seen
	v.world = world
	b := dap.Batch{Start: g.next, End: g.next + 2}
	g.next += 2
	all := []made{g.made(b.Start, uint64(world))}
	if as != lone {
		all = append(all, g.made(b.Start+1, 0))
	}
	var reports []dap.Report
	for _, m := range all {
		reports = append(reports, m.Report)
	}
	job, id := g.job(g.t, b, reports...)
	g.rows = nil
	response, err := g.Job(ctx, g.task.ID, id, job.Request())
	g.must(err)
	own, refused, err := job.Finish(response)
	g.must(err)
	theirs := g.tasks[g.task.ID].batches[0]
	kept := theirs[len(theirs)-1].sum // what the helper has before it answers for the last time
	question := own.Request(b).Marshal()
	share, err := g.Share(ctx, g.task.ID, question)
	g.must(err)
	helperRows := g.rows
	if as == lying {
		share, err = atTheEdge(g.task, kept)
		g.must(err)
	}
	met, err := dap.Meet(g.task, own, share, 0)
	g.must(err)
	released := g.release(met, own.Count)
	g.leaderSees(as, all, response, own, refused, share, met, released)
	g.leaderAsks(as, b, all, own, kept, question, met)
	g.helperSees(as, all, job, kept, helperRows, released)
}

// leaderSees is what it is sent, and computes of that as it should.
func (g *game) leaderSees(as attack, all []made, response []byte, own dap.Aggregate, refused []dap.Refusal,
	share []byte, met, released int64) {
	if as == lying {
		return // its privacy is that of honest helpers
	}
	v := g.seen
	for i, m := range all {
		who := fmt.Sprint("leader, report ", i)
		v.bytes(who+" as it is stored", m.Marshal())
		nonce := m.ID
		share, _, err := g.sum.Shard(uint64(v.world*(1-i)), &nonce, strings.NewReader(string(m.rnd[16:80])))
		g.must(err)
		v.bytes(who+", own share", share)
		v.saw(who+", the helper's answer", response[26*i+16:26*i+26])
	}
	v.saw("leader, counts", []int{own.Count, own.Refused, len(refused)})
	mine, err := own.MarshalBinary()
	g.must(err)
	v.bytes("leader, own sum", mine[48:])
	v.bytes("leader, the helper's share", share)
	name := fmt.Sprint("leader, of ", len(all))
	v.sum(name+", both shares", met)
	v.sum(name+", release", released)
	v.add(v.noisy, fmt.Sprint(name, " both shares in ", cell(met)/2, ", release in ", cell(released)/2), 1)
	v.add(v.noisy, fmt.Sprint(name, " own sum from ", mine[55]>>6, ", both shares in ", cell(met)), 1)
}

// leaderAsks is what it can try beside that: it asks again, with other words, and opens what it can.
func (g *game) leaderAsks(as attack, b dap.Batch, all []made, own, kept dap.Aggregate,
	question []byte, met int64) {
	if as == lying {
		return
	}
	ctx, v := context.Background(), g.seen
	const again = 64
	total := met
	for range again - 1 {
		share, err := g.Share(ctx, g.task.ID, question)
		g.must(err)
		if g.fault.retried {
			z, err := g.noise.Draw()
			g.must(err)
			share, err = kept.Share(g.task, z)
			g.must(err)
		}
		x, err := dap.Meet(g.task, own, share, 0)
		g.must(err)
		total += x
	}
	v.sum("leader, mean of what is asked again", total/again)

	refuses := func(what string, err error) { v.saw("leader, "+what, err) }
	only := own.Request(b)
	only.Count--
	_, err := g.Share(ctx, g.task.ID, only.Marshal())
	refuses("share of fewer", err)
	part := dap.Batch{Start: b.Start, End: b.Start + 1}
	_, err = g.Share(ctx, g.task.ID, dap.Aggregate{}.Request(part).Marshal())
	refuses("share of a part", err)
	for _, of := range []dap.Batch{b, part} {
		j, err := dap.NewLeaderJob(g.task, g.key, g.verify, of, []dap.Report{all[0].Report})
		g.must(err)
		_, err = g.Job(ctx, g.task.ID, dap.ID{byte(of.End - of.Start)}, j.Request())
		refuses(fmt.Sprint("job again, of ", of.End-of.Start), err)
		if of != part {
			continue
		}
		// It plays the helper, with its own key.
		parsed, err := dap.ParseJob(g.task, j.Request())
		g.must(err)
		answer, sum, err := parsed.Help(g.key, g.verify, func(dap.Metadata) error { return nil })
		g.must(err)
		mine, _, err := j.Finish(answer)
		g.must(err)
		share, err := sum.Share(g.task, 0)
		g.must(err)
		x, err := dap.Meet(g.task, mine, share, 0)
		g.must(err)
		v.saw("leader, what it can open", []any{sum.Count, x})
	}
	// It takes what else it sees for the helper's seed.
	m := all[0]
	nonce := m.ID
	share, _, err := g.sum.Shard(uint64(v.world), &nonce, strings.NewReader(string(m.rnd[16:80])))
	g.must(err)
	x, err := g.together(&nonce, share, m.Ticket.Token)
	g.must(err)
	v.bytes("leader, its share with the token as a seed", binary.LittleEndian.AppendUint64(nil, uint64(x)))
}

// together is what two input shares add up to.
func (g *game) together(nonce *dap.ReportID, leader, helper []byte) (int64, error) {
	var sum prio.Share
	for role, share := range map[prio.Role][]byte{prio.Leader: leader, prio.Helper: helper} {
		prep, err := g.sum.Prepare(&g.verify, nonce, role, share)
		if err != nil {
			return 0, err
		}
		total := g.sum.Total()
		if err := total.Add(prep); err != nil {
			return 0, err
		}
		part, err := total.Share()
		if err != nil {
			return 0, err
		}
		sum = sum.Plus(part)
	}
	return sum.Int64()
}

// helperSees is what it is sent, keeps and computes.
func (g *game) helperSees(as attack, all []made, job *dap.LeaderJob, kept dap.Aggregate, rows []store.Write,
	released int64) {
	v := g.seen
	v.bytes("helper, request", job.Request())
	for i, m := range all {
		who := fmt.Sprint("helper, report ", i)
		v.bytes(who+", seed", m.rnd[16:48])
		nonce := m.ID
		prep, err := g.sum.Prepare(&g.verify, &nonce, prio.Helper, m.rnd[16:48])
		g.must(err)
		own, err := prep.Share()
		g.must(err)
		leader, _, err := g.sum.Shard(uint64(v.world*(1-i)), &nonce, strings.NewReader(string(m.rnd[16:80])))
		g.must(err)
		prep, err = g.sum.Prepare(&g.verify, &nonce, prio.Leader, leader)
		g.must(err)
		other, err := prep.Share()
		g.must(err)
		v.bytes(who+", the leader's half of the check", other)
		for j := 0; j+8 <= len(own) && len(own) == len(other); j += 8 {
			a, err := prio.ParseShare(own[j : j+8])
			g.must(err)
			b, err := prio.ParseShare(other[j : j+8])
			g.must(err)
			whole, err := a.Plus(b).Bytes()
			g.must(err)
			v.bytes(fmt.Sprint(who, ", the whole check ", j/8), whole)
		}
	}
	sum, err := kept.MarshalBinary()
	g.must(err)
	v.bytes("helper, sum", sum[48:])
	v.saw("helper, counts", []int{kept.Count, kept.Refused})
	v.saw("helper, checksum", kept.Checksum[0]>>4)
	v.saw("helper, noise", cell(g.drawn))
	v.saw("helper, rows", len(rows))
	for i, w := range rows {
		for _, e := range w.Events {
			var r jobRecord
			g.must(strictly(e.Data, &r))
			v.saw(fmt.Sprint("helper, row ", i), []int{len(r.Request), len(r.Response), len(r.Spent)})
			v.bytes(fmt.Sprint("helper, row ", i, ", sum"), r.Sum[48:])
		}
		if w.Units != nil {
			var r shareRecord
			g.must(strictly(w.Units, &r))
			v.saw(fmt.Sprint("helper, row ", i), []int{r.Count, len(r.Jobs), len(w.Taken)})
			v.bytes(fmt.Sprint("helper, row ", i, ", share"), r.Share)
			v.saw("helper, a job's row has kept its sum", r.Jobs[0].Sum != nil || r.Jobs[0].Spent != nil)
		}
	}
	all2 := g.tasks[g.task.ID].batches[0]
	left := all2[len(all2)-1]
	v.saw("helper, left in memory", []any{left.sum == dap.Aggregate{}, left.spent, left.rows, len(left.share)})
	name := fmt.Sprint("helper, of ", len(all), ", release")
	if as == lying { // its noise is not in that
		v.sum(name+" at the edge", released)
		return
	}
	v.sum(name, released-g.drawn)
	v.add(v.noisy, fmt.Sprint(name, " in ", cell(released-g.drawn), ", own noise in ", cell(g.drawn)/2), 1)
}

// atTheEdge is a helper's share that is half a reward below the largest number of the field if all
// rewards are 0, and wraps if there is one.
func atTheEdge(t dap.Task, kept dap.Aggregate) ([]byte, error) {
	const part, order = 1 << 60, 1<<64 - 1<<32 + 1
	raw, err := kept.Share(t, order/2-reward/2-7*part)
	if err != nil {
		return nil, err
	}
	s, err := prio.ParseShare(raw)
	if err != nil {
		return nil, err
	}
	by, err := prio.Noise(part)
	if err != nil {
		return nil, err
	}
	for range 7 {
		s = s.Plus(by)
	}
	return s.Bytes()
}

// playSlots plays so many slots, by several at a time.
func playSlots(t testing.TB, f fault, slots int, as ...attack) *tally {
	total := newTally()
	var mu sync.Mutex
	var done sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		done.Go(func() {
			coin := mathrand.New(mathrand.NewPCG(1, uint64(w)))
			seen := newTally()
			var g *game
			for i := range slots / workers {
				if i%lives == 0 {
					g = newGame(t, f, seen)
				}
				g.slot(coin.IntN(2), as[i%len(as)])
			}
			mu.Lock()
			defer mu.Unlock()
			total.merge(seen)
		})
	}
	done.Wait()
	return total
}

// Neither server sees more of a reward than one whole noise lets through. The probability that the
// test fails of servers that keep to it is below 1e-6. SOTTO_SLOTS says how many slots there are.
func TestTwoWorlds(t *testing.T) {
	slots := testkit.Size(1500, 30_000)
	if testkit.Race {
		slots = 300
	}
	if n, err := strconv.Atoi(os.Getenv("SOTTO_SLOTS")); err == nil {
		slots = n
	}
	seen := playSlots(t, fault{}, slots, both, lone, lying)
	p, where := seen.worst(1)
	t.Logf("%d slots, %d things seen of one law and %d with noise, probability %.3g, %s", slots, len(seen.same),
		len(seen.noisy), p, where)
	if p < 1e-6 {
		t.Errorf("what a server sees tells the worlds apart: %s", where)
	}
	if len(seen.same) < 500 || len(seen.noisy) < 100 {
		t.Error("too little was seen")
	}
}

// Servers and clients that are wrong are found by the same test, and by what was to be seen.
func TestTwoWorldsTwins(t *testing.T) {
	if testkit.Race {
		t.Skip("it is thousands of slots, as those of TestTwoWorlds")
	}
	halved := func(n release.Noise) release.Noise {
		return release.Noise{Name: n.Name, Num: n.Num, Den: 2 * n.Den}
	}
	clipped := func(n release.Noise, sum int64, answers int) int64 {
		return min(max(sum, -2*n.Reach()), int64(answers)*reward+2*n.Reach())
	}
	plus := func(x int64, n release.Noise) (int64, error) {
		z, err := n.Draw()
		return x + z, err
	}
	for _, c := range []struct {
		name  string
		fault fault
		found string // where
		as    attack
		slots int
	}{
		{"the helper adds no noise", fault{helperNoise: func(release.Noise) (int64, error) { return 0, nil }},
			"leader, ", both, 200},
		{"the helper adds half the noise", fault{helperNoise: func(n release.Noise) (int64, error) {
			return halved(n).Draw()
		}}, "leader, ", both, 2000},
		{"the leader adds no noise", fault{leader: func(n release.Noise, sum int64,
			answers int) (int64, error) {
			return clipped(n, sum, answers), nil
		}}, "helper, of ", both, 200},
		{"the leader adds half the noise", fault{leader: func(n release.Noise, sum int64,
			answers int) (int64, error) {
			return plus(sum, halved(n))
		}}, "helper, of ", both, 2000},
		{"the leader adds none to a slot of one report", fault{leader: func(n release.Noise, sum int64,
			answers int) (int64, error) {
			if answers < 2 {
				return sum, nil
			}
			return plus(clipped(n, sum, answers), n)
		}}, "helper, of 1", lone, 200},
		{"the leader clips before its own noise", fault{leader: func(n release.Noise, sum int64,
			answers int) (int64, error) {
			return plus(clipped(n, sum, answers), n)
		}}, "helper, of 2, release at the edge", lying, 200},
		{"the helper's share is sealed to the leader's key", fault{client: func(p *pair, ticket dap.Ticket,
			value uint64, rnd []byte) (dap.Report, error) {
			return dap.NewReport(p.task, p.key.Config(), p.key.Config(), 1, ticket, value,
				strings.NewReader(string(rnd)))
		}}, "leader, what it can open", both, 200},
		{"the seed is sent twice", fault{client: func(p *pair, ticket dap.Ticket, value uint64,
			rnd []byte) (dap.Report, error) {
			ticket.Token = rnd[16:48]
			return honest(p, ticket, value, rnd)
		}}, "leader, its share with the token as a seed", both, 200},
		{"a share that is asked for again has other noise", fault{retried: true},
			"leader, mean of what is asked again", both, 200},
	} {
		p, where := playSlots(t, c.fault, c.slots, c.as).worst(1)
		if p >= 1e-6 || !strings.HasPrefix(where, c.found) {
			t.Errorf("%s: probability %.3g, at %s; want it to be found where %q", c.name, p, where, c.found)
		}
		t.Logf("%s: %.3g, %s", c.name, p, where)
	}
}
