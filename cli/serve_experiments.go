package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// readDeclared reads the live experiments of a directory, and checks all of them.
func readDeclared(known catalog.Catalog, dir string) (out []*decl.Experiment, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, usagef("--experiments: %w", err)
	}
	from := map[string]string{}
	for _, f := range files {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(f.Name())) {
			continue
		}
		path := filepath.Join(dir, f.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("--experiments: %w", err)
		}
		x, err := decl.Reader{Catalog: known}.Parse(path, data)
		if err == nil {
			err = x.Check()
		}
		if err != nil {
			return nil, err
		}
		if other, twice := from[x.Name]; twice {
			return nil, usagef("--experiments: %s: name is %q, as in %s: names must differ", path,
				x.Name, other)
		}
		from[x.Name] = path
		out = append(out, x)
	}
	return out, nil
}

// changeable are the keys that may change while an experiment runs.
var changeable = []string{"description", "end", "floor", "public", "share", "window"}

// declare makes and starts the experiments that are new, and has those that run changed to what
// their files say, where that may be. What may not change is an error, and then nothing is made. One that
// --person-cap refuses stays a draft, and is tried again at the next start of the program.
func declare(ctx context.Context, e *serve.Engine, all []*decl.Experiment, out io.Writer) error {
	var fresh, other []*decl.Experiment
	more := map[string][]serve.Added{} // arms, by experiment
	for _, x := range all {
		is, err := e.Get(ctx, x.Name)
		if errors.Is(err, serve.ErrNotFound) {
			fresh = append(fresh, x)
			continue
		}
		if err != nil {
			return err
		}
		if x.Picked != "" { // another version may pick another one: what was picked stays
			if stays := is.Experiment.Policy.Policy; stays != x.Policy.Policy {
				fmt.Fprintf(out, "%s: no policy is named, and it goes on with %s, as it began\n", x.Name, stays)
			}
			x.Policy = is.Experiment.Policy
		}
		more[x.Name] = newArms(&is, x)
		keys, err := differs(&is.Experiment, x)
		if err != nil {
			return err
		}
		fixed := slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
			return slices.Contains(changeable, k)
		})
		if len(fixed) > 0 {
			return usagef("--experiments: experiment %q is %s with another %s: what was declared to its units "+
				"stays; take the change back, or give it a new name", x.Name, is.State,
				strings.Join(fixed, ", "))
		}
		switch is.State {
		case serve.Stopping, serve.Stopped, serve.Archived, serve.Failed:
			continue
		case serve.Draft:
			fresh = append(fresh, x)
		}
		if len(keys)+len(more[x.Name]) > 0 {
			other = append(other, x)
		}
	}
	for _, x := range other {
		c := serve.Change{End: &x.End, Window: &x.Window, Floor: &x.Floor, Add: more[x.Name],
			Description: &x.Description, Public: &x.Public}
		if all := 1.0; len(x.Ramp) == 0 {
			if c.Share = &all; x.Share != 0 {
				c.Share = &x.Share
			}
		}
		if err := e.Change(ctx, x.Name, c); err != nil {
			return usagef("--experiments: %w", err)
		}
		fmt.Fprintf(out, "experiment %s was changed\n", x.Name)
	}
	slices.SortStableFunc(fresh, func(a, b *decl.Experiment) int { // who has a holdout after it
		return strings.Compare(a.Holdout, b.Holdout)
	})
	for _, x := range fresh {
		if err := e.Create(ctx, *x); err != nil && !errors.Is(err, serve.ErrExists) {
			return err
		}
		err := e.Start(ctx, x.Name)
		if errors.Is(err, serve.ErrPersonCap) { // others go on, and it may be started on another day
			fmt.Fprintf(out, "%v: it stays a draft\n", err)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "experiment %s was started\n", x.Name)
		for _, w := range x.Warnings() {
			fmt.Fprintf(out, "experiment %s: warning: %s\n", x.Name, w)
		}
	}
	return nil
}

// newArms are the arms that a file has beyond those of an experiment that runs. The file then counts as one with
// the experiment's: arms that were added otherwise need not be in it.
func newArms(is *serve.Info, x *decl.Experiment) (more []serve.Added) {
	if is.State == serve.Draft {
		return nil
	}
	all := slices.Clone(is.Experiment.Arms)
	for _, c := range is.Changes { // an arm comes with each tick
		for _, a := range c.Add {
			all = append(all, decl.Arm{Name: a.Name, Value: a.Value})
		}
	}
	for i, a := range x.Arms {
		if i < len(all) && (a.Name != all[i].Name || !bytes.Equal(a.Value, all[i].Value)) {
			return nil
		}
		if i >= len(all) {
			more = append(more, serve.Added{Name: a.Name, Value: a.Value})
		}
	}
	if len(x.Arms) >= is.Experiment.FirstArms() {
		x.Arms = is.Experiment.Arms
	}
	return more
}

// differs are the keys in which two declarations differ, in their normal form.
func differs(a, b *decl.Experiment) (keys []string, err error) {
	var of [2]map[string]json.RawMessage
	for i, x := range []*decl.Experiment{a, b} {
		text, err := x.JSON()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &of[i]); err != nil {
			return nil, err
		}
	}
	for key := range of[0] {
		if _, both := of[1][key]; !both {
			keys = append(keys, key)
		}
	}
	for key, value := range of[1] {
		if !bytes.Equal(value, of[0][key]) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
