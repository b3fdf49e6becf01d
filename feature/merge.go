package feature

import (
	"fmt"
	"maps"
	"slices"
)

// Merge makes one object of a list of them, as some clients send features: each value under its
// path, with dots between the names of nested objects. Where objects of the list have the same path
// the later one's value holds. Lists stay values, which no feature takes: New's Mapper refuses
// them, or ignores them with the rest. An error matches ErrFeatures.
func Merge(list []map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for i, object := range list {
		own := map[string]any{}
		if err := flatten(own, object, "", 0); err != nil {
			return nil, &Error{Field: fmt.Sprintf("[%d]", i), Reason: err.Error(), of: ErrFeatures}
		}
		maps.Copy(out, own)
		if len(out) > maxFeatures {
			return nil, &Error{Field: fmt.Sprintf("[%d]", i), of: ErrFeatures,
				Reason: fmt.Sprintf("makes more than %d features", maxFeatures)}
		}
	}
	return out, nil
}

func flatten(to, object map[string]any, path string, depth int) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := name
		if depth > 0 {
			at = path + "." + name
		}
		if in, nested := object[name].(map[string]any); nested {
			if depth == maxDepth {
				return fmt.Errorf("%s is nested more than %d deep", short(at), maxDepth)
			}
			if err := flatten(to, in, at, depth+1); err != nil {
				return err
			}
			continue
		}
		if _, twice := to[at]; twice {
			return fmt.Errorf("%s is given twice", short(at))
		}
		to[at] = object[name]
	}
	return nil
}
