package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/demo"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/api"
	"github.com/sotto-dp/sotto/live/serve/store"
)

type serveCommand struct {
	Data         string `env:"SOTTO_DATA" help:"${serveData}" placeholder:"DIR" type:"path"`
	Listen       string `env:"SOTTO_LISTEN" default:"127.0.0.1:8080" help:"${serveListen}" placeholder:"HOST:PORT"`
	AdminKeyFile string `env:"SOTTO_ADMIN_KEY_FILE" help:"${serveKey}" placeholder:"FILE" type:"path"`
	Demo         bool   `env:"SOTTO_DEMO" help:"${serveDemo}"`
	Experiments  string `env:"SOTTO_EXPERIMENTS" help:"${serveExperiments}" placeholder:"DIR" type:"path"`
	ReadOnly     bool   `env:"SOTTO_READ_ONLY" help:"${serveReadOnly}"`
	TLSCert      string `name:"tls-cert" env:"SOTTO_TLS_CERT" help:"${serveCert}" placeholder:"FILE" type:"path"`
	TLSKey       string `name:"tls-key" env:"SOTTO_TLS_KEY" help:"${serveTLSKey}" placeholder:"FILE" type:"path"`

	Advertise   string        `env:"SOTTO_ADVERTISE" help:"${serveAdvertise}" placeholder:"URL"`
	Database    string        `env:"SOTTO_DATABASE" help:"${serveDatabase}" placeholder:"URL"`
	Writers     int           `env:"SOTTO_WRITERS" default:"1" help:"${serveWriters}" placeholder:"S"`
	PersonCap   string        `env:"SOTTO_PERSON_CAP" help:"${servePersonCap}" placeholder:"CAP"`
	Outage      time.Duration `name:"longest-outage" env:"SOTTO_LONGEST_OUTAGE" default:"1h" help:"${serveOutage}" placeholder:"DURATION"`
	AllowOrigin []string      `env:"SOTTO_ALLOW_ORIGIN" help:"${serveOrigin}" placeholder:"ORIGIN"`

	AccessLog string `name:"access-log" env:"SOTTO_ACCESS_LOG" enum:"off,errors,all" default:"off" help:"${serveAccess}" placeholder:"LEVEL"`

	NewUnits            flags.Number `env:"SOTTO_NEW_UNITS" in:"[0,inf)" default:"1" help:"${serveNewUnits}" placeholder:"RATE"`
	ClientAddressHeader string       `env:"SOTTO_CLIENT_ADDRESS_HEADER" help:"${serveClientHeader}" placeholder:"NAME"`

	OIDC string `name:"oidc" env:"SOTTO_OIDC" help:"${serveOIDC}" placeholder:"FILE" type:"path"`

	CohortListen  string `env:"SOTTO_COHORT_LISTEN" help:"${serveCohort}" placeholder:"HOST:PORT"`
	CohortAddress string `env:"SOTTO_COHORT_ADDRESS" help:"${serveCohortAt}" placeholder:"HOST:PORT"`

	Role       string   `env:"SOTTO_ROLE" enum:"leader,helper" default:"leader" help:"${serveRole}" placeholder:"ROLE"`
	Task       []string `env:"SOTTO_TASK" help:"${serveTask}" placeholder:"FILE" type:"path"`
	SecretFile string   `env:"SOTTO_SECRET_FILE" help:"${serveSecret}" placeholder:"FILE" type:"path"`

	HelperSecret []string `env:"SOTTO_HELPER_SECRET" help:"${serveHelperSecret}" placeholder:"NAME=FILE"`
}

