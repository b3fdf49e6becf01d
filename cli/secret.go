package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/sotto-dp/sotto/secagg/dap"
)

// readSecret reads what two operators share: at least 32 bytes, as base64url in one line. Nothing of
// it is in an error.
func readSecret(flag, path string) ([]byte, error) {
	b, err := readHidden(flag, path)
	if err != nil {
		return nil, err
	}
	secret, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(secret) < dap.SecretSize {
		return nil, usagef("%s: %s is no secret, must be one line, the base64url without padding of at least %d "+
			"random bytes", flag, path, dap.SecretSize)
	}
	return secret, nil
}

// readHidden reads a file that its owner alone may read.
func readHidden(flag, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, usagef("%s: %s: others can read this secret (mode %v): make a new one, or chmod 600 if you "+
			"know that nobody has", flag, path, info.Mode().Perm())
	}
	b, err := readLimited(path, 1<<12)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return b, nil
}

// newSecret is readSecret of a file that it makes if it is not there.
func newSecret(flag, path string) ([]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, dap.SecretSize)
		_, _ = rand.Read(secret) // never fails
		if err := writeKey(flag, path, []byte(base64.RawURLEncoding.EncodeToString(secret)+"\n")); err != nil {
			return nil, err
		}
	}
	return readSecret(flag, path)
}
