package play

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// arms is the side of a policy of arms: a batch is what it asks for, and a release is the sums of its
// arms.
type arms struct{ *Live }

func (l arms) admit() (err error) {
	cfg := &l.cfg
	switch {
	case cfg.Arms < 1 || cfg.Arms > maxArms:
		return fmt.Errorf("play: arms is %d, must be from 1 to %d", cfg.Arms, maxArms)
	case cfg.Horizon != 0 || len(cfg.Rules) > 0:
		return errors.New("play: there are rules or a horizon, must be none without contexts")
	}
	if err := cfg.checkGathering(); err != nil {
		return err
	}
	if err := cfg.Cells.check(cfg); err != nil {
		return err
	}
	cfg.Cut = orSixteenth(cfg.Cut, cfg.Window)
	if l.further, err = buildFurther("metric", cfg.Metrics); err != nil {
		return err
	}
	admitted, err := Admit(cfg.Policy)
	if err != nil {
		return err
	}
	if cfg.Take == 0 {
		cfg.Take = admitted
	}
	switch {
	case cfg.Drop && cfg.Take == Exactly:
		return fmt.Errorf("play: rewards that do not come cannot be dropped: %T takes exactly what it "+
			"asks for", cfg.Policy)
	case cfg.Take == admitted:
	case cfg.Take != AtLeast:
		return fmt.Errorf("play: take is %v, must be at least for %T, which does not say "+
			"where its batches end", cfg.Take, cfg.Policy)
	case !bearsMore(cfg.Policy):
		return fmt.Errorf("play: take is at least, must be %v for %T", admitted, cfg.Policy)
	}
	if joint, ok := cfg.Policy.(Joint); ok && cfg.Take == Jointly {
		if l.rows, err = newRows(joint, cfg.Arms); err != nil {
			return err
		}
		cfg.Cut = 0
	}
	l.end = func(int, int) int { return 0 } // known of no segment
	if cfg.Take == Exactly {
		l.end = cfg.Policy.(Exact).End
	}
	l.driver.Policy, l.releases = cfg.Policy, make([]bool, cfg.Arms)
	return nil
}

// real is the curator of people's rewards.
func (cfg Config) real(c release.Config) (release.Curator, error) {
	if !cfg.Gathering.On() {
		return release.Real(c)
	}
	g, err := release.RealGathered(c, cfg.Gathering)
	if err != nil {
		return nil, err // no typed nil
	}
	return g, nil
}

func (cfg Config) checkGathering() error {
	g := cfg.Gathering
	if !g.On() {
		return nil
	}
	if err := g.Validate(); err != nil {
		return fmt.Errorf("play: %w", err)
	}
	switch {
	case len(cfg.Metrics) > 0:
		return fmt.Errorf("play: there are metrics, must be none under trust %s: rewards alone are gathered",
			g.Trust)
	case cfg.Drop:
		return fmt.Errorf("play: drop is true, must be false under trust %s: who did not report would be seen",
			g.Trust)
	}
	return nil
}

// curated is what the curator is built of.
func (l arms) curated() release.Config {
	return release.Config{Arms: l.cfg.Arms * l.cfg.Cells.each(), Lo: l.cfg.Lo, Hi: l.cfg.Hi, Mechanism: l.policy.Mechanism()}
}

func (l arms) curate(*past) error {
	c, err := stepCurator(l.cfg.Curator, l.curated(), l.ledger)
	if err != nil {
		return fmt.Errorf("play: %w", err)
	}
	l.curator, l.driver.Curator = c, c
	return nil
}

func (l arms) resume(p *past) error {
	if len(l.s.Events)+len(l.s.Kept) > 0 {
		return fmt.Errorf("play: %w: it has vectors", ErrState)
	}
	for a, q := range l.s.Arms {
		for _, g := range q.Segments {
			if end := l.end(a, g.Start); end != 0 && end != g.End {
				return fmt.Errorf("play: %w: a segment of arm %d ends at %d, and the policy "+
					"says at %d", ErrState, a, g.End, end)
			}
		}
	}
	if l.rows != nil {
		if err := l.rows.resume(l.s.Arms); err != nil {
			return fmt.Errorf("play: %w: %w", ErrState, err)
		}
	}
	b := p.batch()
	l.stopped, l.rested = b == nil, p.rested
	switch {
	case l.rested && l.s.Batch != nil:
		return fmt.Errorf("play: %w: it has a batch, and all that is left was released", ErrState)
	case l.rested:
		return nil
	case l.s.Batch != nil:
		if l.stopped || !slices.Equal(b.Plays, l.s.Batch) {
			return fmt.Errorf("play: %w: the policy does not ask for the batch that is out", ErrState)
		}
		l.goOn()
		return nil
	}
	if err := l.ask(b); err != nil {
		return fmt.Errorf("play: batch %d: %w", p.Lines, err)
	}
	return nil
}

