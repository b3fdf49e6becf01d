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
		{"targetingKey,name,value\nann,signup,6543x\n", "line 2, column value: must be a finite decimal number"},
		{"targetingKey,name,value\nann,signup,\"65,43\"\n", "line 2, column value: must be a finite decimal number"},
		{"targetingKey,name,value\nann,signup,NaN\n", "line 2, column value: must be"},
		{"targetingKey,name,value\nann,signup,-Inf\n", "line 2, column value: must be"},
		{"targetingKey,name,value\nann,signup,1e6543\n", "line 2, column value: must be"},
		{`{"targetingKey": "ann", "name": "signup", "value": "65.43"}`, "line 1, column value is no finite number"},
		{`{"targetingKey": "ann", "name": "signup", "value": 1e6543}`, "line 1, column value is no finite number"},
		{`{"targetingKey": "ann", "name": "signup", "value": [6543]}`, "line 1, column value is no finite number"},
		{"targetingKey,name\n" + strings.Repeat("6543", 1025) + ",signup\n", "line 2: the request is wrong: unit has 4100 bytes"},
		{"targetingKey,name\n6543\xff,signup\n", "line 2: the request is wrong: unit must be Unicode"},
		{"targetingKey,name\n6543 ,signup\n", "line 2, column targetingKey: must have no spaces around it"},
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

// What holds nothing leaves an event's value out, units may be as long as the service takes them, and rows that differ
// in a long text alone are two.
func TestTrackCommandCells(t *testing.T) {
	long := strings.Repeat("x", 4096)
	for table, want := range map[string]int{
		"targetingKey,name,value,note\n" + long + ",signup,,a\n" + long + ",signup,null,b" + long + "\n" +
			long + ",signup, ,c" + long + "\n": 3,
		`{"targetingKey": "` + long + `", "name": "signup", "value": null}`: 1,
	} {
		got := trackServer(t)
		tryCommand(t, exitOK, table, "track", "-")
		ids := map[string]bool{}
		for _, v := range *got {
			ids[v] = true
		}
		if len(ids) != want || strings.Contains(strings.Join(*got, ""), "value") || !strings.Contains((*got)[0], long) {
			t.Errorf("%d events came, must be %d", len(ids), want)
		}
	}
}

// A batch that failed is told once and not sent again; one that is too large is sent in halves, and what is left is
// told by its line.
func TestTrackCommandFails(t *testing.T) {
	var requests, taken int
	status := http.StatusServiceUnavailable
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Events []json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		switch requests++; {
		case status == http.StatusRequestEntityTooLarge && len(in.Events) <= 64 && taken < 300:
			taken += len(in.Events)
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "{}")
		case status == http.StatusRequestEntityTooLarge && len(in.Events) <= 64:
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(status)
		}
	}))
	defer s.Close()
	t.Setenv("SOTTO_SERVER", s.URL)
	t.Setenv("SOTTO_KEY", "sotto_key")
	table := "targetingKey\n" + strings.Repeat("ann\n", 450)
	_, errs := tryCommand(t, exitFailed, table, "track", "-", "--event", "signup", "--wait", "0s")
	if requests != 1 || strings.Count(errs, "nothing from line 2 on was taken") != 1 {
		t.Errorf("%d requests: %s", requests, errs)
	}
	status = http.StatusRequestEntityTooLarge
	_, errs = tryCommand(t, exitUsage, table, "track", "-", "--event", "signup", "--wait", "0s")
	if taken != 300 || strings.Count(errs, "nothing from line 302 on was taken") != 1 {
		t.Errorf("%d were taken: %s", taken, errs)
	}
}
