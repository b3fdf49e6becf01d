package cli

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/transport"
)

type aggregateCommand struct {
	Keygen aggregateKeygen `cmd:"" help:"Make an identity key, and print its public key."`
	Public aggregatePublic `cmd:"" help:"Print the public key of an identity key."`
	ID     aggregateID     `cmd:"" name:"id" help:"Draw a session id, a new one for every sum."`
	Serve  aggregateServe  `cmd:"" help:"Sum what clients send, and learn nothing else."`
	Join   aggregateJoin   `cmd:"" help:"Take part in a sum, as a client."`
	Bench  aggregateBench  `cmd:"" help:"Measure what sums cost on this machine."`
}

type aggregateServe struct {
	Session string `arg:"" help:"The session, in YAML or JSON: the same file as the clients have." type:"path"`
	Key     string `required:"" help:"${aggregateServeKey}" placeholder:"FILE" type:"path"`

	Listen      string       `default:"127.0.0.1:0" help:"${aggregateServeListen}" placeholder:"HOST:PORT"`
	AddressFile string       `help:"${aggregateServeAddressFile}" placeholder:"FILE" type:"path"`
	Cert        string       `help:"${aggregateServeCert}" placeholder:"FILE" type:"path"`
	CertKey     string       `help:"Private key of --cert." placeholder:"FILE" type:"path"`
	MaxPending  flags.Count  `default:"128" help:"Connections at a time beyond one a client." placeholder:"N"`
	Used        string       `help:"${aggregateServeUsed}" placeholder:"DIR" type:"path"`
	Cap         flags.Budget `help:"${aggregateServeCap}" placeholder:"BUDGET"`
	Verbose     bool         `short:"v" help:"Say who comes."`
	JSON        bool         `help:"As JSON, for programs; a refusal too."`

	VanishIn string `hidden:"" enum:",unmask" default:"" help:"${aggregateServeVanishIn}"`
}

// aggregateTexts are help texts that are too long for their flags.
var aggregateTexts = kong.Vars{
	"aggregateServeKey":         "The server's identity key, from sotto aggregate keygen.",
	"aggregateServeListen":      "Address to listen on; with port 0 the system chooses one. It is printed.",
	"aggregateServeAddressFile": "Write the address to this file when clients can come.",
	"aggregateServeCert": "Certificate in PEM of an authority that clients believe (with its " +
		"chain), instead of " +
		"the pinned key.",
	"aggregateServeUsed": "Directory where it is written down which batches were opened; " +
		"KEY.used if not given. " +
		"Each is opened once.",
	"aggregateServeCap": "Refuse a session whose sum would cost one reward more than this, " +
		"such as epsilon=1.",
	"aggregateServeVanishIn": "For tests: this process kills itself when clients are to open the sum.",
	"aggregateJoinKey":       "This client's identity key, from sotto aggregate keygen.",
	"aggregateJoinReward": "A reward in [0,1], for a session with a mechanism: it is rounded and " +
		"noise is added " +
		"before anything leaves this process. - reads it from standard input, where no list " +
		"of processes shows it.",
	"aggregateJoinMessage": "A whole number below the modulus (several, with commas, for a " +
		"longer message), for a " +
		"session without a mechanism: noise is yours. - reads standard input.",
	"aggregateJoinUsed": "Directory where it is written down which sessions this key has been used for, and " +
		"for which batches a reward has left; KEY.used if not given. Each batch gets one.",
	"aggregateJoinCap": "Refuse if the rewards that this key has sent, and this one, would lose more than " +
		"this together, such as epsilon=1.",
	"aggregateJoinRoots": "Authorities in PEM, one of whom must have signed the server's " +
		"certificate, instead " +
		"of the pinned key.",
	"aggregateJoinServerName":  "The name in the server's certificate, if it is not the host of --connect.",
	"aggregateJoinVanishAfter": "For tests: this process kills itself when it has sent its message of a round.",
	"aggregate serve": `Examples:
  sotto aggregate keygen server.pem
  sotto aggregate serve session.yaml --key server.pem --listen :7443

docs/secagg.md has a session file and what is promised to whom.`,
	"aggregate join": `Examples:
  sotto aggregate keygen me.pem
  echo 0.7 | sotto aggregate join session.yaml --key me.pem --connect example.org:7443 --reward -`,
	"aggregate keygen": `Examples:
  sotto aggregate keygen me.pem`,
	"aggregate public": `Examples:
  sotto aggregate public me.pem`,
	"aggregate id": `Examples:
  sotto aggregate id`,
}

