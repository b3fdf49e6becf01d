package play

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A recorder is a curator that remembers what it was given and hands its sums out by batch.
type recorder struct {
	release.StepCurator
	given []given
}

type given struct {
	arm, n int
	sum    int64
}

func (c *recorder) AddSteps(arm, n int, steps int64) error {
	c.given = append(c.given, given{arm, n, steps})
	return c.StepCurator.AddSteps(arm, n, steps)
}

// A watched policy tells what it is given.
type watched struct {
	policy.Policy
	batch int
	see   func(batch int, sums []float64)
}

func (p *watched) BearsMore() bool {
	f, ok := p.Policy.(Flexible)
	return ok && f.BearsMore()
}

func (p *watched) Wants(arm, more int) int { return p.Policy.(Foretold).Wants(arm, more) }

func (p *watched) Next(r privacy.Released) *policy.Batch {
	if r.Len() > 0 {
		var sums []float64
		for i := range r.Len() {
			sums = append(sums, r.Sum(i), float64(r.N(i)))
		}
		p.see(p.batch-1, sums)
	}
	p.batch++
	return p.Policy.Next(r)
}

// watchedExact is one that says where its batches end.
type watchedExact struct {
	*watched
	Exact
}

func (p watchedExact) Drop(arm int)                          { p.watched.Policy.(Dropper).Drop(arm) }
func (p watchedExact) AddArm() error                         { return p.watched.Policy.(Grower).AddArm() }
func (p watchedExact) BearsMore() bool                       { return p.watched.BearsMore() }
func (p watchedExact) Next(r privacy.Released) *policy.Batch { return p.watched.Next(r) }
func (p watchedExact) Mechanism() privacy.Mechanism          { return p.watched.Policy.Mechanism() }

// watchedJoint is one that learns by joint batches. It foretells nothing.
type watchedJoint struct {
	w *watched
	Joint
}

func (p watchedJoint) JoinAt(n int, share float64) error {
	return p.Joint.(JointGrower).JoinAt(n, share)
}
func (p watchedJoint) Next(r privacy.Released) *policy.Batch { return p.w.Next(r) }

// jointly is a policy of three arms whose rows have from 1 to 5 decisions: many have none of an arm.
type jointly struct{ batch policy.Batch }

func (p *jointly) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1} }
func (p *jointly) Shares(int) []float64         { return []float64{0.6, 0.3, 0.1} }
func (p *jointly) JointEnd(n int) int           { return n + 1 + n%7%5 }

func (p *jointly) Next(privacy.Released) *policy.Batch {
	p.batch.Plays = []policy.Play{{Arm: 0, Rounds: 6, Release: true}, {Arm: 1, Rounds: 3, Release: true},
		{Arm: 2, Rounds: 1, Release: true}}
	return &p.batch
}

// joining is jointly with longer rows, and takes arms.
type joining struct {
	jointly
	round int
	from  []int
}

func (p *joining) JointEnd(n int) int { return n + 5 + n%7 }

func (p *joining) Shares(n int) []float64 {
	out := p.jointly.Shares(n)
	for i, from := range p.from {
		if from <= n {
			out = policy.JoinShares(out, 1/float64(4+i))
		}
	}
	return out
}

func (p *joining) JoinAt(n int, share float64) error {
	if want := 1 / float64(4+len(p.from)); n < p.round || share != want {
		return caught("an arm joins at %d with a share of %v, in the batch that ends at %d, must have %v", n, share, p.round, want)
	}
	p.from = append(p.from, n)
	return nil
}

func (p *joining) Next(r privacy.Released) *policy.Batch {
	b := p.jointly.Next(r)
	for a := len(b.Plays); a < len(p.Shares(p.round)); a++ {
		b.Plays = append(b.Plays, policy.Play{Arm: a, Rounds: 1, Release: true})
	}
	p.round = p.JointEnd(p.round)
	return b
}

// metricHigh is the end of the range of a house's metric, which tells its curator from that of rewards.
const metricHigh = 3

// withMetric adds a metric from −1 to 3, whose default is 0.
func withMetric(cfg Config) Config {
	cfg.Metrics = []Metric{{Name: "basket", Lo: -1, Hi: metricHigh, Mechanism: privacy.Laplace{Scale: 4}}}
	return cfg
}

// An armsGame is of arms.
type armsGame struct {
	policy func() policy.Policy
	cur    *recorder
	second *recorder // of the metric
}

// ofArms is a house with arms, that is to be built.
func ofArms(p func() policy.Policy, cfg Config) house {
	return house{game: &armsGame{policy: p}, cfg: cfg}
}

func houseConfig(arms int) Config { return Config{Arms: arms, Default: 0.25, Window: 30, Cut: 3} }

