package page

import (
	"reflect"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
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

// A page says why an experiment has stopped, and gives a trial's answer as one only if its rule gave
// it.
func TestStates(t *testing.T) {
	x := serve.Experiment{Arms: []decl.Arm{{Name: "red"}, {Name: "blue"}}, Risk: 0.05}
	at := time.Date(2026, 1, 31, 14, 20, 0, 0, time.UTC)
	for _, c := range []struct {
		info  serve.Info
		state State
		says  string
	}{
		{serve.Info{State: serve.Draft, Keep: -1}, Draft, "draft: it has not been started"},
		{serve.Info{State: serve.Waiting, Wait: "start", Until: at, Keep: -1}, Starting,
			"waiting for its start at 2026-01-31 14:20 UTC"},
		{serve.Info{State: serve.Waiting, Wait: "sums", Since: at, Keep: -1}, Awaiting,
			"gathering the sums of a batch"},
		{serve.Info{State: serve.Waiting, Wait: "sums", Since: at, Trouble: "its helper cannot be reached", Keep: -1},
			Awaiting, "waiting since 2026-01-31 14:20 UTC for the sums of a batch: its helper cannot be reached; " +
				"decisions go on"},
		{serve.Info{State: serve.Waiting, Wait: "rewards", Until: at, Keep: -1}, Awaiting,
			"waiting for rewards until 2026-01-31 14:20 UTC"},
		{serve.Info{State: serve.Running, Keep: -1}, Collecting, "running"},
		{serve.Info{State: serve.Paused, Keep: -1}, Paused, "paused: nobody new is assigned"},
		{serve.Info{State: serve.Stopped, Why: "answer", Keep: 1}, Stopped,
			"stopped with its answer, which is wrong with probability 0.05 at most: everybody gets blue"},
		{serve.Info{State: serve.Stopped, Why: "operator", Keep: 0}, Stopped,
			"stopped by an operator: everybody gets red"},
		{serve.Info{State: serve.Failed, Keep: -1}, Failed, "failed: it can be read and stopped"},
	} {
		c.info.Experiment = x
		if state, says := stateOf(c.info); state != c.state || says != c.says {
			t.Errorf("%s: %q, must be %s: %q", state, says, c.state, c.says)
		}
	}
}
