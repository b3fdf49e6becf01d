package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Subject is a policy of K arms, or one that looks for the best of them, under audit. It is
// played against its real curator, with simulated noise.
type Subject struct {
	Name    string
	Arms    int // K
	Horizon int // T, rounds of a game; a policy that stops by itself may stop before
	// New builds the policy anew for each game. Src is the game's stream, for policies
	// that toss coins.
	New func(src *noise.Fast) (policy.Policy, error)
	// Curator builds what is between rewards and policy, on the ledger; nil is release.Simulated.
	// Its Forget must make it as new.
	Curator func(arms int, m privacy.Mechanism, ledger *privacy.Ledger,
		src *noise.Fast) (release.Curator, error)

	trust *release.Trust // see Under
}

// PolicySubject is the subject of a policy of the catalog for K arms, at this budget. Params are as
// given to Entry.Complete.
func PolicySubject(e catalog.Entry, arms, horizon int, b privacy.Budget,
	given catalog.Params) (Subject, error) {
	if e.New == nil {
		return Subject{}, fmt.Errorf("audit: policy %s is not for bandits of K arms", e.Name)
	}
	params, err := e.Complete(given)
	if err != nil {
		return Subject{}, fmt.Errorf("audit: %w", err)
	}
	if err := e.With(params).Meets(b); err != nil {
		return Subject{}, fmt.Errorf("audit: %w", err)
	}
	s := Subject{Name: e.Content(params), Arms: arms, Horizon: horizon,
		New: func(src *noise.Fast) (policy.Policy, error) {
			setting := catalog.Setting{Arms: arms, Horizon: horizon, Budget: b, Coins: src, Contexts: contexts(e, arms)}
			setting.Vectors, setting.Logistic = vectors(e, arms)
			return e.New(setting, params)
		}}
	return s, s.try()
}

// vectors are any that are no copies of the arms, for a policy that makes something of them.
func vectors(e catalog.Entry, arms int) (x [][]float64, logistic bool) {
	if e.Vectors == "" {
		return nil, false
	}
	for a := range arms {
		x = append(x, []float64{1, float64(a+1) / float64(arms)})
	}
	return x, e.Vectors == catalog.MeansLogistic
}

// contexts are as many as can have two arms each, of a policy that plays them.
func contexts(e catalog.Entry, arms int) int {
	if e.Contexts && arms%2 == 0 {
		return arms / 2
	}
	return 1
}

// IdentifySubject is the subject of a policy of the catalog that looks for the best arm, with this
// risk of a wrong answer; a game ends when it stops, or after most rounds.
func IdentifySubject(e catalog.Entry, arms, most int, risk float64, b privacy.Budget,
	given catalog.Params) (Subject, error) {
	if e.NewIdentify == nil {
		return Subject{}, fmt.Errorf("audit: policy %s does not look for the best arm", e.Name)
	}
	params, err := e.Complete(given)
	if err != nil {
		return Subject{}, fmt.Errorf("audit: %w", err)
	}
	if err := e.With(params).Meets(b); err != nil {
		return Subject{}, fmt.Errorf("audit: %w", err)
	}
	s := Subject{Name: e.Content(params), Arms: arms, Horizon: most,
		New: func(src *noise.Fast) (policy.Policy, error) {
			setting := catalog.IdentifySetting{Arms: arms, Risk: risk, Budget: b, Coins: src, Contexts: contexts(e, arms)}
			setting.Vectors, setting.Logistic = vectors(e, arms)
			return e.NewIdentify(setting, params)
		}}
	return s, s.try()
}

