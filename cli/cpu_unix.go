//go:build unix

package cli

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has used, so that a busy machine does not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // never, for this process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
