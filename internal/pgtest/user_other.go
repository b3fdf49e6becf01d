//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

func other() (*syscall.SysProcAttr, int, int, error) {
	return nil, 0, 0, errors.New("it is for a Unix")
}