func (g *armsGame) start(h *house, cfg *Config) {
	w := &watched{Policy: g.policy(), see: h.see}
	cfg.Policy = w
	if x, ok := w.Policy.(Exact); ok {
		cfg.Policy = watchedExact{w, x}
	}
	if x, ok := w.Policy.(Joint); ok {
		cfg.Policy = watchedJoint{w, x}
	}
	cfg.Curator = func(rc release.Config) (release.Curator, error) {
		c, err := h.simulated(rc)
		r := &recorder{StepCurator: c}
		if rc.Hi == metricHigh {
			g.second = r
		} else {
			g.cur = r
		}
		return r, err
	}
}

func (g *armsGame) decide(h *house, pick choice) error {
	arm := h.live.Arm()
	if arm < 0 {
		return nil
	}
	often, shares := 8, h.live.Shares()
	if shares != nil { // coins
		often = 2
	}
	made := 0
	for _, q := range h.live.s.Arms {
		made += q.Issued
	}
	for i, from := range h.joins {
		if is := shares[h.cfg.Arms+i] > 0; is != (made >= from) {
			return caught("arm %d joins at %d, and after %d decisions it is in the row: %v", h.cfg.Arms+i, from, made, is)
		}
	}
	if a := pick(len(h.live.s.Arms), "arm"); pick(often, "floor") == 0 && !h.live.s.Arms[a].Off &&
		(shares == nil || shares[a] > 0) {
		arm = a
	}
	number := h.live.s.Arms[arm].Issued
	t, err := h.live.Decide(Decision{Arm: arm, Cell: h.cell(Ticket{Arm: arm, Number: number,
		Epoch: h.live.cfg.Epoch})}, h.now)
	if err == nil && t.Arm != arm {
		return caught("the ticket %+v of arm %d", t, arm)
	}
	if err != nil {
		return err
	}
	return h.decided(t, Event{Number: number}, h.now+h.cfg.Window)
}

func (g *armsGame) judge(h *house, before State, c *Commit) error {
	var more []given
	all := g.cur.given
	g.cur.given = nil
	if g.second != nil {
		more, g.second.given = g.second.given, nil
	}
	rows, err := h.rows(before, c)
	if err != nil {
		return err
	}
	if len(c.Taken) != len(rows) {
		return caught("line %d took %d arms, must take %d", before.Lines, len(c.Taken), len(rows))
	}
	if h.cfg.Cells.Count > 0 {
		if all, more, err = h.judgeCells(c.Taken, all, more); err != nil {
			return err
		}
	}
	j := 0 // of what was released
	for i, p := range rows {
		took := c.Taken[i]
		asked, kept := p.Rounds, 0
		sum, metric, stray := int64(0), int64(0), int64(0) // stray: of the sum, what was withdrawn
		units := h.takenBy(took)
		for n := took.Start; n < took.End; n++ {
			t := units[n]
			share, came := h.share(t)
			x, counts := int64(share*(1<<20)), !h.gone[t] && (came || !h.cfg.Drop)
			if counts {
				kept++
			}
			switch {
			case came:
				_, steps := h.metric(t)
				metric += steps
			case counts:
				metric += 1 << 18
			default:
				x = 0
			}
			if came && !counts {
				stray += x
			}
			sum += x
		}
		if kept == 0 && asked == 0 { // nothing empty is released
			continue
		}
		if j >= len(all) {
			return caught("line %d released %d arms", before.Lines, len(all))
		}
		got := all[j]
		j++
		if took.Arm != p.Arm || took.Start != before.Arms[p.Arm].Head || got.arm != p.Arm || kept != got.n || kept < asked ||
			kept == 0 || h.live.cfg.Take == Exactly && kept != asked && asked > 0 {
			return caught("batch %d took %+v and released %d, asked for %d of arm %d", before.Lines,
				took, got.n, asked, p.Arm)
		}
		if h.cfg.Cells.Count > 0 { // of which each was judged
			continue
		}
		if cut := max(0, sum-int64(kept)<<20); got.sum != sum-cut || cut > stray {
			return caught("batch %d released a sum that is not that of its rewards and defaults", before.Lines)
		} else if cut > 0 {
			h.cut++
		}
		if g.second != nil && (j > len(more) || more[j-1] != given{p.Arm, kept, min(metric, int64(kept)<<20)}) {
			return caught("batch %d released a metric that is not that of its reports and defaults", before.Lines)
		}
	}
	if j != len(all) {
		return caught("line %d released %d arms, must release %d", before.Lines, len(all), j)
	}
	return nil
}

// cell is that of a decision: another where its number is given out again.
func (h *house) cell(t Ticket) int {
	return (t.Number*t.Number*7 + t.Arm + int(t.Epoch[7])) % h.cfg.Cells.each()
}

