package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// The canary is one person's reward. Beyond has the same digits out of every range.
const (
	canary = 0.7312894561
	beyond = 7312894561
)

// canaryText are the ways in which a number is written, from all its digits down to four of them.
// Private output is random: seven digits of the canary after the point come by chance with
// probability below 1e-7 a number, and fewer only where a number is written with so few.
var canaryText = regexp.MustCompile(`7312894561|[07]\.312894|0\.7312894|\b0\.731289\b|\b0\.73129\b|\b0\.7313\b|\b73\.13%|7\.31289e\+?0?9`)

// canaryBytes are the ways in which files of numbers hold it: doubles in either order,
// and as an integer.
func canaryBytes() [][]byte {
	var out [][]byte
	for _, x := range []float64{canary, beyond} {
		out = append(out, binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)),
			binary.BigEndian.AppendUint64(nil, math.Float64bits(x)))
	}
	return append(out, binary.LittleEndian.AppendUint64(nil, beyond),
		binary.BigEndian.AppendUint64(nil, beyond))
}

// spilled says where the canary, or a hash of a raw file, is in what was written.
func spilled(b []byte, raw map[string][]byte) string {
	if at := canaryText.FindIndex(b); at != nil {
		return fmt.Sprintf("%q", b[max(0, at[0]-40):min(len(b), at[1]+40)])
	}
	for _, x := range canaryBytes() {
		if bytes.Contains(b, x) {
			return fmt.Sprintf("the bytes %x", x)
		}
	}
	for name, text := range raw {
		h := sha256.Sum256(text)
		for _, x := range []string{hex.EncodeToString(h[:]),
			base64.StdEncoding.EncodeToString(h[:]), string(h[:])} {
			if bytes.Contains(bytes.ToLower(b), []byte(strings.ToLower(x))) {
				return "the hash of " + name
			}
		}
	}
	return ""
}

// A canaryRow is what a command is tried with. Commands that read no rewards say why.
type canaryRow struct {
	none string
	// runs are tried one after the other in one directory, with each set of files. With rewards
	// that are good all of them succeed, but those that begin with !.
	runs [][]string
}

