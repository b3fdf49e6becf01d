package flags_test

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/cli/flags"
)

// all has a flag of each kind.
type all struct {
	Open    flags.Number  `in:"(0,1)"`
	Half    flags.Number  `in:"[0,1)"`
	Free    flags.Number  ``
	List    flags.Numbers `in:"(0,inf)"`
	Vectors flags.Vectors
	Share   flags.Share
	Rate    flags.Rate
	Count   flags.Count
	Few     flags.Count `in:"[2,1e4]"`
	Seed    flags.Seed
	Workers flags.Workers
	Shard   flags.Shard
	Choice  flags.Choice  `of:"left,right"`
	Choices flags.Choices `of:"left,right"`
	Range   flags.Range
	Unit    flags.Range `in:"[0,1]"`
	Prior   flags.Prior
	Policy  flags.Policy
	Many    flags.Policies
	Arms    flags.Arms
	Budget  flags.Budget

	Separator flags.Separator
}

func parse(args ...string) (*all, error) {
	c := &all{}
	k, err := kong.New(c, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		return c, err
	}
	_, err = k.Parse(args)
	return c, err
}

// Each kind refuses what it must, in the one form.
func TestErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"--open=0":        "--open is 0, must be above 0 and below 1",
		"--open=1":        "--open is 1, must be above 0 and below 1",
		"--open=nan":      "--open is nan, must be above 0 and below 1",
		"--open=x":        `--open is "x", must be a number above 0 and below 1`,
		"--open=1,2":      `--open is "1,2", must be a number above 0 and below 1`,
		"--half=-1":       "--half is -1, must be at least 0 and below 1",
		"--free=inf":      "--free is inf, must be a finite number",
		"--list=1,-1":     "--list is -1, must be above 0 and finite",
		"--list=1,":       `--list is "", must be a number above 0 and finite`,
		"--vectors=1,2;x": `--vectors is "x", must be a finite number`,
		"--share=0%":      `--share is "0%", must be a share above 0 and finite, such as 10% or 0.1`,
		"--share=inf":     "--share is inf, must be a share above 0 and finite, such as 10% or 0.1",
		"--rate=0/day":    `--rate is "0/day", must be a number above 0 and finite, a day, hour, minute or second, such as 10000/day`,
		"--rate=5/week":   `--rate is "5/week", must be a number above 0 and finite, a day, hour, minute or second, such as 10000/day`,
		"--rate=nan":      `--rate is nan, must be a number above 0 and finite, a day, hour, minute or second, such as 10000/day`,
		"--count=0": "--count is 0, must be a whole number from 1 on, such as 1000, " +
			"10_000_000 or 1e6",
		"--count=2.5": "--count is 2.5, must be a whole number from 1 on, such as 1000, " +
			"10_000_000 or 1e6",
		"--count=1e30": "--count is 1e30, must be a whole number from 1 on, such as 1000, " +
			"10_000_000 or 1e6",
		"--few=1":             "--few is 1, must be from 2 to 1e4",
		"--few=all":           `--few is "all", must be a whole number from 2 to 1e4, such as 1000, 10_000_000 or 1e6`,
		"--seed=-1":           "--seed is -1, must be a whole number from 0 to 2^64−1",
		"--workers=-1":        "--workers is -1, must be at least 1, or 0 for one a processor",
		"--shard=3/3":         `--shard is "3/3", must be I/N with I from 0 to N-1, such as 0/3`,
		"--choice=lift":       `--choice is "lift" (did you mean "left"?), must be one of left, right`,
		"--choices=left,left": `--choices is "left,left", must be names that differ: left is given twice`,
		"--range=1,0":         `--range is "1,0", must be two finite numbers LO,HI, the lower one first, at most 1e+100 in absolute value`,
		"--range=0,inf":       `--range is "0,inf", must be two finite numbers LO,HI, the lower one first, at most 1e+100 in absolute value`,
		"--unit=0,2":          `--unit is "0,2", must be two finite numbers LO,HI, the lower one first, both from 0 to 1`,
		"--prior=0:0:1":       `--prior is "0:0:1", must be K:LO:HI with a whole number of arms and 0 ≤ LO < HI ≤ 1, such as 5:0.25:0.75`,
		"--policy=a:b":        `--policy is "a:b", must be NAME:PARAMETER=VALUE:…`,
		"--many=a,a:b=1:b=2":  `--many is "a:b=1:b=2", must be NAME:PARAMETER=VALUE:… with parameters that differ: b is given twice`,
		"--separator=.":       `--separator is ".", must be one of , and ; and | and tab`,
		"--budget=epsilon=0":  "--budget: ",
		"--arms=0.5,x":        "--arms: ",
	} {
		_, err := parse(arg)
		if err == nil || !strings.Contains(err.Error()+"$", want) ||
			!strings.HasSuffix(want, ": ") && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", arg, err, want)
		}
	}
}

