package cli

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// A served is a running sotto serve.
type served struct {
	t        *testing.T
	url, key string
	banner   string
	errs     *lockedBuffer
	stop     func() int // as Ctrl-C does; the exit code
	ended    <-chan int // by itself, with this code
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	code, ended := make(chan int, 1), make(chan int, 1)
	errs := &lockedBuffer{}
	go func() {
		n := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...),
			streams{in: strings.NewReader(""), out: out, err: errs})
		code <- n
		ended <- n
		_ = out.Close()
	}()
	s := &served{t: t, errs: errs, ended: ended, stop: sync.OnceValue(func() int { cancel(); return <-code })}
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		s.banner += line + "\n"
		if rest, ok := strings.CutPrefix(line, "listening on "); ok {
			s.url, _, _ = strings.Cut(rest, ",")
		}
		if rest, ok := strings.CutPrefix(line, "the admin key, shown this once: "); ok {
			s.key = rest
		}
		if strings.HasPrefix(line, "all requests: ") {
			return s
		}
	}
	t.Fatalf("it did not start: exit code %d: %s%s", s.stop(), s.banner, errs.String())
	return nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// text sends what curl would, and wants a status.
func (s *served) text(status int, method, path, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", s.key)
	r.Header.Set("Accept", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != status {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, got.StatusCode, b, err)
	}
	if strings.Contains(string(b), "7312894561") {
		s.t.Errorf("a reward is in the answer %s", b)
	}
	return string(b)
}

// call is text whose answer is an object.
func (s *served) call(status int, method, path, body string) map[string]any {
	s.t.Helper()
	b := s.text(status, method, path, body)
	var out map[string]any
	if err := json.Unmarshal([]byte(b), &out); err != nil && status != http.StatusNoContent {
		s.t.Fatalf("%s: %v", b, err)
	}
	return out
}

// Whoever is started second on a directory has it, and the first one ends by itself, with 0: whatever
// starts it again after failures would put the second out.
func TestServeSuperseded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a := startServe(t, "--data", dir)
	b := startServe(t, "--data", dir)
	select {
	case code := <-a.ended:
		if code != exitOK {
			t.Errorf("it ends with %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatalf("it does not end: %s", a.errs)
	}
	if log := a.errs.String(); strings.Count(log, "another process has taken the store over") != 1 ||
		!strings.Contains(log, "level=ERROR") {
		t.Errorf("it says %s", log)
	}
	b.key = a.key
	b.call(http.StatusOK, "GET", "/v1/experiments", "")
}

// A clock that has jumped since the last commit is said by the log, /readyz and the metrics, and is
// believed where the operator says that there was an outage.
func TestServeClock(t *testing.T) {
	dir, key := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "key")
	s := startServe(t, "--data", dir, "--admin-key-file", key)
	if got := s.call(http.StatusOK, "GET", "/readyz", ""); got["clock"] != nil {
		t.Error(got)
	}
	if code := s.stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.errs)
	}
	st, err := store.SQLite(dir)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Begin(t.Context(), "a year ago"); err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), store.Commit{Now: time.Now().AddDate(-1, 0, 0).UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	s = startServe(t, "--data", dir, "--admin-key-file", key)
	if got := s.call(http.StatusOK, "GET", "/readyz", ""); !strings.Contains(fmt.Sprint(got["clock"]),
		"behind the clock") {
		t.Error(got)
	}
	if log := s.errs.String(); !strings.Contains(log, "--longest-outage") {
		t.Errorf("it says %s", log)
	}
	s.stop()
	s = startServe(t, "--data", dir, "--admin-key-file", key, "--longest-outage", "10000h")
	if got := s.call(http.StatusOK, "GET", "/readyz", ""); got["clock"] != nil {
		t.Error(got)
	}
	if code := run(t.Context(), []string{"serve", "--data", dir, "--longest-outage", "59m"}, streams{
		in: strings.NewReader(""), out: io.Discard, err: io.Discard}); code != exitUsage {
		t.Errorf("an outage that is too short: exit code %d", code)
	}
}

