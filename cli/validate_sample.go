package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/logged"
)

// A sampleJSON is how much of a sample of values would be clipped.
type sampleJSON struct {
	Of []clippedJSON `json:"of"` // the rewards, and the metrics that are there
	// Protected is false: this is of the values themselves, without noise.
	Protected bool `json:"protected"`
}

type clippedJSON struct {
	Name   string     `json:"name"` // reward, or of a metric
	Range  [2]float64 `json:"range"`
	Values int        `json:"values"`
	Below  int        `json:"below"`
	Above  int        `json:"above"`
}

func (c *clippedJSON) add(x float64) {
	c.Values++
	if x < c.Range[0] {
		c.Below++
	}
	if x > c.Range[1] {
		c.Above++
	}
}

// sampleOf reads a sample, CSV with columns reward and those of metrics, or lines of JSON as rewards are
// reported. Errors name lines, never values.
func sampleOf(x *decl.Experiment, path string, s streams) (*sampleJSON, error) {
	lo, hi := x.Range()
	all := []clippedJSON{{Name: "reward", Range: [2]float64{lo, hi}}}
	for _, m := range x.Metrics {
		lo, hi := m.Range()
		all = append(all, clippedJSON{Name: m.Name, Range: [2]float64{lo, hi}})
	}
	err := readLog(path, s, logged.Dialect{}, func(r io.Reader) error {
		in := bufio.NewReader(r)
		if begin, _ := in.Peek(1); string(begin) == "{" {
			return sampleLines(in, all)
		}
		return sampleTable(in, all)
	})
	if err != nil {
		return nil, err
	}
	out := &sampleJSON{}
	for i, c := range all {
		if c.Values > 0 || i == 0 {
			out.Of = append(out.Of, c)
		}
	}
	return out, nil
}

// sampleTable reads CSV.
func sampleTable(in io.Reader, all []clippedJSON) error {
	t, err := logged.NewTable(in)
	if err != nil {
		return err
	}
	at := make([]int, len(all))
	for i, c := range all {
		if at[i], err = t.Column(c.Name); err != nil && i > 0 {
			at[i] = -1 // this metric is not there
		} else if err != nil {
			return err
		}
	}
	for {
		if err := t.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i, column := range at {
			if column < 0 || t.Missing(column) {
				continue
			}
			x, err := t.Number(column)
			if err != nil {
				return err
			}
			all[i].add(x)
		}
	}
}

// sampleLines reads lines of JSON.
func sampleLines(in io.Reader, all []clippedJSON) error {
	d := json.NewDecoder(in)
	for n := 1; ; n++ {
		var one struct {
			Reward  *float64
			Metrics map[string]*float64
		}
		switch err := d.Decode(&one); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("object %d must be JSON such as {\"reward\": 1, \"metrics\": {…}}, with numbers", n)
		}
		for i := range all {
			x := one.Reward
			if i > 0 {
				x = one.Metrics[all[i].Name]
			}
			if x != nil {
				all[i].add(*x)
			}
		}
	}
}

// print says it for reading, if there is one.
func (s *sampleJSON) print(out io.Writer) error {
	if s == nil {
		return nil
	}
	var b strings.Builder
	for _, c := range s.Of {
		fmt.Fprintf(&b, "  sample of %s: %s", c.Name, words.Counted(c.Values, "value", "values"))
		if clipped := c.Below + c.Above; clipped > 0 {
			fmt.Fprintf(&b, ", %.3g %% would be clipped: %d below %v and %d above %v", 100*float64(clipped)/float64(c.Values),
				c.Below, c.Range[0], c.Above, c.Range[1])
		} else if c.Values > 0 {
			fmt.Fprintf(&b, ", all from %v to %v", c.Range[0], c.Range[1])
		}
		b.WriteByte('\n')
	}
	b.WriteString("  The sample is counted without noise: this output is not protected, and as private as the file.\n")
	_, err := io.WriteString(out, b.String())
	return err
}
