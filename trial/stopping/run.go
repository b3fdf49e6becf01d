package stopping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// ErrUnfinished is matched by the error of a rule that did not stop: an *UnfinishedError.
var ErrUnfinished = errors.New("the rule has not stopped")

// An UnfinishedError says that the data ended, or that the cap was reached, before the rule stopped.
// There is no estimate, and the answers to the questions, all of them no, have been paid for.
type UnfinishedError struct {
	Samples int  // how many were seen
	Capped  bool // by the cap, not by the end of the data
	Spent   privacy.Loss
}

// Error says what happened, and what it cost.
func (e *UnfinishedError) Error() string {
	if e.Capped {
		return fmt.Sprintf("the cap of %d samples was reached before the rule stopped: no "+
			"estimate is released; %s. "+
			"The mean is too near 0 for so few samples, or it is 0: then the rule would go on "+
			"for ever", e.Samples, spent(e.Spent))
	}
	return fmt.Sprintf("the data ended after %d samples, before the rule stopped: no estimate is "+
		"released; %s", e.Samples, spent(e.Spent))
}

// spent says what a rule that gave no estimate has cost.
func spent(loss privacy.Loss) string {
	switch x := loss.Pure(); {
	case math.IsInf(x, 1):
		return "no privacy was promised"
	case x > 0:
		return fmt.Sprintf("ε = %s, the half for the questions, has been spent on their answers",
			privacy.Up(x, 4))
	}
	return "nothing has been spent"
}

// Is makes it match ErrUnfinished.
func (e *UnfinishedError) Is(target error) bool { return target == ErrUnfinished }

// Options of Run. The zero value has none.
type Options struct {
	// Cap is the number of samples after which the rule gives up, 0 for none. On samples of mean 0
	// no rule may ever stop.
	Cap int
	// Ledger, if set, is where releases are recorded: one with a cap, or a transcript.
	Ledger *privacy.Ledger
}

// A Result is what a rule returned.
type Result struct {
	Estimate  float64 // of the mean
	Samples   int
	Questions int // answered
	// Clipped is how many samples were outside [−R,R]. It is counted in simulations only: of real
	// data it would be a release.
	Clipped int
	Loss    privacy.Loss
}

// Run runs the rule on real data, with exact noise keyed by the operating system. Samples outside
// [−R,R] are clipped, and the estimate is then that of the clipped law's mean; their number is not
// counted. A sample that is NaN counts as −R: to refuse it would tell of it. The estimate is right
// for independent samples of one law, in this order (logged.Format shuffles unless told not to): of
// sorted ones only the beginning is seen. Privacy holds for any samples.
//
// Samples are fixed-point numbers, multiples of 2^-19 R, and rounding adds 2^-20 R to the rule's
// Hoeffding bound. So means below (1+1/α)·2^-20 R are never told from 0.
func Run(ctx context.Context, rule Rule, samples []float64, o Options) (Result, error) {
	rule, err := rule.exact()
	if err != nil {
		return Result{}, err
	}
	cur, err := release.Real(release.Config{Arms: 1, Lo: -rule.r, Hi: rule.r,
		Mechanism: rule.Mechanism(), Ledger: o.Ledger})
	if err != nil {
		return Result{}, err
	}
	return run(ctx, rule, cur, o.Cap, func(n int) (int, error) {
		for i := range n {
			if i == len(samples) {
				return i, io.EOF
			}
			if i&0xffff == 0xffff && ctx.Err() != nil {
				return i, ctx.Err()
			}
			if err := cur.Add(0, samples[i]); err != nil {
				return i, err
			}
		}
		samples = samples[n:]
		return n, nil
	})
}

// run lets the rule ask a curator; read puts n samples into its slot, and says how many it had if
// there were fewer.
func run(ctx context.Context, rule Rule, cur release.Curator, limit int,
	read func(n int) (int, error)) (Result, error) {
	if limit < 0 {
		return Result{}, fmt.Errorf("%s: cap is %d, must be at least 1, or 0 for none", rule.name, limit)
	}
	p := &sampler{rule: rule}
	d := play.NewDriver(p, cur)
	var out Result
	for {
		b, err := d.Next()
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", rule.name, err)
		}
		if b == nil {
			out.Estimate, out.Loss = p.estimate, cur.Ledger().Total()
			return out, nil
		}
		if out.Questions&0xffff == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		n := b.Plays[0].Rounds
		capped := limit > 0 && n > limit-out.Samples
		if capped { // read what there is, but ask about nothing: the next question comes after more
			n = limit - out.Samples
		}
		had, err := read(n)
		out.Samples += had
		if capped && err == nil || errors.Is(err, io.EOF) {
			return Result{}, &UnfinishedError{Samples: out.Samples, Capped: err == nil,
				Spent: cur.Ledger().Total()}
		}
		if err != nil {
			err = fmt.Errorf("%s: sample %d: %w", rule.name, out.Samples+1, err)
			if loss := cur.Ledger().Total(); loss.Pure() > 0 && rule.private {
				err = fmt.Errorf("%w; no estimate is released; %s", err, spent(loss))
			}
			return Result{}, err
		}
		if err := d.Close(); err != nil {
			return Result{}, fmt.Errorf("%s: %w", rule.name, err)
		}
		out.Questions++
	}
}
