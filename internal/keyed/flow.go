package keyed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

func ParseSeed(text string) (uint64, error) {
	digits, ok := Plain(text)
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no seed, must be a whole number from 0 to 2^64-1", Clip(text))
	}
	return n, nil
}

// A field of the normal form. Its value is a string, a bool, a number, a []any, or a []field.
type Field struct {
	Key   string
	Value any
}

// FieldOf is a field.
func FieldOf(key string, value any) Field { return Field{key, value} }

func List[T any](x []T) []any {
	out := make([]any, len(x))
	for i, v := range x {
		out[i] = v
	}
	return out
}

// WriteFlow writes a value on one line: as JSON, or as YAML's flow form, which is JSON
// with fewer quotes.
func WriteFlow(b *bytes.Buffer, value any, asJSON bool) error {
	sep := ", "
	if asJSON {
		sep = ","
	}
	switch v := value.(type) {
	case []Field:
		b.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				b.WriteString(sep)
			}
			if asJSON {
				b.WriteString(strconv.Quote(f.Key) + ":")
			} else {
				b.WriteString(f.Key + ": ")
			}
			if err := WriteFlow(b, f.Value, asJSON); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(sep)
			}
			if err := WriteFlow(b, x, asJSON); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: the number %v has no normal form", ErrSpec, v)
		}
		b.WriteString(Number(v))
	case json.RawMessage: // of any type: null if there is none
		if len(v) == 0 {
			v = json.RawMessage("null")
		}
		b.Write(v)
	case string:
		if !asJSON && bare(v) {
			b.WriteString(v)
			return nil
		}
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		b.Write(bytes.TrimSuffix(quoted.Bytes(), []byte("\n")))
	default:
		fmt.Fprint(b, v) // Count, uint64, bool
	}
	return nil
}

// bare says whether YAML reads a word without quotes as that text. What it does not know it quotes.
func bare(s string) bool {
	if s == "" || len(s) > 60 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (digit(c) || c == '-' || c == '_')) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return false
	}
	return true
}

// number writes x with the fewest digits that read back as x.
func Number(x float64) string {
	if x == 0 {
		x = 0 // no negative zero
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
