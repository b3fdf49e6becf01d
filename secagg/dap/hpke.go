package dap

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/cloudflare/circl/hpke"
	"github.com/cloudflare/circl/kem"
	"golang.org/x/crypto/cryptobyte"

	"github.com/sotto-dp/sotto/secagg/prio"
)

// The suite that every DAP application has. It is circl's, which is handed its randomness, so that
// a whole report has golden bytes; tests hold it against crypto/hpke.
const (
	kemID  = hpke.KEM_X25519_HKDF_SHA256
	kdfID  = hpke.KDF_HKDF_SHA256
	aeadID = hpke.AEAD_AES128GCM
	// keySize is that of a public key, and of an encapsulated one.
	keySize = 32
)

// The parties, as the info of a sealed share has them.
const (
	roleClient = 1
	roleLeader = 2
	roleHelper = 3
)

func info(to byte) []byte { return append([]byte(Version+" input share"), roleClient, to) }

// A Config is the public half of a server's HPKE key, DAP's HpkeConfig.
type Config struct {
	ID  uint8
	key [keySize]byte
}

// Marshal is the encoding of an HpkeConfig.
func (c Config) Marshal() []byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddUint8(c.ID)
	b.AddUint16(uint16(kemID))
	b.AddUint16(uint16(kdfID))
	b.AddUint16(uint16(aeadID))
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(c.key[:]) })
	return b.BytesOrPanic()
}

// MarshalText is Marshal in base64url without padding: what a declaration says and a client pins.
func (c Config) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, c.Marshal()), nil
}

// String is MarshalText.
func (c Config) String() string { return base64.RawURLEncoding.EncodeToString(c.Marshal()) }

// UnmarshalText reads what MarshalText wrote.
func (c *Config) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("%w: HPKE configuration must be in base64url without padding", InvalidMessage)
	}
	read, err := ParseConfig(raw)
	if err == nil {
		*c = read
	}
	return err
}

// ParseConfig reads one HpkeConfig. It must be of X25519, HKDF-SHA256 and AES-128-GCM.
func ParseConfig(raw []byte) (Config, error) {
	s := cryptobyte.String(raw)
	c, ok, err := readConfig(&s)
	switch {
	case err != nil:
		return Config{}, err
	case !s.Empty():
		return Config{}, malformed("HPKE configuration", "%d bytes too many", len(s))
	case !ok:
		return Config{}, malformed("HPKE configuration",
			"must be of X25519 (0x0020), HKDF-SHA256 (0x0001) and AES-128-GCM (0x0001)")
	}
	return c, nil
}

// ParseConfigs reads an HpkeConfigList, and returns the first that is of our suite.
func ParseConfigs(raw []byte) (Config, error) {
	s, list := cryptobyte.String(raw), cryptobyte.String(nil)
	if !s.ReadUint16LengthPrefixed(&list) || !s.Empty() {
		return Config{}, malformed("HPKE configurations", "not a list")
	}
	var found *Config
	for !list.Empty() {
		c, ok, err := readConfig(&list)
		if err != nil {
			return Config{}, err
		}
		if ok && found == nil {
			found = &c
		}
	}
	if found == nil {
		return Config{}, malformed("HPKE configurations", "none is of X25519, HKDF-SHA256 and AES-128-GCM")
	}
	return *found, nil
}

// MarshalConfigs is an HpkeConfigList.
func MarshalConfigs(configs ...Config) []byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
		for _, c := range configs {
			b.AddBytes(c.Marshal())
		}
	})
	return b.BytesOrPanic()
}

// readConfig reads an HpkeConfig; ok says that it is of our suite.
func readConfig(s *cryptobyte.String) (c Config, ok bool, err error) {
	var kemOf, kdfOf, aeadOf uint16
	var key cryptobyte.String
	if !s.ReadUint8(&c.ID) || !s.ReadUint16(&kemOf) || !s.ReadUint16(&kdfOf) ||
		!s.ReadUint16(&aeadOf) || !s.ReadUint16LengthPrefixed(&key) {
		return c, false, malformed("HPKE configuration", "cut short")
	}
	if kemOf != uint16(kemID) || kdfOf != uint16(kdfID) || aeadOf != uint16(aeadID) {
		return c, false, nil
	}
	if len(key) != keySize {
		return c, false, malformed("HPKE configuration", "a key of %d bytes, must be %d", len(key), keySize)
	}
	c.key = [keySize]byte(key)
	return c, true, nil
}

