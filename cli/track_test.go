package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// trackServer is a service that was not available at first, and what it was sent.
func trackServer(t *testing.T) (got *[]string) {
	t.Helper()
	got, failed := &[]string{}, false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Events []json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/track" {
			t.Errorf("%s: %v", r.URL, err)
		}
		if !failed {
			failed = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for _, v := range in.Events {
			*got = append(*got, string(v))
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(s.Close)
	t.Setenv("SOTTO_SERVER", s.URL)
	t.Setenv("SOTTO_KEY", "sotto_key")
	return got
}

// An order is a row of a warehouse.
type order struct {
	Unit  string    `parquet:"targetingKey"`
	ID    int64     `parquet:"id"`
	Total *float64  `parquet:"total,optional"`
	Note  string    `parquet:"note"`
	At    time.Time `parquet:"timestamp,timestamp(microsecond)"`
}

// sotto track sends the rows of each kind of table as the same events, in batches, again while the service is not
// available, and with the same ids when it is run again.
func TestTrackCommand(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	var csv, lines strings.Builder
	var orders []order
	csv.WriteString("targetingKey,id,total,note,timestamp\n")
	for i := range 450 {
		o := order{Unit: fmt.Sprint("visitor ", i), ID: int64(i + 1), Note: "gift", At: at}
		text, total := "", ""
		if i%2 == 0 {
			x := float64(i) / 4
			o.Total, text, total = &x, fmt.Sprint(x), fmt.Sprintf(`"total": %v, `, x)
		}
		orders = append(orders, o)
		fmt.Fprintf(&csv, "%s,%d,%s,gift,2026-01-31 09:00:00\n", o.Unit, o.ID, text)
		fmt.Fprintf(&lines, `{"targetingKey": %q, "id": "%d", %s"note": "gift", "timestamp": %d}`+"\n", o.Unit, o.ID, total, at.UnixMilli())
	}
	var columns bytes.Buffer
	if err := parquet.Write(&columns, orders); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"orders.csv": csv.String(), "orders.jsonl": lines.String(), "orders.parquet": columns.String()} {
		got := trackServer(t)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs := tryCommand(t, exitOK, "", "track", file, "--event", "checkout")
		if out != "450 events were taken\n" || errs != "" || len(*got) != 450 {
			t.Fatalf("%s: %s%s, %d came", name, out, errs, len(*got))
		}
		for i, want := range map[int]string{
			2: `{"id":"3","name":"checkout","targetingKey":"visitor 2","timestamp":"2026-01-31T09:00:00Z","total":0.5}`,
			3: `{"id":"4","name":"checkout","targetingKey":"visitor 3","timestamp":"2026-01-31T09:00:00Z"}`,
		} {
			if (*got)[i] != want {
				t.Errorf("%s: %s, must be %s", name, (*got)[i], want)
			}
		}
	}
	got := trackServer(t)
	table := "name;who;total\nsignup;ann;0,5\nsignup;ann;0,5\nsignup;ann;1\n"
	for range 2 {
		out, _ := tryCommand(t, exitOK, table, "track", "-", "--unit-column", "who", "--separator", ";", "--decimal-comma", "--json")
		if out != "{\n  \"events\": 3\n}\n" {
			t.Error(out)
		}
	}
	if all := *got; len(all) != 6 || all[0] != all[1] || all[0] == all[2] || all[0] != all[3] ||
		!strings.Contains(all[0], `"id":"row `) || !strings.Contains(all[0], `"total":0.5}`) {
		t.Errorf("%v", all)
	}
}

// What is wrong with a table is told with its line, and no cell; what is before it was sent.
func TestTrackCommandRefuses(t *testing.T) {
	got := trackServer(t)
	for _, c := range []struct{ table, want string }{
		{"", "the file is empty"},
		{"who,total\nann,1\n", `there is no column "targetingKey"`},
		{"targetingKey,total\nann,1\n", `there is no column "name"`},
		{"targetingKey,name\n,signup\n", `line 2: the unit is missing, must be in the column "targetingKey"`},
		{"targetingKey,name\nann,\n", "line 2: the name of the event is missing"},
		{"targetingKey,name,timestamp\nann,signup,6543x\n", "line 2: its time must be one such as"},
		{"targetingKey,name\nann,signup,6543\n", "line 2: the row has 3 fields"},
		{`{"targetingKey": "ann", "name": "signup"}` + "\n" + `{"targetingKey": 6543x}`, "line 2 is no JSON object"},
		{`{"targetingKey": "` + strings.Repeat("6543", maxTrackLine/4) + `"}`, "line 1: is too long"},
	} {
		_, errs := tryCommand(t, exitUsage, c.table, "track", "-")
		if !strings.Contains(errs, c.want) || strings.Contains(errs, "6543") {
			t.Errorf("%q: %s, must be %s", c.table, errs, c.want)
		}
	}
	if len(*got) != 1 {
		t.Errorf("%d events came", len(*got))
	}
	for want, flags := range map[string][]string{"--wait is -1s": {"--wait=-1s"}, "--separator": {"--separator", ":"}} {
		if _, errs := tryCommand(t, exitUsage, "", append([]string{"track", "-"}, flags...)...); !strings.Contains(errs, want) {
			t.Error(errs)
		}
	}
}
