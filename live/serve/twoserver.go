package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// leaderKey is the id of the HPKE key of a store's leader.
const leaderKey = 1

// helpWithin is how long one answer of a helper may take.
const helpWithin = 30 * time.Second

// twoServer gathers sums with a helper that another party runs, as the leader of DAP. What it asks is
// made of the rows of a slot alone, so that a leader that begins again asks the same, and a helper
// that keeps what it answered gives the same answer. It holds the leader's shares, each of which has
// the law of random numbers, and never two shares of one report.
type twoServer struct {
	task    dap.Task
	key     dap.Key
	secret  func() []byte // shared with the helper; nil if there is none
	helper  string        // its address
	standIn int64         // the default, in steps
	client  *http.Client
}

func newTwoServer(e *Engine, decl *Experiment) (*twoServer, error) {
	g := &twoServer{helper: strings.TrimRight(decl.Helper.URL, "/")}
	var err error
	if g.task, err = decl.Task(); err != nil {
		return nil, err
	}
	if g.key, err = e.hpke(); err != nil {
		return nil, err
	}
	clip, err := release.NewClip(decl.Range())
	if err != nil {
		return nil, err
	}
	g.standIn = clip.Steps(decl.Default)
	name := decl.Name
	g.secret = func() []byte {
		if e.cfg.HelperSecret == nil {
			return nil
		}
		return e.cfg.HelperSecret(name)
	}
	g.client = &http.Client{Timeout: helpWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return g, nil
}

// hpke is the key that clients encrypt the leader's shares to: one of the store's.
func (e *Engine) hpke() (dap.Key, error) {
	return dap.DeriveKey(keyFor(e.secret[:], nil, "hpke"), leaderKey)
}

// ReportConfig is what clients encrypt the shares of this service to, under trust two-server.
func (e *Engine) ReportConfig() (dap.Config, error) {
	if !e.here() {
		return dap.Config{}, errElsewhere
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	k, err := e.hpke()
	return k.Config(), err
}

// Upload is Reports under trust two-server, of the experiment that is a task.
func (e *Engine) Upload(ctx context.Context, task dap.TaskID, reports []dap.Report) ([]Result, error) {
	if !e.here() {
		return nil, errElsewhere
	}
	name := ""
	e.mu.RLock()
	for _, x := range e.byName {
		if g, ok := x.gatherer.(*twoServer); ok && g.task.ID == task {
			name = x.decl.Name
		}
	}
	e.mu.RUnlock()
	if name == "" {
		return nil, fmt.Errorf("%w: %w", dap.UnrecognizedTask, ErrNotFound)
	}
	messages := make([]Message, len(reports))
	for i, r := range reports {
		messages[i] = Message{Ticket: r.Ticket.Marshal(), Body: r.Marshal()}
	}
	return e.Reports(ctx, name, messages)
}

func (g *twoServer) tell(task *ReportTask) {
	task.Task, task.Grid, task.Helper = g.task.ID, int(g.task.Grid), g.helper
}

// message takes what is a report on the decision. Whether its shares open, and its proof passes, is seen
// when it is gathered, and told nobody who reports.
func (g *twoServer) message(k ticket, body []byte) ([]byte, error) {
	r, err := dap.ParseReport(body)
	if err != nil {
		return nil, fieldError("report", "%w", err)
	}
	if int(r.Ticket.Arm) != k.arm || r.Ticket.Number != uint64(k.number) {
		return nil, fieldError("report", "is on another decision")
	}
	return body, nil
}

func (g *twoServer) gather(ctx context.Context, of slot) (gathered, error) {
	secret := g.secret()
	if secret == nil {
		return gathered{}, fmt.Errorf("%w: %w", ErrHelper, publicError("the secret that it shares with its "+
			"helper is missing"))
	}
	verify, err := dap.DeriveVerify(secret, g.task.ID)
	if err != nil {
		return gathered{}, err
	}
	bearer, err := dap.DeriveBearer(secret, g.task.ID)
	if err != nil {
		return gathered{}, err
	}
	q := question{g, bearer, verify, dap.Batch{Arm: uint32(of.Arm), Start: uint64(of.Start), End: uint64(of.End)}}
	var total dap.Aggregate
	some, ids := make([]dap.Report, 0, dap.MaxJob), map[dap.ReportID]bool{}
	twice := 0 // reports whose ids are others': whoever made them lies
	for r, err := range of.reports {
		if err != nil {
			return gathered{}, err
		}
		report, err := dap.ParseReport(r.Data)
		if err != nil || report.Ticket.Number != uint64(r.Number) {
			return gathered{}, fmt.Errorf("%w: what is stored of decision %d is damaged", errNever, r.Number)
		}
		if ids[report.ID] {
			twice++
			continue
		}
		ids[report.ID] = true
		if some = append(some, report); len(some) == dap.MaxJob {
			if total, err = q.job(ctx, total, some); err != nil {
				return gathered{}, err
			}
			some = some[:0]
			clear(ids)
		}
	}
	if len(some) > 0 {
		if total, err = q.job(ctx, total, some); err != nil {
			return gathered{}, err
		}
	}
	share, err := q.ask(ctx, "/aggregate_shares/"+q.batch.ShareID().String(), dap.MediaShareRequest,
		total.Request(q.batch).Marshal())
	if err != nil {
		return gathered{}, err
	}
	// Nothing may look at the sum before the leader's own noise is in it: see dap.Meet.
	refused := total.Refused + twice
	sum, err := dap.Meet(g.task, total, share, int64(refused)*g.standIn)
	if err != nil {
		return gathered{}, fmt.Errorf("%w: %w", err, errUnreadable)
	}
	return gathered{total.Count + refused, sum}, nil
}

// A question is what a helper is asked of a batch.
type question struct {
	*twoServer
	bearer string
	verify dap.VerifyKey
	batch  dap.Batch
}

// job has some reports checked, and adds those that pass.
func (q question) job(ctx context.Context, to dap.Aggregate, some []dap.Report) (dap.Aggregate, error) {
	job, err := dap.NewLeaderJob(q.task, q.key, q.verify, q.batch, some)
	if err != nil {
		return to, fmt.Errorf("%w: %w", errNever, err)
	}
	var answer []byte
	if job.Len() > 0 {
		if answer, err = q.ask(ctx, "/aggregation_jobs/"+q.batch.JobID(some[0].Ticket.Number).String(),
			dap.MediaJob, job.Request()); err != nil {
			return to, err
		}
	}
	part, _, err := job.Finish(answer)
	if err != nil {
		return to, fmt.Errorf("%w: %w", err, errUnreadable)
	}
	return to.Add(part), nil
}

// errUnreadable is what everybody is told of an answer that is none.
const errUnreadable = publicError("its helper's answer cannot be read")

// never are the problems that a helper does not take back.
var never = []dap.Problem{dap.BatchInvalid, dap.BatchMismatch, dap.BatchOverlap, dap.InvalidBatchSize,
	dap.InvalidAggregationParameter, dap.StepMismatch, dap.UnsupportedExtension}

// ask asks the helper.
func (q question) ask(ctx context.Context, path, kind string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, q.helper+"/tasks/"+q.task.ID.String()+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+q.bearer)
	r.Header.Set("User-Agent", "sotto")
	got, err := q.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, publicError("its helper cannot be reached"))
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(got.Body, dap.MaxRequest))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, publicError("its helper cannot be reached"))
	}
	if got.StatusCode == http.StatusOK || got.StatusCode == http.StatusCreated {
		return answer, nil
	}
	var problem struct{ Type, Title, Detail string }
	_ = json.Unmarshal(answer, &problem) // of something between, it may be anything
	why := clip(cmp.Or(problem.Detail, problem.Title))
	for _, p := range never {
		if problem.Type == p.Type() {
			return nil, fmt.Errorf("%w: %w: %s", errNever, publicError("its helper answers "+p.Error()), why)
		}
	}
	said := publicError(fmt.Sprintf("its helper answers %d", got.StatusCode))
	switch {
	case got.StatusCode == http.StatusConflict:
		return nil, fmt.Errorf("%w: %w: %s", errNever, said, why)
	case problem.Type == dap.UnrecognizedTask.Type():
		said = "its helper does not have this experiment"
	case got.StatusCode == http.StatusUnauthorized, got.StatusCode == http.StatusForbidden:
		said = "its helper does not know this service: the secret, or the declaration, is another"
	}
	return nil, fmt.Errorf("%w: %s", said, why)
}