func (l arms) out() []policy.Play { return l.s.Batch }

func (l arms) head() (out line) {
	for _, p := range l.s.Batch {
		out.Plays = append(out.Plays, play{Arm: p.Arm, Rounds: p.Rounds, Release: p.Release})
	}
	return out
}

func (l arms) put(slot, n int, sums []int64) error { return l.curator.AddSteps(slot, n, sums[0]) }

func (l arms) release(rows []row, as line) (err error) {
	var got privacy.Released
	if len(rows) > 0 {
		got, err = l.curator.Release(l.slots(rows))
	}
	if err == nil {
		got, err = l.fold(rows, got)
	}
	if err == nil {
		got, err = l.share(rows, as, got)
	}
	if len(as.Plays) > 0 { // else the policy has had what it was given before
		l.driver.Released = got
	}
	return err
}

func (l arms) learn(c *Commit) error {
	if c.drop != nil {
		l.driver.Released = privacy.Released{} // the policy has had it, and its batch was withdrawn
		c.drop()
	}
	return l.next()
}

// Arm is the arm that the policy wants played next, −1 if it has stopped: the play of its batch
// that is furthest behind its share, in the public order of policy.Batch. Once a batch has all its
// decisions, and waits, they go on in its shares.
func (l *Live) Arm() int {
	if l.stopped || l.ending || len(l.plan) == 0 {
		return -1
	}
	return l.plan[l.behind(l.have)].Arm
}

// Offer is the arm of an offer: of what becomes a decision later, or never. As Arm, but what is
// shared out are the offers, so that many that come before the first of them is a decision are not
// all of one arm. Who does not want the arm need not take it.
func (l *Live) Offer() int {
	if l.stopped || l.ending || len(l.plan) == 0 {
		return -1
	}
	i := l.behind(func(i int) int { return l.offers[i] })
	l.offers[i]++
	return l.plan[i].Arm
}

// behind is the play that is furthest behind its share of what they have.
func (l *Live) behind(has func(i int) int) int {
	best, have := 0, has(0)
	for i := 1; i < len(l.plan); i++ {
		if k := has(i); earlier(k, l.plan[i].Rounds, have, l.plan[best].Rounds) {
			best, have = i, k
		}
	}
	return best
}

// have is how many decisions play i has.
func (l *Live) have(i int) int {
	q := &l.s.Arms[l.plan[i].Arm]
	return max(0, q.Issued-q.Head+q.ahead-q.lost-l.before[i])
}

// earlier says whether decision i+1 of n is due before decision j+1 of m: (2i+1)/n <
// (2j+1)/m, in integers.
func earlier(i, n, j, m int) bool {
	ahi, alo := bits.Mul64(2*uint64(i)+1, uint64(m))
	bhi, blo := bits.Mul64(2*uint64(j)+1, uint64(n))
	return ahi < bhi || ahi == bhi && alo < blo
}

// next asks the policy for a batch and begins it.
func (l arms) next() error {
	b, err := l.driver.Next()
	if err == nil {
		err = l.ask(b)
	}
	if err != nil {
		return fmt.Errorf("play: batch %d: %w", l.s.Lines, err)
	}
	l.stopped = b == nil
	return nil
}

// ask begins a batch, if it can be played; it is nil if the policy has stopped.
func (l arms) ask(b *policy.Batch) error {
	if b == nil {
		return nil
	}
	if err := l.canPlay(b); err != nil {
		return err
	}
	return l.open(b.Plays)
}

// canPlay refuses batches that cannot be played live.
func (l arms) canPlay(b *policy.Batch) error {
	switch {
	case b.Ask:
		return fmt.Errorf("it asks a question: %w", ErrBatch)
	case b.Fresh:
		return fmt.Errorf("it forgets its slots and starts afresh: %w", ErrBatch)
	case len(b.Plays) == 0:
		return fmt.Errorf("it is empty: %w", ErrBatch)
	}
	seen := make([]bool, len(l.s.Arms))
	for _, p := range b.Plays {
		switch {
		case p.Arm < 0 || p.Arm >= len(seen) || p.Rounds < 1:
			return fmt.Errorf("it has %d rounds of arm %d, must have at least 1 of an arm from 0 "+
				"to %d: %w", p.Rounds, p.Arm, len(seen)-1, ErrBatch)
		case l.s.Arms[p.Arm].Off:
			return fmt.Errorf("it has arm %d: %w: %w", p.Arm, ErrOff, ErrBatch)
		case seen[p.Arm]:
			return fmt.Errorf("it has arm %d twice: %w", p.Arm, ErrBatch)
		case l.rows != nil && !p.Release:
			return fmt.Errorf("it is joint, and does not release arm %d: %w", p.Arm, ErrBatch)
		}
		seen[p.Arm] = true
	}
	if l.rows != nil {
		if n := len(l.rows.Shares(int(released(l.s.Arms)))); len(b.Plays) < n {
			return fmt.Errorf("it is joint, and has %d arms of %d: %w", len(b.Plays), n, ErrBatch)
		}
	}
	return nil
}

