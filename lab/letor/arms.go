package letor

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/sotto-dp/sotto/noise"
)

// Mean is the mean reward of an arm: its mean rating over MaxRating.
func (a Arms) Mean(arm int) float64 {
	sum, n := 0, 0
	for rating, count := range a.Counts[arm] {
		sum, n = sum+rating*count, n+count
	}
	return float64(sum) / float64(MaxRating*n)
}

// Len is the number of rows of an arm.
func (a Arms) Len(arm int) int {
	n := 0
	for _, count := range a.Counts[arm] {
		n += count
	}
	return n
}

// WriteCSV writes every row as a logged reward, with the header arm,reward: arms are numbered
// from 1, rewards are ratings over MaxRating. So experiments read it: its arms' laws are those of
// their logged rewards.
//
// The rows come in an order drawn from the seed. A trial on logged data plays an arm's rewards one
// after another and takes them for independent draws: in the order of the ratings it would see the
// worst ones only, and in that of the file those of one query together.
func (a Arms) WriteCSV(w io.Writer) error {
	var lines []string
	var log []int32 // of each row, its line
	for arm, counts := range a.Counts {
		for rating, count := range counts {
			if count == 0 {
				continue
			}
			for range count {
				log = append(log, int32(len(lines)))
			}
			lines = append(lines, fmt.Sprintf("%d,%s\n", arm+1,
				strconv.FormatFloat(float64(rating)/MaxRating, 'g', -1, 64)))
		}
	}
	random := rand.New(noise.Key{Seed: a.Seed, Experiment: "letor order", Role: noise.RoleInstance}.ChaCha8())
	random.Shuffle(len(log), func(i, j int) { log[i], log[j] = log[j], log[i] })
	b := bufio.NewWriter(w)
	b.WriteString("arm,reward\n")
	for _, i := range log {
		b.WriteString(lines[i]) // an error stays until Flush
	}
	return b.Flush()
}
