package serve

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Events: decisions that are asked for, rewarded and activated by a name of the caller's. A decision
// is durable with its event before it is told, so that whoever was told of one can reward it.

var (
	// ErrEvent: there is no event of this name, or not any more.
	ErrEvent = errors.New("there is no such event")
	// ErrEventTaken: an event of this name was decided before, and what it was given is not among
	// the actions of now.
	ErrEventTaken = errors.New("the event was decided before, among other actions")
)

// An Action is what a rank may give, with what is known of it.
type Action = feature.Action

// A RankAsk is what a rank is asked for with.
type RankAsk struct {
	// Event names the decision; empty to have the service draw a name.
	Event  string
	Person string // as Ask has it
	// Context is what is known of who asks. It is public, and used as it comes.
	Context map[string]any
	// Actions are what there is to choose from, the one that is given without the experiment first.
	Actions []Action
	// Excluded are the IDs of actions that must not be given.
	Excluded []string
	// Deferred: the decision counts when it is activated.
	Deferred  bool
	NoConsent bool // as Ask has it; what is given without the experiment is the first action
	hold      hold
}

// A Ranked is an action, and the probability that it had of being given.
type Ranked struct {
	ID          string
	Probability float64
}

// A Ranking is an answer to a RankAsk.
type Ranking struct {
	Event  string
	Action string // the ID of the one that is given
	// Ranked are the actions in the order in which they came. Of an experiment with arms that is
	// asked again, what the given arm leaves is shared out evenly among the others: which of them
	// the policy would have played is not kept.
	Ranked     []Ranked
	Propensity float64   // of the action that is given
	Expires    time.Time // when the window of its reward has passed; zero if it does not count
	ActivateBy time.Time // when it can be activated no more; zero where it counts at once
	Reason     Reason
}