func (c *serveCommand) Run(ctx context.Context, s streams) (err error) {
	if err := c.checkRole(); err != nil {
		return err
	}
	if c.Role == roleHelper {
		return c.help(ctx, s)
	}
	declared, err := c.check(s)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.err, nil))
	secure, err := c.tls(log)
	if err != nil {
		return err
	}
	shared, err := c.helperSecrets(declared)
	if err != nil {
		return err
	}
	issuer, err := c.issuer()
	if err != nil {
		return err
	}
	metrics := api.NewMetrics()
	cfg := serve.Config{Meter: metrics, Catalog: s.known, Log: log, Holder: fmt.Sprint("process ", os.Getpid()),
		ReadOnly: c.ReadOnly, Outage: c.Outage, HelperSecret: func(name string) []byte { return shared[name] }}
	if cfg.PersonCap, err = c.personCap(); err != nil {
		return err
	}
	open, where, err := c.stores("sotto-data")
	if err != nil {
		return err
	}
	// First the address: who starts it twice is told so, before the first is put out of its store.
	l, at, err := c.listen(ctx, secure)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has, if all went well
	if cfg.Advertise, err = c.advertise(at); err != nil {
		return err
	}
	if cfg.Cohorts, err = c.cohorts(ctx); err != nil {
		return err
	}
	if cfg.Cohorts != nil {
		defer func() { err = errors.Join(err, cfg.Cohorts.Hub.Close()) }() // after the engine
	}
	shares, err := serve.OpenShares(ctx, cfg, c.Writers, open)
	switch {
	case c.ReadOnly && errors.Is(err, fs.ErrNotExist):
		err = usagef("--data: %w", err)
	case err != nil && c.Database != "":
		err = usagef("--database: %w", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shares.Close()) }()
	engines := shares.Engines()
	mine, err := divide(ctx, shares, declared)
	if err != nil {
		return err
	}
	var elsewhere []int // the shares that another process writes
	made := ""
	for i, e := range engines {
		if here, _, _ := e.Where(); !here {
			elsewhere = append(elsewhere, i)
			continue
		}
		key, err := c.begin(ctx, e, i, mine[i], s)
		if err != nil {
			return err
		}
		made += key
	}
	for name := range shared { // it may be created later
		if _, err := engines[0].Get(ctx, name); errors.Is(err, serve.ErrNotFound) {
			log.Warn("--helper-secret is of an experiment that is not there yet", "experiment", name)
		}
	}
	at = c.warnOfPlain(log, at)
	fmt.Fprintf(s.out, "listening on %s, data in %s\n", at, where)
	if cfg.Cohorts != nil {
		fmt.Fprintf(s.out, "sessions of clients at %s\n", cfg.Cohorts.Address)
	}
	for _, e := range engines {
		for _, x := range e.List(ctx) {
			if x.Experiment.Contextual == nil {
				continue
			}
			promise, err := x.Experiment.Guarantee()
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "experiment %s: %s\n", x.Experiment.Name, promise)
		}
	}
	if c.Writers > 1 {
		fmt.Fprintf(s.out, "of %d shares of the experiments it writes %d; requests for the others go to who writes them\n",
			c.Writers, c.Writers-len(elsewhere))
	}
	switch {
	case c.ReadOnly:
		fmt.Fprintln(s.out, "it only reads: nothing is decided, taken or changed, and the keys "+
			"are those that were")
	case c.Writers == 1 && len(elsewhere) > 0:
		_, writer, _ := engines[0].Where()
		fmt.Fprintf(s.out, "another process writes, and requests go to it: %s\n", cmp.Or(writer, "its address "+
			"is not known"))
	case made != "":
		fmt.Fprintf(s.out, shownOnce, made)
	case c.AdminKeyFile != "":
		fmt.Fprintf(s.out, "the admin key is in %s\n", c.AdminKeyFile)
	default:
		fmt.Fprintln(s.out, "the admin key was shown at the first start; --admin-key-file adds another one")
	}
	visitors := &sync.WaitGroup{}
	ctx, stop := context.WithCancel(ctx)
	defer visitors.Wait()
	defer stop()
	visitors.Go(func() {
		select {
		case <-shares.Superseded():
			stop()
		case <-ctx.Done():
		}
	})
	for _, i := range elsewhere {
		visitors.Go(func() { c.later(ctx, engines[i], i, mine[i], s, log) })
	}
	if c.Demo {
		if err := demo.Start(ctx, engines[0]); err != nil {
			return err
		}
		visitors.Go(func() {
			if err := demo.Visit(ctx, engines[0], func(line string) { fmt.Fprintln(s.err, line) }); err != nil {
				log.Error("no more visitors", "error", err)
			}
		})
		fmt.Fprintf(s.out, "look: %s/experiments/%s in a browser\n", at, demo.Name)
	} else if !c.ReadOnly {
		fmt.Fprintf(s.out, "next: %s in a browser, with the key; or curl -H 'X-API-Key: …' "+
			"--data-binary @shop.yaml %[1]s/v1/experiments (docs/serve.md)\n", at)
	}
	fmt.Fprintf(s.out, "all requests: %s/openapi.yaml\n", at)
	return api.Serve(ctx, l, api.Handler(api.Config{Shares: shares, Catalog: s.known, Log: log, Demo: c.Demo,
		Origins: c.AllowOrigin, Metrics: metrics, NewUnits: c.newUnits(),
		ClientHeader: c.ClientAddressHeader, Issuer: issuer, Access: api.Access(c.AccessLog)}), log)
}

