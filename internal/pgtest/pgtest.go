// Package pgtest gives tests a PostgreSQL server of their own, on systems that are a Unix.
package pgtest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The superuser of the cluster, and what it has to say over TCP; over the socket, nothing.
const (
	User     = "sotto"
	Password = "not for the log"
)

// A Cluster is a PostgreSQL server that ends with the process that started it, however that ends.
type Cluster struct {
	Dir  string // has the socket
	Port int    // of the loopback and of the socket
	bin  string
	// held is the pipe that tells the server that this process is there.
	held io.Closer
}

// start makes one cluster for the process.
var start = sync.OnceValues(newCluster)

// Start is the cluster of this process. Without PostgreSQL the test is skipped, and fails where the
// environment has CI.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if _, ok := programs(); !ok {
		if os.Getenv("CI") != "" {
			t.Fatal("PostgreSQL is not installed, and CI skips nothing")
		}
		t.Skip("PostgreSQL is not installed (Debian's package postgresql)")
	}
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Database makes an empty database, which goes with the cluster, and says where it is.
func Database(t testing.TB) string {
	t.Helper()
	c := Start(t)
	name := fmt.Sprintf("test%d", time.Now().UnixNano())
	c.SQL(t, "postgres", "CREATE DATABASE "+name)
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", name, c.Dir, c.Port, User)
}

// SQL runs statements in a database and returns what they say.
func (c *Cluster) SQL(t testing.TB, database string, statements ...string) string {
	t.Helper()
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", c.Dir, "-p", strconv.Itoa(c.Port),
		"-U", User, "-d", database}
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	out, err := exec.Command(filepath.Join(c.bin, "psql"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(bytes.TrimSpace(out))
}

// Dump is all of a database that Database made, as statements that psql reads.
func Dump(t testing.TB, address string) []byte {
	t.Helper()
	out := Start(t).program(t, nil, "pg_dump", "--no-owner", "--no-privileges", "-d", address)
	// which psql of before 2025 does not know
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`).ReplaceAll(out, nil)
}

// Run runs statements in a database that Database made. One that begins with a backslash is psql's.
func Run(t testing.TB, address string, statements ...string) string {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(address, "postgres:///"), "?")
	return Start(t).SQL(t, name, statements...)
}

// Copy makes a new database of a dump of one that Database has made, and says where it is.
func (c *Cluster) Copy(t testing.TB, address string) string {
	t.Helper()
	to := Database(t)
	c.Restore(t, to, c.Dump(t, address))
	return to
}

// Dump is what pg_dump writes of a database, for pg_restore.
func (c *Cluster) Dump(t testing.TB, address string) []byte {
	t.Helper()
	return c.program(t, nil, "pg_dump", "-Fc", address)
}

// Restore has pg_restore write a dump into a database, in the place of what is there if it is to clean.
func (c *Cluster) Restore(t testing.TB, address string, dump []byte, clean ...string) {
	t.Helper()
	c.program(t, dump, "pg_restore", append(clean, "-d", address)...)
}

func (c *Cluster) program(t testing.TB, in []byte, name string, args ...string) []byte {
	t.Helper()
	run := exec.Command(filepath.Join(c.bin, name), args...)
	var errs bytes.Buffer
	run.Stdin, run.Stderr = bytes.NewReader(in), &errs
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, &errs)
	}
	return out
}

// programs is the directory of PostgreSQL's programs; Debian has it not on the path.
func programs() (string, bool) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well-formed
	slices.Reverse(dirs)
	if at, err := exec.LookPath("postgres"); err == nil {
		if at, err = filepath.EvalSymlinks(at); err == nil {
			dirs = append(dirs, filepath.Dir(at))
		}
	}
	at := slices.IndexFunc(dirs, func(dir string) bool {
		for _, p := range []string{"initdb", "postgres", "psql"} {
			if _, err := exec.LookPath(filepath.Join(dir, p)); err != nil {
				return false
			}
		}
		return true
	})
	if at < 0 {
		return "", false
	}
	return dirs[at], true
}

func newCluster() (_ *Cluster, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("a PostgreSQL cluster for tests: %w", err)
		}
	}()
	bin, _ := programs()
	as, uid, gid, err := other()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sotto-pg")
	if err != nil {
		return nil, err
	}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(Password), 0o600); err != nil {
		return nil, err
	}
	for _, path := range []string{dir, secret} {
		if err := os.Chown(path, uid, gid); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Port: port, bin: bin}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", User, "-E",
		"UTF8", "--locale=C", "--no-sync", "--auth-local=trust", "--auth-host=scram-sha-256",
		"--pwfile="+secret)
	initdb.Dir, initdb.SysProcAttr = dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return c, c.run(as)
}

// run starts the server.
func (c *Cluster) run(as *syscall.SysProcAttr) (err error) {
	bin, dir, port := c.bin, c.Dir, c.Port
	// The pipe is closed when this process ends, also when it is killed: then the server is stopped.
	server := exec.Command("/bin/sh", "-c", `"$0" "$@" </dev/null & cat >/dev/null; kill -INT $!; wait; rm -rf "$DIR"`,
		filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-k", dir, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "logging_collector=off", "-c", "max_connections=200")
	server.Dir, server.SysProcAttr = dir, as
	server.Env = append(os.Environ(), "DIR="+dir)
	if c.held, err = server.StdinPipe(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command(filepath.Join(bin, "psql"), "-X", "-h", dir, "-p", strconv.Itoa(port), "-U", User,
			"-d", "postgres", "-c", "SELECT 1").CombinedOutput()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("it does not start: %s%s", out, said)
		}
	}
}

// Promoted is a cluster with what c has now: a standby that was promoted, and has made no checkpoint
// since.
func (c *Cluster) Promoted(t testing.TB) *Cluster {
	t.Helper()
	as, uid, gid, err := other()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sotto-pg")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	backup := exec.Command(filepath.Join(c.bin, "pg_basebackup"), "-h", c.Dir, "-p", strconv.Itoa(c.Port), "-U",
		User, "-D", filepath.Join(dir, "data"), "-R", "-c", "fast", "--no-sync")
	backup.Dir, backup.SysProcAttr = dir, as
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &Cluster{Dir: dir, Port: port, bin: c.bin}
	if err := p.run(as); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.held.Close() })
	p.SQL(t, "postgres", "SELECT pg_promote()")
	return p
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
