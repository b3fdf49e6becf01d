package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// ErrUnfinished is matched by the error of a trial that ended without an answer: an
// *UnfinishedError.
var ErrUnfinished = errors.New("the trial has no answer")

// An UnfinishedError says that the data ran out, or that the cap was reached, before the rule
// stopped. There is no answer, and what was released has been paid for.
type UnfinishedError struct {
	Arm string // whose data ran out; "" if the cap was reached
	// rewards of that arm that the rule wanted next, policy.Forever for all there will ever be
	Asked int
	Left  int // and that it had left
	Cap   int
	Plays []int // of each arm
	Spent privacy.Loss
}

// Error says what happened, and what it cost.
func (e *UnfinishedError) Error() string {
	after := fmt.Sprintf("after %d plays, before the rule stopped: no answer is given; %s",
		total(e.Plays), spent(e.Spent, total(e.Plays)))
	if e.Arm == "" {
		return fmt.Sprintf("the cap of %d plays leaves no room for the next batch, %s. If "+
			"several arms are best the rule would go on for ever", e.Cap, after)
	}
	wanted := fmt.Sprintf("%d more rewards", e.Asked)
	if e.Asked == policy.Forever {
		wanted = "more rewards than there can be"
	}
	return fmt.Sprintf("the data of arm %q ran out %s. The rule wanted %s of it, and it has %d left",
		e.Arm, after, wanted, e.Left)
}

// Is makes it match ErrUnfinished.
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// spent says what a trial that gave no answer has cost.
func spent(loss privacy.Loss, plays int) string {
	switch x := loss.Pure(); {
	case plays == 0:
		return "nothing has been spent"
	case loss.Infinite():
		return "no privacy was promised"
	case math.IsInf(x, 1):
		return fmt.Sprintf("%v has been spent on the releases so far", loss)
	default:
		return fmt.Sprintf("ε = %s has been spent on the releases so far", privacy.Up(x, 4))
	}
}

func checkLog(l logged.Log) error {
	if len(l.Names) != len(l.Rewards) || len(l.Names) < 2 {
		return fmt.Errorf("trial: the log has %d names and the rewards of %d arms, must be of "+
			"the same arms, at least 2", len(l.Names), len(l.Rewards))
	}
	return nil
}

// A Config is a trial on logged data.
type Config struct {
	Rule Rule // for as many arms as the log has
	// Log has the rewards of each arm in the order in which they are played (logged.Format shuffles
	// them unless told not to).
	Log logged.Log
	// Lo and Hi are the declared range of rewards, which must not depend on them; both 0 means
	// [0,1]. Rewards outside are clipped, and nobody counts them.
	Lo, Hi float64
	// Cap is the number of plays after which the trial is given up, 0 for none: the data end anyway.
	Cap int
	// Transcript, if set, receives the transcript: a line of JSON for each batch and each release,
	// which Replay reads.
	Transcript io.Writer
}

// A Result is what a trial leaves: all of it post-processing of releases.
type Result struct {
	Answer int   // the arm that is said to be the best
	Tau    int   // plays: participants
	Plays  []int // of each arm
	// rounds of adaptivity: how often the rule decided what to play next [Azize 2024, Remark 5.24]
	Batches  int
	Releases int
	Means    []Mean // private: from everything that was released
	Loss     privacy.Loss
}

// Run runs a trial on real data, with exact noise keyed by the operating system: each play of an
// arm takes the arm's next reward, so that a reward is used at most once, and most are never
// looked at. What is private is the rewards; which arm each row belongs to, and so how many rows
// an arm has, is public.
//
// The answer has the rule's guarantee if the rewards of an arm are independent draws of one law.
// Privacy holds for any data. Rewards are fixed-point numbers, multiples of 2^-20 of the range: the
// answer is about their rounded means, which are within 2^-21 of the range.
//
// The ledger refuses whatever would cost more than the rule's budget. A second run on the same data
// spends the budget a second time.
//
// If an arm's data run out, or at the cap, the error matches ErrUnfinished: there is no answer
// then. With any error the result has only how much was played and released, and what that has
// cost: it is spent, and another try spends it again.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := checkLog(cfg.Log); err != nil {
		return Result{}, err
	}
	if cfg.Rule.arms != len(cfg.Log.Names) {
		return Result{}, fmt.Errorf("trial: the rule is for %d arms and the log has %d",
			cfg.Rule.arms, len(cfg.Log.Names))
	}
	p, err := cfg.Rule.policy(nil) // the coins of real trials could not be replayed
	if err != nil {
		return Result{}, err
	}
	return cfg.run(ctx, p)
}

