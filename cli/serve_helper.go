package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/sotto-dp/sotto/client/browser"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/helper"
	"github.com/sotto-dp/sotto/privacy"
)

// The roles of a server of live experiments.
const (
	roleLeader = "leader"
	roleHelper = "helper"
)

// checkRole says which flags are not of the role.
func (c *serveCommand) checkRole() error {
	foreign := map[bool][]struct {
		flag  string
		given bool
	}{
		true: {{"--demo", c.Demo}, {"--experiments", c.Experiments != ""}, {"--read-only", c.ReadOnly},
			{"--admin-key-file", c.AdminKeyFile != ""}, {"--advertise", c.Advertise != ""},
			{"--allow-origin", len(c.AllowOrigin) > 0}, {"--client-address-header", c.ClientAddressHeader != ""},
			{"--helper-secret", len(c.HelperSecret) > 0}, {"--person-cap", c.PersonCap != ""}, {"--oidc", c.OIDC != ""},
			{"--cohort-listen", c.CohortListen != ""}, {"--cohort-address", c.CohortAddress != ""}, {"--writers", c.Writers > 1}},
		false: {{"--task", len(c.Task) > 0}, {"--secret-file", c.SecretFile != ""}},
	}
	for _, f := range foreign[c.Role == roleHelper] {
		if f.given {
			return usagef("%s is not for --role %s", f.flag, c.Role)
		}
	}
	switch {
	case c.Data != "" && c.Database != "":
		return usagef("--data is the directory of a database of its own: --database is not for it")
	case len(c.Task) > 0 && c.SecretFile == "":
		return usagef("--task: --secret-file is missing, the secret that you share with the leader's operator")
	}
	return nil
}

// help is the second of two servers, which another party runs than the leader.
func (c *serveCommand) help(ctx context.Context, s streams) (err error) {
	cfg := helper.Config{Log: slog.New(slog.NewTextHandler(s.err, nil)), Holder: fmt.Sprint("process ", os.Getpid())}
	for _, path := range c.Task {
		l, err := readTask(s, path)
		if err != nil {
			return err
		}
		cfg.Tasks = append(cfg.Tasks, helper.Task{Declared: l})
	}
	if c.SecretFile != "" {
		secret, err := newSecret("--secret-file", c.SecretFile)
		if err != nil {
			return err
		}
		for i := range cfg.Tasks {
			cfg.Tasks[i].Secret = secret
		}
	}
	secure, err := c.tls(cfg.Log)
	if err != nil {
		return err
	}
	var where string
	if cfg.Store, where, err = c.store("sotto-helper"); err != nil {
		return err
	}
	l, at, err := c.listen(ctx, secure)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has, if all went well
	h, err := helper.Open(ctx, cfg)
	switch {
	case errors.Is(err, helper.ErrTask):
		return usagef("--task: %w", err)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	at = c.warnOfPlain(cfg.Log, at)
	fmt.Fprintf(s.out, "listening on %s, data in %s\n", at, where)
	fmt.Fprintf(s.out, "its key, for helper.key of a declaration: %s\n", h.Key())
	for _, t := range h.Tasks() {
		fmt.Fprintf(s.out, "task %s: %s\n", t.Name, t.ID)
	}
	fmt.Fprintf(s.out, "library for pages /client/%s, integrity %s\n", browser.Name, browser.Integrity())
	return api.Serve(ctx, l, helper.Handler(h, browser.FS(), cfg.Log), cfg.Log)
}

// readTask reads the declaration of an experiment that a helper takes part in.
func readTask(s streams, path string) (*decl.Experiment, error) {
	_, l, _, err := readAny(path, s)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("--task: %w", err)
	case err != nil:
		return nil, usage(err)
	case l == nil:
		return nil, usagef("--task: %s is not the declaration of a live experiment", path)
	}
	return l, nil
}

// helperSecrets are what a leader and the helpers of its experiments share, by the experiments' names.
// Those that are declared beside it must have theirs.
func (c *serveCommand) helperSecrets(declared []*decl.Experiment) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, given := range c.HelperSecret {
		name, path, ok := strings.Cut(given, "=")
		if !ok || name == "" || path == "" {
			return nil, usagef("--helper-secret is %q, must be the name of an experiment, =, and a file", given)
		}
		if all[name] != nil {
			return nil, usagef("--helper-secret: experiment %q has two", name)
		}
		secret, err := readSecret("--helper-secret", path)
		if err != nil {
			return nil, err
		}
		all[name] = secret
	}
	for _, x := range declared {
		switch t := x.TrustModel(); {
		case t == privacy.TrustTwoServer && all[x.Name] == nil:
			return nil, usagef("--helper-secret: experiment %q has trust %s: %[1]s=FILE is missing, the secret that "+
				"it shares with its helper", x.Name, t)
		case t == privacy.TrustSecAgg && c.CohortListen == "":
			return nil, usagef("--cohort-listen is missing: experiment %q has trust %s", x.Name, t)
		}
	}
	return all, nil
}
