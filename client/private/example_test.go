package private_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/client/private"
	"github.com/sotto-dp/sotto/live/decl"
)

// A program that has the declaration asks a service for an arm, and has what came of it reported at
// its time. It holds what the service says against the declaration.
func Example() {
	declared, err := decl.Reader{}.Parse("shop.yaml", []byte(text+"trust: local\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	leader := newService(nil, declared) // in the place of a network
	c, err := client.New("https://bandits.example.org", "sotto_key",
		client.HTTPClient(&http.Client{Transport: leader}))
	if err != nil {
		fmt.Println(err)
		return
	}
	reporter, err := private.New(c, declared, private.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	d, err := reporter.Decide(context.Background(), client.Unit{Name: "visitor 7"})
	if err != nil {
		fmt.Println("the usual arm:", err)
		return
	}
	fmt.Println("shows", d.Arm)
	fmt.Println("clicked:", d.Outcome(1) == nil) // at any time before the report's

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println("reported:", reporter.Close(ctx) == nil, len(leader.seen()))
	// Output:
	// shows red
	// clicked: true
	// reported: true 1
}