var canaryRows = map[string]canaryRow{
	"sotto run": {runs: [][]string{
		{"run", "arms.yaml", "--out", "out-arms"}, {"run", "arms.yaml", "--out", "out-arms"},
		{"run", "arms.yaml", "--out", "out-arms", "--resume"},
		{"run", "--csv", "arms.csv", "--exec", "sh spy.sh", "--policies", "spy", "--epsilon", "1", "--horizon", "500",
			"--runs", "2"}, // spy.txt is what it was given
		{"run", "linear.yaml", "--out", "out-linear"},
		{"run", "rounds.yaml", "--out", "out-rounds"}, {"run", "identify.yaml", "--out", "out-identify"},
		{"!", "run", "bare.csv"}, {"!", "run", "rows.jsonl"}, {"!", "run", "colon.csv"},
	}},
	"sotto completion": {none: "it prints a script"},
	"sotto man":        {none: "it prints the commands' help"},
	"sotto report": {runs: [][]string{{"run", "arms.yaml", "--out", "out", "--json"}, {"report", "out"},
		{"report", "out", "--json"}}},
	"sotto merge": {runs: [][]string{{"run", "arms.yaml", "--shard", "0/2", "--out", "a"},
		{"run", "arms.yaml", "--shard", "1/2", "--out", "b"}, {"merge", "a", "b", "--out", "c", "--json"}}},
	"sotto validate": {runs: [][]string{{"validate", "arms.yaml"},
		{"validate", "arms.yaml", "--json"}, {"validate", "linear.yaml"},
		{"validate", "rounds.yaml"}, {"validate", "identify.yaml"}, {"!", "validate", "bare.csv"},
		{"!", "validate", "rows.jsonl"}, {"!", "validate", "colon.csv"},
		{"validate", "live.yaml", "--sample", "arms.csv"}, {"validate", "live.yaml", "--sample", "arms.csv", "--json"},
		{"validate", "live.yaml", "--sample", "rows.jsonl"}, {"!", "validate", "live.yaml", "--sample", "bare.csv"}}},
	"sotto notice": {runs: [][]string{{"notice", "live.yaml"}, {"notice", "live.yaml", "--html"},
		{"!", "notice", "bare.csv"}, {"!", "notice", "rows.jsonl"}, {"!", "notice", "colon.csv"}}},
	"sotto bounds": {runs: [][]string{{"bounds", "arms.yaml"}, {"!", "bounds", "bare.csv"},
		{"!", "bounds", "rows.jsonl"}, {"!", "bounds", "colon.csv"}}},
	"sotto plan live": {runs: [][]string{
		{"!", "plan", "live", "bare.csv", "--traffic", "100", "--gap", "0.1"},
		{"!", "plan", "live", "rows.jsonl", "--traffic", "100", "--gap", "0.1"},
		{"!", "plan", "live", "colon.csv", "--traffic", "100", "--gap", "0.1"}}},
	"sotto choose": {runs: [][]string{
		{"choose", "--csv", "arms.csv", "--range", "0,1", "--epsilon", "1", "--horizon", "2000",
			"--policies", "adap-klucb,dp-se", "--max-runs", "32"},
	}},
	"sotto stop": {runs: [][]string{
		{"stop", "--rule", "dp-exp-nas", "--alpha", "0.9", "--beta", "0.1", "--epsilon", "5",
			"--range", "1", "--csv", "arms.csv", "--column", "reward"},
		{"stop", "--rule", "dp-exp-nas", "--alpha", "0.9", "--beta", "0.1", "--epsilon", "5",
			"--range", "1", "--csv", "arms.csv", "--column", "reward", "--json"},
		{"stop", "--rule", "nas", "--alpha", "0.9", "--beta", "0.1", "--range", "1", "--csv",
			"arms.csv", "--column", "reward"},
		// runs out
		{"!", "stop", "--rule", "dp-nas", "--alpha", "0.1", "--beta", "0.1", "--epsilon", "0.001",
			"--range", "1", "--csv", "arms.csv", "--column", "reward"},
	}},
	"sotto identify": {runs: [][]string{
		{"identify", "--csv", "arms.csv", "--range", "0,1", "--epsilon", "1", "--risk", "0.05", "--json"},
		{"identify", "--csv", "arms.csv", "--range", "0,1", "--epsilon", "1", "--risk", "0.05",
			"--transcript", "trial.jsonl"},
		{"identify", "--replay", "trial.jsonl"},
		{"identify", "--csv", "arms.csv", "--range", "0,1", "--epsilon", "1", "--risk", "0.05",
			"--rule", "adap-tt", "--transcript", "adap.jsonl"},
		// runs out
		{"!", "identify", "--csv", "arms.csv", "--range", "0,1", "--epsilon", "0.01", "--risk",
			"0.05", "--transcript", "short.jsonl"},
		{"identify", "--csv", "arms.csv", "--range", "0,1", "--risk", "0.05", "--rule", "lucb"},
		{"!", "identify", "--replay", "arms.csv"},
	}},
	"sotto letor": {runs: [][]string{{"letor", "rows.txt", "--clusters", "2", "--raw", "--out", "rows.csv"}}},
	"sotto aggregate join": {runs: [][]string{
		{"!", "aggregate", "join", "session.yaml", "--key", "1.pem", "--connect", "127.0.0.1:1",
			"--message", "-"},
		{"!", "aggregate", "join", "session.yaml", "--key", "1.pem", "--connect", "127.0.0.1:1",
			"--reward", "-7312894561"},
		{"!", "aggregate", "join", "session.yaml", "--key", "1.pem", "--connect", "127.0.0.1:1",
			"--reward", "0.7312894561x"},
		{"!", "aggregate", "join", "session.yaml", "--key", "1.pem", "--connect", "127.0.0.1:1",
			"--reward", "1", "0.7312894561"},
		{"!", "aggregate", "join", "session.yaml", "--key", "1.pem", "--connect", "127.0.0.1:1",
			"--reward.7312894561"},
	}},

	"sotto serve bench": {none: "its rewards are made up"},
	"sotto decide":      {none: "it asks for arms"},
	"sotto flagd":       {none: "it asks for plans"},
	"sotto replay":      {none: "it reads transcripts, which have releases alone"},
	"sotto prove":       {none: "it reads transcripts, which have releases alone"},
	// TestBackupCommand sends the canary to a service, and looks for it in the backup and in what is restored
	"sotto backup": {runs: [][]string{{"!", "backup", "--data", "nowhere", "out.backup"},
		{"!", "backup", "arms.csv"}, {"!", "backup", "--data", ".", "out.backup"}}},
	"sotto restore": {runs: [][]string{{"!", "restore", "--data", "restored", "arms.csv"},
		{"!", "restore", "--data", "restored", "rows.jsonl"}, {"!", "restore", "--data", ".", "arms.csv"}}},
	// TestReward sends the canary to a service, by lines too
	"sotto reward": {runs: [][]string{
		{"!", "reward", "--wait", "0s", "shop", "decision", "0.7312894561"},
		{"!", "reward", "--wait", "0s", "shop", "decision", "0.7312894561x"},
		{"!", "reward", "shop", "decision", "-7312894561"},
		{"!", "reward", "shop", "0.7312894561"}, {"!", "reward", "--reward=0.7312894561", "shop"},
		{"!", "reward", "shop", "decision", "1", "--0.7312894561"},
		{"!", "reward", "--wait", "0.7312894561", "shop", "decision", "1"},
		{"!", "reward", "shop", "-"}, {"!", "reward", "shop", "decision", "-"},
	}},

	// TestTrackCommandRefuses has what is wrong with each row, before a service that takes the rest
	"sotto track": {runs: [][]string{
		{"!", "track", "--wait", "0s", "--event", "signup", "--unit-column", "arm", "arms.csv"},
		{"!", "track", "--wait", "0s", "--event", "signup", "--unit-column", "arm", "rows.jsonl"},
		{"!", "track", "--wait", "0s", "bare.csv"}, {"!", "track", "--wait", "0s", "colon.csv"},
	}},

	"sotto plan trial":       {none: "it simulates"},
	"sotto plan release":     {none: "it computes from numbers of users"},
	"sotto plan budget":      {none: "it simulates"},
	"sotto explore":          {none: "its rewards are made up; a log is answered to its page alone: see site's TestPictures"},
	"sotto list policies":    {none: "it reads nothing"},
	"sotto list mechanisms":  {none: "it reads nothing"},
	"sotto list cube":        {none: "it reads nothing"},
	"sotto schema":           {none: "it reads nothing"},
	"sotto version":          {none: "it reads nothing"},
	"sotto reproduce":        {none: "it simulates, and reads public data sets"},
	"sotto audit mechanism":  {none: "its rewards are made up"},
	"sotto audit policy":     {none: "its rewards are made up"},
	"sotto audit training":   {none: "it reads public data sets"},
	"sotto audit self":       {none: "its rewards are made up"},
	"sotto aggregate keygen": {none: "it makes keys"},
	"sotto aggregate public": {none: "it reads keys"},
	"sotto aggregate id":     {none: "it reads nothing"},
	"sotto aggregate serve":  {none: "it sees masked messages; TestScripts/aggregate has its output"},
	"sotto aggregate bench":  {none: "its messages are made up"},
	"sotto serve":            {none: "its rewards come over HTTP; TestServe sends the canary"},
}