// judgeCells holds what was released of cells against the decisions that were taken, each in the cell that it
// was decided in, and gives the totals of arms. A cell with few decisions is in the last one: of a row, of joint
// batches of all rows.
func (h *house) judgeCells(taken []Taken, all, more []given) (totals, others []given, err error) {
	of, next := h.cfg.Cells, 0
	few := func(rows []Taken) map[int]bool {
		out, n := map[int]bool{}, make([]int, of.Count)
		for _, took := range rows {
			for _, t := range h.takenBy(took) {
				if !h.gone[t] {
					n[h.cell(t)]++
				}
			}
		}
		for cell := range of.Count - 1 {
			out[cell] = n[cell] < of.Least
		}
		return out
	}
	for i, took := range taken {
		joins := few(taken[i : i+1])
		if h.live.rows != nil {
			joins = few(taken)
		}
		units := h.takenBy(took)
		var total, other given
		for cell := range of.Count {
			var n int
			var most, sum, metric int64
			for _, t := range units {
				in := h.cell(t)
				if joins[in] {
					in = of.Count - 1
				}
				if in != cell {
					continue
				}
				share, came := h.share(t)
				if !h.gone[t] {
					n, most = n+1, most+1<<20
				}
				if came || !h.gone[t] {
					sum += int64(share * (1 << 20))
				}
				if _, steps := h.metric(t); came {
					metric += steps
				} else if !h.gone[t] {
					metric += 1 << 18
				}
			}
			if n == 0 {
				continue
			}
			if sum > most {
				h.cut++
			}
			want := given{took.Arm*of.Count + cell, n, min(sum, most)}
			if next >= len(all) || all[next] != want {
				return nil, nil, caught("the cells %+v were released, %d must be %+v", all, next, want)
			}
			if other.n += n; more != nil {
				if want.sum = min(metric, most); next >= len(more) || more[next] != want {
					return nil, nil, caught("a metric of the cells %+v was released, %d must be %+v", more, next, want)
				}
				other.sum += more[next].sum
			}
			total.arm, total.n, total.sum = took.Arm, total.n+n, total.sum+all[next].sum
			other.arm = took.Arm
			next++
		}
		if total.n > 0 {
			totals, others = append(totals, total), append(others, other)
		}
	}
	if next != len(all) {
		return nil, nil, caught("%d cells were released, must be %d", len(all), next)
	}
	return totals, others, nil
}

// A shown is a row as a line shows it: its sum, and how many rewards are in it.
type shown struct {
	sum float64
	n   int
}

// rows are what a line must release, as the plays of so many rounds: first what the batch has to be
// given that was not ahead, in its order, then what is ahead. The batch is given the rows of its arms
// in the order of their decisions, each as it was shown, once. Of a joint batch, and of the rest, it is
// all that was taken, of no given number.
func (h *house) rows(before State, c *Commit) (rows []policy.Play, err error) {
	row, err := h.row(before, c.Taken)
	if h.live.rested || row != nil || err != nil {
		for _, t := range c.Taken {
			if p := (policy.Play{Arm: t.Arm}); h.live.rested || row[t.Arm] {
				rows = append(rows, p)
			}
		}
		return rows, err
	}
	var in struct {
		Plays, Ahead []struct {
			Arm, Rounds   int
			Release, Held bool
			Cells         []int
		}
		Release struct {
			Sum []float64
			N   []int
		}
	}
	if err := json.Unmarshal(c.Line, &in); err != nil {
		return nil, err
	}
	if batch := len(in.Plays) > 0; batch == c.note || batch && len(in.Plays) != len(before.Batch) ||
		!batch && len(in.Ahead) == 0 {
		return nil, caught("line %d is of %d plays, of a batch of %d", before.Lines, len(in.Plays), len(before.Batch))
	}
	next := 0
	show := func(cells []int) (out shown) { // the next row of the release, of all its cells
		for range max(1, len(cells)) {
			out.sum, out.n = out.sum+in.Release.Sum[next], out.n+in.Release.N[next]
			next++
		}
		return out
	}
	var given []float64
	for i, p := range in.Plays {
		if b := before.Batch[i]; b != (policy.Play{Arm: p.Arm, Rounds: p.Rounds, Release: p.Release}) {
			return nil, caught("line %d plays %+v, the batch is %+v", before.Lines, p, b)
		}
		var one shown
		switch all := h.ahead[p.Arm]; {
		case !p.Release:
			continue
		case p.Held != (len(all) > 0):
			return nil, caught("line %d: arm %d is held is %v, and %d of its rows are", before.Lines, p.Arm, p.Held,
				len(all))
		case p.Held:
			one, h.ahead[p.Arm] = all[0], all[1:]
			if asked := before.Arms[p.Arm].Asked; one.n < asked || h.live.cfg.Take == Exactly && one.n > asked {
				return nil, caught("line %d: the policy asks for %d of arm %d, and is given %d", before.Lines, asked,
					p.Arm, one.n)
			}
		case next < len(in.Release.Sum):
			one = show(p.Cells)
			rows = append(rows, policy.Play{Arm: p.Arm, Rounds: before.Arms[p.Arm].Asked})
		}
		given = append(given, one.sum, float64(one.n))
	}
	if len(given) > 0 {
		h.given[len(h.lines)-h.notes] = given
	}
	for _, p := range in.Ahead {
		for _, b := range before.Batch {
			if b.Arm == p.Arm && b.Release {
				return nil, caught("line %d: arm %d is ahead, and the batch releases it", before.Lines, p.Arm)
			}
		}
		if next < len(in.Release.Sum) {
			h.ahead[p.Arm] = append(h.ahead[p.Arm], show(p.Cells))
		}
		rows = append(rows, policy.Play{Arm: p.Arm, Rounds: p.Rounds})
		h.early++
	}
	return rows, nil
}