// aggregateResult is what programs read.
type aggregateResult struct {
	Session    string   `json:"session"`
	Experiment string   `json:"experiment"`
	Arm        uint64   `json:"arm"`
	Batch      uint64   `json:"batch"`
	Sum        []uint64 `json:"sum"`
	Modulus    uint64   `json:"modulus"` // 0 is 2^64
	Rewards    *float64 `json:"rewards,omitempty"`
	Spent      spent    `json:"spent"`
	Survivors  []uint32 `json:"survivors"`
	Vanished   []uint32 `json:"vanished"`
	Clients    int      `json:"clients"` // enrolled
	Graph      struct {
		N int `json:"n"`
		K int `json:"k"`
		T int `json:"t"`
	} `json:"graph"`
}

type aggregateRefusal struct {
	Refusal string `json:"refusal"` // its name; empty if it has none
	Error   string `json:"error"`
	Spent   *spent `json:"spent,omitempty"` // if it is possibly released
}

// spent is what a journal says, for programs. Losses are as budgets are written, or say that
// there is no bound.
type spent struct {
	Reward  string `json:"reward"`  // lost by a reward of this batch
	Batches int    `json:"batches"` // in all that is written down
	All     string `json:"all"`     // lost by whoever has a reward in each of them
}

// spentOn is what a batch has cost, and all of the journal.
func spentOn(j aggregate.Journal, c aggregate.Charge) (spent, error) {
	all, err := j.Spent()
	if err != nil {
		return spent{}, err
	}
	one := privacy.InfiniteLoss()
	if c.Mechanism != nil {
		one = c.Mechanism.Loss()
	}
	return spent{lossText(one), all.Charges, lossText(all.Together)}, nil
}

func (s spent) String() string {
	return fmt.Sprintf("%s; by whoever has a reward in all %d of this journal, %s", s.Reward, s.Batches, s.All)
}

func lossText(l privacy.Loss) string {
	if l.Infinite() {
		return "no bound (no noise that is accounted for)"
	}
	return l.String()
}

// journal is the memory beside a key. Together says that all in it is one person's.
func journal(dir, key string, limit flags.Budget, together bool) aggregate.Journal {
	if dir == "" {
		// a key has one memory, by whatever name
		if file, err := filepath.EvalSymlinks(key); err == nil {
			key = file
		}
		dir = key + ".used"
	}
	return aggregate.Journal{Dir: dir, Together: together, Cap: limit.Budget}
}

// charge is the charge of a session.
func (a aggregateSession) charge() aggregate.Charge {
	if a.Mechanism == nil {
		return aggregate.ChargeOf(a.Session, nil)
	}
	return aggregate.ChargeOf(a.Session, *a.Mechanism)
}

func (c *aggregateServe) Run(ctx context.Context, s streams) error {
	r, err := c.serve(ctx, s)
	if err != nil {
		released := errors.Is(err, transport.ErrPossiblyReleased)
		if errors.Is(err, context.Canceled) && !released {
			return interrupted("stopped; no sum was opened")
		}
		if c.JSON && !isUsage(err) {
			out := aggregateRefusal{Refusal: transport.Name(err), Error: err.Error()}
			if released {
				out.Spent = &r.Spent
			}
			if err := printJSON(s, out); err != nil {
				return err
			}
		}
		if released {
			fmt.Fprintf(s.err, "spent by a reward of this batch: %v\n", r.Spent)
		}
		return err
	}
	if err := c.print(s, r); err != nil {
		return fmt.Errorf("%w: %w; spent by a reward of this batch: %v",
			transport.ErrPossiblyReleased, err, r.Spent)
	}
	return nil
}

func (c *aggregateServe) print(s streams, r aggregateResult) error {
	if c.JSON {
		return printJSON(s, r)
	}
	w := report.NewColumns(s.out)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	row("sum", "%s", join(r.Sum, " "))
	if r.Rewards != nil {
		row("rewards", "%v, with noise", *r.Rewards)
	}
	row("survivors", "%d of %d: %s", len(r.Survivors), r.Clients, join(r.Survivors, ", "))
	if len(r.Vanished) > 0 {
		row("vanished", "%s", join(r.Vanished, ", "))
	}
	row("spent", "by a reward of this batch: %v", r.Spent)
	row("graph", "%d clients, %d neighbours each, threshold %d", r.Graph.N, r.Graph.K, r.Graph.T)
	return w.Flush()
}

func join[T any](list []T, by string) string {
	var b strings.Builder
	for i, x := range list {
		if i > 0 {
			b.WriteString(by)
		}
		fmt.Fprint(&b, x)
	}
	return b.String()
}