// On a fresh machine: start, declare, decide, reward, end; and after a restart the same key opens,
// the same unit has the same decision, and its reward is taken.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^    name: shop\n(    .*\n)+`).Find(page)
	declaration = regexp.MustCompile(`(?m)^    `).ReplaceAll(declaration, nil)
	s := startServe(t, "--data", dir)
	if s.key == "" || strings.Count(s.banner, s.key) != 1 {
		t.Fatalf("%s", s.banner)
	}
	s.call(201, "POST", "/v1/experiments", string(declaration))
	s.call(200, "POST", "/v1/experiments/shop/start", "")
	d := s.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	report, err := json.Marshal(map[string]any{"decision": d["decision"], "reward": canary})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := s.call(200, "POST", "/v1/experiments/shop/rewards",
			string(report)); got["status"] != "accepted" {
			t.Error(got)
		}
	}
	s.call(400, "POST", "/v1/experiments/shop/rewards", strings.Replace(string(report), "}", "e999}", 1))
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if text := s.banner + s.errs.String(); strings.Contains(text, "7312894561") {
		t.Errorf("a reward is in %s", text)
	}
	again := startServe(t, "--data", dir)
	if again.key != "" {
		t.Errorf("a key is shown again: %s", again.banner)
	}
	again.key = s.key
	e := again.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	if e["decision"] != d["decision"] || e["arm"] != d["arm"] {
		t.Errorf("%v, was %v", e, d)
	}
	if got := again.call(200, "POST", "/v1/experiments/shop/rewards",
		string(report)); got["status"] != "accepted" {
		t.Error(got)
	}
	again.stop()

	file := filepath.Join(t.TempDir(), "admin.key")
	for range 2 { // made, and then read
		s = startServe(t, "--data", dir, "--admin-key-file", file)
		b, err := os.ReadFile(file)
		if err != nil || s.key != "" {
			t.Fatal(s.banner, err)
		}
		s.key = strings.TrimSpace(string(b))
		s.call(200, "GET", "/v1/keys", "")
		s.stop()
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != privateFile {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A key that was revoked does not come back by the file of --admin-key-file: the start is refused, and
// says what to do, which is enough.
func TestServeRevokedKeyFile(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "admin.key")
	args := []string{"--data", dir, "--admin-key-file", file}
	s := startServe(t, args...)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(b))
	s.call(409, "DELETE", "/v1/keys/1", "")
	s.call(204, "DELETE", "/v1/keys/1?last=true", "")
	s.call(401, "GET", "/v1/keys", "")
	s.stop()
	_, errs := tryCommand(t, exitUsage, "", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	if !strings.Contains(errs, "--admin-key-file: "+file+": ") || !strings.Contains(errs, "was revoked") ||
		!strings.Contains(errs, "put another key into the file") || strings.Contains(errs, s.key) {
		t.Error(errs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s = startServe(t, args...)
	if b, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(b))
	s.call(200, "GET", "/v1/keys", "")
	s.stop()
}

// The demonstration runs, and takes no experiments of real people.
func TestServeDemo(t *testing.T) {
	s := startServe(t, "--demo")
	d := s.call(200, "POST", "/v1/experiments/demo/decisions", "")
	if d["decision"] == nil {
		t.Error(d)
	}
	s.call(403, "POST", "/v1/experiments", "name: shop")
	s.key = "" // it is public; what it releases is tested in package demo
	s.call(200, "GET", "/v1/experiments/demo", "")
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// Of an experiment with contexts each start says what is protected, and what is not; a rank says it
// too.
func TestServeContexts(t *testing.T) {
	data, dir := filepath.Join(t.TempDir(), "data"), t.TempDir()
	text, err := os.ReadFile("../examples/live/front-page.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "front-page.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	key := ""
	for range 2 {
		s := startServe(t, "--data", data, "--experiments", dir)
		if strings.Count(s.banner, "\nexperiment front-page: what everybody sees depends on a "+
			"visit's rewards by ") != 1 ||
			strings.Count(s.banner, "; contexts, features, ids of actions and what was decided "+
				"are not protected\n") != 1 {
			t.Error(s.banner)
		}
		if s.key == "" {
			s.key = key
		}
		key = s.key
		d := s.call(200, "POST", "/v1/experiments/front-page/rank",
			`{"event": "ann", "context": {"device": "phone", `+
				`"user": {"age": 34}}, "actions": [{"id": "a", "features": {"topic": "news"}}, {"id": "b"}]}`)
		if d["reason"] != "split" || !strings.Contains(d["guarantee"].(string), "ids of actions") {
			t.Error(d)
		}
		s.call(200, "POST", "/v1/experiments/front-page/events/ann/reward", `{"reward": 1}`)
		s.stop()
	}
}

// A holdout is started before the experiments that it is for, in whichever file it is.
func TestServeHoldouts(t *testing.T) {
	dir := t.TempDir()
	for name, more := range map[string]string{"a": "policy: dp-klucb\nholdout: quarter\n",
		"quarter": "policy: split\nholds: red\n", "z": "policy: split\nholdout: quarter\n"} {
		text := "name: " + name + "\narms: [red, blue]\nunit: {of: visit}\nbudget: {epsilon: 1}\nwindow: 1h\n" + more
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := startServe(t, "--data", filepath.Join(t.TempDir(), "data"), "--experiments", dir)
	defer s.stop()
	for i := range 20 {
		unit := fmt.Sprintf(`{"unit": "%d"}`, i)
		held := s.call(200, "POST", "/v1/experiments/quarter/decisions", unit)["arm"] == "red"
		for _, name := range []string{"a", "z"} {
			d := s.call(200, "POST", "/v1/experiments/"+name+"/decisions", unit)
			if (d["reason"] == "holdout") != held || (d["reason"] == "split") == held {
				t.Errorf("held %v: %v", held, d)
			}
		}
	}
}

// Experiments of a directory are made and started, once; a file that differs is refused, by its
// keys, and then nothing of the directory is made. Who only reads shows them.
func TestServeExperiments(t *testing.T) {
	data, dir := filepath.Join(t.TempDir(), "data"), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const shop = "name: shop\narms: [red, blue]\npolicy: dp-klucb\nunit: {of: visit}\n" +
		"budget: {epsilon: 1}\nwindow: 1h\n"
	write("shop.yaml", shop)
	write("README.md", "not one")
	s := startServe(t, "--data", data, "--experiments", dir)
	if d := s.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`); d["reason"] != "split" {
		t.Error(d)
	}
	s.stop()
	key := s.key
	// the same in other words, and auto, which would pick another policy: what runs stays
	for _, same := range []string{"# ours\n" + strings.Replace(shop, "1h", "60m", 1),
		strings.Replace(shop, "dp-klucb", "auto", 1)} {
		write("shop.yaml", same)
		s = startServe(t, "--data", data, "--experiments", dir)
		s.key = key
		of := s.call(200, "GET", "/v1/experiments/shop", "")["declaration"].(map[string]any)
		if of["policy"].(map[string]any)["policy"] != "dp-klucb" {
			t.Errorf("%v runs", of["policy"])
		}
		s.stop()
		if strings.Contains(s.errs.String(), "started") {
			t.Errorf("made again: %s", s.errs)
		}
	}
	// what may change is changed, and stays so
	write("shop.yaml", strings.Replace(shop, "1h", "2h", 1)+"floor: 0.25\n")
	for _, want := range []bool{true, false} {
		s = startServe(t, "--data", data, "--experiments", dir)
		s.key = key
		changed := func() bool {
			of := s.call(200, "GET", "/v1/experiments/shop", "")["declaration"].(map[string]any)
			return of["window"] == "2h0m0s" && of["floor"] == 0.25
		}
		for until := time.Now().Add(10 * time.Second); !changed() && time.Now().Before(until); {
			time.Sleep(20 * time.Millisecond) // it comes with the next public tick
		}
		if !changed() || strings.Contains(s.errs.String(), "shop was changed") != want {
			t.Errorf("%v: %s", want, s.errs)
		}
		s.stop()
	}
	write("shop.yaml", strings.NewReplacer("1h", "2h", "epsilon: 1", "epsilon: 2").Replace(shop))
	write("new.yaml", strings.Replace(shop, "shop", "new", 1))
	var errs lockedBuffer
	if code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--data", data,
		"--experiments", dir},
		streams{in: strings.NewReader(""), out: io.Discard, err: &errs}); code != exitUsage ||
		!strings.Contains(errs.String(), `experiment "shop" is running with another budget:`) {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	s = startServe(t, "--data", data, "--read-only")
	s.key = key
	all := s.call(200, "GET", "/v1/experiments", "")["experiments"].([]any)
	if len(all) != 1 || all[0].(map[string]any)["state"] != "running" {
		t.Error(all)
	}
	s.call(403, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	s.call(403, "POST", "/v1/experiments/shop/stop", "")
	s.call(503, "GET", "/readyz", "")
	if code := s.stop(); code != exitOK || !strings.Contains(s.banner, "it only reads") {
		t.Errorf("exit code %d: %s", code, s.banner)
	}
}

// certify makes a certificate for 127.0.0.1 that signs itself, and writes it.
func certify(t *testing.T, cert, key string, serial int64) *x509.Certificate {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, of, of, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: private},
		cert: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// It speaks TLS and HTTP/2, takes a certificate that was renewed without a restart, and goes on
// with the last one while what is there is none.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	known := x509.NewCertPool()
	known.AddCert(certify(t, cert, key, 1))
	s := startServe(t, "--demo", "--tls-cert", cert, "--tls-key", key, "--allow-origin", "https://shop.example")
	serial := func() int64 {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "https://shop.example")
		got, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if got.StatusCode != 200 || got.ProtoMajor != 2 ||
			got.Header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
			t.Errorf("%s %s %v", got.Proto, got.Status, got.Header)
		}
		return got.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") || serial() != 1 {
		t.Error(s.banner)
	}
	later := func(by time.Duration) {
		t.Helper()
		at := time.Now().Add(by)
		if err := os.Chtimes(cert, at, at); err != nil {
			t.Fatal(err)
		}
	}
	known.AddCert(certify(t, cert, key, 2))
	later(time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("the certificate is number %d", got)
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(2 * time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("the certificate is number %d", got)
	}
	if !strings.Contains(s.errs.String(), "the certificate stays as it was") {
		t.Errorf("%s", s.errs)
	}
}

// A cap refuses what exceeds it, and the service starts all the same. Who forgets the flag goes by it, and
// another one is said.
func TestServePersonCap(t *testing.T) {
	data, dir := filepath.Join(t.TempDir(), "data"), t.TempDir()
	const shop = "name: NAME\narms: [red, blue]\npolicy: dp-klucb\nunit: {of: person}\n" +
		"budget: {epsilon: 2}\nwindow: 1h\n"
	write := func(name string) {
		t.Helper()
		text := strings.Replace(shop, "NAME", name, 1)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	s := startServe(t, "--data", data, "--experiments", dir, "--person-cap", "unit=person,epsilon=3/365d")
	key := s.key
	s.stop()
	write("b")
	for _, flags := range [][]string{{"--person-cap", "unit=person,epsilon=3/365d"}, nil} {
		s = startServe(t, append([]string{"--data", data, "--experiments", dir}, flags...)...)
		s.key = key
		if !strings.Contains(s.errs.String(), "costs one person epsilon=2, and epsilon=4 with what counts then, where the cap is "+
			"epsilon=3 within 365 days: a with epsilon=2 while it goes on. Take a budget that costs at most epsilon=1") {
			t.Errorf("%v: %s", flags, s.errs)
		}
		got := s.call(200, "GET", "/v1/account", "")
		if got["most"] != 2.0 || got["left"] != 1.0 || len(got["drafts"].([]any)) != 1 {
			t.Errorf("%v: %v", flags, got)
		}
		s.stop()
	}
	s = startServe(t, "--data", data, "--experiments", dir, "--person-cap", "unit=person,epsilon=4/365d")
	s.key = key
	if got := s.call(200, "GET", "/v1/account", ""); got["most"] != 4.0 || !strings.Contains(s.errs.String(), "another one than") {
		t.Errorf("%v, %s", got, s.errs)
	}
	s.stop()
}
