package dap_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdh"
	stdhpke "crypto/hpke"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudflare/circl/hpke"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/prio"
)

var update = flag.Bool("update", false, "write golden files anew")

// hexBytes are hexadecimal in JSON.
type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

// vector is a report, and how it comes about. Field elements are 8 bytes, the lowest first.
type vector struct {
	Name string `json:"name"`
	// what is given
	TaskID       hexBytes `json:"task_id"`
	Grid         uint64   `json:"grid"`
	LeaderConfig string   `json:"leader_config"`
	HelperConfig string   `json:"helper_config"`
	Time         uint64   `json:"time"`
	Arm          uint32   `json:"arm"`
	Number       string   `json:"number"` // decimal: it may be above 2^53
	Token        hexBytes `json:"token"`
	Value        uint64   `json:"value"`
	Randomness   hexBytes `json:"randomness"`
	// the randomness, in its order
	ReportID   hexBytes `json:"report_id"`
	HelperSeed hexBytes `json:"helper_seed"`
	ProveSeed  hexBytes `json:"prove_seed"`
	LeaderSeed hexBytes `json:"leader_ephemeral_seed"`
	SealSeed   hexBytes `json:"helper_ephemeral_seed"`
	// Prio3Sum
	Context       hexBytes `json:"vdaf_context"`
	Measurement   hexBytes `json:"encoded_measurement"`
	ProveRand     hexBytes `json:"prove_rand"`
	Proof         hexBytes `json:"proof"`
	HelperMeasure hexBytes `json:"helper_measurement_share"`
	HelperProof   hexBytes `json:"helper_proof_share"`
	LeaderShare   hexBytes `json:"leader_input_share"`
	HelperShare   hexBytes `json:"helper_input_share"`
	// HPKE
	Ticket      hexBytes `json:"ticket"`
	AAD         hexBytes `json:"aad"`
	LeaderInfo  hexBytes `json:"leader_info"`
	HelperInfo  hexBytes `json:"helper_info"`
	LeaderKey   hexBytes `json:"leader_ephemeral_private_key"`
	HelperKey   hexBytes `json:"helper_ephemeral_private_key"`
	LeaderPlain hexBytes `json:"leader_plaintext"`
	HelperPlain hexBytes `json:"helper_plaintext"`
	LeaderEnc   hexBytes `json:"leader_enc"`
	HelperEnc   hexBytes `json:"helper_enc"`
	LeaderSeal  hexBytes `json:"leader_payload"`
	HelperSeal  hexBytes `json:"helper_payload"`
	// what is sent
	Report hexBytes `json:"report"`
}

// jobVector is what the two servers do with the reports of a batch.
type jobVector struct {
	Secret     hexBytes   `json:"shared_secret"`
	TaskID     hexBytes   `json:"task_id"`
	Grid       uint64     `json:"grid"`
	LeaderKey  hexBytes   `json:"leader_secret"`
	HelperKey  hexBytes   `json:"helper_secret"`
	VerifyKey  hexBytes   `json:"verify_key"`
	Bearer     string     `json:"bearer"`
	Arm        uint32     `json:"arm"`
	Start      uint64     `json:"start"`
	End        uint64     `json:"end"`
	BatchID    hexBytes   `json:"batch_id"`
	JobID      string     `json:"job_id"`
	ShareID    string     `json:"share_id"`
	Reports    []hexBytes `json:"reports"`
	Request    hexBytes   `json:"aggregation_job_init_req"`
	Response   hexBytes   `json:"aggregation_job_resp"`
	Refused    []string   `json:"refused"`
	Leader     hexBytes   `json:"leader_aggregate"`
	Helper     hexBytes   `json:"helper_aggregate"`
	ShareAsked hexBytes   `json:"aggregate_share_req"`
	Noise      int64      `json:"helper_noise"`
	Share      hexBytes   `json:"aggregate_share"`
	Sum        int64      `json:"sum"`
}

