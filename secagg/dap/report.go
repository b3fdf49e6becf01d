package dap

import (
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
)

// TicketExtension is the type of the report extension that carries a Ticket. DAP has no range for
// private use: this is one that it has not given away.
const TicketExtension = 0xFF00

// A Ticket is the decision that a report is about: the arm, its number among those of the arm, and
// the token that the decision was answered with. Both servers see it.
type Ticket struct {
	Arm    uint32
	Number uint64
	Token  []byte
}

// ticketHeader is what a ticket has before its token.
const ticketHeader = 4 + 8

// Marshal is the arm, the number, the highest byte first, and the token.
func (t Ticket) Marshal() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, ticketHeader+len(t.Token)), t.Arm)
	return append(binary.BigEndian.AppendUint64(b, t.Number), t.Token...)
}

// ParseTicket reads what Marshal wrote.
func ParseTicket(b []byte) (Ticket, error) {
	if len(b) < ticketHeader || len(b) > ticketHeader+MaxToken {
		return Ticket{}, malformed("ticket", "%d bytes, must be from %d to %d", len(b), ticketHeader,
			ticketHeader+MaxToken)
	}
	return Ticket{Arm: binary.BigEndian.Uint32(b), Number: binary.BigEndian.Uint64(b[4:]),
		Token: append([]byte(nil), b[ticketHeader:]...)}, nil
}

// Metadata is DAP's ReportMetadata: what both servers see of a report.
type Metadata struct {
	ID ReportID
	// Time is when the report was due, in TimePrecisions since 1970: the decision's answer says it,
	// so that it tells nothing about the client.
	Time   uint64
	Ticket Ticket
}

func (m Metadata) add(b *cryptobyte.Builder) {
	b.AddBytes(m.ID[:])
	b.AddUint64(m.Time)
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(TicketExtension)
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(m.Ticket.Marshal()) })
	})
}

func readMetadata(s *cryptobyte.String) (m Metadata, err error) {
	var extensions cryptobyte.String
	if !s.CopyBytes(m.ID[:]) || !s.ReadUint64(&m.Time) || !s.ReadUint16LengthPrefixed(&extensions) {
		return m, malformed("report", "cut short")
	}
	var kind uint16
	var data cryptobyte.String
	if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&data) {
		return m, malformed("report", "it has no ticket")
	}
	if kind != TicketExtension {
		return m, fmt.Errorf("%w: public extension %#04x, must be %#04x", UnsupportedExtension, kind,
			TicketExtension)
	}
	if !extensions.Empty() {
		return m, malformed("report", "must have one public extension")
	}
	m.Ticket, err = ParseTicket(data)
	return m, err
}

// aad is DAP's InputShareAad: the task, what both servers see, and the public share, which is empty.
func (m Metadata) aad(t Task) []byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes(t.ID[:])
	m.add(b)
	b.AddUint32(0)
	return b.BytesOrPanic()
}

// A Report is what a client sends: its measurement in two shares, each sealed to one server.
type Report struct {
	Metadata
	Leader, Helper Ciphertext
}

// NewReport makes the report of a value from 0 to the task's Grid. It reads 144 bytes of rnd, which
// must be a cryptographic source: the report's id, the seeds of the shares and of the proof, and
// one for each sealing. time is what the decision's answer says.
func NewReport(t Task, leader, helper Config, time uint64, ticket Ticket, value uint64,
	rnd io.Reader) (Report, error) {
	r := Report{Metadata: Metadata{Time: time, Ticket: ticket}}
	if len(ticket.Token) > MaxToken {
		return Report{}, malformed("ticket", "a token of %d bytes, must be at most %d",
			len(ticket.Token), MaxToken)
	}
	sum, err := t.sum()
	if err != nil {
		return Report{}, err
	}
	if _, err := io.ReadFull(rnd, r.ID[:]); err != nil {
		return Report{}, fmt.Errorf("dap: drawing a report id: %w", err)
	}
	forLeader, forHelper, err := sum.Shard(value, &r.ID, rnd)
	if err != nil {
		return Report{}, err
	}
	aad := r.aad(t)
	if r.Leader, err = leader.seal(roleLeader, aad, plaintext(forLeader), rnd); err != nil {
		return Report{}, err
	}
	if r.Helper, err = helper.seal(roleHelper, aad, plaintext(forHelper), rnd); err != nil {
		return Report{}, err
	}
	return r, nil
}

// plaintext is DAP's PlaintextInputShare, without private extensions.
func plaintext(share []byte) []byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddUint16(0)
	b.AddUint32LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(share) })
	return b.BytesOrPanic()
}

