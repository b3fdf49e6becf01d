package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/secagg"
)

const keyBlock = "PRIVATE KEY" // PKCS #8, as other tools have it

// readKey reads an identity key.
func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage(err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, usage(fmt.Errorf("%s: others can read this key (mode %v): make a new one, or "+
			"chmod 600 if you know that nobody has", path, info.Mode().Perm()))
	}
	b, err := readLimited(path, 1<<16)
	if err != nil {
		return nil, usage(err)
	}
	block, rest := pem.Decode(b)
	if block == nil || block.Type != keyBlock || len(rest) != 0 {
		return nil, usage(fmt.Errorf("%s: no private key in PEM, as sotto aggregate keygen writes it", path))
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		// the cause may quote what must stay secret
		return nil, usage(fmt.Errorf("%s: the key cannot be read", path))
	}
	key, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, usage(fmt.Errorf("%s: a key of type %T, must be Ed25519", path, k))
	}
	return key, nil
}

type aggregateKeygen struct {
	File string `arg:"" help:"File of the new private key; it must not exist." type:"path"`
	JSON bool   `help:"As JSON, for programs."`
}

func (c *aggregateKeygen) Run(s streams) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	switch err := atomicfile.WriteOnce(c.File, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})); {
	case errors.Is(err, fs.ErrExist):
		return usage(fmt.Errorf("%s is there already: a key is never overwritten", c.File))
	case err != nil:
		return usage(err)
	}
	return printKey(s, public, c.JSON)
}

func printKey(s streams, k ed25519.PublicKey, asJSON bool) error {
	if asJSON {
		return printJSON(s, map[string]string{"public_key": formatKey(k)})
	}
	_, err := fmt.Fprintln(s.out, formatKey(k))
	return err
}

type aggregatePublic struct {
	File string `arg:"" help:"File of a private key." type:"path"`
	JSON bool   `help:"As JSON, for programs."`
}

func (c *aggregatePublic) Run(s streams) error {
	k, err := readKey(c.File)
	if err != nil {
		return err
	}
	return printKey(s, k.Public().(ed25519.PublicKey), c.JSON)
}

type aggregateID struct {
	JSON bool `help:"As JSON, for programs."`
}

func (c *aggregateID) Run(s streams) error {
	id, err := secagg.NewID(nil)
	if err != nil {
		return err
	}
	text := hex.EncodeToString(id[:])
	if c.JSON {
		return printJSON(s, map[string]string{"id": text})
	}
	_, err = io.WriteString(s.out, text+"\n")
	return err
}

// wasUsed says early what markUsed would say when others wait.
func wasUsed(dir string, id [32]byte) error {
	if _, err := os.Lstat(usedFile(dir, id)); err == nil {
		return fmt.Errorf("%w: session %x… was used before, says %s", secagg.ErrReplay, id[:8], dir)
	}
	return nil
}

func usedFile(dir string, id [32]byte) string { return filepath.Join(dir, hex.EncodeToString(id[:])) }

// markUsed writes down that a session is used: one file a session, so that two processes cannot
// both be the first.
func markUsed(dir string, id [32]byte) error {
	if err := atomicfile.MakeDir(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(usedFile(dir, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: session %x… was used before, says %s", secagg.ErrReplay, id[:8], dir)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}
