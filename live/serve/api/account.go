package api

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// An accountJSON is what all experiments can cost one person. Amounts are in the currency of the cap, null
// where there is no bound.
type accountJSON struct {
	Cap         *capJSON           `json:"cap"`
	At          time.Time          `json:"at"`
	Most        *float64           `json:"most"`
	Left        float64            `json:"left"`
	Over        *float64           `json:"over"`
	Experiments []accountEntryJSON `json:"experiments"`
	Drafts      []accountEntryJSON `json:"drafts"`
}

type capJSON struct {
	Text   string `json:"text"`
	Unit   string `json:"unit"`
	Budget string `json:"budget"`
	Days   int    `json:"days"`
}

type accountEntryJSON struct {
	Name   string      `json:"name"`
	State  serve.State `json:"state"`
	Budget string      `json:"budget"`
	Costs  *float64    `json:"costs"`
	From   *time.Time  `json:"from"`
	Until  *time.Time  `json:"until"`
	Layer  *layerJSON  `json:"layer,omitempty"`
	Cap    string      `json:"cap,omitempty"`
	Why    string      `json:"why,omitempty"`
}

type layerJSON struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

func (f *front) account(_ http.ResponseWriter, r *http.Request) (any, error) {
	a, err := f.Engine.Account(r.Context())
	if err != nil {
		return nil, err
	}
	out := accountJSON{At: a.At, Experiments: entriesOf(a.Entries), Drafts: entriesOf(a.Drafts)}
	if a.Cap != (serve.PersonCap{}) {
		out.Cap = &capJSON{a.Cap.String(), a.Cap.Unit, fmt.Sprint(a.Cap.Budget), a.Cap.Days}
		out.Most, out.Left, out.Over = bounded(a.Most), a.Left(), bounded(a.Over())
	}
	return out, nil
}

func entriesOf(all []serve.AccountEntry) []accountEntryJSON {
	out := make([]accountEntryJSON, len(all))
	for i, e := range all {
		out[i] = accountEntryJSON{Name: e.Experiment, State: e.State, Budget: fmt.Sprint(e.Budget), Costs: bounded(e.Costs),
			From: known(e.From), Until: known(e.Until), Cap: e.Cap, Why: e.Why}
		if y := e.Layer; y.Name != "" {
			out[i].Layer = &layerJSON{y.Name, y.From, y.To}
		}
	}
	return out
}

// known is a time as JSON has it, nil for none.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// bounded is a number as JSON has it, nil for infinity.
func bounded(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}