// openShare decrypts an input share, or says why not as a ReportError.
func openShare(t Task, k Key, as byte, m Metadata, c Ciphertext) ([]byte, error) {
	plain, err := k.open(as, m.aad(t), c)
	if err != nil {
		return nil, err
	}
	s := cryptobyte.String(plain)
	var extensions, share cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&extensions) || !extensions.Empty() || !read32(&s, &share) ||
		!s.Empty() {
		return nil, InvalidReport
	}
	return share, nil
}

// Marshal is DAP's Report.
func (r Report) Marshal() []byte {
	b := cryptobyte.NewBuilder(nil)
	r.Metadata.add(b)
	b.AddUint32(0)
	r.Leader.add(b)
	r.Helper.add(b)
	return b.BytesOrPanic()
}

// ParseReport reads what Marshal wrote. It is InvalidMessage or UnsupportedExtension if that is
// not a report of ours.
func ParseReport(b []byte) (Report, error) {
	s := cryptobyte.String(b)
	r, err := readReport(&s)
	if err == nil && !s.Empty() {
		err = malformed("report", "%d bytes too many", len(s))
	}
	return r, err
}

// ParseReports reads an UploadRequest: from one to most reports, one after the other.
func ParseReports(b []byte, most int) ([]Report, error) {
	s := cryptobyte.String(b)
	var out []Report
	for !s.Empty() {
		if len(out) == most {
			return nil, malformed("upload", "must have at most %d reports", most)
		}
		r, err := readReport(&s)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, malformed("upload", "must have at least one report")
	}
	return out, nil
}

func readReport(s *cryptobyte.String) (r Report, err error) {
	before := len(*s)
	if r.Metadata, err = readMetadata(s); err != nil {
		return Report{}, err
	}
	if err := readPublicShare(s); err != nil {
		return Report{}, err
	}
	if r.Leader, err = readCiphertext(s); err != nil {
		return Report{}, err
	}
	if r.Helper, err = readCiphertext(s); err != nil {
		return Report{}, err
	}
	if n := before - len(*s); n > MaxReport {
		return Report{}, malformed("report", "%d bytes, must be at most %d", n, MaxReport)
	}
	return r, nil
}

// readPublicShare reads that of Prio3Sum, which is empty.
func readPublicShare(s *cryptobyte.String) error {
	var public cryptobyte.String
	if !read32(s, &public) {
		return malformed("report", "cut short")
	}
	if !public.Empty() {
		return malformed("report", "a public share of %d bytes, must be empty", len(public))
	}
	return nil
}

func (c Ciphertext) add(b *cryptobyte.Builder) {
	b.AddUint8(c.ConfigID)
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(c.Enc[:]) })
	b.AddUint32LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(c.Payload) })
}

func readCiphertext(s *cryptobyte.String) (c Ciphertext, err error) {
	var enc, payload cryptobyte.String
	if !s.ReadUint8(&c.ConfigID) || !s.ReadUint16LengthPrefixed(&enc) || !read32(s, &payload) {
		return c, malformed("report", "cut short")
	}
	if len(enc) != keySize {
		return c, malformed("report", "an encapsulated key of %d bytes, must be %d", len(enc), keySize)
	}
	if len(payload) == 0 || len(payload) > MaxReport {
		return c, malformed("report", "a sealed share of %d bytes, must be from 1 to %d", len(payload),
			MaxReport)
	}
	c.Enc = [keySize]byte(enc)
	c.Payload = append([]byte(nil), payload...)
	return c, nil
}

// read32 reads what has its length before it, in four bytes.
func read32(s *cryptobyte.String, out *cryptobyte.String) bool {
	var n uint32
	return s.ReadUint32(&n) && uint64(n) <= uint64(len(*s)) && s.ReadBytes((*[]byte)(out), int(n))
}

func malformed(what, format string, args ...any) error {
	return fmt.Errorf("%w: %s: "+format, append([]any{InvalidMessage, what}, args...)...)
}

// An UploadStatus is DAP's ReportUploadStatus: why a report was not taken.
type UploadStatus struct {
	ID     ReportID
	Reason ReportError
}

// uploadStatusSize is that of an encoded status.
const uploadStatusSize = len(ReportID{}) + 1

// MarshalUploadResponse is DAP's UploadResponse: those that were not taken, in the order of the
// request.
func MarshalUploadResponse(statuses ...UploadStatus) []byte {
	var b []byte
	for _, s := range statuses {
		b = append(append(b, s.ID[:]...), byte(s.Reason))
	}
	return b
}

// ParseUploadResponse reads what MarshalUploadResponse wrote.
func ParseUploadResponse(b []byte) ([]UploadStatus, error) {
	if len(b)%uploadStatusSize != 0 {
		return nil, malformed("upload response", "%d bytes, must be a multiple of %d", len(b),
			uploadStatusSize)
	}
	var out []UploadStatus
	for ; len(b) > 0; b = b[uploadStatusSize:] {
		out = append(out, UploadStatus{ID: ReportID(b[:16]), Reason: ReportError(b[16])})
	}
	return out, nil
}