func makeVectors(t *testing.T) []vector {
	keys := newWorld(t, 1)
	coins := rand.NewChaCha8([32]byte{20})
	var out []vector
	for _, c := range []struct {
		name        string
		grid, value uint64
		ticket      dap.Ticket
	}{
		{"no click", 1, 0, dap.Ticket{Arm: 0, Number: 0, Token: []byte("a")}},
		{"click", 1, 1, dap.Ticket{Arm: 1, Number: 41, Token: []byte("eyJhIjoxfQ.c2lnbmF0dXJl")}},
		{"nothing of 1024", 1024, 0, dap.Ticket{Arm: 3, Number: 1 << 33, Token: make([]byte, 64)}},
		{"some of 1024", 1024, 700, dap.Ticket{Arm: 3, Number: 1<<53 + 1, Token: make([]byte, 1)}},
		{"all of 1024", 1024, 1024, dap.Ticket{Arm: 1<<32 - 1, Number: 1<<64 - 1}},
		{"the finest grid", 1 << 20, 777_777, dap.Ticket{Arm: 7, Number: 12,
			Token: bytes.Repeat([]byte{0xff}, 300)}},
		{"all of the finest grid", 1 << 20, 1 << 20, dap.Ticket{Arm: 7, Number: 13, Token: []byte("t")}},
	} {
		v := vector{Name: c.name, TaskID: make([]byte, 32), Grid: c.grid, Value: c.value, Time: 494_000,
			LeaderConfig: keys.leader.Config().String(), HelperConfig: keys.helper.Config().String(),
			Arm: c.ticket.Arm, Number: string(testkit.Must(json.Marshal(c.ticket.Number))), Token: c.ticket.Token,
			Randomness: make([]byte, 144)}
		_, _ = coins.Read(v.TaskID)
		_, _ = coins.Read(v.Randomness)
		v.ReportID, v.HelperSeed, v.ProveSeed = v.Randomness[:16], v.Randomness[16:48], v.Randomness[48:80]
		v.LeaderSeed, v.SealSeed = v.Randomness[80:112], v.Randomness[112:]

		v.Context = append([]byte("dap-16"), v.TaskID...)
		s := shard(c.grid, c.value, v.Context, v.HelperSeed, v.ProveSeed)
		v.Measurement, v.ProveRand, v.Proof = little(s.Measurement), little([]uint64{s.ProveRand}),
			little(s.Proof)
		v.HelperMeasure, v.HelperProof = little(s.HelperMeasure), little(s.HelperProof)
		v.LeaderShare, v.HelperShare = s.leader, v.HelperSeed

		v.Ticket = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, v.Arm), c.ticket.Number)
		v.Ticket = append(v.Ticket, v.Token...)
		v.LeaderInfo, v.HelperInfo = []byte("dap-16 input share\x01\x02"), []byte("dap-16 input share\x01\x03")
		metadata := binary.BigEndian.AppendUint64(bytes.Clone(v.ReportID), v.Time)
		metadata = binary.BigEndian.AppendUint16(metadata, uint16(4+len(v.Ticket)))
		metadata = append(metadata, 0xff, 0)
		metadata = append(binary.BigEndian.AppendUint16(metadata, uint16(len(v.Ticket))), v.Ticket...)
		metadata = append(metadata, 0, 0, 0, 0) // the public share
		v.AAD = append(bytes.Clone(v.TaskID), metadata...)
		plain := func(share []byte) []byte {
			return append(binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(len(share))), share...)
		}
		v.LeaderPlain, v.HelperPlain = plain(v.LeaderShare), plain(v.HelperShare)
		v.LeaderEnc, v.LeaderKey, v.LeaderSeal = sealed(t, keys.leader.Config(), v.LeaderSeed,
			v.LeaderInfo, v.AAD, v.LeaderPlain)
		v.HelperEnc, v.HelperKey, v.HelperSeal = sealed(t, keys.helper.Config(), v.SealSeed,
			v.HelperInfo, v.AAD, v.HelperPlain)
		v.Report = metadata
		for i, c := range [][2][]byte{{v.LeaderEnc, v.LeaderSeal}, {v.HelperEnc, v.HelperSeal}} {
			v.Report = append(v.Report, byte(1+i), 0, 32)
			v.Report = append(v.Report, c[0]...)
			v.Report = append(binary.BigEndian.AppendUint32(v.Report, uint32(len(c[1]))), c[1]...)
		}
		out = append(out, v)
	}
	return out
}

// publicKey is what a Config has.
func publicKey(c dap.Config) []byte { return c.Marshal()[9:] }

