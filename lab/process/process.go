// Package process plays policies that are programs of somebody else: a process, in any language,
// that is given releases and asked for plays, a line of JSON each (wire.go). Begin with [NewHost].
//
// A program sees what a policy of Sotto's sees, and no more: the curator draws the noise, the ledger
// charges it, and rewards never leave this process. It is not shut in: it may read what its user
// may read. Start programs that you trust.
package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/catalog"
)

// ErrProgram is matched by the error of a program that has died, was too slow, or has said what it
// must not.
var ErrProgram = errors.New("program")

// DefaultSeconds is what a program is allowed for an answer where nothing is said. For the first one
// it has a minute at least: interpreters take their time to begin.
const DefaultSeconds = 10

const startSeconds = 60

// maxSeconds is the most that it can be allowed.
const maxSeconds = 24 * 60 * 60

// A Host starts programs, and ends them with its context or with Close. It may be used by
// several at a time.
type Host struct {
	ctx  context.Context
	stop context.CancelFunc
	errs io.Writer

	mu    sync.Mutex
	known []*program
}

// NewHost returns a host. The first lines that programs write to their standard error go to errs;
// nil discards them.
func NewHost(ctx context.Context, errs io.Writer) *Host {
	ctx, stop := context.WithCancel(ctx)
	if errs == nil {
		errs = io.Discard
	}
	return &Host{ctx: ctx, stop: stop, errs: &limited{to: errs, left: maxErrs}}
}

// Close ends all programs and waits for them. It may be called again.
func (h *Host) Close() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.known {
		p.mu.Lock()
		for _, c := range p.all {
			c.end()
		}
		p.all, p.idle = nil, nil
		p.mu.Unlock()
	}
}

