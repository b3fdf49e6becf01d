package cli

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is read again when its file has changed, so that it can be renewed while the service
// runs. It serves many goroutines.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	of   time.Time // when its file was written
}

// load reads the files, if they are not those that it has.
func (c *certificate) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return err
	}
	if c.pair != nil && info.ModTime().Equal(c.of) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.pair, c.of = &pair, info.ModTime()
	return nil
}

// get is the certificate of now; the last good one, if the files are being changed.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		c.log.Error("the certificate stays as it was", "error", err)
	}
	return c.pair, nil
}

// config is that of a server with HTTP/2. Its certificate is good, or there is an error.
func (c *certificate) config() (*tls.Config, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get,
		NextProtos: []string{"h2", "http/1.1"}}, nil
}