// sealed is HPKE's SealBase with the ephemeral key of a seed.
func sealed(t *testing.T, to dap.Config, seed, info, aad, plain []byte) (enc, private, payload []byte) {
	t.Helper()
	scheme := hpke.KEM_X25519_HKDF_SHA256.Scheme()
	suite := hpke.NewSuite(hpke.KEM_X25519_HKDF_SHA256, hpke.KDF_HKDF_SHA256, hpke.AEAD_AES128GCM)
	sender := testkit.Must(suite.NewSender(testkit.Must(scheme.UnmarshalBinaryPublicKey(publicKey(to))), info))
	enc, sealer, err := sender.Setup(bytes.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	payload = testkit.Must(sealer.Seal(plain, aad))
	_, key := scheme.DeriveKeyPair(seed)
	private = testkit.Must(key.MarshalBinary())
	if public := testkit.Must(ecdh.X25519().NewPrivateKey(private)).PublicKey().Bytes(); !bytes.Equal(public, enc) {
		t.Fatalf("the ephemeral key is %x, its public half %x, not %x", private, public, enc)
	}
	return enc, private, payload
}

// The reports of fixed randomness are those of testdata, which were made from the drafts' text and
// which every other client of ours has to make too.
func TestReportVectors(t *testing.T) {
	want := makeVectors(t)
	golden(t, "reports.json", want)
	for _, v := range want {
		leader, helper := dap.Config{}, dap.Config{}
		if err := leader.UnmarshalText([]byte(v.LeaderConfig)); err != nil {
			t.Fatal(err)
		}
		if err := helper.UnmarshalText([]byte(v.HelperConfig)); err != nil {
			t.Fatal(err)
		}
		ticket := testkit.Must(dap.ParseTicket(v.Ticket))
		rnd := bytes.NewReader(v.Randomness)
		r, err := dap.NewReport(dap.Task{ID: dap.TaskID(v.TaskID), Grid: v.Grid}, leader, helper, v.Time,
			ticket, v.Value, rnd)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if rnd.Len() > 0 {
			t.Errorf("%s: %d bytes of randomness are left", v.Name, rnd.Len())
		}
		if got := r.Marshal(); !bytes.Equal(got, v.Report) {
			t.Errorf("%s: the report is\n%x, must be\n%x", v.Name, got, v.Report)
		}
	}
}

// A report opens under Go's own HPKE too.
func TestAgainstStandardHPKE(t *testing.T) {
	w := newWorld(t, 8)
	r := w.report(t, 12, 5)
	aad := append(w.task.ID[:], r.Marshal()[:16+8+2+4+len(r.Ticket.Marshal())+4]...)
	seed := testkit.Must(dap.DeriveKeySeed(bytes.Repeat([]byte{2}, 32), 2))
	key := testkit.Must(stdhpke.DHKEM(ecdh.X25519()).DeriveKeyPair(seed))
	if got, want := key.PublicKey().Bytes(), publicKey(w.helper.Config()); !bytes.Equal(got, want) {
		t.Fatalf("the helper's key is %x, must be %x", want, got)
	}
	receiver := testkit.Must(stdhpke.NewRecipient(r.Helper.Enc[:], key, stdhpke.HKDFSHA256(), stdhpke.AES128GCM(),
		[]byte("dap-16 input share\x01\x03")))
	plain, err := receiver.Open(aad, r.Helper.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if len(plain) != 2+4+32 {
		t.Errorf("the helper's plaintext has %d bytes, must have 38", len(plain))
	}
}

// The two servers' messages about fixed reports are those of testdata.
func TestJobVectors(t *testing.T) {
	var out []jobVector
	for _, grid := range []uint64{1, 1024, 1 << 20} {
		w := newWorld(t, grid)
		w.batch = dap.Batch{Arm: 4, Start: 100, End: 200}
		v := jobVector{Secret: bytes.Repeat([]byte{3}, 32), LeaderKey: bytes.Repeat([]byte{1}, 32),
			HelperKey: bytes.Repeat([]byte{2}, 32), TaskID: w.task.ID[:], Grid: grid, VerifyKey: w.verify[:],
			Arm: 4, Start: 100, End: 200, JobID: w.batch.JobID(100).String(),
			ShareID: w.batch.ShareID().String(), Noise: -3 << 19}
		v.Bearer = testkit.Must(dap.DeriveBearer(v.Secret, w.task.ID))
		id := w.batch.ID()
		v.BatchID = id[:]
		coins := rand.NewChaCha8([32]byte{byte(grid), byte(grid >> 8), byte(grid >> 16)})
		var reports []dap.Report
		for i := range uint64(4) {
			r := testkit.Must(dap.NewReport(w.task, w.leader.Config(), w.helper.Config(), 494_000,
				w.ticket(100+i*7), grid*(i%2), coins))
			switch i {
			case 2:
				r.Leader.Payload[0] ^= 1
			case 3:
				r.Helper.Payload[0] ^= 1
			}
			reports = append(reports, r)
			v.Reports = append(v.Reports, r.Marshal())
		}
		j := testkit.Must(dap.NewLeaderJob(w.task, w.leader, w.verify, w.batch, reports))
		v.Request = j.Request()
		response, helper := w.help(t, v.Request)
		leader, refused, err := j.Finish(response)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range refused {
			v.Refused = append(v.Refused, r.Reason.Error())
		}
		v.Response, v.Leader, v.Helper = response, testkit.Must(leader.MarshalBinary()), testkit.Must(helper.MarshalBinary())
		v.ShareAsked = leader.Request(w.batch).Marshal()
		v.Share = testkit.Must(helper.Share(w.task, v.Noise))
		v.Sum = w.meet(t, leader, helper, v.Noise)
		if v.Sum != 1<<20+v.Noise || len(refused) != 2 {
			t.Errorf("the sum is %d, %d are refused", v.Sum, len(refused))
		}
		out = append(out, v)
	}
	golden(t, "jobs.json", out)
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got := append(testkit.Must(json.MarshalIndent(v, "", " ")), '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed: write it anew with -update, and say why", path)
	}
}

// vdafVector is a file of VDAF's own vectors.
type vdafVector struct {
	Ctx       hexBytes   `json:"ctx"`
	Max       uint64     `json:"max_measurement"`
	Shares    int        `json:"shares"`
	VerifyKey hexBytes   `json:"verify_key"`
	AggResult int64      `json:"agg_result"`
	AggShares []hexBytes `json:"agg_shares"`
	Prep      []struct {
		InputShares  []hexBytes   `json:"input_shares"`
		Measurement  uint64       `json:"measurement"`
		Nonce        hexBytes     `json:"nonce"`
		OutShares    [][]hexBytes `json:"out_shares"`
		PrepMessages []hexBytes   `json:"prep_messages"`
		PrepShares   [][]hexBytes `json:"prep_shares"`
		PublicShare  hexBytes     `json:"public_share"`
		Rand         hexBytes     `json:"rand"`
	} `json:"prep"`
}

// VDAF's own vectors of Prio3Sum hold of our code, and of the reference that made testdata. One of
// the three files is of three servers, which we do not have.
func TestVDAFVectors(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cloudflare/circl").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := testkit.Must(filepath.Glob(filepath.Join(strings.TrimSpace(string(out)),
		"vdaf/prio3/testdata/Prio3Sum_*.json.gz")))
	two, reports := 0, 0
	for _, path := range files {
		v := readVDAF(t, path)
		if v.Shares != 2 {
			continue
		}
		two++
		s := testkit.Must(prio.NewSum(v.Max, v.Ctx))
		key := prio.VerifyKey(v.VerifyKey)
		totals := [2]prio.Total{s.Total(), s.Total()}
		for _, p := range v.Prep {
			reports++
			nonce := prio.Nonce(p.Nonce)
			leader, helper, err := s.Shard(p.Measurement, &nonce, bytes.NewReader(p.Rand))
			if err != nil || !bytes.Equal(leader, p.InputShares[0]) || !bytes.Equal(helper, p.InputShares[1]) {
				t.Fatalf("%s: input shares differ, %v", path, err)
			}
			own := shard(v.Max, p.Measurement, v.Ctx, p.Rand[:32], p.Rand[32:])
			if !bytes.Equal(own.leader, leader) || !bytes.Equal(own.seed, helper) {
				t.Fatalf("%s: the reference's input shares differ", path)
			}
			var preps [2]prio.Prep
			for i, share := range [][]byte{leader, helper} {
				preps[i] = testkit.Must(s.Prepare(&key, &nonce, prio.Role(i), share))
				if got := testkit.Must(preps[i].Share()); !bytes.Equal(got, p.PrepShares[0][i]) {
					t.Errorf("%s: prep share %d is %x, must be %x", path, i, got, p.PrepShares[0][i])
				}
			}
			for i := range preps {
				if err := s.Check(preps[i], p.PrepShares[0][1-i]); err != nil {
					t.Errorf("%s: server %d: %v", path, i, err)
				}
				if err := totals[i].Add(preps[i]); err != nil {
					t.Error(err)
				}
			}
			if len(p.PublicShare) != 0 || len(p.PrepMessages[0]) != 0 {
				t.Errorf("%s: public share %x and message %x, which we say are empty", path, p.PublicShare,
					p.PrepMessages[0])
			}
		}
		var sum prio.Share
		for i := range totals {
			share := testkit.Must(totals[i].Share())
			if got := testkit.Must(share.Bytes()); !bytes.Equal(got, v.AggShares[i]) {
				t.Errorf("%s: aggregate share %d is %x, must be %x", path, i, got, v.AggShares[i])
			}
			sum = sum.Plus(share)
		}
		if got := testkit.Must(sum.Int64()); got != v.AggResult {
			t.Errorf("%s: the sum is %d, must be %d", path, got, v.AggResult)
		}
	}
	if two != 2 || reports != 9 {
		t.Errorf("%d files of two servers with %d reports in %v, want 2 and 9", two, reports, files)
	}
}

func readVDAF(t *testing.T, path string) (v vdafVector) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
