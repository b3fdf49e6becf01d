package private_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/client/private"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// A program on a unit's own machine decides, registers at once, and comes to the session.
func ExampleCohorts() {
	ctx := context.Background()
	service, err := client.New("https://sotto.example.org", "a key with the scopes decide and reward")
	if err != nil {
		fmt.Println(err)
		return
	}
	sessions := private.Cohorts{Client: service, Experiment: "shop", Journal: &aggregate.Journal{Dir: "sent"}}
	d, err := service.Decide(ctx, "shop", client.Unit{})
	if err != nil {
		fmt.Println(err)
		return
	}
	member, err := sessions.Register(ctx, d.Report)
	if err != nil {
		fmt.Println(err)
		return
	}
	bought := false // what becomes of it until member.Due()
	err = member.Join(ctx, func() (float64, bool) { return 1, bought })
	switch {
	case err == nil:
		fmt.Println("summed")
	case errors.Is(err, transport.ErrPossiblyReleased):
		fmt.Println("sent, and not sent again")
	case errors.Is(err, private.ErrOver):
		fmt.Println("it counts as missing")
	}
}
