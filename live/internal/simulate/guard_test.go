package simulate

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
)

var (
	update = flag.Bool("update", false, "write testdata/guard.txt anew, of all traces")
	texts  = flag.String("guard.out", "", "write the text of each trace into this directory")
	first  = flag.Uint64("guard.from", 0, "the first trace")
	count  = flag.Uint64("guard.n", 0, "how many traces; 0: as many as usual")
)

// all is how many traces there are.
const all = 1000

const digests = "testdata/guard.txt"

func catalogOf() catalog.Catalog { return catalog.Catalog{} }

// digest plays a trace, and writes its text where that is asked for.
func digest(t *testing.T, seed uint64) string {
	t.Helper()
	h := sha256.New()
	out := io.Writer(h)
	if *texts != "" {
		f, err := os.Create(filepath.Join(*texts, fmt.Sprintf("%04d.txt", seed)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := bufio.NewWriter(f)
		defer b.Flush()
		out = io.MultiWriter(h, b)
	}
	playTrace(t, seed, out)
	return fmt.Sprintf("%d %s %x", seed, kindOf(seed), h.Sum(nil)[:16])
}

// The guard holds the service to what it did: 1000 random traces of requests, with arms and with
// contexts, under every model of trust, with pauses, faults of the disk, crashes and two processes on
// one store, must be answered and stored byte by byte as the program of the commit did that wrote
// testdata/guard.txt. Clock, coins, keys and noise are given. It sees a service from outside alone, by what is
// exported, so that it stands unchanged in the worktree of another commit.
//
// TestGuard plays the traces. What is other in one that differs, make guard shows: it plays the trace here and in a
// worktree of another commit.
func TestGuard(t *testing.T) {
	n := testkit.Size[uint64](60, 400) // -guard.n 1000 plays all
	switch {
	case *count > 0:
		n = *count
	case *update:
		n = all
	case testkit.Race:
		n = uint64(len(kinds)) // one of each kind
	}
	want := map[uint64]string{}
	if !*update {
		f, err := os.Open(digests)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var seed uint64
			if _, err := fmt.Sscan(lines.Text(), &seed); err != nil {
				t.Fatal(err)
			}
			want[seed] = lines.Text()
		}
	}
	var text bytes.Buffer
	wrong := 0
	for seed := *first; seed < *first+n; seed++ {
		same := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			got := digest(t, seed)
			fmt.Fprintln(&text, got)
			if !*update && got != want[seed] {
				t.Errorf("trace %d, of kind %s, is another", seed, kindOf(seed))
			}
		})
		if !same {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d traces differ", wrong, n)
	}
	if *update {
		if err := os.WriteFile(digests, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
