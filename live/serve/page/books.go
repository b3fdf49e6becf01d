package page

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// linesOfPage is how many lines of the transcript a page of the ledger has.
const linesOfPage = 50

// A Ledger is a page of what the releases have cost.
type Ledger struct {
	Frame
	Name    string
	View    *View
	Entries []LedgerEntry
	// Before and After are the lines at which the pages before and after begin, 0 if there is none.
	Before, After int
}

// A LedgerEntry is what one sum has cost each decision that is in it, or says that a session opened none.
type LedgerEntry struct {
	Line      int // of the transcript
	At        time.Time
	Of        string // rewards, or the name of a metric or of a rule
	Arm       string // empty where there are contexts
	Slot      int
	N         int // decisions that are in it
	Mechanism string
	Scale     float64 // of the noise, for rewards mapped to [0,1]
	Cost      string
	Sum       *float64 // that was released, noise included, in units of what is summed; of arms alone
}

// prices are what mechanisms cost, which takes a while to find.
type prices map[privacy.Mechanism]price

type price struct {
	name, cost string
	scale      float64
}

func (p prices) of(m privacy.Mechanism) price {
	out, ok := p[m]
	if !ok {
		l := privacy.NewLedger()
		_ = l.Record(0, m) // it has no cap
		e := l.Entries()[0]
		var kind struct{ Mechanism string }
		if text, err := json.Marshal(m); err == nil {
			_ = json.Unmarshal(text, &kind)
		}
		cost := fmt.Sprint(e.Loss)
		if m.Continual() {
			cost += " for all lines of the slot together"
		}
		out = price{kind.Mechanism, cost, e.Scale}
		p[m] = out
	}
	return out
}

// entries are those of a line: of each sum that was released, or of one that was not opened.
func (p prices) entries(b serve.Batch, x *serve.Experiment) (out []LedgerEntry) {
	for i, one := range b.Released {
		out = append(out, p.entry(b, one, x))
		if b.Cells != nil {
			out[i].Arm += ", " + b.Cells[i]
		}
		if x.Contextual == nil {
			out[i].Sum = sumOf(one, b.Sums[i], x)
		}
	}
	if c := b.Cohort; c != nil && c.Missing != "" {
		out = append(out, LedgerEntry{Line: b.Number, At: b.Closed.UTC(), Of: "rewards", Arm: x.Arms[c.Arm].Name,
			N: c.End - c.Start, Mechanism: "no sum: " + c.Missing, Cost: "they count as missing"})
	}
	return out
}

// sumOf is a sum that is mapped to [0,1], of rewards or of a metric, in its units.
func sumOf(r serve.Booked, sum float64, x *serve.Experiment) *float64 {
	lo, hi := x.Range()
	for _, m := range x.Metrics {
		if m.Name == r.Metric {
			lo, hi = m.Range()
		}
	}
	sum = float64(lo*float64(r.N)) + float64((hi-lo)*sum)
	return &sum
}

func (p prices) entry(b serve.Batch, r serve.Booked, x *serve.Experiment) LedgerEntry {
	price := p.of(r.Mechanism)
	of := r.Metric
	switch {
	case of == "" && x.Contextual.Joint():
		of = "contexts and rewards"
	case of == "":
		of = "rewards"
	}
	arm := ""
	if x.Contextual == nil {
		arm = x.Arms[r.Arm].Name
	}
	return LedgerEntry{Line: b.Number, At: b.Closed.UTC(), Of: of, Arm: arm,
		Slot: r.Slot, N: r.N,
		Mechanism: price.name, Scale: price.scale, Cost: price.cost}
}

// Ledger shows the ledger's entries, from a line (?from=) of the transcript on.
func (p *Pages) Ledger(w http.ResponseWriter, r *http.Request) error {
	name, from := r.PathValue("name"), 1
	if text := r.URL.Query().Get("from"); text != "" {
		var err error
		if from, err = strconv.Atoi(text); err != nil || from < 1 {
			return wrong("from", "from must be a whole number, at least 1")
		}
	}
	s, err := p.snapshot(r.Context(), name)
	if err != nil {
		return err
	}
	info, err := p.cfg.Engine.Get(r.Context(), name)
	if err != nil {
		return err
	}
	batches, err := p.cfg.Engine.Batches(r.Context(), name, from)
	if err != nil {
		return err
	}
	out := Ledger{Frame: p.frame(r, "Ledger of "+name), Name: name, View: s.view, Entries: []LedgerEntry{}}
	if from > 1 {
		out.Before = max(1, from-linesOfPage)
	}
	price := prices{}
	for b, err := range batches {
		if err != nil {
			return err
		}
		if b.Number >= from+linesOfPage {
			out.After = from + linesOfPage
			break
		}
		out.Entries = append(out.Entries, price.entries(b, &info.Experiment)...)
	}
	p.write(w, http.StatusOK, "ledger.html", out)
	return nil
}