// late holds that nothing is left that could be ahead: of a policy that takes exactly what it asks for
// less than a phase of an arm has settled, if the batch does not release it.
func (g *armsGame) late(h *house) error {
	l := h.live
	x, ok := l.cfg.Policy.(Exact)
	if !ok || l.cfg.Take != Exactly || l.stopped || l.pending != nil {
		return nil
	}
	if at, due := l.Due(h.now); due && at <= h.now {
		return nil // there was more than these closes could do
	}
	settled := map[Ticket]bool{}
	for t := range h.owner {
		settled[Ticket{Arm: t.Arm, Number: t.Number}] = h.now >= t.Deadline
	}
	for a, q := range l.s.Arms {
		n := q.Head
		for settled[Ticket{Arm: a, Number: n}] {
			n++
		}
		if !l.releases[a] && !q.Off && n >= x.End(a, q.Head) {
			return caught("arm %d has decisions to %d settled, and those to %d are not released", a, n, q.Head)
		}
	}
	return nil
}

// row are the arms of the joint batch that is released: of all decisions in their order those that come
// next must have been taken, and no others. It is nil where there is none.
func (h *house) row(before State, taken []Taken) (map[int]bool, error) {
	p, ok := h.live.cfg.Policy.(watchedJoint)
	if !ok || h.live.rested {
		return nil, nil
	}
	start, took := 0, 0
	for _, q := range before.Arms {
		start += q.Head
	}
	end := p.JointEnd(start)
	for _, r := range taken {
		took += r.End - r.Start
	}
	arms, at := map[int]bool{}, 0
	for _, t := range h.tickets {
		if _, known := h.owner[t]; !known {
			continue
		}
		if at++; at > start && at <= end {
			arms[t.Arm] = true
			if !slices.ContainsFunc(taken, func(r Taken) bool {
				return r.Arm == t.Arm && t.Number >= r.Start && t.Number < r.End
			}) {
				return nil, caught("decision %d of all is not in the joint batch of %d to %d", at-1, start, end-1)
			}
		}
	}
	if at < end || took != end-start {
		return nil, caught("the joint batch of decisions %d to %d has %d", start, end-1, took)
	}
	return arms, nil
}

// policies are what houses play: all ways to take a queue, batches that release nothing, coins.
func policies(t testing.TB) map[string]func() policy.Policy {
	t.Helper()
	ok := func(p policy.Policy, err error) policy.Policy {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return map[string]func() policy.Policy{
		"dp-klucb":   func() policy.Policy { p, err := policy.NewDPKLUCB(3, 1, 1.5, 2); return ok(p, err) },
		"adap-klucb": func() policy.Policy { p, err := policy.NewAdaPKLUCB(2, 1, 3.1); return ok(p, err) },
		"batch-se": func() policy.Policy {
			p, err := policy.NewBatchSE(3, privacy.Pure{Epsilon: 1}, 0.1, 2)
			return ok(p, err)
		},
		"joint":           func() policy.Policy { return &jointly{} },
		"joining":         func() policy.Policy { return &joining{} },
		"dp-ts":           func() policy.Policy { p, err := policy.NewDPTS(3, privacy.ZCDP{Rho: 0.5}, 3); return ok(p, err) },
		"dp-window-klucb": func() policy.Policy { p, err := policy.NewDPWindowKLUCB(3, 1, 40, 2); return ok(p, err) },
		"lazy-dp-ts": func() policy.Policy {
			s := noise.NewFast(3, 4)
			p, err := policy.NewLazyDPTS(2, 1, &s)
			return ok(p, err)
		},
	}
}

func armsOf(p policy.Policy) int { return len(p.Next(privacy.Released{}).Plays) }
