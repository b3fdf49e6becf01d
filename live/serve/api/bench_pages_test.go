//go:build unix

package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readPages has the test's program open pages in its place, so that what they cost is not counted
// for the service: ADDRESS N. It says so when each has had all that there is.
const readPages = "SOTTO_TEST_READ_PAGES"

func TestReadPages(t *testing.T) {
	address, count, ok := strings.Cut(os.Getenv(readPages), " ")
	if !ok {
		t.Skip("it is for BenchmarkPages")
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan error)
	for range n {
		go func() {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_, err = io.WriteString(c, "GET /experiments/shop/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			}
			if err == nil {
				r := bufio.NewReader(c)
				for line := ""; err == nil && !strings.HasPrefix(line, "data: "); {
					line, err = r.ReadString('\n')
				}
				began <- err
				_, _ = io.Copy(io.Discard, r)
				return
			}
			began <- err
		}()
	}
	for range n {
		if err := <-began; err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("\nall are open")
	_, _ = io.Copy(io.Discard, os.Stdin) // until its end
}

// BenchmarkPages is what 1000 open pages of an experiment cost a second in which its traffic changes,
// beyond that traffic; and how long a page takes to its first byte while they are open.
func BenchmarkPages(b *testing.B) {
	w := shopOpen(b)
	e := w.engine
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Handler(Config{Engine: e}), slog.New(slog.DiscardHandler)) }()
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	unit := 0
	second := func() (used, first time.Duration) {
		before := cpu()
		for range 10 {
			unit++
			if _, err := e.Decide(ctx, "shop", fmt.Sprint(unit)); err != nil {
				b.Fatal(err)
			}
			w.clock.Add(100 * time.Millisecond)
			time.Sleep(time.Duration(95+rand.IntN(10)) * time.Millisecond)
		}
		used = cpu() - before
		from := time.Now()
		r, err := http.Get("http://" + l.Addr().String() + "/experiments/shop")
		if err != nil {
			b.Fatal(err)
		}
		first = time.Since(from)
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		return used, first
	}
	var alone time.Duration
	for range 5 {
		used, _ := second()
		alone += used
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	const pages = 1000
	child := exec.Command(self, "-test.run", "^TestReadPages$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", readPages, l.Addr(), pages))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "all are open"; {
	}
	var used, first time.Duration
	n := 0
	for b.Loop() {
		u, f := second()
		used, first, n = used+u, first+f, n+1
	}
	b.ReportMetric(100*(used.Seconds()/float64(n)-alone.Seconds()/5), "%core")
	b.ReportMetric(first.Seconds()/float64(n)*1000, "ms-first-byte")
	_ = in.Close()
	if err := child.Wait(); err != nil {
		b.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
