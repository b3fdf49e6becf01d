package play_test

import (
	"fmt"

	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
)

// Sixty visitors, of whom every fourth buys within the hour. In earnest the epoch is random, the
// state and each line are made durable before the commit, and tickets are signed.
func ExampleLive() {
	p, err := policy.NewDPKLUCB(2, 1, 2, 15)
	if err != nil {
		panic(err)
	}
	live, err := play.New(play.Config{Policy: p, Arms: 2, Window: 60, Epoch: play.Epoch{1}})
	if err != nil {
		panic(err)
	}
	for minute := range int64(60) {
		ticket, _ := live.Decide(play.Decision{Arm: live.Arm()}, minute)
		if minute%4 == 0 {
			_, _ = live.Settle(ticket, 1, minute+5)
		}
	}
	for _, minute := range []int64{60, 120} {
		commit, err := live.Close(minute)
		if err != nil || commit == nil {
			fmt.Println(minute, "waits", err)
			continue
		}
		fmt.Println(minute, commit.Taken, live.Commit(commit))
	}
	fmt.Println(live.Ledger().Total().Pure() <= 1, live.Batches())
	// Output:
	// 60 waits <nil>
	// 120 [{0 0 15} {1 0 15}] <nil>
	// true 2
}
