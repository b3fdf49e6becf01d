package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ErrJournal is matched by the error for a journal that would undo what a ledger was made with: its
// cap, or what it has charged.
var ErrJournal = errors.New("journal does not fit the ledger")

// ledgerJSON is a journal: what was released, not what it cost. Who reads it prices it anew.
type ledgerJSON struct {
	Cap     json.RawMessage `json:"cap"`
	Entries []entryJSON     `json:"entries"`
}

type entryJSON struct {
	Slot      int             `json:"slot"`
	Mechanism json.RawMessage `json:"mechanism"`
	Releases  int             `json:"releases"`
}

// MarshalJSON writes the cap and every entry as it happened, without its price.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	limit, err := json.Marshal(l.Cap())
	if err != nil {
		return nil, fmt.Errorf("ledger: cap: %w", err)
	}
	out := ledgerJSON{Cap: limit, Entries: []entryJSON{}}
	for _, e := range l.Entries() {
		m, err := json.Marshal(e.Mechanism)
		if err != nil {
			return nil, fmt.Errorf("ledger: slot %d: %w", e.Slot, err)
		}
		out.Entries = append(out.Entries, entryJSON{e.Slot, m, e.Releases})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes into a new ledger, whose options stay: its cap, its
// transcript, what it covers. A ledger without a cap takes the journal's. In one that has a cap, a
// journal is refused that has none, counts another currency, or allowed less: the cap was promised
// to those whose records were spent. So is one for a ledger that has entries, which would be
// forgotten. These errors match ErrJournal, and leave the ledger as it was.
//
// A slot of a continual mechanism is not gone on with: its noise, and the last sum that it is in,
// were another process's. Nor is a threshold that was asked about. That is refused with ErrPrefix;
// a transcript has what it takes (Restore).
//
// Prices are computed anew, and mechanisms that this version does not know cost ∞. What was
// released stays recorded even if it exceeds the cap; then nothing more is admitted.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var in ledgerJSON
	if err := strict(data, &in); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if len(l.cells) > 0 || len(l.mixed) > 0 {
		return fmt.Errorf("ledger: it has entries already, which the journal would replace: read "+
			"it into a new one: %w", ErrJournal)
	}
	fresh := Ledger{base: l.base + int32(len(l.accounts)), cap: l.cap, limit: l.limit,
		transcript: l.transcript, covers: l.covers}
	var promised Budget = None{}
	if in.Cap != nil {
		var err error
		if promised, err = UnmarshalBudget(in.Cap); err != nil {
			return fmt.Errorf("ledger: cap: %w", err)
		}
	}
	if l.cap == nil {
		WithCap(promised)(&fresh)
	} else if err := l.keeps(promised); err != nil {
		return err
	}
	for i, e := range in.Entries {
		if e.Slot < 0 {
			return fmt.Errorf("ledger: entry %d: %w", i, negative(e.Slot))
		}
		if e.Releases < 1 || e.Releases > min(1<<41, math.MaxInt) {
			return fmt.Errorf("ledger: entry %d: releases is %d, must be between 1 and 2^41", i, e.Releases)
		}
		m, err := UnmarshalMechanism(e.Mechanism)
		if err != nil {
			return fmt.Errorf("ledger: entry %d: %w", i, err)
		}
		at := fresh.account(m)
		fresh.book(e.Slot, at, e.Releases)
		if m.Continual() {
			fresh.remember(e.Slot, at, running{n: closed, sum: math.NaN()})
		}
	}
	fresh.over = fresh.cap != nil && !fresh.inside()
	*l = fresh
	return nil
}

// keeps says whether a journal with this cap may be read into the ledger, which has one.
func (l *Ledger) keeps(promised Budget) error {
	if _, none := promised.(None); none {
		return fmt.Errorf("ledger: the journal has no cap and the ledger's is %v: it is not this "+
			"ledger's: %w", l.cap, ErrJournal)
	}
	if !sameCurrency(promised, l.cap) || !l.limit.within(limitOf(promised)) {
		return fmt.Errorf("ledger: the journal's cap is %v and the ledger's is %v, must be "+
			"the same, or a smaller one in the same currency: %w",
			promised, l.cap, ErrJournal)
	}
	return nil
}
