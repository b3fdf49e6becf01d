package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/client"
)

// asks is what all commands that ask a service have.
type asks struct {
	Server  string `env:"SOTTO_SERVER" default:"http://127.0.0.1:8080" help:"${askServer}" placeholder:"URL"`
	KeyFile string `env:"SOTTO_KEY_FILE" help:"${askKeyFile}" placeholder:"FILE" type:"path"`
	JSON    bool   `help:"As JSON, for programs."`
}

// askTexts are help texts that are too long for their flags.
var askTexts = kong.Vars{
	"askServer": "Address of the service; SOTTO_SERVER if not given.",
	"askKeyFile": "File with the key. If not given, the key is that of the environment variable " +
		"SOTTO_KEY; it is no flag, as lists of processes show those.",
	"decideUnit": "Whom or what it is for; it may be left out if the experiment is not sticky. - " +
		"reads standard input, where no list of processes shows it.",
	"decideContext": "Public facts about the unit, for experiments that are for some only; may be given " +
		"more than once.",
	"rewardReport": "The decision, and its reward; - for the reward reads it from standard input, " +
		"where no list of processes shows it. - alone reads lines of JSON from there: " +
		`{"decision": "…", "reward": 1}, perhaps with "id" and "metrics".`,
	"rewardID": "Name of this report among those of the decision, such as an order's number: where all of them count, " +
		"one that is sent again counts once.",
	"rewardWait": "How long rewards are sent again when the service is not available.",
	"decide": `Prints the arm and, after a tab, the decision to report on; nothing is there if it does not count.

Examples:
  sotto decide shop --unit 'visitor 7'
  sotto decide shop --unit 'visitor 7' --context country=NL
  sotto decide shop --unit 'visitor 7' --key-file shop.key --json`,
	"reward": `Prints what it was answered: accepted (it counts, or one for this decision came before), late, void
or over_limit; of an arm that was forced, in_range or clipped; of lines, how many were answered what. A
decision, or each of its reports that has an id, counts once, so lines can be sent again. Flags come before the decision, which may begin with a hyphen itself.

Examples:
  sotto reward shop DECISION 1
  echo 1 | sotto reward shop DECISION -
  sotto reward --json shop - < rewards.jsonl`,
}

func (a asks) client() (*client.Client, error) {
	key, err := keyFrom(a.KeyFile)
	from := "SOTTO_KEY"
	if a.KeyFile != "" {
		from = "--key-file"
	}
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return nil, usagef("the key is missing: set SOTTO_KEY, or name its file by --key-file")
	}
	c, err := client.New(a.Server, key)
	if err != nil {
		return nil, usagef("--server and %s: %w", from, err)
	}
	return c, nil
}

// keyFrom is the key in a file, or that of the environment if no file is named.
func keyFrom(file string) (string, error) {
	if file == "" {
		return os.Getenv("SOTTO_KEY"), nil
	}
	b, err := readLimited(file, 1<<10)
	if err != nil {
		return "", usagef("--key-file: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
}

// asked sorts the errors of a service: what the caller can mend is usage.
func asked(err error) error {
	for _, mend := range []error{client.ErrRequest, client.ErrKey, client.ErrScope, client.ErrNotFound} {
		if errors.Is(err, mend) {
			return usage(err)
		}
	}
	return err
}

type decideCommand struct {
	Experiment string            `arg:"" help:"Name of the experiment."`
	Unit       string            `help:"${decideUnit}" placeholder:"NAME"`
	Context    map[string]string `help:"${decideContext}" placeholder:"NAME=VALUE" mapsep:"none"`
	asks
}

// maxUnit is what is read of a unit: a byte more than the service takes would be refused by it.
const maxUnit = 1 << 16

func (c *decideCommand) Run(ctx context.Context, s streams) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	if c.Unit == "-" {
		b, err := io.ReadAll(io.LimitReader(s.in, maxUnit))
		if err != nil {
			return fmt.Errorf("--unit: %w", err)
		}
		c.Unit = strings.TrimRight(string(b), "\r\n")
	}
	unit := client.Unit{Name: c.Unit, Context: map[string]any{}}
	for name, value := range c.Context {
		unit.Context[name] = value
	}
	d, err := to.Decide(ctx, c.Experiment, unit)
	if err != nil {
		return asked(err)
	}
	if c.JSON {
		out := struct {
			Decision   *string         `json:"decision"`
			Arm        string          `json:"arm"`
			Value      json.RawMessage `json:"value"`
			Propensity float64         `json:"propensity"`
			Expires    *time.Time      `json:"expires_at"`
			ActivateBy time.Time       `json:"activate_by,omitzero"`
			Reason     string          `json:"reason"`
		}{nil, d.Arm, d.Value, d.Propensity, nil, d.ActivateBy, d.Reason}
		if d.Token != "" {
			out.Decision, out.Expires = &d.Token, &d.Expires
		}
		return printJSON(s, out)
	}
	_, err = fmt.Fprintf(s.out, "%s\t%s\n", d.Arm, d.Token)
	return err
}

type rewardCommand struct {
	Experiment string        `arg:"" help:"Name of the experiment."`
	Report     []string      `arg:"" name:"DECISION REWARD" help:"${rewardReport}" passthrough:""`
	ID         string        `name:"id" help:"${rewardID}" placeholder:"ID"`
	Wait       time.Duration `default:"30s" help:"${rewardWait}" placeholder:"TIME"`
	asks
}

// decisionText is how decisions look.
var decisionText = regexp.MustCompile(`^-[-\w]{57}$`)

// decisionFirst has everything from a decision on that begins with a hyphen read as no flag.
func decisionFirst(args []string) []string {
	i := slices.IndexFunc(args, decisionText.MatchString)
	if i < 0 || slices.Contains(args[:i], "--") {
		return args
	}
	return slices.Insert(slices.Clone(args), i, "--")
}

func (c *rewardCommand) Run(ctx context.Context, s streams) error {
	if c.Report[0] == "--" {
		c.Report = c.Report[1:]
	}
	lines := len(c.Report) == 1 && c.Report[0] == "-"
	if !lines && len(c.Report) != 2 {
		return usagef("after the experiment there are %d arguments, must be a decision and its reward, or - "+
			"for lines of JSON; flags come before them", len(c.Report))
	}
	if lines && c.ID != "" {
		return usagef("--id is %q, must be left out where reports are lines of JSON, which have an id each", c.ID)
	}
	if c.Wait < 0 {
		return usagef("--wait is %v, must not be negative", c.Wait)
	}
	to, err := c.client()
	if err != nil {
		return err
	}
	if lines {
		return c.lines(ctx, s, to)
	}
	text := c.Report[1]
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(s.in, 1<<10))
		if err != nil {
			return fmt.Errorf("the reward: %w", err)
		}
		text = strings.TrimSpace(string(b))
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return usagef("the reward must be a finite number") // the error of strconv has its text
	}
	var got client.Status
	err = persist(ctx, c.Wait, func() (err error) {
		got, err = to.Report(ctx, c.Experiment, client.Report{Decision: c.Report[0], Reward: x, ID: c.ID})
		return err
	})
	if err != nil {
		return asked(err)
	}
	if c.JSON {
		return printJSON(s, map[string]client.Status{"status": got})
	}
	_, err = fmt.Fprintln(s.out, got)
	return err
}

