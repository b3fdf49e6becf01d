package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/parquetlog"
	"github.com/sotto-dp/sotto/logged"
)

type trackCommand struct {
	File         string          `arg:"" help:"${trackFile}"`
	Event        string          `help:"${trackEvent}" placeholder:"NAME"`
	UnitColumn   string          `default:"targetingKey" help:"Column of the units' names." placeholder:"NAME"`
	TimeColumn   string          `default:"timestamp" help:"${trackTime}" placeholder:"NAME"`
	IDColumn     string          `default:"id" name:"id-column" help:"${trackID}" placeholder:"NAME"`
	Separator    flags.Separator `help:"${trackSeparator}" placeholder:"CHAR"`
	DecimalComma bool            `help:"${trackComma}"`
	Wait         time.Duration   `default:"30s" help:"${rewardWait}" placeholder:"TIME"`
	asks
}

// trackTexts are help texts that are too long for their flags.
var trackTexts = kong.Vars{
	"trackFile": "The table: CSV, perhaps compressed by gzip, Parquet, or lines of JSON objects, a row an event; " +
		"- is standard input.",
	"trackEvent": "Name of the event that each row is; that in the column name if it is not given.",
	"trackTime": "Column of when it happened, if there is one: RFC 3339, 2026-01-31 09:00:00 in UTC, or a whole number " +
		"of seconds, ms, µs or ns since 1970, by its size.",
	"trackID": "Column of the events' ids, if there is one. Without, rows that are equal count once where all events " +
		"of a unit count.",
	"trackSeparator": "What divides the cells of CSV: , or ; or | or tab; , if not given.",
	"trackComma":     "Numbers of CSV have a decimal comma: 0,5 is a half.",
	"track": `Sends each row as an event, with its columns of numbers as fields. An event is a report on the newest
open decision of its unit in each experiment that declares it (reward: {event: checkout}), if it happened
after the decision. What does not belong to an open decision counts nowhere, so you can send whole tables,
and run it again whenever it did not end: nothing counts twice for a decision. Where a unit can be assigned again,
give times: an event without one counts for whatever decision is open. Texts in other columns stay here.

Examples:
  sotto track orders.parquet --event checkout --unit-column visitor
  sotto track events.csv --time-column at --id-column order
  sotto track signups.jsonl --event signup --json`,
}

// A row of a table, as far as it is read.
type trackRow struct {
	line                 int
	name, unit, id, time string
	fields               map[string]any
	content              [sha256.Size]byte // of the whole row
}

func (c *trackCommand) Run(ctx context.Context, s streams) error {
	if c.Wait < 0 {
		return usagef("--wait is %v, must not be negative", c.Wait)
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	in, err := openInput(c.File, s)
	if err != nil {
		return err
	}
	defer in.Close()
	var batch []client.Event
	var lines []int // of each
	sent := 0
	send := func() error {
		taken, err := c.send(ctx, to, batch)
		if err != nil {
			err = asked(fmt.Errorf("nothing from line %d on was taken, run it again: %w", lines[taken], err))
		}
		sent, batch, lines = sent+taken, batch[:0], lines[:0] // what failed is not sent again
		return err
	}
	err = c.rows(in, func(r trackRow) error {
		v, err := c.event(r)
		if err != nil {
			return usagef("line %d: %w: nothing from it on is sent", r.line, err)
		}
		lines = append(lines, r.line)
		if batch = append(batch, v); len(batch) == trackBatch {
			return send()
		}
		return nil
	})
	if err := errors.Join(err, send()); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if c.JSON {
		return printJSON(s, map[string]int{"events": sent})
	}
	_, err = fmt.Fprintf(s.out, "%d events were taken\n", sent)
	return err
}

// trackBatch is how many events are one request, which has 1 MiB at most.
const trackBatch = 200

// send sends events, in halves if they are too large for one request, and says how many were taken, from the first on.
func (c *trackCommand) send(ctx context.Context, to *client.Client, batch []client.Event) (taken int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	err = persist(ctx, c.Wait, func() error { return to.Track(ctx, batch...) })
	var refused *client.Error
	if half := len(batch) / 2; half > 0 && errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge {
		if taken, err = c.send(ctx, to, batch[:half]); err != nil {
			return taken, err
		}
		taken, err = c.send(ctx, to, batch[half:])
		return half + taken, err
	}
	if err != nil {
		return 0, err
	}
	return len(batch), nil
}

// rows calls each for the rows of a table of any kind.
func (c *trackCommand) rows(in io.Reader, each func(trackRow) error) error {
	b := bufio.NewReader(in)
	if begin, _ := b.Peek(1); string(begin) == "{" {
		if c.Separator != "" || c.DecimalComma {
			return usagef("the file has lines of JSON: leave --separator and --decimal-comma out")
		}
		return c.lines(b, each)
	}
	d := logged.Dialect{Separator: string(c.Separator), DecimalComma: c.DecimalComma}
	csv, err := parquetlog.AsCSV(b, d)
	if err != nil {
		return usage(err)
	}
	t, err := d.NewTable(csv)
	if err != nil {
		return usage(err)
	}
	return c.cells(t, each)
}

// cells reads a table of cells.
func (c *trackCommand) cells(t *logged.Table, each func(trackRow) error) error {
	needed := []string{c.UnitColumn}
	if c.Event == "" {
		needed = append(needed, "name")
	}
	for _, name := range needed {
		if _, err := t.Column(name); err != nil {
			return usage(err)
		}
	}
	columns := t.Columns()
	for {
		err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return usagef("%w: nothing from it on is sent", err)
		}
		r, all := trackRow{line: t.Line(), fields: map[string]any{}}, sha256.New()
		for i, name := range columns {
			text, to := t.Cell(i), c.place(&r, name)
			value := to == nil && name == valueField
			if t.Missing(i) && !(value && strings.EqualFold(strings.TrimSpace(text), "nan")) {
				fmt.Fprint(all, "-\n")
				continue
			}
			fmt.Fprintf(all, "%q\n", text)
			if to != nil {
				if strings.TrimSpace(text) != text || strings.ContainsFunc(text, unicode.IsControl) {
					return usagef("%w: nothing from it on is sent",
						t.Errorf(i, "must have no spaces around it and no control characters"))
				}
				*to = strings.Clone(text)
				continue
			}
			if x, err := t.Number(i); err == nil {
				r.fields[name] = x
			} else if value {
				return usagef("%w: nothing from it on is sent", err)
			}
		}
		all.Sum(r.content[:0])
		if err := each(r); err != nil {
			return err
		}
	}
}

