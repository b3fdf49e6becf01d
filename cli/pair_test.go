package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// BenchmarkPair is what a decision and its reward cost a service of its own process, in processor time and
// in how often its threads were run, where so many a second come on one connection. Beside it are the same
// two requests to a process that does nothing but answer, and to one that also appends a page to a file and
// syncs it: nothing durable over HTTP can cost less.
func BenchmarkPair(b *testing.B) {
	for _, rate := range []int{20, 100, 500} {
		for _, name := range []string{"sotto", "answers", "syncs"} {
			b.Run(fmt.Sprintf("%d/%s", rate, name), func(b *testing.B) {
				p := startPair(b, name)
				tick := time.NewTicker(time.Second / time.Duration(rate))
				defer tick.Stop()
				for range rate { // it gets warm
					p.ask(b)
					<-tick.C
				}
				before, runs := p.used(b)
				for range b.N {
					p.ask(b)
					<-tick.C
				}
				after, runsAfter := p.used(b)
				b.ReportMetric(0, "ns/op") // which is the rate
				b.ReportMetric(float64((after-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/pair")
				b.ReportMetric(float64(runsAfter-runs)/float64(b.N), "runs/pair")
			})
		}
	}
}

// A pairs asks a process for a decision, and reports its reward.
type pairs struct {
	pid  int
	conn net.Conn
	in   *bufio.Reader
	key  string
	n    int
}

const pairedExperiment = `
name: shop
arms: [{name: red}, {name: blue}]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 24h
sticky: false
`

func startPair(b *testing.B, name string) *pairs {
	dir := b.TempDir()
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		b.Skip("it reads /proc, which is not here: ", err)
	}
	cmd, key := exec.CommandContext(b.Context(), "peer", name, filepath.Join(dir, "log")), []byte("none")
	if name == "sotto" {
		key = []byte("sotto_abcdefghijklmnopqrstuvwxyz")
		if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x", "shop.yaml"), []byte(pairedExperiment), 0o600); err != nil {
			b.Fatal(err)
		}
		cmd = exec.CommandContext(b.Context(), "sotto", "serve", "--listen", "127.0.0.1:0", "--data",
			filepath.Join(dir, "data"), "--admin-key-file", filepath.Join(dir, "key"), "--experiments",
			filepath.Join(dir, "x"))
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatal("it has ended: ", err)
		}
		if at := regexp.MustCompile(`^listening on http://([^,\s]*)`).FindStringSubmatch(line); at != nil {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			conn, err := net.Dial("tcp", at[1])
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() })
			return &pairs{cmd.Process.Pid, conn, bufio.NewReader(conn), string(key), 0}
		}
	}
}

func (p *pairs) ask(b *testing.B) {
	var made struct{ Decision string }
	p.n++
	p.post(b, "decisions", fmt.Sprintf(`{"unit":"u%d"}`, p.n), &made)
	var taken struct{ Status string }
	p.post(b, "rewards", fmt.Sprintf(`{"decision":%q,"reward":1}`, made.Decision), &taken)
	if taken.Status != "accepted" {
		b.Fatalf("the reward of %q: %q", made.Decision, taken.Status)
	}
}

func (p *pairs) post(b *testing.B, what, body string, to any) {
	fmt.Fprintf(p.conn, "POST /v1/experiments/shop/%s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", what, p.key, len(body), body)
	answer, err := http.ReadResponse(p.in, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(to); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer.Status, err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
}

// used is what the process's threads have had of the processor, and how often.
func (p *pairs) used(b *testing.B) (used time.Duration, runs int64) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.pid))
	if err != nil || len(threads) == 0 {
		b.Fatal("it has no threads: ", err)
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		var ran, waited, n int64
		if _, err := fmt.Sscan(string(text), &ran, &waited, &n); err != nil {
			b.Fatal(err)
		}
		used, runs = used+time.Duration(ran), runs+n
	}
	return used, runs
}

// peer is the command of BenchmarkPair's other processes: it answers, with the service's deadlines. If its
// first argument is syncs, it appends a page to the file that the second names, and syncs it, for each reward.
func peer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	f, err := os.OpenFile(os.Args[2], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	page := make([]byte, 4096)
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			if err == nil && os.Args[1] == "syncs" && strings.HasSuffix(r.URL.Path, "/rewards") {
				if _, err = f.Write(page); err == nil {
					err = f.Sync()
				}
			}
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, `{"decision":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","status":"accepted"}`+"\n")
		})}
	fmt.Fprintln(os.Stderr, s.Serve(l))
}