func (c *aggregateServe) serve(ctx context.Context, s streams) (aggregateResult, error) {
	var out aggregateResult
	x, err := readSession(c.Session)
	if err != nil {
		return out, err
	}
	key, err := readKey(c.Key)
	if err != nil {
		return out, err
	}
	if !x.Server.Equal(key.Public()) {
		return out, usage(fmt.Errorf("--key: %s is not the key of this session's server", c.Key))
	}
	book := journal(c.Used, c.Key, c.Cap, false)
	if err := book.Allow(x.charge()); err != nil {
		return out, err
	}
	cfg := transport.ServerConfig{Protocol: secagg.ServerConfig{Session: x.Session, Identity: key,
		Clients: x.Clients, Timeout: x.Round}, Wait: x.Wait, MaxPending: int(c.MaxPending)}
	if (c.Cert == "") != (c.CertKey == "") {
		return out, usage(errors.New("--cert and --cert-key go together"))
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.CertKey)
		if err != nil {
			return out, usage(fmt.Errorf("--cert: %w", err))
		}
		cfg.Certificate = &pair
	}
	cfg.Spend = func() error {
		if err := book.Spend(x.charge()); err != nil {
			return err
		}
		if c.VanishIn != "" {
			vanish()
		}
		return nil
	}
	cfg.Log = func(e transport.Event) {
		switch {
		case e.Named && e.Err != nil:
			fmt.Fprintf(s.err, "client %d: %v\n", e.Client, e.Err)
		case e.Err != nil && c.Verbose:
			fmt.Fprintf(s.err, "a stranger: %v\n", e.Err)
		case e.Named && c.Verbose:
			fmt.Fprintf(s.err, "client %d came\n", e.Client)
		case !e.Named && e.Err == nil:
			fmt.Fprintf(s.err, "round %v\n", e.Round)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return out, usage(fmt.Errorf("--listen: %w", err))
	}
	address := l.Addr().String()
	fmt.Fprintf(s.err, "listening on %s\n", address)
	if c.AddressFile != "" {
		err := save("--address-file", c.AddressFile, publicFile, func(w io.Writer) error {
			_, err := io.WriteString(w, address+"\n")
			return err
		})
		if err != nil {
			l.Close()
			return out, err
		}
	}
	r, err := transport.Serve(ctx, l, cfg)
	if err != nil && !errors.Is(err, transport.ErrPossiblyReleased) {
		return out, err
	}
	var e error
	if out.Spent, e = spentOn(book, x.charge()); err != nil || e != nil {
		return out, errors.Join(err, e)
	}
	out = aggregateResult{Spent: out.Spent, Session: hex.EncodeToString(x.Session.ID[:]),
		Experiment: x.Session.Experiment, Arm: x.Session.Arm, Batch: x.Session.Batch, Sum: r.Sum,
		Modulus: x.Session.Modulus, Survivors: r.Survivors,
		Vanished: append([]uint32{}, r.Vanished...), Clients: len(x.Clients)}
	out.Graph.N, out.Graph.K, out.Graph.T = r.Params.N, r.Params.K, r.Params.T
	if x.Mechanism != nil {
		a, err := release.NewAnalyser(*x.Mechanism, privacy.NewLedger(privacy.WithCap(book.Limit())))
		if err != nil {
			return out, err
		}
		read, err := a.Read(0, r.Sum[0], len(r.Survivors))
		if err != nil {
			return out, fmt.Errorf("%w: %w", transport.ErrPossiblyReleased, err)
		}
		rewards := read.Sum(0)
		out.Rewards = &rewards
	}
	return out, nil
}

type aggregateJoin struct {
	Session string `arg:"" help:"The session, in YAML or JSON: the same file as the server has." type:"path"`
	Key     string `required:"" help:"${aggregateJoinKey}" placeholder:"FILE" type:"path"`
	Connect string `required:"" help:"The server's address." placeholder:"HOST:PORT"`

	Reward  string `help:"${aggregateJoinReward}" placeholder:"R" xor:"value"`
	Message string `help:"${aggregateJoinMessage}" placeholder:"N,…" xor:"value"`

	Used       string       `help:"${aggregateJoinUsed}" placeholder:"DIR" type:"path"`
	Cap        flags.Budget `help:"${aggregateJoinCap}" placeholder:"BUDGET"`
	Roots      string       `help:"${aggregateJoinRoots}" placeholder:"FILE" type:"path"`
	ServerName string       `help:"${aggregateJoinServerName}" placeholder:"NAME"`
	JSON       bool         `help:"As JSON, for programs."`

	VanishAfter string `hidden:"" enum:",advertise,share,mask,consistency,unmask" default:"" help:"${aggregateJoinVanishAfter}"`
}

