// Package plant plants faults in the service: one binary of a test has all of them, and a variable of the
// environment says which one is on. A test that plays the service shows with it that it finds them. Begin
// with Build.
package plant

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// A Fault is what a bad change may leave: where Was stands in File there is Is. A change that moves Was takes
// Is with it.
type Fault struct {
	Name   string
	File   string // from the module's root
	Was    string // stands once in File, and in no other fault's
	Is     string // in which PLANTED says whether the fault is on: while it is not, Is does what Was does
	Revert string // the commit of the mend that the fault undoes; empty if it was never made
	Needs  string // what must happen for it to be seen
}

// Build compiles the test of a package with all faults into a directory. The fault is on that the variable env
// of the environment names. Root is the module's, pkg is from there, such as ./live/serve.
func Build(ctx context.Context, root, pkg, dir, env string) (binary string, err error) {
	text, err := planted(root, env)
	if err != nil {
		return "", err
	}
	over := map[string]string{}
	for file, s := range text {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(s), 0o600); err != nil {
			return "", err
		}
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		over[from] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, path.Base(pkg)+".test")
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, pkg)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s with faults: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// planted are the files that have faults, with all of theirs, and one more in each of their packages.
func planted(root, env string) (text map[string]string, err error) {
	text = map[string]string{}
	pairs := map[string][]string{}
	for _, f := range Faults() {
		if text[f.File] == "" {
			b, err := os.ReadFile(filepath.Join(root, f.File))
			if err != nil {
				return nil, fmt.Errorf("%s is to be planted elsewhere: %w", f.Name, err)
			}
			text[f.File] = string(b)
		}
		if n := strings.Count(text[f.File], f.Was); n != 1 {
			return nil, fmt.Errorf("%s is to be planted elsewhere: %s has its place %d times", f.Name, f.File, n)
		}
		is := strings.ReplaceAll(f.Is, "PLANTED", fmt.Sprintf("(planted == %q)", f.Name))
		pairs[f.File] = append(pairs[f.File], f.Was, is)
	}
	for file, all := range pairs {
		text[file] = strings.NewReplacer(all...).Replace(text[file])
		in := path.Dir(file)
		text[in+"/zz_planted.go"] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar planted = os.Getenv(%q)\n",
			path.Base(in), env)
	}
	return text, nil
}