// lastEntries is how many entries of the ledger the page of an experiment has.
const lastEntries = 10

// entriesAtEnd are the last entries of an experiment's ledger, the newest first.
func (p *Pages) entriesAtEnd(ctx context.Context, info serve.Info) ([]LedgerEntry, error) {
	batches, err := p.cfg.Engine.Batches(ctx, info.Experiment.Name, max(1, info.Lines-lastEntries))
	if err != nil {
		return nil, err
	}
	var out []LedgerEntry
	price := prices{}
	for b, err := range batches {
		if errors.Is(err, serve.ErrTranscript) { // the page says so
			break
		} else if err != nil {
			return nil, err
		}
		out = append(out, price.entries(b, &info.Experiment)...)
	}
	slices.Reverse(out)
	return out[:min(len(out), lastEntries)], nil
}

// lastRelease is when the last release was made that is among the last lines; nil if there is none.
func lastRelease(ctx context.Context, e *serve.Engine, info serve.Info) (last *time.Time, err error) {
	batches, err := e.Batches(ctx, info.Experiment.Name, max(1, info.Lines-lastEntries))
	if err != nil {
		return nil, err
	}
	for b, err := range batches {
		if errors.Is(err, serve.ErrTranscript) { // the page says so
			break
		} else if err != nil {
			return nil, err
		}
		if len(b.Released) > 0 {
			at := b.Closed.UTC()
			last = &at
		}
	}
	return last, nil
}