// try builds one policy, so that what is wrong is said before the games.
func (s Subject) try() error {
	if s.Arms < 1 {
		return fmt.Errorf("audit: arms is %d, must be at least 1", s.Arms)
	}
	if s.Horizon < 1 {
		return fmt.Errorf("audit: horizon is %d, must be at least 1", s.Horizon)
	}
	if s.New == nil {
		return errors.New("audit: the subject has no policy")
	}
	src := noise.NewFast(1, 2)
	if _, err := s.New(&src); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// History is what an adversary has seen: what was played.
type History struct {
	Round  int   // rounds so far
	Counts []int // plays of each arm
	Since  []int // plays of each arm after the challenge
	Arm    int   // the arm of the challenge, −1 before
}

// An Adversary chooses the rewards of a game, and with them the neighbours: two inputs whose
// rewards differ in round Round only. Low and High are what each arm pays there, in the world
// without and with the target, and Before and After what it pays in the rounds before and after. In
// a list they are the same for all arms.
type Adversary struct {
	Name                     string
	Model                    Model
	Round                    int // of the challenge, from 1
	Low, High, Before, After []float64
	// Feed, under Continual, overwrites what the arms pay until the next batch, after it
	// has seen the plays.
	Feed func(h *History, pay []float64)
	// Query, under Interactive, is the arm that is played in the policy's place: in all rounds of a
	// batch's play but the first one, so that no release is empty. The reward goes to the slot of
	// the arm that was played. −1 obeys.
	Query func(h *History) int
}

func (a *Adversary) check(s Subject) error {
	if a.Round < 1 || a.Round > s.Horizon {
		return fmt.Errorf("audit: round of the challenge is %d, must be from 1 to the horizon, %d",
			a.Round, s.Horizon)
	}
	for name, x := range map[string][]float64{"low": a.Low, "high": a.High, "before": a.Before,
		"after": a.After} {
		if len(x) != s.Arms {
			return fmt.Errorf("audit: %s rewards are %d, must be one for each of %d arms", name, len(x), s.Arms)
		}
		for arm, r := range x {
			if math.IsNaN(r) || math.IsInf(r, 0) || (name == "before" || name == "after") && (r < 0 || r > 1) {
				return fmt.Errorf("audit: %s reward of arm %d is %v, must be a number, and from "+
					"0 to 1 but in the round of the challenge", name, arm, r)
			}
			if a.Model == View && r != x[0] {
				return fmt.Errorf("audit: %s rewards are %v, must be the same for all arms in a list", name, x)
			}
		}
	}
	switch {
	case a.Model < View || a.Model > Continual:
		return fmt.Errorf("audit: %v is unknown, must be view, table, interactive or continual", a.Model)
	case a.Feed != nil && a.Model != Continual:
		return fmt.Errorf("audit: an adversary that feeds rewards is not one of the %v model", a.Model)
	case a.Query != nil && a.Model != Interactive:
		return fmt.Errorf("audit: an adversary that chooses plays is not one of the %v model", a.Model)
	}
	return nil
}

// Sees says what of a game the attacker looks at.
type Sees int

const (
	// Releases: every number that the curator has let out, as the policy sees it. The guarantee
	// covers them, and what is played is a function of them.
	Releases Sees = iota
	// Plays: only what was played, and when a policy has stopped. This is the output of [Azize
	// 2024, Chapter 3].
	Plays
)

func (s Sees) String() string {
	if s == Plays {
		return "plays"
	}
	return "releases"
}

// The scores of a transcript, as places in a game's scores. A fault that a score is made for is
// what it finds best; each is valid against anything.
const (
	scoreRatio = iota // log-likelihood ratio of the releases that may read the changed reward
	scoreTwice        // the same, if the arm's next release read it too
	// mean of what is unexplained in the arm's releases from then on: noise that is drawn
	// again averages out
	scoreMean
	scoreAcross // log-likelihood ratio if two arms have the same noise
	scorePlays  // plays of the changed arm from then on
	scoreFewer  // the same, the fewer the more
	scoreHash   // the plays themselves, as a number that stands for them
	scores
)

var scoreNames = [scores]string{"likelihood ratio", "likelihood ratio, read twice", "mean residual",
	"difference of arms", "plays of the arm",
	"plays of the others", "table of plays"}

// seen are the scores of a view.
func seen(s Sees) []int {
	if s == Plays {
		return []int{scorePlays, scoreFewer, scoreHash}
	}
	return []int{scoreRatio, scoreTwice, scoreMean, scoreAcross}
}

// renew is after how many games a world empties its ledger: each game's slots are new ones in it.
const renew = 64

// transcripts plays games of a subject against an adversary and returns all scores of each, and the
// largest loss that a ledger has said.
func transcripts(ctx context.Context, s Subject, a Adversary, games, workers int,
	key noise.Key) ([]Scores, privacy.Loss, error) {
	if err := s.try(); err != nil {
		return nil, privacy.Loss{}, err
	}
	if err := a.check(s); err != nil {
		return nil, privacy.Loss{}, err
	}
	var mu sync.Mutex
	var worlds []*player
	out, err := Play(ctx, games, scores, workers, key, func() func(bool, *noise.Fast, []float64) error {
		w := newWorld(s, &a)
		mu.Lock()
		worlds = append(worlds, w)
		mu.Unlock()
		return w.game
	})
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	var loss privacy.Loss
	for _, w := range worlds {
		loss = loss.Max(w.claimed())
	}
	return out, loss, nil
}

// Transcripts plays games of a subject against an adversary and scores what the attacker sees, once
// by each of Attacks(sees). The loss is the claim: the largest total that a ledger had after a game.
func Transcripts(ctx context.Context, s Subject, a Adversary, sees Sees, games, workers int,
	key noise.Key) ([]Scores, privacy.Loss, error) {
	all, loss, err := transcripts(ctx, s, a, games, workers, key)
	if err != nil {
		return nil, loss, err
	}
	var out []Scores
	for _, i := range seen(sees) {
		out = append(out, all[i])
	}
	return out, loss, nil
}

// Reconstruct is the game for the value of one reward, that of the adversary's round: it is one of
// so many values from 0 to 1, equally spaced, and the attacker guesses it from the release that
// reads it: the value next to what is unexplained there, which is the likeliest if noise is
// symmetric around 0 and falls on both sides. Low and High of the adversary do not count.
func Reconstruct(s Subject, a Adversary, values, games, workers int, key noise.Key) (Reconstruction, error) {
	if err := s.try(); err != nil {
		return Reconstruction{}, err
	}
	if values < 2 {
		return Reconstruction{}, fmt.Errorf("audit: %d values to guess among, must be at least 2", values)
	}
	a.Low, a.High = make([]float64, s.Arms), make([]float64, s.Arms)
	for i := range a.High {
		a.High[i] = 1
	}
	if err := a.check(s); err != nil {
		return Reconstruction{}, err
	}
	type scratch struct {
		w   *player
		out []float64
	}
	pool := sync.Pool{New: func() any { return &scratch{newWorld(s, &a), make([]float64, scores)} }}
	most := float64(values - 1)
	return Reconstruction{Values: values, Games: games, Workers: workers, Key: key,
		Guess: func(v int, src *noise.Fast) (int, error) {
			x := pool.Get().(*scratch)
			defer pool.Put(x)
			x.w.secret = float64(v) / most
			if err := x.w.game(true, src, x.out); err != nil {
				return 0, err
			}
			guess := math.Round(float64(x.w.m.value * most))
			if math.IsNaN(guess) {
				return 0, nil // all values are as likely
			}
			return int(min(max(guess, 0), most)), nil
		}}, nil
}

// Attacks names the scores of Transcripts. The last one of Plays is no score yet: a number that
// stands for the plays, of which a table of how often each happened in other games makes one.
func Attacks(sees Sees) []string {
	var out []string
	for _, i := range seen(sees) {
		out = append(out, scoreNames[i])
	}
	return out
}

// A player is one worker's: it plays one game after the other.
type player struct {
	s      Subject
	a      *Adversary
	cur    release.Curator
	stream noise.Fast // the curator's: a copy of the game's, since a curator keeps its source
	played int
	loss   privacy.Loss // of ledgers let go

	secret float64 // the reward of the challenge, if not NaN

	h      History
	pay    []float64
	slots  []slot
	driver play.Driver
	counts [3][]int // plays of a batch before the challenge, with it, and at its end
	m      meter
}

// A slot is what an attacker knows of an arm's slot: everything but the reward of the challenge.
type slot struct {
	n        int
	sum      float64 // in the world without the target
	position int     // of the challenge among its rewards, from 1; 0: not in it
	before   float64 // sum of the slot that was emptied last
}

func newWorld(s Subject, a *Adversary) *player {
	w := &player{s: s, a: a, secret: math.NaN(), slots: make([]slot, s.Arms),
		pay: make([]float64, s.Arms)}
	w.h.Counts, w.h.Since = make([]int, s.Arms), make([]int, s.Arms)
	w.m.arms = make([]track, s.Arms)
	return w
}

func (w *player) claimed() privacy.Loss {
	if w.cur == nil {
		return w.loss
	}
	return w.loss.Max(w.cur.Ledger().Total())
}

// begin makes a curator ready.
func (w *player) begin(m privacy.Mechanism) error {
	if w.cur != nil && w.played%renew != 0 {
		return w.cur.Forget(m)
	}
	ledger := privacy.NewLedger()
	if w.cur != nil {
		ledger = w.cur.Ledger()
		w.loss = w.loss.Max(ledger.Total())
		ledger.Reset()
	}
	build := w.s.Curator
	if build == nil {
		build = simulated
	}
	cur, err := build(w.s.Arms, m, ledger, &w.stream)
	w.cur = cur
	return err
}

func simulated(arms int, m privacy.Mechanism, ledger *privacy.Ledger,
	src *noise.Fast) (release.Curator, error) {
	return release.Simulated(release.Config{Arms: arms, Mechanism: m, Ledger: ledger}, src)
}

// game plays one game.
func (w *player) game(in bool, src *noise.Fast, out []float64) error {
	w.stream = *src
	err := w.play(in, out)
	*src = w.stream // the next game goes on from there
	return err
}

func (w *player) play(in bool, out []float64) error {
	p, err := w.s.New(&w.stream)
	if err != nil {
		return err
	}
	defer policy.End(p)
	mech := p.Mechanism()
	if err := w.begin(mech); err != nil {
		return err
	}
	w.played++
	clear(w.slots)
	clear(w.h.Counts)
	clear(w.h.Since)
	w.h.Round, w.h.Arm = 0, -1
	w.m.begin(mech)
	hash, look := uint64(14695981039346656037), 0
	d := &w.driver
	d.Policy, d.Curator, d.Released = p, w.cur, privacy.Released{}
	for w.h.Round < w.s.Horizon {
		b, err := d.Next()
		if err != nil {
			return err
		}
		if b == nil {
			answer := -1
			if i, ok := p.(interface{ Answer() int }); ok {
				answer = i.Answer()
			}
			hash = mix(mix(hash, uint64(answer+2)), 1)
			break
		}
		if b.Fresh {
			mech = p.Mechanism()
			clear(w.slots)
			w.m.fresh(mech)
		}
		n := b.Rounds()
		if n <= 0 {
			return fmt.Errorf("audit: round %d: the policy asks for an empty batch", w.h.Round)
		}
		if w.h.Arm >= 0 && look < lookAhead {
			look++
			for i := range b.Plays {
				hash = mix(mix(hash, uint64(b.Plays[i].Arm)), uint64(min(b.Plays[i].Rounds, w.s.Horizon)))
			}
		}
		if n > w.s.Horizon-w.h.Round {
			w.cut(b) // it releases nothing
			break
		}
		if err := w.feed(b, n, in); err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
		ready, released := d.Releasing(), d.Released
		if b.Ask && len(ready) > 0 {
			w.m.answer(ready, w.slots, b.Above, released.Len() > 0)
		}
		if released.Len() > 0 {
			w.m.release(ready, w.slots, released)
			if !mech.Continual() {
				for _, a := range ready {
					w.slots[a] = slot{before: w.slots[a].sum}
				}
			}
		}
	}
	w.m.finish(out)
	since := 0.0
	if w.h.Arm >= 0 {
		since = float64(w.h.Since[w.h.Arm])
	}
	out[scorePlays], out[scoreFewer] = since, -since
	out[scoreHash] = float64(hash >> 11) // 53 bits, which a float64 holds
	return nil
}

// lookAhead is how many batches after the challenge the table of plays tells apart.
const lookAhead = 4

// mix is FNV-1a on words, with a better spread of the low bits.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 1099511628211
	return h ^ h>>29
}