// persist does what sends again while the service is not available.
func persist(ctx context.Context, wait time.Duration, send func() error) error {
	until := time.Now().Add(wait)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := send()
		if !errors.Is(err, client.ErrUnavailable) || time.Now().Add(pause).After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return interrupted("stopped; what was not answered can be sent again")
		}
	}
}

// A lineJSON is what a line was answered.
type lineJSON struct {
	Line   int           `json:"line"`
	Status client.Status `json:"status,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// lines reports lines of JSON, in batches.
func (c *rewardCommand) lines(ctx context.Context, s streams, to *client.Client) error {
	in := bufio.NewScanner(s.in)
	in.Buffer(nil, 4<<10)
	counts, line, refused := map[string]int{}, 0, 0
	out := json.NewEncoder(s.out)
	out.SetEscapeHTML(false)
	var batch []client.Report
	var numbers []int
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		var results []client.Result
		err := persist(ctx, c.Wait, func() (err error) {
			results, err = to.Rewards(ctx, c.Experiment, batch)
			return err
		})
		if err != nil {
			return asked(fmt.Errorf("nothing from line %d on was answered: %w", numbers[0], err))
		}
		for i, r := range results {
			one := lineJSON{Line: numbers[i], Status: r.Status}
			if r.Err != nil {
				one.Error = r.Err.Error()
				refused = cmp.Or(refused, numbers[i])
			}
			counts[cmp.Or(string(r.Status), "refused")]++
			if c.JSON {
				if err := out.Encode(one); err != nil {
					return err
				}
			}
		}
		batch, numbers = batch[:0], numbers[:0]
		return nil
	}
	for in.Scan() {
		line++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		report, err := readReport(in.Bytes())
		if err != nil {
			return usage(errors.Join(fmt.Errorf("line %d: %w: nothing from it on is sent", line, err), send()))
		}
		batch, numbers = append(batch, report), append(numbers, line)
		if len(batch) == client.MaxBatch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = usagef("it is too long")
		}
		return errors.Join(fmt.Errorf("line %d: %w: nothing from it on is sent", line+1, err), send())
	}
	if err := send(); err != nil {
		return err
	}
	if !c.JSON {
		for _, status := range slices.Sorted(maps.Keys(counts)) {
			if _, err := fmt.Fprintf(s.out, "%d %s\n", counts[status], status); err != nil {
				return err
			}
		}
	}
	if refused > 0 {
		return usagef("%d were refused, first that of line %d: it is no decision of this experiment",
			counts["refused"], refused)
	}
	return nil
}

// readReport reads a line, and says what is wrong with it without what it says.
func readReport(line []byte) (client.Report, error) {
	var in struct {
		Decision *string            `json:"decision"`
		ID       string             `json:"id"`
		Reward   *float64           `json:"reward"`
		Metrics  map[string]float64 `json:"metrics"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var kind *json.UnmarshalTypeError
	err := d.Decode(&in)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more")
		}
	}
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		must := map[string]string{"decision": "a string", "id": "a string", "reward": "a number that a float64 can hold",
			"metrics": "an object of numbers"}
		if strings.HasPrefix(kind.Field, "metrics.") {
			kind.Field = "metrics"
		}
		return client.Report{}, fmt.Errorf("%s must be %s", kind.Field, must[kind.Field])
	case err != nil || in.Decision == nil && in.Reward == nil:
		return client.Report{}, errors.New(`it must be {"decision": "…", "reward": …}, perhaps with id and metrics, and no more`)
	case in.Decision == nil || *in.Decision == "":
		return client.Report{}, errors.New("decision is missing")
	case in.Reward == nil && (in.ID == "" || len(in.Metrics) == 0):
		return client.Report{}, errors.New("reward is missing")
	}
	out := client.Report{Decision: *in.Decision, ID: in.ID, Reward: math.NaN(), Metrics: in.Metrics}
	if in.Reward != nil {
		out.Reward = *in.Reward
	}
	return out, nil
}