// place is where the cell of a column goes that is no field; nil of a field.
func (c *trackCommand) place(r *trackRow, column string) *string {
	switch column {
	case c.UnitColumn:
		return &r.unit
	case c.TimeColumn:
		return &r.time
	case c.IDColumn:
		return &r.id
	case "name":
		return &r.name
	}
	return nil
}

// valueField is the column that is an event's value: without one it is 1, which nothing else may become.
const valueField = "value"

// maxTrackLine is the longest line of JSON.
const maxTrackLine = 64 << 10

// lines reads lines of JSON.
func (c *trackCommand) lines(in io.Reader, each func(trackRow) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxTrackLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var of map[string]any
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if d.Decode(&of) != nil || d.More() {
			return usagef("line %d is no JSON object, must be one: nothing from it on is sent", n)
		}
		r := trackRow{line: n, fields: map[string]any{}}
		whole, err := json.Marshal(of) // in the order of its keys
		if err != nil {
			return err
		}
		r.content = sha256.Sum256(whole)
		for name, x := range of {
			to := c.place(&r, name)
			switch x := x.(type) {
			case string:
				if to != nil {
					*to = x
				}
			case json.Number:
				if to != nil {
					*to = x.String()
				} else if f, err := x.Float64(); err == nil {
					r.fields[name] = f
				}
			case bool:
				if to == nil {
					r.fields[name] = x
				}
			}
			if _, read := r.fields[name]; name == valueField && to == nil && x != nil && !read {
				return usagef("line %d, column %s is no finite number, must be one: nothing from it on is sent", n, name)
			}
		}
		if err := each(r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return usagef("line %d: is too long, must have at most %d bytes: nothing from it on is sent", n+1, maxTrackLine)
	}
	return nil
}

// event is a row as it is sent. No error has a cell.
func (c *trackCommand) event(r trackRow) (v client.Event, err error) {
	v = client.Event{Name: c.Event, Unit: r.unit, ID: r.id, Fields: r.fields}
	if v.Name == "" {
		v.Name = r.name
	}
	for _, name := range []string{"name", "targetingKey", "id", "timestamp"} {
		delete(v.Fields, name) // columns of these names that are something else
	}
	switch {
	case v.Unit == "":
		return v, fmt.Errorf("the unit is missing, must be in the column %q", c.UnitColumn)
	case v.Name == "":
		return v, errors.New("the name of the event is missing: give --event, or a column name")
	case v.ID == "":
		v.ID = "row " + base64.RawURLEncoding.EncodeToString(r.content[:16])
	}
	if r.time != "" {
		if v.At, err = trackTime(r.time); err != nil {
			return v, err
		}
	}
	return v, v.Check()
}

// trackTime reads a time.
func trackTime(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, errors.New("its time must be one such as 2026-01-31T09:00:00Z, or a whole number since 1970")
	}
	each := int64(1) // of them are a second: as many as have the year 5138 not begun
	for each < 1e9 && n/each >= 1e11 {
		each *= 1000
	}
	return time.Unix(n/each, n%each*(1e9/each)), nil
}
