// Package compat reads the requests of other people's clients, a file for each protocol, and has the
// words in which their own servers answer. It decides nothing: what a body reports becomes events
// (serve.Event), which count as those of POST /v1/track do.
//
// What is read is judged by its form alone, whole or not at all. An error is a keyed.Error, which names
// the field and has nothing of its value.
package compat

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// Refused is a refusal in the words of the server whose path it is, and its status; ok is false if the path
// is nobody else's.
func Refused(path string, status int, field, detail string) (answer any, as int, ok bool) {
	switch {
	case InAddress(path):
		return GrowthBookError{status, detail}, status, true
	case path == SegmentPath:
		if status == http.StatusRequestEntityTooLarge { // as theirs
			status = http.StatusBadRequest
		}
		return SegmentAnswer{Message: detail, Field: field}, status, true
	}
	if isGOFF(path) {
		return goffError{detail, field}, status, true
	}
	return nil, 0, false
}

// InAddress says whether the clients of a path have their keys in its address, also those that name units.
// Keys that only decide can be there: they read plans, which are public, and report exposures.
func InAddress(path string) bool {
	return path == GrowthBookTrack || strings.HasPrefix(path, GrowthBookFeatures)
}

func wrong(field, format string, args ...any) error {
	return &keyed.Error{Field: field, Err: fmt.Errorf(format, args...)}
}

// at places what is wrong with one of several.
func at(place string, err error) error {
	var of *keyed.Error
	if !errors.As(err, &of) {
		return err
	}
	return &keyed.Error{Field: place + "." + of.Field, Err: of.Err}
}

type object = map[string]json.RawMessage

// text reads a string, empty if it is missing or null, or has no field.
func text(raw object, field string) (out string, err error) {
	switch of, there := raw[field]; {
	case field == "":
	case there && json.Unmarshal(of, &out) != nil:
		return "", wrong(field, "must be a string")
	case strings.ContainsRune(out, utf8.RuneError): // others would be the same
		return "", wrong(field, "must be Unicode, without U+FFFD")
	}
	return out, nil
}

// numbersOf are the fields that are numbers, true being 1 and false 0. The value must be one, if it is there.
func numbersOf(raw object) (map[string]float64, error) {
	out := map[string]float64{}
	for name, text := range raw {
		var v any
		if json.Unmarshal(text, &v) != nil { // a number that a float64 cannot hold
			continue
		}
		switch v := v.(type) {
		case float64:
			out[name] = v
		case bool:
			if out[name] = 0; v {
				out[name] = 1
			}
		}
	}
	if of, there := raw[decl.ValueField]; there && string(of) != "null" {
		if _, ok := out[decl.ValueField]; !ok {
			return nil, wrong(decl.ValueField, "must be a finite number")
		}
	}
	return out, nil
}

// instant is a time in RFC 3339 or in milliseconds since 1970, zero if it is missing or null.
func instant(raw object, field string) (t time.Time, err error) {
	of, there := raw[field]
	if field == "" || !there {
		return t, nil
	}
	var v any
	_ = json.Unmarshal(of, &v) // what it cannot read is no time
	switch v := v.(type) {
	case nil:
		if string(of) == "null" {
			return t, nil
		}
	case string:
		if t, err = time.Parse(time.RFC3339, v); err == nil {
			return t, nil
		}
	case float64:
		if math.Abs(v) < 1<<52 {
			return time.UnixMilli(int64(v)), nil
		}
	}
	return time.Time{}, wrong(field, "must be a time such as 2026-01-31T09:00:00Z, or milliseconds since 1970")
}

// contentOf stands for all that an event says, so that one without an ID which is sent again counts once.
func contentOf(raw object) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var text bytes.Buffer
		_ = json.Compact(&text, raw[name]) // it was read
		fmt.Fprintf(h, "%q:%s\n", name, text.Bytes())
	}
	return "content " + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// A shape says which fields of a message are what of an event; empty: it has none.
type shape struct {
	name, unit, id, at string
	numbers            string // the object that has them; empty: the message itself
}

// Event reads an event of POST /v1/track, which may lack its unit.
func Event(raw map[string]json.RawMessage) (serve.Event, error) {
	return shape{name: "name", unit: "targetingKey", id: "id", at: "timestamp"}.read(raw)
}

func (s shape) read(raw object) (v serve.Event, err error) {
	for _, one := range []struct {
		to    *string
		field string
	}{{&v.Name, s.name}, {&v.Unit, s.unit}, {&v.ID, s.id}} {
		if *one.to, err = text(raw, one.field); err != nil {
			return v, err
		}
	}
	if v.At, err = instant(raw, s.at); err != nil {
		return v, err
	}
	numbers := raw
	if s.numbers != "" {
		if numbers = nil; raw[s.numbers] != nil && json.Unmarshal(raw[s.numbers], &numbers) != nil {
			return v, wrong(s.numbers, "must be an object")
		}
	}
	if v.Fields, err = numbersOf(numbers); err != nil && s.numbers != "" {
		err = at(s.numbers, err)
	}
	if v.ID == "" {
		v.ID = contentOf(raw)
	}
	return v, err
}

// whole is read of an event that names its unit.
func (s shape) whole(raw object) (serve.Event, error) {
	v, err := s.read(raw)
	if err != nil {
		return v, err
	}
	var of *keyed.Error
	if errors.As(v.Check(), &of) {
		theirs := map[string]string{"name": s.name, "targetingKey": s.unit, "id": s.id}
		return v, &keyed.Error{Field: theirs[of.Field], Err: of.Err}
	}
	return v, nil
}
