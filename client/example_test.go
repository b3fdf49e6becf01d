package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/client"
)

// answering answers as sotto serve does.
func answering(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/decisions"):
		_, _ = io.WriteString(w, `{"decision":"AbC","arm":"blue","value":"#00c","propensity":0.5,`+
			`"expires_at":"2030-01-01T00:00:00Z","reason":"split"}`)
	case strings.HasSuffix(r.URL.Path, "/batch"):
		_, _ = io.WriteString(w, `{"results":[{"status":"accepted"}]}`)
	}
}

// A shop shows an arm, or its usual one if there is none to be had, and reports what came of it.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(answering))
	defer service.Close()
	ctx := context.Background()

	c, err := client.New(service.URL, "sotto_key")
	if err != nil {
		fmt.Println(err)
		return
	}
	rewards, err := c.Queue(client.QueueConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}

	arm := client.Decision{Arm: "red"} // the usual one
	asked, cancel := context.WithTimeout(ctx, 2*time.Second)
	if d, err := c.Decide(asked, "shop", client.Unit{Name: "visitor 7"}); err == nil {
		arm = d
	}
	cancel()
	fmt.Println("shows", arm.Arm)

	if arm.Token != "" { // it counts: the visitor clicked
		if err := rewards.Add("shop", arm.Token, 1); err != nil {
			fmt.Println(err)
		}
	}
	ending, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fmt.Println("all sent:", rewards.Close(ending) == nil)
	// Output:
	// shows blue
	// all sent: true
}