// run plays any identifier: tests give it some that cheat.
func (cfg Config) run(ctx context.Context, p identify.Identifier) (Result, error) {
	lo, hi := release.Range(cfg.Lo, cfg.Hi)
	if err := checkRange(lo, hi); err != nil {
		return Result{}, fmt.Errorf("trial: %w", err)
	}
	if cfg.Cap < 0 {
		return Result{}, fmt.Errorf("trial: cap is %d, must be at least 1, or 0 for none", cfg.Cap)
	}
	options := []privacy.Option{privacy.Covering(identify.Output)}
	if cfg.Rule.Private() {
		options = append(options, privacy.WithCap(cfg.Rule.budget))
	}
	if cfg.Transcript != nil {
		cfg.Transcript = &chain.Writer{W: cfg.Transcript}
		options = append(options, privacy.WithTranscript(cfg.Transcript))
		if err := writeHeader(cfg.Transcript, cfg.Rule, cfg.Log.Names, lo, hi, false); err != nil {
			return Result{}, err
		}
	}
	ledger := privacy.NewLedger(options...)
	cur, err := release.Real(release.Config{Arms: len(cfg.Log.Names), Lo: lo, Hi: hi,
		Mechanism: p.Mechanism(), Ledger: ledger})
	if err != nil {
		return Result{}, err
	}
	rec := newRecorder(p, len(cfg.Log.Names), cfg.Transcript)
	plays := make([]int, len(cfg.Log.Names))
	err = cfg.play(ctx, rec, cur, plays)
	out := rec.result(total(plays), plays, lo, hi, ledger.Total())
	end := endLine{End: endAnswer, Answer: out.Answer, Tau: out.Tau, Total: plays}
	if err != nil {
		end.End, end.Answer = endInterrupted, -1
		var unfinished *UnfinishedError
		if errors.As(err, &unfinished) {
			end.End = endData
			if unfinished.Arm == "" {
				end.End = endCap
			}
		}
	}
	if cfg.Transcript != nil {
		if failed := writeLine(cfg.Transcript, end); err == nil && failed != nil {
			err = fmt.Errorf("trial: after %d plays: %w; no answer is given; %s", out.Tau, failed,
				spent(out.Loss, out.Tau))
		}
	}
	if err != nil {
		return Result{Answer: -1, Tau: out.Tau, Plays: plays, Releases: out.Releases, Loss: out.Loss}, err
	}
	return out, nil
}

// play plays until the rule stops.
func (cfg Config) play(ctx context.Context, rec *recorder, cur release.Curator, plays []int) error {
	fail := func(err error) error {
		return fmt.Errorf("trial: after %d plays: %w; no answer is given; %s", total(plays), err,
			spent(cur.Ledger().Total(), total(plays)))
	}
	d := play.NewDriver(rec, cur)
	for {
		b, err := d.Next()
		if err == nil {
			err = rec.err
		}
		if err != nil {
			return fail(err)
		}
		if b == nil {
			if a := rec.Answer(); a < 0 || a >= len(plays) {
				return fail(fmt.Errorf("the rule stopped with the answer %d, must be one of %d arms",
					a, len(plays)))
			}
			return nil
		}
		if ctx.Err() != nil { // not before the rule was asked: it may have had its answer
			return fail(ctx.Err())
		}
		if n := b.Rounds(); n < 1 || b.Ask || b.Fresh {
			return fail(errors.New("the rule asks for what a trial cannot play: an empty batch, " +
				"a question or a new start"))
		} else if cfg.Cap > 0 && n > cfg.Cap-total(plays) {
			return &UnfinishedError{Cap: cfg.Cap, Plays: slices.Clone(plays), Spent: cur.Ledger().Total()}
		}
		for _, play := range b.Plays { // of a batch that cannot be finished nothing is read
			if left := len(cfg.Log.Rewards[play.Arm]) - plays[play.Arm]; play.Rounds > left {
				return &UnfinishedError{Arm: cfg.Log.Names[play.Arm], Asked: play.Rounds,
					Left: left, Plays: slices.Clone(plays), Spent: cur.Ledger().Total()}
			}
		}
		for _, play := range b.Plays {
			from := plays[play.Arm]
			for i, x := range cfg.Log.Rewards[play.Arm][from : from+play.Rounds] {
				if err := cur.Add(play.Arm, x); err != nil {
					return fail(fmt.Errorf("reward %d of arm %q: %w", from+i+1, cfg.Log.Names[play.Arm], err))
				}
			}
			plays[play.Arm] += play.Rounds
		}
		if err := d.Close(); err != nil {
			return fail(err)
		}
	}
}

// result is what the recorder knows once the rule has stopped.
func (r *recorder) result(tau int, plays []int, lo, hi float64, loss privacy.Loss) Result {
	return Result{Answer: r.Answer(), Tau: tau, Plays: plays, Batches: r.batches,
		Releases: r.releases, Means: r.means(lo, hi), Loss: loss}
}
