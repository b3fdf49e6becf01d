package cli

import (
	"context"
	"net"
	"strconv"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// cohorts listens for sessions; nil if that was not asked for. Close is for whoever has closed the
// engine.
func (c *serveCommand) cohorts(ctx context.Context) (_ *serve.Cohorts, err error) {
	if c.CohortListen == "" {
		if c.CohortAddress != "" {
			return nil, usagef("--cohort-address is where clients reach --cohort-listen, which is missing")
		}
		return nil, nil
	}
	if c.CohortAddress != "" {
		host, port, err := net.SplitHostPort(c.CohortAddress)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			return nil, usagef("--cohort-address is %q, must be HOST:PORT, as clients reach it", c.CohortAddress)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.CohortListen)
	if err != nil {
		return nil, usagef("--cohort-listen: %w", err)
	}
	at := c.CohortAddress
	if at == "" {
		at = l.Addr().String()
	}
	return &serve.Cohorts{Hub: transport.NewHub(l), Address: at}, nil
}