// cut counts the plays of a batch that the horizon cuts.
func (w *player) cut(b *policy.Batch) {
	k := w.room(0, len(b.Plays))
	b.Counts(w.s.Horizon-w.h.Round, k)
	for i := range b.Plays {
		w.h.Counts[b.Plays[i].Arm] += k[i]
		if w.h.Arm >= 0 {
			w.h.Since[b.Plays[i].Arm] += k[i]
		}
	}
}

func (w *player) room(i, n int) []int {
	if cap(w.counts[i]) < n {
		w.counts[i] = make([]int, n)
	}
	return w.counts[i][:n]
}

// feed gives a batch its rewards.
func (w *player) feed(b *policy.Batch, n int, in bool) error {
	from, at := w.h.Round, w.a.Round-1
	held := at >= from && at < from+n
	query := -1
	if w.a.Query != nil {
		query = w.a.Query(&w.h)
	}
	var before, with []int
	if held {
		before, with = w.room(0, len(b.Plays)), w.room(1, len(b.Plays))
		b.Counts(at-from, before)
		b.Counts(at-from+1, with)
	}
	copy(w.pay, w.a.Before)
	if from > at {
		copy(w.pay, w.a.After)
	}
	if w.a.Feed != nil {
		w.a.Feed(&w.h, w.pay)
		for a, x := range w.pay {
			if !(x >= 0 && x <= 1) {
				return fmt.Errorf("audit: round %d: the adversary feeds arm %d the reward %v, "+
					"must be from 0 to 1", from+1, a, x)
			}
		}
	}
	for i := range b.Plays {
		play := &b.Plays[i]
		arm, rounds := play.Arm, play.Rounds
		if held {
			rounds = before[i]
		}
		if err := w.put(arm, query, rounds, true, w.pay); err != nil {
			return err
		}
		if held {
			first := rounds == 0
			if with[i] > before[i] {
				if query >= 0 && !first {
					arm = query
				}
				if err := w.challenge(arm, in); err != nil {
					return err
				}
				first = false
			}
			if err := w.put(play.Arm, query, play.Rounds-with[i], first, w.a.After); err != nil {
				return err
			}
		}
		w.h.Counts[play.Arm] += play.Rounds
		switch {
		case held:
			w.h.Since[play.Arm] = play.Rounds - with[i]
		case w.h.Arm >= 0:
			w.h.Since[play.Arm] += play.Rounds
		}
	}
	w.h.Round += n
	return nil
}