// canaryFiles are logs whose rewards come around the canary's: as it is, beyond the range, and in
// cells and rows that are refused.
func canaryFiles() map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, cell := range map[string]string{
		"good": "0.7312894561", "outside": "7312894561", "negative": "-7312894561",
		"text": "0.7312894561x", "nan": "NaN", "infinite": "1e7312894561",
		"two fields": "0.7312894561,0.7312894561",
		"quote":      `"0.7312894561`, "hex": "0x7312894561", "empty": "",
	} {
		var arms, linear, rounds, rows strings.Builder
		arms.WriteString("arm,reward\n")
		linear.WriteString("x1,x2,reward\n")
		rounds.WriteString("round,x1,x2,reward\n")
		for i := range 600 {
			x := fmt.Sprint(min(1, i%10)) // of b nine tenths are 1, of a one tenth
			y := fmt.Sprint(1 - min(1, i%10))
			if i == 7 {
				x, y = cell, cell
			}
			if i == 9 && name != "good" { // the errors must not tell what is beside them
				x, y = "0.7312894561", "0.7312894561"
			}
			fmt.Fprintf(&arms, "a,%s\nb,%s\n", y, x)
			if i < 40 {
				fmt.Fprintf(&linear, "1,0,%s\n0,1,%s\n", x, y)
				z := x
				if name == "outside" || name == "negative" {
					// regret of logged rounds is made of differences of rewards: one far outside is
					// nearly all of it
					z = "0.4"
				}
				fmt.Fprintf(&rounds, "%d,1,0,0.%d\n%d,0,1,%s\n", i+1, 2+i%3, i+1, z)
				rating := fmt.Sprint(i % 5)
				if i == 7 && name != "good" {
					rating = cell
				}
				fmt.Fprintf(&rows, "%s qid:%d 1:%d\n", rating, i+1, i%2)
			}
		}
		out[name] = map[string]string{"arms.csv": arms.String(), "linear.csv": linear.String(),
			"rounds.csv": rounds.String(), "rows.txt": rows.String(), "stdin": cell + "\n",
			"bare.csv":   fmt.Sprintf("a,%[1]s\nb,%[1]s\n", cell),
			"colon.csv":  fmt.Sprintf("note: x,reward\na,%[1]s\nb,%[1]s\n", cell),
			"rows.jsonl": fmt.Sprintf("{\"arm\":\"a\",\"reward\":%[1]s}\n{\"arm\":\"b\",\"reward\":%[1]s}\n", cell)}
	}
	for _, files := range out {
		const base = "name: canary\nhorizon: 500\nruns: 2\nseed: 1\nbudgets: [{epsilon: 1}]\n"
		files["spy.sh"] = "while IFS= read -r line; do\n  echo \"$line\" >>spy.txt\n  case \"$line\" in\n" +
			"  *sotto*) echo '{\"sotto\":1,\"name\":\"spy\",\"mechanism\":\"laplace\"}' ;;\n" +
			"  *) echo '{\"play\":[[0,20],[1,20]],\"turn\":'${line##*:} ;;\n  esac\ndone\n"
		files["live.yaml"] = "name: shop\narms: [red, blue]\npolicy: dp-klucb\nunit: {of: person}\n" +
			"budget: {epsilon: 1}\nwindow: 1h\n"
		files["arms.yaml"] = base + "policies: [{policy: adap-klucb}, {policy: " +
			"dp-se}]\ninstances: [{name: log, csv: arms.csv}]\n"
		files["linear.yaml"] = "kind: linear\n" + strings.Replace(base, "epsilon", "rho", 1) +
			"policies: [{policy: adac-gope-var}]\ninstances: [{name: log, csv: linear.csv}]\n"
		files["rounds.yaml"] = "kind: contextual\n" + strings.Replace(base, "epsilon", "rho", 1) +
			"policies: [{policy: adac-oful}]\ninstances: [{name: log, csv: rounds.csv}]\n"
		files["identify.yaml"] = "kind: identify\nname: canary\nrisk: 0.05\ncap: 100000\nruns: " +
			"2\nseed: 1\nbudgets: [{epsilon: 1}]\npolicies: [{policy: dp-tt}]\ninstances: " +
			"[{name: log, csv: arms.csv}]\n"
	}
	return out
}