// A Ciphertext is DAP's HpkeCiphertext.
type Ciphertext struct {
	ConfigID uint8
	Enc      [keySize]byte
	Payload  []byte
}

// seal encrypts to c, and reads 32 bytes of rnd.
func (c Config) seal(to byte, aad, plaintext []byte, rnd io.Reader) (Ciphertext, error) {
	pk, err := kemID.Scheme().UnmarshalBinaryPublicKey(c.key[:])
	if err != nil {
		return Ciphertext{}, fmt.Errorf("dap: HPKE key: %w", err)
	}
	sender, err := hpke.NewSuite(kemID, kdfID, aeadID).NewSender(pk, info(to))
	if err != nil {
		return Ciphertext{}, fmt.Errorf("dap: %w", err)
	}
	enc, sealer, err := sender.Setup(rnd)
	if err != nil {
		return Ciphertext{}, fmt.Errorf("dap: sealing: %w", err)
	}
	payload, err := sealer.Seal(plaintext, aad)
	if err != nil {
		return Ciphertext{}, fmt.Errorf("dap: sealing: %w", err)
	}
	return Ciphertext{ConfigID: c.ID, Enc: [keySize]byte(enc), Payload: payload}, nil
}

// A Key is a server's HPKE key.
type Key struct {
	config  Config
	private kem.PrivateKey
}

// DeriveKey is the key of a server's secret, of at least SecretSize random bytes, and of a
// configuration id: another id is another key.
func DeriveKey(secret []byte, configID uint8) (Key, error) {
	seed, err := derive(secret, nil, fmt.Sprintf("sotto %s hpke key %d", Version, configID))
	if err != nil {
		return Key{}, err
	}
	public, private := kemID.Scheme().DeriveKeyPair(seed)
	b, err := public.MarshalBinary()
	if err != nil {
		return Key{}, fmt.Errorf("dap: HPKE key: %w", err)
	}
	return Key{config: Config{ID: configID, key: [keySize]byte(b)}, private: private}, nil
}

// Config is the public half.
func (k Key) Config() Config { return k.config }

// open decrypts what was sealed to the key: a ReportError if it was not.
func (k Key) open(as byte, aad []byte, c Ciphertext) ([]byte, error) {
	if c.ConfigID != k.config.ID {
		return nil, HPKEUnknownConfigID
	}
	receiver, err := hpke.NewSuite(kemID, kdfID, aeadID).NewReceiver(k.private, info(as))
	if err != nil {
		return nil, fmt.Errorf("dap: %w", err)
	}
	opener, err := receiver.Setup(c.Enc[:])
	if err != nil {
		return nil, HPKEDecryptError
	}
	plain, err := opener.Open(c.Payload, aad)
	if err != nil {
		return nil, HPKEDecryptError
	}
	return plain, nil
}

// A VerifyKey is the two servers' secret for checking proofs, one a task.
type VerifyKey = prio.VerifyKey

// DeriveVerify is the verify key of a task, from the secret that the two operators share, as DAP
// says: HKDF with the salt "verify_key" and the task id as info. It is fixed before any report is
// made, which its security needs.
func DeriveVerify(shared []byte, task TaskID) (k VerifyKey, err error) {
	b, err := derive(shared, []byte("verify_key"), string(task[:]))
	if err != nil {
		return k, err
	}
	return VerifyKey(b), nil
}

// DeriveBearer is the bearer token that the leader shows the helper for a task, from the same
// secret.
func DeriveBearer(shared []byte, task TaskID) (string, error) {
	b, err := derive(shared, []byte("sotto bearer"), string(task[:]))
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// derive is HKDF-SHA256, 32 bytes.
func derive(secret, salt []byte, info string) ([]byte, error) {
	if len(secret) < SecretSize {
		return nil, fmt.Errorf("dap: secret has %d bytes, must be at least %d", len(secret), SecretSize)
	}
	b, err := hkdf.Key(sha256.New, secret, salt, info, 32)
	if err != nil {
		return nil, fmt.Errorf("dap: %w", err)
	}
	return b, nil
}
