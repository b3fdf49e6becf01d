package letor

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
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

// WriteCSV writes every row as a logged reward, with the header arm,reward: arms are numbered from 1, rewards are ratings over MaxRating. So
// experiments read it: its arms' laws are those of their logged rewards.
func (a Arms) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("arm,reward\n")
	for arm, counts := range a.Counts {
		for rating, count := range counts {
			line := fmt.Sprintf("%d,%s\n", arm+1, strconv.FormatFloat(float64(rating)/MaxRating, 'g', -1, 64))
			for range count {
				b.WriteString(line) // an error stays until Flush
			}
		}
	}
	return b.Flush()
}
