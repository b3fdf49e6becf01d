package page

import (
	"reflect"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/serve"
)

// Traffic has no gaps, keeps what is recent, and what is new after an earlier one makes that the
// later.
func TestTraffic(t *testing.T) {
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	hour := func(h, red, blue int) serve.Hour {
		return serve.Hour{From: day.Add(time.Duration(h) * time.Hour), Decisions: []int{red, blue}}
	}
	all := []serve.Hour{hour(1, 1, 2), hour(2, 3, 0), hour(5, 0, 7), hour(23, 1, 1), hour(24, 2, 2)}
	at := func(h int) int64 { return day.Unix() + int64(h)*3600 }
	for _, c := range []struct {
		hours []serve.Hour
		step  time.Duration
		most  int
		want  [][]int64
	}{
		{nil, time.Hour, 9, [][]int64{}},
		{all[:3], time.Hour, 9, [][]int64{{at(1), 1, 2}, {at(2), 3, 0}, {at(3), 0, 0},
			{at(4), 0, 0}, {at(5), 0, 7}}},
		{all, time.Hour, 3, [][]int64{{at(22), 0, 0}, {at(23), 1, 1}, {at(24), 2, 2}}},
		{all, 24 * time.Hour, 9, [][]int64{{at(0), 5, 10}, {at(24), 2, 2}}},
		{all, 24 * time.Hour, 1, [][]int64{{at(24), 2, 2}}},
	} {
		got := trafficOf(c.hours, 2, c.step, c.most)
		if !reflect.DeepEqual(got.Rows, c.want) || got.From != 0 {
			t.Errorf("%v by %v: %+v, must be %v", c.hours, c.step, got, c.want)
		}
		for n := range c.hours {
			before := trafficOf(c.hours[:n], 2, c.step, c.most)
			since := got.since(before)
			if rows := append(before.Rows[:since.From:since.From], since.Rows...); len(rows) > 0 &&
				!reflect.DeepEqual(rows, got.Rows) {
				t.Errorf("%v and %+v are %v, must be %v", before.Rows, since, rows, got.Rows)
			}
		}
	}
}
