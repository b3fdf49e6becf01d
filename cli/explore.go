package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

type exploreCommand struct {
	Link   string `arg:"" optional:"" help:"${exploreLink}"`
	Listen string `default:"127.0.0.1:8081" help:"${exploreListen}" placeholder:"HOST:PORT"`
	Open   bool   `help:"Open the page in a browser."`
	programFlag
}

// exploreTexts are help texts that are too long for their flags.
var exploreTexts = kong.Vars{
	"exploreLink": "What the page begins with: a link that it gave, or what stands in one behind #, such as " +
		"'arms=0.75,0.6&policies=dp-se&epsilon=1&horizon=1e6'.",
	"exploreListen": "Address to listen on; with port 0 the system chooses one. It is printed.",
	"explore": `A page on which privacy is turned like a knob: arms as sliders, policies to tick, and the regret,
its lower bound and the price of privacy, played while you turn. Nothing leaves this machine.

Examples:
  sotto explore --open
  sotto explore 'arms=0.9,0.8,0.5&policies=dp-imed,dp-ts&rho=0.1&horizon=1e5'`,
}

func (c *exploreCommand) Run(ctx context.Context, s streams) error {
	var err error
	if s.known, err = c.known(s, catalog.BanditArms, false); err != nil {
		return err
	}
	fragment := ""
	if c.Link != "" {
		link := afterHash(c.Link)
		r, err := explore.Parse(link)
		if err == nil && r.CSV == "" {
			_, err = explore.New(s.known, r, nil)
		}
		if err != nil {
			return usage(err)
		}
		fragment = "#" + r.Link()
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	defer func() { _ = l.Close() }() // Serve has, if all went well
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	h, err := site.Handler(s.known, host, cmp.Or(name, "localhost"))
	if err != nil {
		return err
	}
	at := "http://" + l.Addr().String() + "/" + fragment
	fmt.Fprintf(s.out, "look: %s\n", at)
	if c.Open {
		if err := browse(ctx, at); err != nil {
			fmt.Fprintf(s.err, "no browser opened (%v): the page is at %s\n", err, at)
		}
	}
	return site.Serve(ctx, l, h)
}

// afterHash is what stands behind # in a link, or all of a text without one.
func afterHash(link string) string {
	for i, c := range link {
		if c == '#' {
			return link[i+1:]
		}
	}
	return link
}

// browse opens an address with what the system has for that.
func browse(ctx context.Context, address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", address).Start()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", address).Start()
	}
	return exec.CommandContext(ctx, "xdg-open", address).Start()
}
