//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// group gives a command a process group of its own, so that what it has started ends with it.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// rest ends what a command that has ended has left in its group.
func rest(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
