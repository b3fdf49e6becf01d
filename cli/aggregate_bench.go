package cli

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/secagg"
)

type aggregateBench struct {
	Clients string        `default:"100,300,1000" help:"${aggregateBenchClients}" placeholder:"N,…"`
	Mode    flags.Choices `of:"semi-honest,malicious" default:"semi-honest,malicious" help:"${aggregateBenchMode}" placeholder:"MODE,…"`
	Gamma   flags.Number  `in:"[0,1)" default:"0.1" help:"Share of the clients who may be corrupt." placeholder:"γ"`
	Delta   flags.Number  `in:"[0,1)" default:"0.1" help:"${aggregateBenchDelta}" placeholder:"δ"`
	SVG     string        `name:"svg" help:"${aggregateBenchSVG}" placeholder:"FILE" type:"path"`
	JSON    bool          `help:"As JSON, for programs."`
}

// aggregateBenchTexts are help texts that are too long for their flags.
var aggregateBenchTexts = kong.Vars{
	"aggregateBenchClients": "Numbers of clients; 10000 take minutes, as all clients are played here too.",
	"aggregateBenchMode":    "What the server is trusted with.",
	"aggregateBenchDelta":   "Share of the clients who may vanish; so many do, after sharing keys.",
	"aggregateBenchSVG":     "Draw the server's time against n log n into this file.",
	"aggregate bench": `Sessions of one value of 64 bits, all in this process and without a network. Times are the processor's.

Examples:
  sotto aggregate bench
  sotto aggregate bench --clients 100,300,1000,3000,10000 --svg docs/secagg-growth.svg`,
}

// sessionCost is what one session costs: the server in all, a client in the mean.
type sessionCost struct {
	Mode     string  `json:"mode"`
	N        int     `json:"clients"`
	Vanished int     `json:"vanished"`
	K        int     `json:"k"`
	T        int     `json:"t"`
	ServerMS float64 `json:"server_ms"`
	ClientMS float64 `json:"client_ms"`
	Up       int     `json:"up_bytes"`
	Down     int     `json:"down_bytes"`
}

// nLogN is n log₂ n.
func (c sessionCost) nLogN() float64 { return float64(c.N) * math.Log2(float64(c.N)) }

func (c *aggregateBench) Run(ctx context.Context, s streams) error {
	var sizes []int
	for _, text := range strings.Split(c.Clients, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 3 || n > 1<<17 {
			return usage(fmt.Errorf("--clients: %q must be a whole number from 3 to %d", text, 1<<17))
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	gamma, delta := c.Gamma.X, c.Delta.X
	modes := map[string]secagg.Mode{secagg.SemiHonest.String(): secagg.SemiHonest,
		secagg.Malicious.String(): secagg.Malicious}
	var costs []sessionCost
	for _, name := range c.Mode.Names {
		mode := modes[name]
		for _, n := range sizes {
			r, err := rehearse(ctx, n, mode, gamma, delta)
			switch {
			case errors.Is(err, context.Canceled):
				return interrupted("stopped")
			case errors.Is(err, secagg.ErrSession), errors.Is(err, secagg.ErrInfeasible):
				return usage(err)
			case err != nil:
				return fmt.Errorf("%d clients, %v: %w", n, mode, err)
			}
			costs = append(costs, r)
		}
	}
	if c.SVG != "" {
		if err := save("--svg", c.SVG, publicFile, growth(costs, gamma, delta).WriteSVG); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s, costs)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "server\tn\tvanish\tk\tt\tserver ms\tµs / n log₂ n\tclient ms\tB up\tB down\t")
	for _, r := range costs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.0f\t%.1f\t%.1f\t%d\t%d\t\n", r.Mode, r.N, r.Vanished,
			r.K, r.T, r.ServerMS, 1000*r.ServerMS/r.nLogN(), r.ClientMS, r.Up, r.Down)
	}
	return w.Flush()
}

// growth is the server's time against n log n. In it a line of slope 1 is n log n.
func growth(costs []sessionCost, gamma, delta float64) report.Figure {
	f := report.Figure{ID: "secagg-growth", Title: "Secure aggregation: what a session costs the " +
		"server", LogX: true, LogY: true,
		Subtitle: fmt.Sprintf("one value of 64 bits, γ = %g, δ = %g, and as many vanish after "+
			"sharing keys", gamma, delta),
		XLabel: "n log₂ n", YLabel: "processor time of the server, ms",
		Note: "The lines ∝ n log n go through the last point."}
	for _, mode := range []secagg.Mode{secagg.SemiHonest, secagg.Malicious} {
		measured, line := report.Series{Label: mode.String() + " server"},
			report.Series{Label: fmt.Sprintf("∝ n log n (%v)", mode)}
		for _, c := range costs {
			if c.Mode == mode.String() {
				measured.X, measured.Mean = append(measured.X, c.nLogN()), append(measured.Mean, c.ServerMS)
			}
		}
		if len(measured.X) == 0 {
			continue
		}
		last := len(measured.X) - 1
		for _, x := range measured.X {
			line.X, line.Mean = append(line.X, x), append(line.Mean, measured.Mean[last]*x/measured.X[last])
		}
		f.Series = append(f.Series, measured)
		if last > 0 {
			f.Series = append(f.Series, line)
		}
	}
	return f
}

