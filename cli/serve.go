package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sotto-dp/sotto/internal/front/demo"
	"github.com/sotto-dp/sotto/serve"
	"github.com/sotto-dp/sotto/serve/api"
	"github.com/sotto-dp/sotto/serve/store"
)

type serveCommand struct {
	Data         string `env:"SOTTO_DATA" help:"${serveData}" placeholder:"DIR" type:"path"`
	Listen       string `env:"SOTTO_LISTEN" default:"127.0.0.1:8080" help:"${serveListen}" placeholder:"HOST:PORT"`
	AdminKeyFile string `env:"SOTTO_ADMIN_KEY_FILE" help:"${serveKey}" placeholder:"FILE" type:"path"`
	Demo         bool   `env:"SOTTO_DEMO" help:"${serveDemo}"`
}

// Help is shown by --help.
func (c *serveCommand) Help() string {
	return `Decisions and rewards over HTTP: docs/serve.md has the first experiment, /openapi.yaml all
requests. There is no TLS here: on a network, put it behind a proxy that has it.
Each flag may be an environment variable: SOTTO_DATA, SOTTO_LISTEN, SOTTO_ADMIN_KEY_FILE, SOTTO_DEMO.

Examples:
  sotto serve
  sotto serve --demo
  sotto serve --data /var/lib/sotto --listen 127.0.0.1:9000 --admin-key-file admin.key`
}

func (c *serveCommand) Run(ctx context.Context, s streams) (err error) {
	if c.Demo && c.Data != "" {
		return usagef("--demo keeps nothing: --data is not for it")
	}
	log := slog.New(slog.NewTextHandler(s.err, nil))
	cfg := serve.Config{Catalog: s.known, Log: log, Holder: fmt.Sprint("process ", os.Getpid())}
	where := "memory, and gone when it ends: for nobody's real rewards"
	if c.Demo {
		cfg.Store = store.NewMemory().Open
	} else {
		if where, err = filepath.Abs(cmp.Or(c.Data, "sotto-data")); err != nil {
			return err
		}
		if err := canHold("--data", where); err != nil {
			return err
		}
		cfg.Store = store.SQLite(where)
	}
	// First the address: who starts it twice is told so, before the first is put out of its store.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	defer func() { _ = l.Close() }() // Serve has, if all went well
	e, err := serve.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	made, err := c.admin(ctx, e)
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String()
	fmt.Fprintf(s.out, "listening on %s, data in %s\n", url, where)
	switch {
	case made != "":
		fmt.Fprintf(s.out, "the admin key, shown this once: %s\n", made)
	case c.AdminKeyFile != "":
		fmt.Fprintf(s.out, "the admin key is in %s\n", c.AdminKeyFile)
	default:
		fmt.Fprintln(s.out, "the admin key was shown at the first start; --admin-key-file adds another one")
	}
	visitors := &sync.WaitGroup{}
	ctx, stop := context.WithCancel(ctx)
	defer visitors.Wait()
	defer stop()
	if c.Demo {
		if err := demo.Start(ctx, e); err != nil {
			return err
		}
		visitors.Go(func() {
			if err := demo.Visit(ctx, e, func(line string) { fmt.Fprintln(s.err, line) }); err != nil {
				log.Error("no more visitors", "error", err)
			}
		})
		fmt.Fprintf(s.out, "look: curl %s/v1/experiments/%s\n", url, demo.Name)
	} else {
		fmt.Fprintf(s.out, "next: curl -H 'X-API-Key: …' --data-binary @shop.yaml "+
			"%s/v1/experiments (docs/serve.md)\n",
			url)
	}
	fmt.Fprintf(s.out, "all requests: %s/openapi.yaml\n", url)
	return api.Serve(ctx, l, api.Handler(api.Config{Engine: e, Catalog: s.known, Log: log, Demo: c.Demo}), log)
}

// admin sees to it that there is a key that may do everything, and returns the one that it has
// made and that nobody has seen yet.
func (c *serveCommand) admin(ctx context.Context, e *serve.Engine) (made string, err error) {
	if c.AdminKeyFile == "" {
		for _, k := range e.Keys() {
			if k.Scopes == serve.ScopeAdmin {
				return "", nil
			}
		}
		made, _, err = e.NewKey(ctx, "admin", serve.ScopeAdmin)
		return made, err
	}
	b, err := os.ReadFile(c.AdminKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte("sotto_" + rand.Text() + "\n")
		err = writeKey(c.AdminKeyFile, b)
	}
	if err != nil {
		return "", usagef("--admin-key-file: %w", err)
	}
	if _, err := e.AddKey(ctx, "of the admin key file", serve.ScopeAdmin,
		string(bytes.TrimSpace(b))); err != nil {
		if errors.Is(err, serve.ErrKey) {
			return "", usagef("--admin-key-file: %s: %w", c.AdminKeyFile, err)
		}
		return "", err
	}
	return "", nil
}

func writeKey(path string, b []byte) error {
	f, err := pending("--admin-key-file", path, privateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Discard() }() // nothing, once it is there
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Replace()
}