// What is allowed is read as it is written.
func TestValues(t *testing.T) {
	c, err := parse("--open=0.5", "--half=0", "--free=-3", "--list=0.1,1", "--vectors=1,0;0,1",
		"--share=10%", "--rate=2_000.5/hour", "--count=1e3", "--few=10_000", "--seed=0",
		"--workers=0", "--shard=1/3",
		"--choice=right", "--choices=right, left", "--range=-1,2", "--unit=0,1", "--prior=3:0:1",
		"--policy=adap-ucb:alpha=4", "--many=ucb,adap-ucb:alpha=4", "--arms=0.5,gaussian(0.5,0.1)",
		"--budget=epsilon=1,delta=1e-6", "--separator=;")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Open.X, c.Half.X, c.Half.Set, c.Free.X, c.List.X, c.Vectors.X, c.Share.X,
		c.Rate.Day, c.Count, c.Few, c.Seed, c.Workers, c.Shard, c.Choice, c.Choices.Names, c.Range, c.Unit,
		c.Prior, c.Policy, len(c.Many.List), c.Arms.Texts, c.Budget.Budget); got !=
		"0.5 0 true -3 [0.1 1] [[1 0] [0 1]] 0.1 48012 1000 10000 {0 true} 0 {1 3}right[right left] "+
			"{-1 2 true} {0 1 true} {3 0 1} adap-ucb:alpha=4 2 [0.5 gaussian(0.5,0.1)] "+
			fmt.Sprint(c.Budget.Budget) {
		t.Error(got)
	}
	if c.Separator != ";" {
		t.Errorf("the separator is %q", c.Separator)
	}
	e, params, err := c.Policy.Find(catalog.Catalog{}, catalog.BanditArms)
	if err != nil || e.Name != "adap-ucb" || params["alpha"] != 4 {
		t.Errorf("%s %v %v", e.Name, params, err)
	}
	if none, err := parse(); err != nil || none.Seed.Set || none.Seed.Or(7) != 7 || none.Arms.Set() ||
		none.Open.Pointer() != nil || none.Open.Or(2) != 2 {
		t.Errorf("nothing is given, and it is %+v, %v", none, err)
	}
}

// Whatever is written, a value is in its interval or refused.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{"0.5", "1e3", "nan", "0,1", "1:0:1", "0/3", "a:b=1", "gaussian(0.5,0.1)",
		"10%", "epsilon=1", "1,2;3", "3/hour", "", ",", ":", "-", "0x1p-2", "1_0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"open", "half", "free", "list", "vectors", "share", "rate", "count",
			"few", "seed",
			"workers", "shard", "choice", "choices", "range", "unit", "prior", "policy", "many",
			"arms", "budget"} {
			c, err := parse("--" + name + "=" + text)
			if err != nil {
				continue
			}
			bad := false
			switch name {
			case "open":
				bad = !(c.Open.X > 0 && c.Open.X < 1)
			case "free":
				bad = math.IsNaN(c.Free.X) || math.IsInf(c.Free.X, 0)
			case "count":
				bad = c.Count < 1
			case "few":
				bad = c.Few < 2 || c.Few > 1e4
			case "shard":
				bad = c.Shard.N < 1 || c.Shard.I < 0 || c.Shard.I >= c.Shard.N
			case "unit":
				bad = !(0 <= c.Unit.Lo && c.Unit.Lo < c.Unit.Hi && c.Unit.Hi <= 1)
			case "rate":
				bad = !(c.Rate.Day > 0) || math.IsInf(c.Rate.Day, 1)
			case "share":
				bad = !(c.Share.X >= 0) || math.IsInf(c.Share.X, 1)
			}
			if bad {
				t.Errorf("--%s=%q: %+v", name, text, c)
			}
		}
	})
}