// stores are what the shares of the experiments are in, by number, and where that is.
func (c *serveCommand) stores(usual string) (open func(share int) func(context.Context) (store.Store, error),
	where string, err error) {
	if c.Writers > 1 {
		if open, err = store.PostgresShares(c.Database, c.Writers); err != nil {
			err = usagef("--database: %w", err)
		}
		return open, "PostgreSQL", err
	}
	one, where, err := c.store(usual)
	return func(int) func(context.Context) (store.Store, error) { return one }, where, err
}

// store is what the flags say that data are in, and where that is; usual is the directory without a flag.
func (c *serveCommand) store(usual string) (open func(context.Context) (store.Store, error), where string,
	err error) {
	switch {
	case c.Demo:
		return store.NewMemory().Open, "memory, and gone when it ends: demo data only, do not send real rewards", nil
	case c.Database != "":
		database := store.Postgres
		if c.ReadOnly {
			database = store.PostgresReader
		}
		if open, err = database(c.Database); err != nil {
			err = usagef("--database: %w", err)
		}
		return open, "PostgreSQL", err
	}
	where, err = filepath.Abs(cmp.Or(c.Data, usual))
	switch {
	case err != nil:
		return nil, "", err
	case c.ReadOnly:
		return store.SQLiteReader(where), where, nil
	}
	return store.SQLite(where), where, canHold("--data", where)
}

// personCap is what one person may lose by all experiments, nil if that is as it was.
func (c *serveCommand) personCap() (*serve.PersonCap, error) {
	if c.PersonCap == "" {
		return nil, nil
	}
	out, err := serve.ParsePersonCap(c.PersonCap)
	if err != nil {
		return nil, usagef("--person-cap: %w", err)
	}
	return &out, nil
}

// newUnits is the cap on them, none for 0.
func (c *serveCommand) newUnits() float64 {
	if c.NewUnits.X == 0 {
		return math.Inf(1)
	}
	return c.NewUnits.X
}

const shownOnce = "the admin key, shown this once: %s\n"

// divide has what is declared by the share that it is in, or is to be.
func divide(ctx context.Context, shares *serve.Shares, declared []*decl.Experiment) ([][]*decl.Experiment, error) {
	out := make([][]*decl.Experiment, len(shares.Engines()))
	for _, x := range declared {
		in, there, err := shares.Of(ctx, x.Name)
		if err != nil {
			return nil, err
		}
		if !there {
			in = shares.New(*x)
		}
		out[in] = append(out[in], x)
	}
	return out, nil
}

// begin does what is done at the start in a share that this process writes: share 0 has the keys. It returns a key
// that was made and that nobody has seen yet.
func (c *serveCommand) begin(ctx context.Context, e *serve.Engine, share int, declared []*decl.Experiment,
	s streams) (made string, err error) {
	if share == 0 {
		if made, err = c.admin(ctx, e); err != nil {
			return made, err
		}
	}
	return made, declare(ctx, e, declared, s.err)
}

// later does what is done at the start, when another process does not write a share any more.
func (c *serveCommand) later(ctx context.Context, e *serve.Engine, share int, declared []*decl.Experiment,
	s streams, log *slog.Logger) {
	if e.Lead(ctx) != nil {
		return
	}
	made, err := c.begin(ctx, e, share, declared, s)
	if err != nil {
		log.Error("what --admin-key-file and --experiments say was not done", "error", err)
	}
	if made != "" {
		fmt.Fprintf(s.out, shownOnce, made)
	}
}

// listen listens at --listen, with TLS if that is asked for, and says at which URL.
func (c *serveCommand) listen(ctx context.Context, secure *tls.Config) (net.Listener, string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	switch {
	case err != nil:
		return nil, "", usagef("--listen: %w", err)
	case secure == nil:
		return l, "http://" + l.Addr().String(), nil
	}
	return tls.NewListener(l, secure), "https://" + l.Addr().String(), nil
}

// warnOfPlain warns where a network can reach an address that has no TLS, and gives the address as one
// that can be opened on this machine: 0.0.0.0 and [::] are all of its addresses, and name none.
func (c *serveCommand) warnOfPlain(log *slog.Logger, at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "http" && ip != nil && !ip.IsLoopback() {
		log.Warn("keys and rewards travel in the clear: give --tls-cert and --tls-key, or listen on 127.0.0.1 "+
			"behind a proxy that has TLS", "listen", u.Host)
	}
	if ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String()
}

