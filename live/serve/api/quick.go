package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Decisions and rewards, of which there are thousands a second, are read and answered in their usual
// form without encoding/json, which takes as long for them as everything else that the service does. What is read
// and said is the same, byte by byte; every other form, and every error, is left to encoding/json.

// A quick answer appends itself, as json.Marshal has it; ok is false if that is for json.Marshal.
type quick interface {
	appendTo(b []byte) (out []byte, ok bool)
}

func (s statusJSON) appendTo(b []byte) ([]byte, bool) {
	if !plain(s.Status) {
		return b, false
	}
	return append(appendText(append(b, `{"status":`...), s.Status), '}'), true
}

func (d decisionJSON) appendTo(b []byte) ([]byte, bool) {
	// below 1e-6 JSON has another form, and what is no number none
	if d.Report != nil || !plain(d.Arm) || !plain(string(d.Reason)) || len(d.Value) == 0 || !tight(d.Value) ||
		!(d.Propensity >= 1e-6 && d.Propensity <= 1) {
		return b, false
	}
	b = append(b, `{"decision":`...)
	if d.Decision == nil {
		b = append(b, "null"...)
	} else if plain(*d.Decision) {
		b = appendText(b, *d.Decision)
	} else {
		return b, false
	}
	b = appendText(append(b, `,"arm":`...), d.Arm)
	b = append(append(b, `,"value":`...), d.Value...)
	b = strconv.AppendFloat(append(b, `,"propensity":`...), d.Propensity, 'f', -1, 64)
	ok := true
	at := func(name string, t *time.Time) {
		b = append(b, name...)
		if t == nil {
			b = append(b, "null"...)
			return
		}
		ok = ok && t.Year() >= 0 && t.Year() <= 9999 && t.Location() == time.UTC
		b = append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	}
	at(`,"expires_at":`, d.Expires)
	if d.ActivateBy != nil {
		at(`,"activate_by":`, d.ActivateBy)
	}
	b = appendText(append(b, `,"reason":`...), string(d.Reason))
	return append(b, '}'), ok
}

func appendText(b []byte, text string) []byte { return append(append(append(b, '"'), text...), '"') }

// plain says whether JSON has a text as it is.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// tight says whether json.Marshal leaves a value as it is: there is nothing to be left out or escaped.
func tight(value json.RawMessage) bool {
	for _, c := range value {
		if c <= ' ' || c > '~' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return json.Valid(value)
}

// marshal is json.Marshal, quicker where it can be.
func marshal(v any) ([]byte, error) {
	if q, is := v.(quick); is {
		if b, ok := q.appendTo(make([]byte, 0, 288)); ok {
			return b, nil
		}
	}
	return json.Marshal(v)
}

// A quickly read request reads its usual form; ok is false, and nothing is read, of any other.
type quickly interface {
	readFrom(data []byte) (ok bool)
}

func (d *decisionRequest) readFrom(data []byte) bool {
	if string(data) == "{}" {
		return true
	}
	unit, rest, ok := quoted(data, `{"unit":`)
	if ok = ok && string(rest) == "}"; ok {
		d.Unit = unit
	}
	return ok
}

func (q *rewardRequest) readFrom(data []byte) bool {
	decision, rest, ok := quoted(data, `{"decision":`)
	text, was := bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(","))
	text, is := bytes.CutPrefix(bytes.TrimLeft(text, " "), []byte(`"reward":`))
	text, ends := bytes.CutSuffix(bytes.TrimLeft(text, " "), []byte("}"))
	if !ok || !was || !is || !ends || len(text) == 0 || !json.Valid(text) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	reward, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
	if err != nil {
		return false
	}
	q.Decision, q.Reward = decision, &reward
	return true
}

// quoted is the plain text in quotes that follows the beginning of an object, and the rest.
func quoted(data []byte, begin string) (text string, rest []byte, ok bool) {
	if data, ok = bytes.CutPrefix(data, []byte(begin)); !ok {
		return "", nil, false
	}
	if data, ok = bytes.CutPrefix(bytes.TrimLeft(data, " "), []byte(`"`)); !ok {
		return "", nil, false
	}
	i := bytes.IndexByte(data, '"')
	if i < 0 || !plain(string(data[:i])) {
		return "", nil, false
	}
	return string(data[:i]), data[i+1:], true
}