// Start starts a program once, asks what it is, and returns its policy. The same program is not
// started again for the same question.
func (h *Host) Start(of catalog.Program) (catalog.Entry, error) {
	var err error
	if of, err = checked(of); err != nil {
		return catalog.Entry{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ctx.Err(); err != nil {
		return catalog.Entry{}, err
	}
	same := func(p *program) bool {
		return p.of.Hash == of.Hash && p.of.Dir == of.Dir && p.of.Seconds == of.Seconds && p.of.Any == of.Any
	}
	if i := slices.IndexFunc(h.known, same); i >= 0 {
		return h.known[i].entry(), nil
	}
	p := &program{host: h, of: of}
	h.known = append(h.known, p)
	if err := p.first(func(line []byte) (err error) {
		p.said, err = readHello(line)
		return err
	}); err != nil {
		h.known = h.known[:len(h.known)-1] // what it has started has ended
		return catalog.Entry{}, err
	}
	return p.entry(), nil
}

// first starts the first process and reads what it says of itself.
func (p *program) first(read func(line []byte) error) error {
	c, line, err := p.begin()
	if err != nil {
		return err
	}
	if err := read([]byte(line)); err != nil {
		c.end()
		return p.fail(err)
	}
	p.line, p.idle = line, []*child{c}
	return nil
}

// checked is the program with its defaults and its hash.
func checked(of catalog.Program) (catalog.Program, error) {
	if len(of.Args) == 0 || of.Args[0] == "" {
		return of, errors.New("exec is empty, must be a command and its arguments, such as [python3, mine.py]")
	}
	if of.Seconds == 0 {
		of.Seconds = DefaultSeconds
	}
	if !(of.Seconds > 0 && of.Seconds <= maxSeconds) {
		return of, fmt.Errorf("seconds is %v, must be above 0 and at most %d", of.Seconds, maxSeconds)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", of.Args)
	// Of the files that it names the first is the program. Others may be logs, of which no hash is kept.
	for i, a := range of.Args {
		path := a
		if !filepath.IsAbs(path) {
			path = filepath.Join(of.Dir, path)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || i == 0 && filepath.Base(a) == a {
			continue // no file, or a command that is looked for elsewhere
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return of, fmt.Errorf("exec names %s: %w", a, err)
		}
		sum.Write(text)
		break
	}
	of.Hash = hex.EncodeToString(sum.Sum(nil)[:8])
	return of, nil
}

// A program is a command that has said what it is, and its processes. A process plays one run at a
// time, and then the next.
type program struct {
	host *Host
	of   catalog.Program
	line string // what it says of itself
	said hello  // the same, of a policy

	mu   sync.Mutex
	idle []*child
	all  []*child
}

func (p *program) name() string { return strings.Join(p.of.Args, " ") }

// fail is an error of the program, by its name.
func (p *program) fail(err error) error {
	return fmt.Errorf("%w %s: %w", ErrProgram, clip(p.name()), err)
}

// lease is a process that waits for a run.
func (p *program) lease() (*child, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, line, err := p.begin()
	if err == nil && line != p.line {
		c.end()
		err = p.fail(fmt.Errorf("it says %q of itself, must say what it said first, %q", clip(line), clip(p.line)))
	}
	return c, err
}

// free takes a process back whose run has ended.
func (p *program) free(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// begin starts a process and asks what it is.
func (p *program) begin() (*child, string, error) {
	c, err := newChild(p)
	if err != nil {
		return nil, "", p.fail(err)
	}
	p.mu.Lock()
	p.all = append(p.all, c)
	p.mu.Unlock()
	line, err := c.say(fmt.Appendf(nil, "{\"sotto\":%d}\n", Version), max(p.of.Seconds, startSeconds))
	return c, string(line), err
}

// A child is a process. Its owner alone uses it.
type child struct {
	of    *program
	cmd   *exec.Cmd
	stop  context.CancelFunc
	in    io.WriteCloser
	out   *bufio.Reader
	errs  *last
	timer *time.Timer
	slow  atomic.Bool
	once  sync.Once
	ended error // of Wait
	turn  int   // of the line that it has been given last
}

func newChild(p *program) (*child, error) {
	ctx, stop := context.WithCancel(p.host.ctx)
	cmd := exec.CommandContext(ctx, p.of.Args[0], p.of.Args[1:]...)
	cmd.Dir = p.of.Dir
	// Python's sets and dictionaries of text then have one order in all runs.
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	cmd.WaitDelay = time.Second
	group(cmd)
	c := &child{of: p, cmd: cmd, stop: stop, errs: &last{to: p.host.errs}}
	cmd.Stderr = c.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<16)
	c.timer = time.AfterFunc(time.Hour, func() {
		c.slow.Store(true)
		stop()
	})
	c.timer.Stop()
	return c, nil
}

// end ends the process, and all in its process group.
func (c *child) end() {
	c.stop()
	c.wait()
}

// wait waits until the process has ended.
func (c *child) wait() {
	c.once.Do(func() {
		c.timer.Stop()
		_ = c.in.Close()
		c.ended = c.cmd.Wait()
		c.stop()
		rest(c.cmd)
	})
}

// ask gives an object and a line feed its turn, and says it. An answer repeats the turn: what is in the
// pipe unasked, of this run or of one before, is none.
func (c *child) ask(line []byte) ([]byte, error) {
	c.turn++
	line = fmt.Appendf(line[:len(line)-len("}\n")], ",\"turn\":%d}\n", c.turn)
	return c.say(line, c.of.of.Seconds)
}

// say writes a line and reads one, within seconds. After an error the process has ended.
func (c *child) say(line []byte, seconds float64) ([]byte, error) {
	if n := c.out.Buffered(); n > 0 {
		text, _ := c.out.Peek(min(n, 256))
		c.end()
		return nil, c.of.fail(fmt.Errorf("it has written %q unasked, must write a line for each line it is "+
			"given; what is for people goes to standard error", clip(string(bytes.TrimSpace(text)))))
	}
	c.timer.Reset(time.Duration(seconds * float64(time.Second)))
	_, err := c.in.Write(line)
	var answer []byte
	if err == nil {
		answer, err = c.line()
	}
	c.timer.Stop()
	if err == nil {
		return answer, nil
	}
	return nil, c.why(err, seconds)
}

var errLong = fmt.Errorf("it has written a line of more than %d bytes, must be shorter", MaxLine)

// line is the next line, which is the reader's where it is short.
func (c *child) line() ([]byte, error) {
	line, err := c.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := slices.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if line, err = c.out.ReadSlice('\n'); len(long)+len(line) > MaxLine {
			return nil, errLong
		}
		long = append(long, line...)
	}
	return long, err
}

// why ends the process and says why it has not answered.
func (c *child) why(err error, seconds float64) error {
	slow := c.slow.Load()
	if errors.Is(err, errLong) {
		c.end()
		return c.of.fail(err)
	}
	// One that ends by itself is given the time to: how it ended is what must be told.
	grace := time.AfterFunc(time.Second, c.stop)
	c.wait()
	grace.Stop()
	switch stopped := c.of.host.ctx.Err(); {
	case stopped != nil:
		return stopped
	case slow:
		return c.of.fail(fmt.Errorf("it has not answered within %v s, which is what it is allowed%s", seconds,
			c.errs.said()))
	}
	how := "it has ended"
	if c.ended != nil {
		how += " with " + c.ended.Error()
	}
	return c.of.fail(fmt.Errorf("%s in place of an answer%s", how, c.errs.said()))
}

// maxErrs is how many bytes of their standard error all programs can have shown.
const maxErrs = 1 << 16

// limited passes on so many bytes, and discards the rest.
type limited struct {
	mu   sync.Mutex
	to   io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := min(len(b), l.left); n > 0 {
		l.left -= n
		if _, err := l.to.Write(b[:n]); err != nil {
			l.left = 0
		}
	}
	return len(b), nil
}

// last passes on what it is given, and keeps the end of it.
type last struct {
	to   io.Writer
	mu   sync.Mutex
	tail []byte
}

func (l *last) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.tail = append(l.tail, b...)
	if n := len(l.tail) - 1024; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	l.mu.Unlock()
	return l.to.Write(b)
}

// said is the last line of standard error, for the end of an error.
func (l *last) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.tail)), "\n")
	if text := strings.TrimSpace(lines[len(lines)-1]); text != "" {
		return ": " + fmt.Sprintf("%q", clip(text))
	}
	return ""
}