// Rank gives an event one of the actions, and returns when that is durable. The same event is
// answered the same again. Where an experiment has arms, the IDs of the actions must be the names of
// those that are on, and there is nothing to exclude and no feature. An error in what is asked is a
// decl.Error that names the field.
func (e *Engine) Rank(ctx context.Context, name string, ask RankAsk) (Ranking, error) {
	x, err := e.writable(ctx, name)
	if err != nil {
		return Ranking{}, err
	}
	if ask.Event == "" {
		var id [16]byte
		if _, err := io.ReadFull(e.cfg.random, id[:]); err != nil {
			return Ranking{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		ask.Event = hex.EncodeToString(id[:])
	}
	ask.hold = e.hold(x, ask.Event)
	out, made, err := x.rank(ask, e.now())
	if err == nil && made != (given{}) {
		// What was decided is in the commit of this job, or in one before. If that has failed, it is
		// lost, and x was read again from what is durable.
		err = e.do(ctx, &job{on: x, act: func(x *served, _ *store.Commit, _ int64) error {
			if !x.has(made) {
				return fmt.Errorf("%w: the decision was lost", ErrUnavailable)
			}
			return nil
		}})
	}
	if err != nil {
		return Ranking{}, fmt.Errorf("experiment %q: %w", name, err)
	}
	return out, nil
}

// RewardEvent takes the reward of an event, and returns when it is durable. It is answered as Reward
// answers: the first one counts, and whether one came before is not told.
func (e *Engine) RewardEvent(ctx context.Context, name, event string, reward float64) (Status, error) {
	return e.ReportEvent(ctx, name, event, "", reward)
}

// ReportEvent is RewardEvent of a report with an id (Outcome.ID).
func (e *Engine) ReportEvent(ctx context.Context, name, event, id string, reward float64) (Status, error) {
	return e.reportEvent(ctx, name, event, reported{what: rewarded, id: id, reward: reward})
}

// ActivateEvent says that an event was met, and returns when that is durable: Accepted until its
// ActivateBy, and Late from then on. One that counts at once needs none.
func (e *Engine) ActivateEvent(ctx context.Context, name, event string) (Status, error) {
	return e.reportEvent(ctx, name, event, reported{what: activated})
}

func (e *Engine) reportEvent(ctx context.Context, name, event string, r reported) (Status, error) {
	x, err := e.writable(ctx, name)
	if err != nil {
		return "", err
	}
	j := &job{on: x, at: e.now(), results: make([]Result, 1)}
	if err := checkEvent(event); err != nil {
		return "", fmt.Errorf("experiment %q: %w", name, err)
	}
	if r.what == rewarded {
		if err := cmp.Or(x.inTheOpen(), x.checkID(Outcome{Report: Report{Reward: r.reward}, ID: r.id})); err != nil {
			return "", fmt.Errorf("experiment %q: %w", name, err)
		}
	}
	x.mu.Lock()
	k, err := x.event(event)
	x.mu.Unlock()
	switch {
	case err != nil:
		return "", fmt.Errorf("experiment %q: %w", name, err)
	case k.number == beyond:
		return OverLimit, nil
	case r.what == activated && k.by == 0 && j.at < k.deadline:
		return Accepted, nil
	case r.what == activated && k.by == 0:
		return Late, nil
	}
	r.ticket = k
	j.reports = []reported{r}
	if err := e.do(ctx, j); err != nil {
		return "", fmt.Errorf("experiment %q: %w", name, err)
	}
	if r.what == rewarded {
		e.count(name, j.results)
	}
	return j.results[0].Status, j.results[0].Err
}

// writable is an experiment, where this engine may write for it.
func (e *Engine) writable(ctx context.Context, name string) (*served, error) {
	x, err := e.find(name)
	switch {
	case err != nil:
		return nil, err
	case e.cfg.ReadOnly:
		return nil, ErrReadOnly
	}
	return x, ctx.Err()
}

// A given is an assignment that must be durable before it is told.
type given struct {
	unit   tag
	number int64
	epoch  epochTag
}

// has says whether an assignment is there.
func (x *served) has(g given) bool {
	u, ok := x.units[g.unit]
	return ok && u.number == g.number && x.epochs[u.epoch] == g.epoch
}

// event is the ticket of an event.
func (x *served) event(name string) (ticket, error) {
	t := tagOf(x.tags, name)
	u, ok := x.units[t]
	if !ok {
		return ticket{}, ErrEvent
	}
	return ticket{arm: int(u.arm), number: u.number, deadline: u.deadline, epoch: x.epochs[u.epoch],
		by: u.by, propensity: u.propensity, unit: t}, nil
}

func checkEvent(name string) error {
	if name == "" || len(name) > maxUnit {
		return fieldError("event", "has %d bytes, must have from 1 to %d", len(name), maxUnit)
	}
	return nil
}

func (x *served) rank(ask RankAsk, now int64) (Ranking, given, error) {
	if err := checkEvent(ask.Event); err != nil {
		return Ranking{}, given{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.debts.owe(x)
	if x.decl.Contextual != nil {
		return x.rankActions(ask, now)
	}
	return x.rankArms(ask, now)
}

// floored is what is given of n choices, of which so many are on, and the probability that it had: greedy,
// or where the floor says so a uniform one, none that is gone.
func (x *served) floored(greedy, n, on int, gone func(choice int) bool) (given int, propensity float64) {
	given = greedy
	if x.decl.Floor > 0 && x.coins.Float64() < x.decl.Floor {
		for given = x.coins.IntN(n); gone(given); {
			given = x.coins.IntN(n)
		}
	}
	most, share := propensities(x.decl.Floor, on)
	if given == greedy {
		return given, most
	}
	return given, share
}

// byShares is an arm that is drawn with the shares of all, and its own.
func byShares(shares []float64, at float64) (arm int, share float64) {
	for arm < len(shares)-1 && at >= shares[arm] {
		at -= shares[arm]
		arm++
	}
	return arm, shares[arm]
}

// propensities are those of what the policy plays and of each other of n arms or actions, with a floor.
func propensities(floor float64, n int) (most, share float64) {
	share = floor / float64(n)
	return rounded(share + 1 - floor), share
}

// rounded is a probability without the digit that a sum adds to it: 0.95, not 0.9500000000000001.
func rounded(p float64) float64 { return math.Round(p*1e15) / 1e15 }
