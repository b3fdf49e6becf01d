//go:build !unix

package cli

import "time"

var started = time.Now()

// cpuTime is the time by the clock, where there is none of the processor to be had in one way.
func cpuTime() time.Duration { return time.Since(started) }