// No command that reads rewards says one, in what it prints, in what it writes, or in why it refuses:
// not its digits, not its bytes, and no hash of its file. Every command of the tree has a row.
func TestCanaryReward(t *testing.T) {
	testkit.OneGoroutine(t)
	k, err := newParser(streams{program: "sotto"})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/script/aggregate.txtar") // has a session
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, n := range leaves(k.Model.Node) {
		known[n.FullPath()] = true
		if row, ok := canaryRows[n.FullPath()]; !ok || row.none == "" == (row.runs == nil) {
			t.Errorf("%s has no row that says what it does with a reward, or why it has none", n.FullPath())
		}
	}
	for name := range canaryRows {
		if !known[name] {
			t.Errorf("%s is no command", name)
		}
	}
	for name, row := range canaryRows {
		if row.none != "" {
			continue
		}
		for set, files := range canaryFiles() {
			known := set == "good" || set == "outside"
			if !known && !testkit.Full() && set != "text" && set != "quote" {
				continue // five hundred commands are run at full size
			}
			t.Run(name+"/"+set, func(t *testing.T) {
				t.Chdir(t.TempDir())
				raw := map[string][]byte{}
				for file, text := range files {
					raw[file] = []byte(text)
					if err := os.WriteFile(file, raw[file], 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if strings.HasPrefix(name, "sotto aggregate") {
					joinable(t, archive, raw)
				}
				for _, args := range row.runs {
					fails := args[0] == "!"
					if fails {
						args = args[1:]
					}
					ctx, stop := context.WithTimeout(context.Background(), time.Minute)
					var stdout, stderr bytes.Buffer
					code := run(ctx, args, streams{in: strings.NewReader(files["stdin"]),
						out: &stdout, err: &stderr})
					stop()
					switch known := set == "good" || set == "outside" || set == "negative"; {
					case set == "good" && (code == exitOK) == fails, code == exitFailed && !fails:
						t.Errorf("%q: exit code %d: %s", args, code, stderr.String())
					case !known && strings.Contains(stderr.String(), "has been spent"):
						t.Errorf("%q: it is refused after something was released: %s", args, stderr.String())
					}
					for what, b := range map[string][]byte{"stdout": stdout.Bytes(), "stderr": stderr.Bytes()} {
						if where := spilled(b, raw); where != "" {
							t.Errorf("%q: %s has %s", args, what, where)
						}
					}
				}
				err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() || raw[path] != nil {
						return err
					}
					b, err := os.ReadFile(path)
					if where := spilled(b, raw); where != "" {
						t.Errorf("%s has %s", path, where)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// joinable makes what a client needs to take part in a sum: that of the scripts, with its keys.
func joinable(t *testing.T, archive *txtar.Archive, raw map[string][]byte) {
	t.Helper()
	keys := map[string]string{}
	for _, name := range []string{"server", "1", "2", "3", "4", "5"} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), []string{"aggregate", "keygen", name + ".pem"},
			streams{out: &stdout, err: &stderr}); code != exitOK {
			t.Fatal(stderr.String())
		}
		keys[name] = strings.TrimSpace(stdout.String())
		raw[name+".pem"] = []byte{}
	}
	keys["id"] = strings.Repeat("ab", 16)
	for _, f := range archive.Files {
		if f.Name != "plain.in" {
			continue
		}
		raw["session.yaml"] = regexp.MustCompile(`@[a-z0-9]+`).ReplaceAllFunc(f.Data, func(b []byte) []byte {
			return []byte(keys[string(b[1:])])
		})
	}
	if err := os.WriteFile("session.yaml", raw["session.yaml"], 0o600); err != nil {
		t.Fatal(err)
	}
}

// The search finds what it is for.
func TestCanaryIsFound(t *testing.T) {
	raw := map[string][]byte{"log.csv": []byte("arm,reward\na,0.7312894561\n")}
	h := sha256.Sum256(raw["log.csv"])
	for _, text := range []string{
		"the value \"0.7312894561\" is", "7312894561", "-7.312894561e+09", "0.73128946", "0.731289",
		"mean 0.7313 ±", "0.73129,", "73.13%", "7.31289e+09",
		hex.EncodeToString(h[:]), strings.ToUpper(hex.EncodeToString(h[:])),
		base64.StdEncoding.EncodeToString(h[:]), string(h[:]), "x" + string(canaryBytes()[0]) + "y",
	} {
		if spilled([]byte(text), raw) == "" {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"0.73", "0.73134", "10.7313456", "mean 0.731 ± 0.1", "7312", ""} {
		if where := spilled([]byte(text), raw); where != "" {
			t.Errorf("%q: %s", text, where)
		}
	}
}
