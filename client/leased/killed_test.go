package leased_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/client/leased"
	"github.com/sotto-dp/sotto/live/serve"
)

// TestMain is a client that is killed, where it is told so: it decides units from a number on, says what it gave each
// before it goes on, and that all was taken when it is let end.
func TestMain(m *testing.M) {
	at := os.Getenv("SOTTO_LEASED")
	if at == "" {
		os.Exit(m.Run())
	}
	if err := decideAll(at, os.Getenv("SOTTO_LEASED_KEY"), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func decideAll(at, key, from, to string) error {
	first, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	last, err := strconv.Atoi(to)
	if err != nil {
		return err
	}
	c, err := client.New(at, key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f, err := leased.Follow(ctx, c, leased.Config{Experiment: "shop", Every: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	for i := first; i < last; i++ {
		d, err := f.Decide(fmt.Sprint("unit ", i))
		for ; err != nil; d, err = f.Decide(fmt.Sprint("unit ", i)) {
			time.Sleep(10 * time.Millisecond) // the machine is busy
		}
		fmt.Println(i, d.Arm)
		time.Sleep(time.Millisecond)
	}
	if err := f.Close(ctx); err != nil {
		return err
	}
	fmt.Println("taken")
	return nil
}

// A client is killed again and again, wherever it is, and the next one begins with units that the last one had: what
// was counted is each unit once, with an arm that a client gave it, and who was let end has lost none.
func TestFollowerKilled(t *testing.T) {
	s, _, f := follow(t, leased.Config{})
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := s.Key(serve.ScopeDecide | serve.ScopeReward)
	given, unsaid, next, killed := map[int]map[string]bool{}, map[int]bool{}, 0, 0
	rng := rand.New(rand.NewPCG(1, 34))
	run := func(from, to int, after time.Duration) (taken bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], fmt.Sprint(from), fmt.Sprint(to))
		child.Env = append(os.Environ(), "SOTTO_LEASED="+s.URL, "SOTTO_LEASED_KEY="+key)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		var kill *time.Timer
		for lines := bufio.NewScanner(out); lines.Scan(); {
			number, arm, ok := strings.Cut(lines.Text(), " ")
			if taken = !ok; taken {
				continue
			}
			if kill == nil && after > 0 {
				kill = time.AfterFunc(after, func() { _ = child.Process.Kill() })
			}
			i, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			if given[i] == nil {
				given[i] = map[string]bool{}
			}
			given[i][arm], next = true, i+1
		}
		if err := child.Wait(); err == nil == (after > 0) {
			t.Errorf("the client ended with %v", err)
		}
		return taken
	}
	for ; killed < 6; killed++ {
		run(max(0, next-20), next+100_000, time.Duration(20+rng.IntN(120))*time.Millisecond)
		unsaid[next] = true // it may have been given an arm that was not said any more
	}
	first := max(0, next-20)
	if !run(first, next+40, 0) {
		t.Fatal("the last client was not let end")
	}
	kept := 0
	for i, arms := range given {
		k, err := s.Engine.Kept(t.Context(), "shop", fmt.Sprint("unit ", i))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case k.Assigned && !arms[k.Arm] && !unsaid[i]:
			t.Errorf("unit %d has arm %s, was given %v", i, k.Arm, arms)
		case k.Assigned && k.Assignments != 1:
			t.Errorf("unit %d has %d assignments", i, k.Assignments)
		case k.Assigned:
			kept++
		case i >= first:
			t.Errorf("unit %d was taken, and is not kept", i)
		}
	}
	if n := decisions(t, s); n != kept || kept < len(given)/2 {
		t.Errorf("%d decisions of %d units that are kept, of %d", n, kept, len(given))
	}
	t.Logf("%d kills, %d units given an arm, %d of them counted, each once", killed, len(given), kept)
}
