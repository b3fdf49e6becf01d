package private

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg/dap"
)

// local adds the whole noise here: what is sent may be seen by everybody.
type local struct {
	client *client.Client
	name   string
	noise  release.Noise
	drawn  *release.Stock
	clip   release.Clip
}

func newLocal(c *client.Client, declared *decl.Experiment) (*local, error) {
	n, err := declared.Noise()
	if err != nil {
		return nil, err
	}
	clip, err := release.NewClip(declared.Range())
	if err != nil {
		return nil, err
	}
	drawn, err := n.Stock(client.MaxBatch)
	return &local{c, declared.Name, n, drawn, clip}, err
}

func (s *local) most() int { return client.MaxBatch }

func (s *local) check(t *client.ReportTask) error {
	said := t.Law + " " + t.Noise
	if said != s.noise.String() {
		return fmt.Errorf("noise is declared as %v, and is another one", s.noise)
	}
	return nil
}

func (s *local) seal(_ context.Context, t *client.ReportTask, reward float64) (sealed, error) {
	v, err := s.drawn.LocalReport(s.clip, reward)
	return sealed{ticket: t.Ticket, value: v}, err
}

func (s *local) send(ctx context.Context, some []sealed) (refused int, err error) {
	messages := make([]client.Message, len(some))
	for i, one := range some {
		messages[i] = client.Message{Ticket: one.ticket, Value: one.value}
	}
	results, err := s.client.Messages(ctx, s.name, messages)
	for _, one := range results {
		if one.Err != nil || one.Status != client.Accepted {
			refused++
		}
	}
	return refused, err
}

// keyLasts is how long a service's key is used before it is asked for again.
const keyLasts = time.Hour

// twoServer splits the reward, and encrypts a share to each server: the helper's to the key
// that was declared.
type twoServer struct {
	client *client.Client
	task   dap.Task
	helper dap.Config
	clip   release.Clip

	mu     sync.Mutex
	leader dap.Config
	until  time.Time // of leader
}

func newTwoServer(c *client.Client, declared *decl.Experiment) (*twoServer, error) {
	s := &twoServer{client: c}
	var err error
	if s.task, err = declared.Task(); err != nil {
		return nil, err
	}
	if s.helper, err = declared.Helper.Config(); err != nil {
		return nil, err
	}
	s.clip, err = release.NewClip(declared.Range())
	return s, err
}

// most is what two servers take at once.
func (s *twoServer) most() int { return dap.MaxJob }

func (s *twoServer) check(t *client.ReportTask) error {
	if t.Task != s.task.ID.String() {
		return fmt.Errorf("the declaration is that of task %v, and the service has another one", s.task.ID)
	}
	if _, err := dap.ParseTicket(t.Ticket); err != nil {
		return err
	}
	return nil
}

func (s *twoServer) seal(ctx context.Context, t *client.ReportTask, reward float64) (sealed, error) {
	leader, err := s.key(ctx)
	if err != nil {
		return sealed{}, err
	}
	ticket, err := dap.ParseTicket(t.Ticket)
	if err != nil {
		return sealed{}, err
	}
	y, err := s.clip.Round(reward, int(s.task.Grid))
	if err != nil {
		return sealed{}, err
	}
	r, err := dap.NewReport(s.task, leader, s.helper, t.Time, ticket, uint64(y), rand.Reader)
	if err != nil {
		return sealed{}, err
	}
	return sealed{ticket: t.Ticket, report: r.Marshal()}, nil
}

// key is what the service's own shares are encrypted to. It says it itself: its share alone has the
// law of random numbers.
func (s *twoServer) key(ctx context.Context) (dap.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.leader, nil
	}
	list, err := s.client.ReportConfigs(ctx)
	if err != nil {
		return dap.Config{}, err
	}
	if s.leader, err = dap.ParseConfigs(list); err != nil {
		return dap.Config{}, fmt.Errorf("%w: %w", client.ErrAnswer, err)
	}
	s.until = time.Now().Add(keyLasts)
	return s.leader, nil
}

func (s *twoServer) send(ctx context.Context, some []sealed) (refused int, err error) {
	var body []byte
	for _, one := range some {
		body = append(body, one.report...)
	}
	answer, err := s.client.Upload(ctx, s.task.ID.String(), body)
	if err != nil {
		return 0, err
	}
	not, err := dap.ParseUploadResponse(answer)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", client.ErrAnswer, err)
	}
	return len(not), nil
}