// value is the message.
func (c *aggregateJoin) value(x aggregateSession, in io.Reader) ([]uint64, error) {
	text, flag := c.Reward, "--reward"
	if c.Message != "" {
		text, flag = c.Message, "--message"
	}
	switch {
	case x.Mechanism != nil && c.Reward == "":
		return nil, errors.New("want --reward: the session has a mechanism, by which it is encoded")
	case x.Mechanism == nil && c.Message == "":
		return nil, errors.New("want --message: the session has no mechanism, by which a reward " +
			"could be encoded")
	}
	if text == "-" {
		line, err := bufio.NewReader(io.LimitReader(in, maxSessionFile)).ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		text = strings.TrimSpace(line)
	}
	// No error shows the value: it is what nobody is to learn.
	if x.Mechanism != nil {
		y, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(y) || y < 0 || y > 1 {
			return nil, errors.New("--reward must be a number from 0 to 1")
		}
		r, err := release.NewRandomizer(*x.Mechanism)
		if err != nil {
			return nil, err
		}
		return r.Messages(nil, y)
	}
	parts := strings.Split(text, ",")
	if len(parts) != x.Session.Length {
		return nil, fmt.Errorf("--message has %d numbers, must have %d", len(parts), x.Session.Length)
	}
	out := make([]uint64, len(parts))
	for i, p := range parts {
		var err error
		if out[i], err = strconv.ParseUint(strings.TrimSpace(p), 10, 64); err != nil ||
			x.Session.Modulus != 0 && out[i] >= x.Session.Modulus {
			return nil, fmt.Errorf("--message: number %d must be whole, from 0 to below the "+
				"modulus %s", i+1, modulusText(x.Session.Modulus))
		}
	}
	return out, nil
}

func modulusText(m uint64) string {
	if m == 0 {
		return "2^64"
	}
	return strconv.FormatUint(m, 10)
}

func (c *aggregateJoin) Run(ctx context.Context, s streams) error {
	x, err := readSession(c.Session)
	if err != nil {
		return err
	}
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	cfg := transport.ClientConfig{Protocol: secagg.ClientConfig{Session: x.Session, Identity: key,
		Server: x.Server, Pinned: secagg.PinnedKeys(x.Clients), Timeout: x.Round},
		Wait: x.Wait, ServerName: c.ServerName}
	found := false
	for id, k := range x.Clients {
		if k.Equal(key.Public()) {
			cfg.Protocol.ID, found = id, true
		}
	}
	if !found {
		return usage(fmt.Errorf("--key: %s is none of this session's clients: its public key is %s",
			c.Key, formatKey(key.Public().(ed25519.PublicKey))))
	}
	_, port, err := net.SplitHostPort(c.Connect)
	if n, bad := net.LookupPort("tcp", port); err != nil || bad != nil || n == 0 {
		return usage(fmt.Errorf("--connect is %q, must be HOST:PORT, with a port from 1 to 65535", c.Connect))
	}
	if c.Roots != "" {
		b, err := readLimited(c.Roots, maxSessionFile)
		if err != nil {
			return usage(fmt.Errorf("--roots: %w", err))
		}
		cfg.Roots = x509.NewCertPool()
		if !cfg.Roots.AppendCertsFromPEM(b) {
			return usage(fmt.Errorf("--roots: %s has no certificate in PEM", c.Roots))
		}
	}
	message, err := c.value(x, s.in)
	if err != nil {
		return usage(err)
	}
	book := journal(c.Used, c.Key, c.Cap, true)
	if err := wasUsed(book.Dir, x.Session.ID); err != nil {
		return err
	}
	if err := book.Allow(x.charge()); err != nil {
		return err
	}
	cfg.Begin = func() error { return markUsed(book.Dir, x.Session.ID) }
	cfg.Spend = func() error { return book.Spend(x.charge()) }
	cfg.Sent = func(k secagg.Kind) error {
		if c.VanishAfter != "" && c.VanishAfter == roundNames[k] {
			vanish()
		}
		return nil
	}
	err = transport.Join(ctx, c.Connect, cfg, message)
	released := errors.Is(err, transport.ErrPossiblyReleased)
	if errors.Is(err, context.Canceled) && !released {
		return interrupted("stopped; this client has vanished, and its reward has not left")
	}
	if err != nil && !released {
		return err
	}
	lost, e := spentOn(book, x.charge())
	if err != nil || e != nil {
		fmt.Fprintf(s.err, "spent by this reward: %v\n", lost)
		return errors.Join(err, e)
	}
	if c.JSON {
		err = printJSON(s, map[string]any{"client": cfg.Protocol.ID, "spent": lost})
	} else {
		_, err = fmt.Fprintf(s.out, "client %d: done, the server has its sum\nspent by this "+
			"reward: %v\n", cfg.Protocol.ID, lost)
	}
	if err != nil {
		return fmt.Errorf("%w: %w; spent by this reward: %v", transport.ErrPossiblyReleased, err, lost)
	}
	return nil
}

// vanish ends this process at once, as a crash would.
func vanish() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	select {}
}

// roundNames are the rounds by what clients send in them.
var roundNames = map[secagg.Kind]string{secagg.KindAdvertise: "advertise",
	secagg.KindShares: "share", secagg.KindMasked: "mask", secagg.KindAck: "consistency",
	secagg.KindOpen: "unmask"}