// rehearse plays a session with honest clients, of whom the first ⌊δn⌋ vanish after sharing keys,
// and tells the server's time from the clients'.
func rehearse(ctx context.Context, n int, mode secagg.Mode, gamma, delta float64) (out sessionCost, err error) {
	session, err := benchSession(n, mode, gamma, delta)
	if err != nil {
		return out, err
	}
	now := time.Unix(0, 0)
	clock := func() time.Time { return now } // rounds close when all have spoken, or when it leaps
	_, serverKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return out, err
	}
	private, public := map[uint32]ed25519.PrivateKey{}, map[uint32]ed25519.PublicKey{}
	for i := range uint32(n) {
		if public[i], private[i], err = ed25519.GenerateKey(rand.Reader); err != nil {
			return out, err
		}
	}
	server, err := secagg.NewServer(secagg.ServerConfig{Session: session, Identity: serverKey,
		Clients: public, Clock: clock})
	if err != nil {
		return out, err
	}
	vanish := uint32(delta * float64(n))
	out = sessionCost{Mode: mode.String(), N: n, Vanished: int(vanish)}
	var atServer, atClients time.Duration
	clients := map[uint32]*secagg.Client{}
	var up, down []secagg.Envelope
	want := uint64(0)
	at := cpuTime()
	for _, i := range slices.Sorted(maps.Keys(public)) {
		c, err := secagg.NewClient(secagg.ClientConfig{Session: session, ID: i,
			Identity: private[i], Server: serverKey.Public().(ed25519.PublicKey),
			Pinned: secagg.PinnedKeys(public), Clock: clock}, []uint64{uint64(i)})
		if err != nil {
			return out, err
		}
		m, err := c.Start()
		if err != nil {
			return out, err
		}
		if i >= vanish {
			want += uint64(i)
		}
		clients[i] = c
		up = append(up, secagg.Envelope{To: i, Message: m})
	}
	atClients += cpuTime() - at
	for server.Round() != secagg.RoundDone {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		at := cpuTime()
		down = down[:0]
		for _, e := range up {
			out.Up += len(e.Message)
			more, err := server.Step(e.To, e.Message)
			if err != nil {
				return out, err
			}
			down = append(down, more...)
		}
		if len(down) == 0 && server.Round() != secagg.RoundDone {
			now = server.Deadline().Add(1)
			if down, err = server.Tick(); err != nil {
				return out, err
			}
		}
		atServer += cpuTime() - at
		at = cpuTime()
		up = up[:0]
		for _, e := range down {
			out.Down += len(e.Message)
			if e.To < vanish {
				if h, err := secagg.Inspect(e.Message); err != nil {
					return out, err
				} else if h.Kind == secagg.KindDelivery {
					continue
				}
			}
			m, err := clients[e.To].Step(e.Message)
			if err != nil {
				return out, err
			}
			up = append(up, secagg.Envelope{To: e.To, Message: m})
		}
		atClients += cpuTime() - at
	}
	r, err := server.Result()
	if err != nil {
		return out, err
	}
	if r.Sum[0] != want {
		return out, fmt.Errorf("the sum is %d, must be %d", r.Sum[0], want)
	}
	out.K, out.T = r.Params.K, r.Params.T
	out.ServerMS = float64(atServer.Microseconds()) / 1000
	out.ClientMS = float64(atClients.Microseconds()) / 1000 / float64(n)
	out.Up, out.Down = out.Up/n, out.Down/n
	return out, nil
}

// benchSession is one that may begin with as few clients as its graph allows.
func benchSession(n int, mode secagg.Mode, gamma, delta float64) (secagg.Session, error) {
	id, err := secagg.NewID(nil)
	if err != nil {
		return secagg.Session{}, err
	}
	session := secagg.Session{ID: id, Experiment: "bench", Grid: 1, Length: 1, Enrolled: n, NMin: 1,
		Noise: "none", Mode: mode, Gamma: gamma, Delta: delta}
	if err := session.Validate(); err != nil {
		return secagg.Session{}, err
	}
	session.NMin = min(session.Corrupt()+2, n)
	return session, nil
}