// open begins a batch.
func (l arms) open(plays []policy.Play) error {
	for _, p := range plays {
		q := &l.s.Arms[p.Arm]
		q.ask(p.Rounds, p.Release && l.rows == nil)
		said, head, held := q.Asked, q.Head-q.ahead, l.ahead[p.Arm]
		if end := l.end(p.Arm, head); end != 0 {
			said = end - head
		} else if len(held) > 0 {
			said = min(said, held[0].N(0))
		}
		if p.Release && said != q.Asked {
			return fmt.Errorf("it releases %d decisions of arm %d, which said %d: %w", q.Asked,
				p.Arm, said, ErrBatch)
		}
	}
	l.s.Batch = slices.Clone(plays)
	l.goOn()
	return nil
}

// goOn plays the batch of the state.
func (l arms) goOn() {
	l.plan = l.s.Batch
	if l.rows != nil {
		l.rows.out = l.rows.after(released(l.s.Arms))
	}
	l.before, l.offers = l.before[:0], make([]int, len(l.plan))
	clear(l.releases)
	for _, p := range l.plan {
		q := &l.s.Arms[p.Arm]
		l.before = append(l.before, max(0, q.Asked-p.Rounds))
		l.releases[p.Arm] = p.Release
	}
}

func (l arms) outline(p *past) (err error) {
	if l.cfg.Gathering.On() {
		p.rewards, err = release.NewGatheredOutline(l.curated(), l.cfg.Gathering)
	} else {
		p.rewards, err = release.NewOutline(l.curated(), true)
	}
	return err
}