// advertise is where other processes on the same database find this one, which listens at a URL.
func (c *serveCommand) advertise(listens string) (string, error) {
	if c.Database == "" {
		if c.Advertise != "" {
			return "", usagef("--advertise is for processes on one database: it needs --database")
		}
		return "", nil
	}
	if c.Advertise != "" {
		u, err := url.Parse(c.Advertise)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			c.Advertise != u.Scheme+"://"+u.Host {
			return "", usagef("--advertise is %q, must be a URL such as http://10.0.0.7:8080", c.Advertise)
		}
		return c.Advertise, nil
	}
	u, err := url.Parse(listens)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsUnspecified() {
		return listens, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", usagef("--advertise is missing: nobody can reach %s", listens)
	}
	u.Host = net.JoinHostPort(name, u.Port())
	return u.String(), nil
}

// check says what is wrong with the flags and with the experiments that they name.
func (c *serveCommand) check(s streams) ([]*decl.Experiment, error) {
	for _, only := range []struct {
		flag  string
		given bool
	}{{"--data", c.Data != ""}, {"--database", c.Database != ""},
		{"--experiments", c.Experiments != ""}, {"--read-only", c.ReadOnly},
		{"--cohort-listen", c.CohortListen != ""}} {
		if c.Demo && only.given {
			return nil, usagef("--demo keeps nothing: %s is not for it", only.flag)
		}
	}
	if c.ReadOnly && c.CohortListen != "" {
		return nil, usagef("--read-only holds no sessions: --cohort-listen is not for it")
	}
	if c.ReadOnly && c.Experiments != "" {
		return nil, usagef("--read-only makes no experiments: --experiments is not for it")
	}
	if err := c.checkWriters(); err != nil {
		return nil, err
	}
	if c.Outage < time.Hour {
		return nil, usagef("--longest-outage is %v, must be 1h or more", c.Outage)
	}
	for _, origin := range c.AllowOrigin {
		if _, err := api.ParseOrigin(origin); err != nil {
			return nil, usagef("--allow-origin: %w", err)
		}
	}
	if c.ClientAddressHeader != "" {
		var err error
		if c.ClientAddressHeader, err = api.ParseClientHeader(c.ClientAddressHeader); err != nil {
			return nil, usagef("--client-address-header: %w", err)
		}
	}
	if c.Experiments == "" {
		return nil, nil
	}
	return readDeclared(s.known, c.Experiments)
}

// checkWriters says what is wrong with --writers.
func (c *serveCommand) checkWriters() error {
	switch n := c.Writers; {
	case n < 1 || n > serve.MaxShares:
		return usagef("--writers is %d, must be from 1 to %d", n, serve.MaxShares)
	case n == 1:
		return nil
	case c.Database == "":
		return usagef("--writers is %d, must be 1 without --database: processes share the experiments of one database", n)
	case c.ReadOnly:
		return usagef("--writers is %d, must be left out with --read-only, which reads all shares that there are", n)
	case c.PersonCap != "":
		return usagef("--writers is %d, must be 1 with --person-cap: a start is looked at with all experiments at once", n)
	}
	return nil
}

// tls is how to speak TLS, nil if that was not asked for.
func (c *serveCommand) tls(log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, usagef("--tls-cert and --tls-key: both are wanted, or none")
	}
	pair := &certificate{cert: c.TLSCert, key: c.TLSKey, log: log}
	cfg, err := pair.config()
	if err != nil {
		return nil, usagef("--tls-cert: %w", err)
	}
	return cfg, nil
}

// admin sees to it that there is a key that may do everything, and returns the one that it has
// made and that nobody has seen yet.
func (c *serveCommand) admin(ctx context.Context, e *serve.Engine) (made string, err error) {
	if c.ReadOnly {
		return "", nil
	}
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
		err = writeKey("--admin-key-file", c.AdminKeyFile, b)
	}
	if err != nil {
		return "", usagef("--admin-key-file: %w", err)
	}
	if _, err := e.AddKey(ctx, "of the admin key file", serve.ScopeAdmin,
		string(bytes.TrimSpace(b))); err != nil {
		if errors.Is(err, serve.ErrRevoked) {
			return "", usagef("--admin-key-file: %s: %w: put another key into the file, or remove the file, and a "+
				"key is made there", c.AdminKeyFile, err)
		}
		if errors.Is(err, serve.ErrKey) {
			return "", usagef("--admin-key-file: %s: %w", c.AdminKeyFile, err)
		}
		return "", err
	}
	return "", nil
}

func writeKey(flag, path string, b []byte) error {
	f, err := pending(flag, path, privateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Discard() }() // nothing, once it is there
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Replace()
}
