package serve

import (
	"iter"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// configOf is a play of what was declared, but for its curators and its epoch, and how its rule says its
// answer, nil if it gives none.
func configOf(x *Experiment, coins policy.Coins) (cfg play.Config, answer func() int, err error) {
	cfg = play.Config{Lo: x.Lo, Hi: x.Hi, Default: x.Default, Aggregate: play.Aggregate(x.Aggregate),
		Window: x.Window.Milliseconds()}
	if cfg.Ledger, err = caps(x); err != nil {
		return cfg, nil, err
	}
	if x.Contextual != nil {
		cfg.Horizon = int(x.Horizon)
		if cfg.Contexts, err = x.NewContextual(coins); err != nil {
			return cfg, nil, err
		}
		cfg.Rules, err = x.PlayRules()
		return cfg, nil, err
	}
	cfg.Apart = x.Apart()
	cfg.Arms, cfg.Drop, cfg.Gathering = x.FirstArms(), x.Missing == decl.MissingDrop, x.Gathering()
	if cfg.Policy, err = x.NewPolicy(coins); err != nil {
		return cfg, nil, err
	}
	if rule, ok := cfg.Policy.(identify.Identifier); ok {
		answer = rule.Answer
	}
	if cfg.Take, err = x.Take(); err != nil {
		return cfg, nil, err
	}
	cfg.Ratios = x.PlayRatios()
	if cfg.Cells, err = x.PlayCells(); err != nil {
		return cfg, nil, err
	}
	cfg.Metrics, err = x.PlayMetrics()
	return cfg, answer, err
}

// caps has a ledger refuse what a unit's one assignment may not cost.
func caps(decl *Experiment) ([]privacy.Option, error) {
	each, err := decl.EachTotal()
	if err != nil {
		return nil, err
	}
	switch each.(type) {
	case privacy.Pure, privacy.ZCDP:
		return []privacy.Option{privacy.WithCap(each)}, nil
	}
	return nil, nil
}

func (x *served) config(e *Engine, epoch play.Epoch) (cfg play.Config, err error) {
	coins := x.rec.Coins
	if x.decl.Contextual != nil { // its draws are no state: others in each play
		for i, b := range epoch {
			coins[i] ^= b
		}
	}
	cfg, x.answer, err = configOf(&x.decl, coinsOf(coins))
	cfg.Curator, cfg.Vectors, cfg.Epoch = e.cfg.Curator, e.cfg.VectorCurator, epoch
	return cfg, err
}

// begin makes the play at its beginning, and restored from what is stored and the transcript's lines that
// are play's.
func (x *served) begin(e *Engine, epoch play.Epoch) (*play.Live, error) {
	cfg, err := x.config(e, epoch)
	if err != nil {
		return nil, err
	}
	return play.New(cfg)
}

func (x *served) restored(e *Engine, epoch play.Epoch, from store.Stored,
	lines iter.Seq2[[]byte, error]) (*play.Live, error) {
	cfg, err := x.config(e, epoch)
	if err != nil {
		return nil, err
	}
	state := play.State{Lines: from.Lines}
	if state.Terms, err = play.TermsOf(cfg); err != nil {
		return nil, err
	}
	if state.Arms, err = queuesOf(from, len(x.board.queues), cfg.Cells.Count, x.decl.Contextual != nil); err != nil {
		return nil, err
	}
	x.unsee(state.Arms)
	if err = addTotals(state.Arms, from.Totals, 1+len(x.decl.Metrics)); err != nil {
		return nil, err
	}
	if state.Events, err = x.events.restored(from.Events, len(cfg.Rules)); err != nil {
		return nil, err
	}
	out, err := readPlan(from.Plan)
	if err != nil {
		return nil, err
	}
	state.Kept = out.Kept
	for _, p := range out.Plays {
		state.Batch = append(state.Batch, policy.Play(p))
	}
	return play.Restore(cfg, lines, state)
}