func (l arms) add(p *past, in line) error {
	if in.N != 0 || len(in.Gram)+len(in.Rules) > 0 {
		return fmt.Errorf("%w: it is a line of contexts", ErrState)
	}
	switch {
	case in.Rest != nil:
		return l.addRest(p, in)
	case in.Off != nil:
		return l.addOff(p, *in.Off, in)
	case in.Add != nil:
		return l.addArm(p, *in.Add, in)
	}
	b := p.batch()
	switch only := len(in.Plays) == 0 && len(in.Ahead) > 0; {
	case b == nil, b.Ask, b.Fresh, !only && !slices.EqualFunc(b.Plays, in.plays(), l.isPlay):
		return fmt.Errorf("%w: the policy does not ask for this batch", ErrState)
	}
	rows, err := l.released(p, in)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	released, err := l.addRelease(p, rows, in)
	if err == nil && l.rows != nil {
		if err = p.row(in, released); err != nil {
			err = fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if err != nil {
		return err
	}
	for i, r := range rows {
		least := r.asked
		if l.rows != nil {
			least = 1
		}
		if n := released.N(i); p.rewards != nil && (n < least || l.cfg.Take == Exactly && n > r.asked) {
			return fmt.Errorf("%w: it releases %d rewards of arm %d, must be %v %d", ErrState, n, r.arm, l.cfg.Take,
				least)
		}
		p.heads[r.arm] = plus(p.heads[r.arm], plus(released.N(i), r.at.Gone))
	}
	given, err := l.share(rows, in, released)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	for _, play := range in.Plays {
		if play.Release {
			p.asked[play.Arm] = 0
		}
	}
	if len(in.Plays) > 0 {
		l.driver.replay(given)
	}
	return nil
}

// released are the rows that a line releases, of the batch and ahead.
func (l arms) released(p *past, in line) (rows []row, err error) {
	for i := range in.Plays {
		at := &in.Plays[i]
		a := at.Arm
		if err := l.isRow(p, at, at.Release && !at.Held || l.rows != nil); err != nil {
			return nil, err
		}
		p.asked[a] = plus(p.asked[a], at.Rounds)
		held := l.ahead[a]
		switch {
		case at.Held != (at.Release && len(held) > 0):
			return nil, fmt.Errorf("%d releases of arm %d are held", len(held), a)
		case at.Held && (held[0].N(0) < p.asked[a] || l.cfg.Take == Exactly && held[0].N(0) > p.asked[a]):
			return nil, fmt.Errorf("%d decisions of arm %d are held, must be %v %d", held[0].N(0), a, l.cfg.Take,
				p.asked[a])
		case at.Release && !at.Held:
			rows = append(rows, row{arm: a, asked: p.asked[a], at: at})
		}
	}
	last := -1
	for i := range in.Ahead {
		at := &in.Ahead[i]
		if err := l.isRow(p, at, true); err != nil {
			return nil, err
		}
		if n := l.want(at.Arm, p.heads[at.Arm], p.batch().Plays); at.Release || at.Held || at.Arm <= last || n < 1 ||
			at.Rounds != n {
			return nil, fmt.Errorf("%d decisions of arm %d are ahead, must be %d, by arm", at.Rounds, at.Arm, n)
		}
		last = at.Arm
		rows = append(rows, row{arm: at.Arm, asked: at.Rounds, at: at})
	}
	return rows, nil
}

// isRow says what is wrong with a play of a line; released is whether it has a row of the release.
func (l arms) isRow(p *past, at *play, released bool) error {
	switch {
	case at.Arm < 0 || at.Arm >= len(p.heads) || p.Off[at.Arm]:
		return fmt.Errorf("arm %d is not there", at.Arm)
	case at.Gone < 0 || at.Gone > 0 && (!released || l.cfg.Take == Exactly):
		return fmt.Errorf("%d decisions of arm %d cannot be gone", at.Gone, at.Arm)
	}
	return l.cfg.Cells.isCells(at.Cells, released && (at.Release && !at.Held || !at.Release && l.rows == nil))
}

// addRelease books the release of a line, which must be of these arms, and as a curator makes it.
func (l arms) addRelease(p *past, rows []row, in line) (released privacy.Released, err error) {
	slots := l.slots(rows)
	if len(in.Release) > 0 {
		if released, err = l.ledger.Restore(in.Release); err != nil {
			return released, err
		}
	}
	if released.Len() != len(slots) {
		return released, fmt.Errorf("%w: it releases %d sums, and must release %d", ErrState, released.Len(), len(slots))
	}
	m, err := checkRelease(p.rewards, p.slots, slots, released, in.Release)
	if err == nil {
		err = l.addFurther(slots, in)
	}
	if err == nil {
		err = p.addCells(rows, released, m)
	}
	if err == nil {
		released, err = l.fold(rows, released)
	}
	if err != nil {
		return released, fmt.Errorf("%w: %w", ErrState, err)
	}
	if m != nil {
		p.Noise = m
	}
	for i, r := range rows {
		p.Released[r.arm] = plus(p.Released[r.arm], released.N(i))
		p.Sums[r.arm] += released.Sum(i)
		p.Releases[r.arm]++
	}
	return released, nil
}

// addOff is a line that takes an arm off.
func (l arms) addOff(p *past, a int, in line) error {
	dropper, ok := l.cfg.Policy.(Dropper)
	if !ok || p.batch() == nil || a < 0 || a >= len(p.heads) || p.Off[a] || in.Gone < 0 || in.Add != nil ||
		len(in.Plays)+len(in.Ahead)+len(in.Rest)+len(in.Release)+len(in.Metrics) > 0 {
		return fmt.Errorf("%w: arm %d cannot have been taken off", ErrState, a)
	}
	p.Off[a], l.ahead[a] = true, nil
	p.heads[a] = plus(p.heads[a], in.Gone) // of lines of programs before
	dropper.Drop(a)
	l.driver.replay(privacy.Released{})
	return nil
}

// addArm is a line that adds an arm.
func (l arms) addArm(p *past, a int, in line) error {
	wrong := AddsArms(l.cfg.Policy)
	switch {
	case wrong != nil, p.batch() == nil, l.cfg.Gathering.On(), a != len(p.heads), in.Gone != 0,
		len(in.Plays)+len(in.Ahead)+len(in.Release)+len(in.Metrics) > 0, l.rows == nil && (in.From != 0 || in.Share != 0):
		return fmt.Errorf("%w: arm %d cannot have been added", ErrState, a)
	case l.rows != nil:
		var gone int64
		for _, head := range p.heads {
			gone += int64(head)
		}
		if wrong = l.rows.isOpening(in.From, gone); wrong == nil {
			wrong = l.rows.join(in.From, in.Share)
		}
	default:
		wrong = l.cfg.Policy.(Grower).AddArm()
	}
	if wrong != nil {
		return fmt.Errorf("%w: arm %d cannot have been added: %w", ErrState, a, wrong)
	}
	l.grow()
	p.Off, p.Released, p.Releases = append(p.Off, false), append(p.Released, 0), append(p.Releases, 0)
	p.Sums, p.heads, p.asked = append(p.Sums, 0), append(p.heads, 0), append(p.asked, 0)
	if p.Cells != nil {
		p.Cells = append(p.Cells, make([]CellSums, l.cfg.Cells.Count))
	}
	if p.rewards != nil { // slots are told apart, and in no order
		if err := l.outline(p); err != nil {
			return err
		}
	}
	for i := range l.further {
		if f := &l.further[i]; f.outline != nil {
			if err := f.outlines(l.cfg); err != nil {
				return err
			}
		}
	}
	if l.rows == nil {
		l.driver.replay(privacy.Released{})
	}
	return nil
}
