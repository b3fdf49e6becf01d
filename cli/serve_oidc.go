package cli

import (
	"path/filepath"
	"strings"

	"github.com/sotto-dp/sotto/live/serve/oidc"
)

// issuer is who names people at the pages, nil if nobody does. It is not asked anything now: a service starts
// without it.
func (c *serveCommand) issuer() (*oidc.Issuer, error) {
	if c.OIDC == "" {
		return nil, nil
	}
	const flag = "--oidc"
	text, err := readLimited(c.OIDC, 1<<16)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	config, err := oidc.Parse(text)
	if err != nil {
		return nil, usagef("%s: %s: %w", flag, c.OIDC, err)
	}
	if config.SecretFile == "" {
		return oidc.New(config, ""), nil
	}
	path := config.SecretFile
	if !filepath.IsAbs(path) { // beside the file that names it
		path = filepath.Join(filepath.Dir(c.OIDC), path)
	}
	secret, err := readHidden(flag+": secret_file", path)
	if err != nil {
		return nil, err
	}
	return oidc.New(config, strings.TrimSpace(string(secret))), nil
}
