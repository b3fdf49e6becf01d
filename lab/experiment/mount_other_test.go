//go:build !linux

package experiment

import "errors"

func mountTmpfs(string, string) error { return errors.ErrUnsupported }

func unmount(string) {}
