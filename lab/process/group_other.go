//go:build !unix

package process

import "os/exec"

// group does nothing: the process alone is ended.
func group(*exec.Cmd) {}

// rest does nothing, as group.
func rest(*exec.Cmd) {}
