package paper

import (
	"fmt"
	"reflect"
)

// eachNumber calls f for the numbers of v, in their order: a float64, or what a struct, an array
// or a slice has of them.
func eachNumber(v reflect.Value, f func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Float64:
		f(v)
	case reflect.Struct:
		for i := range v.NumField() {
			eachNumber(v.Field(i), f)
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			eachNumber(v.Index(i), f)
		}
	}
}

// set keeps numbers that have names, such as the fields of a struct.
func (n *Numbers) set(name string, numbers any) {
	n.Values[name] = nil
	eachNumber(reflect.ValueOf(numbers), func(x reflect.Value) {
		n.Values[name] = append(n.Values[name], x.Float())
	})
}

// rows are the numbers that set has kept, as many T as they make and at least one.
func rows[T any](e *Evidence, name string) []T {
	out := make([]T, 1)
	width := 0
	eachNumber(reflect.ValueOf(out), func(reflect.Value) { width++ })
	v := need(e.Values(name))
	if len(v) < width {
		return need(out, fmt.Errorf("paper: %d numbers of %s, must be %d", len(v), name, width))
	}
	out = make([]T, len(v)/width)
	eachNumber(reflect.ValueOf(out), func(x reflect.Value) {
		x.SetFloat(v[0])
		v = v[1:]
	})
	return out
}

// named are the first numbers that set has kept.
func named[T any](e *Evidence, name string) T { return rows[T](e, name)[0] }

// judged decides from numbers that are computed and not estimated: value and detail are made of
// them.
func judged[T any](name string, judge func(n T) (value float64, holds bool, detail string)) Check {
	return func(e *Evidence) Finding { return exact(judge(named[T](e, name))) }
}