// put gives n rounds of an arm their rewards. First says that the play's first round is among them,
// which is always the policy's own.
func (w *player) put(arm, query, n int, first bool, pay []float64) error {
	if query >= 0 && query != arm {
		own := 0
		if first && n > 0 {
			own = 1
		}
		if n > own {
			if err := w.add(query, n-own, float64(float64(n-own)*pay[query])); err != nil {
				return err
			}
		}
		n = own
	}
	if n == 0 {
		return nil
	}
	return w.add(arm, n, float64(float64(n)*pay[arm]))
}

func (w *player) add(arm, n int, sum float64) error {
	s := &w.slots[arm]
	s.n += n
	s.sum += sum
	return w.cur.AddSum(arm, n, sum)
}

// challenge gives the reward in which the worlds differ.
func (w *player) challenge(arm int, in bool) error {
	s := &w.slots[arm]
	s.n++
	s.sum += min(max(w.a.Low[arm], 0), 1)
	s.position = s.n
	w.h.Arm = arm
	w.m.target(arm, w.a.High[arm], w.a.Low[arm])
	r := w.a.Low[arm]
	if in {
		r = w.a.High[arm]
	}
	if w.secret != w.secret {
		return w.cur.Add(arm, r)
	}
	return w.cur.Add(arm, w.secret)
}
