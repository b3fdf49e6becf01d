package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/sotto-dp/sotto/secagg"
)

// Version is the version of the frames.
const Version = 1

var (
	// ErrFrame: what came is no frame: of another version, of an unknown type, too long, or cut.
	ErrFrame = errors.New("transport: bad frame")
	// ErrPeer: the other end is not who it should be, or does not speak this protocol.
	ErrPeer = errors.New("transport: wrong peer")
	// ErrLost: the connection broke.
	ErrLost = errors.New("transport: connection lost")
	// ErrStopped: the server was stopped before the session had ended.
	ErrStopped = errors.New("transport: the server was stopped")
	// ErrPossiblyReleased: what failed had gone so far that the sum may be known to the server all
	// the same. It comes with the cause, which it does not hide. A client has sent its masked
	// message; a server has asked for the shares that open it. What was sent is spent: the same
	// rewards must not be sent again, under any session.
	ErrPossiblyReleased = errors.New("transport: possibly released")
)

type frameType uint8

const (
	frameMessage frameType = 1
	frameBegin   frameType = 2
	frameEnd     frameType = 3
	frameRefusal frameType = 4
)

const (
	frameHeader = 6
	maxText     = 1024 // of a refusal
)

// limitOf bounds the messages of a session: coordinates, and for each of at most so many neighbours
// a seat of the roster, a pair of shares or a tag, all shorter than 256 bytes.
func limitOf(length, clients int) int {
	const maxDegree = 1 << 14
	return min(secagg.MaxMessage, 4096+8*length+256*min(clients, maxDegree)+clients/8)
}

// frame is a frame as it goes over the wire.
func frame(t frameType, payload []byte) []byte {
	b := make([]byte, 0, frameHeader+len(payload))
	b = append(b, Version, byte(t))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readFrame reads one frame with a payload of at most limit bytes. The error is io.EOF if there is
// none, and matches ErrFrame if it is none.
func readFrame(r io.Reader, limit int) (frameType, []byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: cut: %w", ErrFrame, err)
		}
		return 0, nil, err
	}
	t, n := frameType(head[1]), int64(binary.BigEndian.Uint32(head[2:]))
	switch {
	case head[0] != Version:
		return 0, nil, fmt.Errorf("%w: version %d, must be %d", ErrFrame, head[0], Version)
	case t < frameMessage || t > frameRefusal:
		return 0, nil, fmt.Errorf("%w: type %d", ErrFrame, head[1])
	case t == frameRefusal && (n < 1 || n > 1+maxText), (t == frameBegin || t == frameEnd) &&
		n != 0, t == frameMessage && n > int64(limit):
		return 0, nil, fmt.Errorf("%w: type %d of %d bytes", ErrFrame, t, n)
	}
	// The buffer grows with what comes, not with what was announced.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: cut: %w", ErrFrame, io.ErrUnexpectedEOF)
		}
		return 0, nil, err
	}
	return t, b.Bytes(), nil
}

// named are the errors that a refusal can name, by their codes. Codes never change.
// ErrPossiblyReleased has none: each end knows for itself, and what goes over the wire is the cause.
var named = [...]struct {
	code byte
	err  error
}{
	{1, secagg.ErrTooFew}, {2, secagg.ErrEquivocation}, {3, secagg.ErrBothShares},
	{4, secagg.ErrReplay}, {5, secagg.ErrContext}, {6, secagg.ErrLate},
	{7, secagg.ErrEarly}, {8, secagg.ErrDuplicate}, {9, secagg.ErrVersion},
	{10, secagg.ErrMalformed}, {11, secagg.ErrSignature},
	{12, secagg.ErrUnknown}, {13, secagg.ErrSender}, {14, secagg.ErrRange},
	{15, secagg.ErrDeadline}, {16, secagg.ErrClock}, {17, secagg.ErrShares},
	{18, secagg.ErrKey}, {19, secagg.ErrInfeasible}, {20, secagg.ErrSession}, {21, secagg.ErrUnfinished},
	{32, ErrFrame}, {33, ErrPeer}, {34, ErrLost}, {35, ErrStopped},
}

// A Refusal is what the server said when it ended a session, or a client's part in it. It matches
// the error that the server named, if it is a known one. The text is the server's.
type Refusal struct {
	Text string
	err  error
}

func (r *Refusal) Error() string { return "the server refuses: " + r.Text }

// Unwrap is the error that the server named, or nil.
func (r *Refusal) Unwrap() error { return r.err }

// refusal is the frame that tells a client about err.
func refusal(err error) []byte {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = ErrStopped
	}
	var code byte
	for _, n := range named {
		// a deadline that left too few comes as the latter, which is listed first
		if errors.Is(err, n.err) {
			code = n.code
			break
		}
	}
	text := err.Error()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return frame(frameRefusal, append([]byte{code}, text...))
}

// readRefusal is the payload of a refusal as an error. Its text may end in a terminal, so what
// controls one is taken out.
func readRefusal(payload []byte) error {
	r := &Refusal{Text: strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '.'
		}
		return c
	}, strings.ToValidUTF8(string(payload[1:]), "."))}
	for _, n := range named {
		if n.code == payload[0] {
			r.err = n.err
		}
	}
	return r
}

// Name is the name of the error of this package or of secagg that err matches, such as "too few";
// empty if it matches none.
func Name(err error) string {
	if errors.Is(err, ErrPossiblyReleased) {
		return "possibly released"
	}
	for _, n := range named {
		if errors.Is(err, n.err) {
			_, name, _ := strings.Cut(n.err.Error(), ": ")
			return name
		}
	}
	return ""
}
