package api

import (
	"encoding/json"
	"slices"
	"strings"
)

// keys are those of an object so far: a row, since most objects have few, and beyond that a set.
type keys struct {
	row []string
	set map[string]bool
}

// add says whether a key is new.
func (k *keys) add(key string) bool {
	if len(k.row) < 16 {
		if slices.Contains(k.row, key) {
			return false
		}
		if k.row == nil {
			k.row = make([]string, 0, 4)
		}
		k.row = append(k.row, key)
		return true
	}
	if k.set == nil {
		k.set = map[string]bool{}
	}
	if k.set[key] || slices.Contains(k.row, key) {
		return false
	}
	k.set[key] = true
	return true
}

// folded is one text for all that differ by upper and lower case.
func folded(key string) string {
	for _, c := range []byte(key) {
		if (c < 'a' || c > 'z') && c != '_' {
			return strings.ToLower(strings.ToUpper(key))
		}
	}
	return key
}

// repeated is a key that an object of a JSON text, which is valid, has twice: of its values one reader
// takes the first, another the last. A request's own keys are those of the whole and, where it has no
// other fields, of objects in its lists. They are twice in other letters too, as encoding/json takes
// REWARD for reward, and are named. Other keys are somebody's own, and have no name.
func repeated(text []byte, whole bool) (name string, twice bool) {
	type level struct {
		keys
		list  bool
		isKey bool // of a string that comes next
	}
	stack := make([]level, 0, 4)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			stack = append(stack, level{list: c == '[', isKey: c == '{'})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			stack[len(stack)-1].isKey = !stack[len(stack)-1].list
		case '"':
			from, escaped := i, false
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					escaped = true
					i++
				}
			}
			top := &stack[len(stack)-1]
			if !top.isKey {
				continue
			}
			top.isKey = false
			key := string(text[from+1 : i])
			if escaped {
				_ = json.Unmarshal(text[from:i+1], &key) // it is valid
			}
			own := len(stack) == 1 || whole && len(stack) == 3 && stack[1].list
			if own {
				key = folded(key)
			}
			switch {
			case top.add(key):
			case own:
				return key, true
			default:
				return "", true
			}
		}
	}
	return "", false
}