// file says that what follows is a file.
func file(w http.ResponseWriter, kind, name string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// Transcript is the transcript as a file: lines of JSON.
func (p *Pages) Transcript(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	lines, err := p.cfg.Engine.Transcript(r.Context(), name)
	if err != nil {
		return err
	}
	file(w, "application/jsonl", name+".jsonl")
	begun := false
	for line, err := range lines {
		if err != nil && !begun {
			w.Header().Del("Content-Disposition")
			return err
		}
		if err == nil {
			begun = true
			_, err = w.Write(line)
		}
		if err != nil {
			return p.broken(err)
		}
	}
	return nil
}

// Model is what was learnt of contexts as a file, which decides without a request.
func (p *Pages) Model(w http.ResponseWriter, r *http.Request) error {
	m, err := p.cfg.Engine.Model(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file(w, "application/json", m.Experiment+"-model.json")
	_, err = w.Write(append(text, '\n'))
	return err
}

// broken breaks an answer off that has begun: what came is not taken for the whole.
func (p *Pages) broken(err error) error {
	p.cfg.Log.Error("an answer broke off", "error", err)
	return http.ErrAbortHandler
}

// table writes a file of CSV.
func (p *Pages) table(w http.ResponseWriter, name string, head []string,
	rows func(row func(...any)) error) error {
	file(w, "text/csv; charset=utf-8", name+".csv")
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return p.broken(err)
	}
	err := rows(func(cells ...any) {
		row := make([]string, len(cells))
		for i, c := range cells {
			switch c := c.(type) {
			case time.Time:
				if !c.IsZero() {
					row[i] = c.UTC().Format(time.RFC3339Nano)
				}
			case string:
				row[i] = harmless(c)
			case *float64:
				if c != nil {
					row[i] = fmt.Sprint(*c)
				}
			default:
				row[i] = fmt.Sprint(c)
			}
		}
		_ = out.Write(row) // the error stays, see below
	})
	if out.Flush(); err == nil {
		err = out.Error()
	}
	if err != nil {
		return p.broken(err)
	}
	return nil
}

// harmless is a text that no spreadsheet takes for a formula: one that begins as they do has a ' before
// it, which spreadsheets read as "this is text". Numbers are no texts, and stay what they are.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Hours are the decisions of each hour of UTC and arm: hours without any have no row.
func (p *Pages) Hours(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	info, err := p.cfg.Engine.Get(r.Context(), name)
	if err != nil {
		return err
	}
	hours, err := p.cfg.Engine.Hours(r.Context(), name)
	if err != nil {
		return err
	}
	queues := queuesOf(info)
	return p.table(w, name+"-hours", []string{"hour", "arm", "decisions"}, func(row func(...any)) error {
		for _, h := range hours {
			for a, n := range h.Decisions {
				row(h.From, queues[a].name, n)
			}
		}
		return nil
	})
}

// book is an experiment with all its batches.
func (p *Pages) book(ctx context.Context, name string) (info serve.Info,
	batches iter.Seq2[serve.Batch, error], err error) {
	if info, err = p.cfg.Engine.Get(ctx, name); err != nil {
		return info, nil, err
	}
	batches, err = p.cfg.Engine.Batches(ctx, name, 1)
	return info, batches, err
}

// LedgerFile is all entries of the ledger.
func (p *Pages) LedgerFile(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	info, batches, err := p.book(r.Context(), name)
	if err != nil {
		return err
	}
	head := []string{"line", "at", "of", "arm", "slot", "n", "mechanism", "scale", "cost", "sum"}
	return p.table(w, name+"-ledger", head, func(row func(...any)) error {
		price := prices{}
		for b, err := range batches {
			if err != nil {
				return err
			}
			for _, e := range price.entries(b, &info.Experiment) {
				row(e.Line, e.At, e.Of, e.Arm, e.Slot, e.N, e.Mechanism, e.Scale, e.Cost, e.Sum)
			}
		}
		return nil
	})
}

// BatchFile is the journal of batches: a row for each line of the transcript that is one, when it
// was opened and closed, and what was played of each arm, or is released ahead of a batch, and one for
// what is open, with what it waits for and the decisions that no release has.
func (p *Pages) BatchFile(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	info, batches, err := p.book(r.Context(), name)
	if err != nil {
		return err
	}
	head := []string{"line", "what", "opened", "closed", "waits_for", "until", "released"}
	queues := queuesOf(info)
	for _, q := range queues {
		head = append(head, "n "+q.name)
	}
	return p.table(w, name+"-batches", head, func(row func(...any)) error {
		last := serve.Batch{Number: 0}
		for b, err := range batches {
			if err != nil {
				return err
			}
			if b.Number >= info.Lines { // it was written since
				break
			}
			what, n, released := "batch", make([]any, len(queues)), 0
			for a := range n {
				n[a] = 0
			}
			fresh := map[int]int{} // by arm
			for _, one := range b.Released {
				if one.Metric == "" {
					fresh[one.Arm] += one.N // of all cells
					released += one.N
				}
			}
			for _, one := range b.Plays {
				got, ok := fresh[one.Arm]
				switch {
				case info.Experiment.Split(): // whose rounds are what is to be expected
					n[one.Arm] = n[one.Arm].(int) + got
				case ok || !one.Released: // else it was there ahead
					n[one.Arm] = n[one.Arm].(int) + one.Rounds
				}
				delete(fresh, one.Arm)
			}
			for arm, ahead := range fresh {
				n[arm] = n[arm].(int) + ahead
			}
			switch {
			case b.Rest:
				what = "the rest"
			case len(b.Plays) == 0 && len(b.Released) > 0:
				what = "ahead"
			case b.Off >= 0:
				what = "off " + info.Experiment.Arms[b.Off].Name
			case b.Change != nil && len(b.Change.Add) > 0:
				what = "added " + b.Change.Add[0].Name
			case b.Change != nil:
				what = "change"
			case b.Cohort != nil && b.Cohort.Missing != "":
				what = "no sum of " + info.Experiment.Arms[b.Cohort.Arm].Name
			case b.Cohort != nil:
				what = "session of " + info.Experiment.Arms[b.Cohort.Arm].Name
			}
			row(append([]any{b.Number, what, b.Opened, b.Closed, "", "", released}, n...)...)
			last = b
		}
		if s, _ := stateOf(info); s == Collecting || s == Awaiting || s == Paused || s == Stopping {
			n := make([]any, len(queues))
			for i, q := range queues {
				n[i] = q.issued - q.published
			}
			row(append([]any{"", "open", last.Closed, "", info.Wait, info.Until, ""}, n...)...)
		}
		return nil
	})
}
