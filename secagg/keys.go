package secagg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cloudflare/circl/dh/x25519"
)

const (
	publicSize  = x25519.Size
	checkSize   = 32
	hashSize    = sha256.Size
	sealedSize  = 2*shareSize + 16
	tagSize     = 16
	labelPrefix = "sotto secagg 1 "
)

// derive is HKDF-SHA256 with the session's digest as salt.
func derive(secret []byte, digest [32]byte, label string, rest []byte, n int) ([]byte, error) {
	k, err := hkdf.Key(sha256.New, secret, digest[:], labelPrefix+label+"\x00"+string(rest), n)
	if err != nil {
		return nil, fmt.Errorf("secagg: %w", err)
	}
	return k, nil
}

// keyPair is a key pair of X25519. The implementation is circl's: constant time like the standard
// library's, and in half the time where the processor allows.
type keyPair struct {
	private, public x25519.Key
}

func newKeyPair(private []byte) (k keyPair) {
	copy(k.private[:], private)
	x25519.KeyGen(&k.public, &k.private)
	return k
}

// maskKey is the key pair that a client's shared secret stands for.
func maskKey(secret *field, digest [32]byte, id uint32) (keyPair, error) {
	b, err := derive(appendField(nil, secret), digest, "mask key",
		binary.BigEndian.AppendUint32(nil, id), x25519.Size)
	if err != nil {
		return keyPair{}, err
	}
	return newKeyPair(b), nil
}

// selfMask gives the stream of a client's own mask and the value by which the server
// recognizes its seed.
func selfMask(seed *field, digest [32]byte, id uint32) (key, check []byte, err error) {
	b, err := derive(appendField(nil, seed), digest, "self mask",
		binary.BigEndian.AppendUint32(nil, id), 32+checkSize)
	if err != nil {
		return nil, nil, err
	}
	return b[:32], b[32:], nil
}

// agree is the secret of two clients for one purpose. Their ids and public keys go in, the
// lesser id first.
func agree(own *keyPair, ownID uint32, other *x25519.Key, otherID uint32, digest [32]byte,
	label string, n int) ([]byte, error) {
	var shared x25519.Key
	if !x25519.Shared(&shared, &own.private, other) {
		return nil, fmt.Errorf("%w: client %d: a point of low order", ErrKey, otherID)
	}
	a, b := own.public[:], other[:]
	i, j := ownID, otherID
	if i > j {
		i, j, a, b = j, i, b, a
	}
	info := binary.BigEndian.AppendUint32(nil, i)
	info = binary.BigEndian.AppendUint32(info, j)
	info = append(append(info, a...), b...)
	return derive(shared[:], digest, label, info, n)
}

// channel is one direction between two clients. Its first key seals one message in its life, the
// pair of shares, so the nonce is zero; its second key makes two tags, on one statement each.
type channel struct {
	key, tagKey []byte
}

func newChannels(own *keyPair, ownID uint32, other *x25519.Key, otherID uint32,
	digest [32]byte) (send, receive channel, err error) {
	k, err := agree(own, ownID, other, otherID, digest, "channel", 128)
	if err != nil {
		return send, receive, err
	}
	send, receive = channel{k[:32], k[32:64]}, channel{k[64:96], k[96:]}
	if ownID > otherID {
		send, receive = receive, send
	}
	return send, receive, nil
}

// mixedTag says to the receiver: in the graph with this hash, your mask is in my masked message.
func (c channel) mixedTag(roster [hashSize]byte) []byte { return c.tag("mixed", roster[:]) }

// survivorTag says to the receiver: of the survivors with this hash, you are one.
func (c channel) survivorTag(hash [hashSize]byte) []byte { return c.tag("survivor", hash[:]) }

func (c channel) tag(purpose string, content []byte) []byte {
	h := hmac.New(sha256.New, c.tagKey)
	h.Write([]byte(labelPrefix + purpose + "\x00"))
	h.Write(content)
	return h.Sum(nil)[:tagSize]
}

func (c channel) wipe() {
	clear(c.key)
	clear(c.tagKey)
}

func (c channel) aead() (cipher.AEAD, error) {
	b, err := aes.NewCipher(c.key)
	if err != nil {
		return nil, fmt.Errorf("secagg: %w", err)
	}
	a, err := cipher.NewGCM(b)
	if err != nil {
		return nil, fmt.Errorf("secagg: %w", err)
	}
	return a, nil
}

var zeroNonce [12]byte

func (c channel) seal(keyShare, seedShare *field) ([]byte, error) {
	a, err := c.aead()
	if err != nil {
		return nil, err
	}
	plain := appendField(appendField(make([]byte, 0, 2*shareSize), keyShare), seedShare)
	return a.Seal(make([]byte, 0, sealedSize), zeroNonce[:], plain, nil), nil
}

func (c channel) open(sealed []byte) (keyShare, seedShare field, err error) {
	a, err := c.aead()
	if err != nil {
		return field{}, field{}, err
	}
	plain, err := a.Open(nil, zeroNonce[:], sealed, nil)
	if err != nil {
		return field{}, field{}, fmt.Errorf("%w: %w", ErrShares, err)
	}
	if len(plain) != 2*shareSize {
		return field{}, field{}, fmt.Errorf("%w: %d bytes sealed", ErrShares, len(plain))
	}
	if keyShare, err = readField(plain[:shareSize]); err == nil {
		seedShare, err = readField(plain[shareSize:])
	}
	if err != nil {
		return field{}, field{}, fmt.Errorf("%w: %w", ErrShares, err)
	}
	return keyShare, seedShare, nil
}

// statement is what an identity key signs: a purpose, the session's digest, and the content.
func statement(purpose string, digest [32]byte, content ...[]byte) []byte {
	b := append([]byte(labelPrefix+purpose+"\x00"), digest[:]...)
	return append(b, bytes.Join(content, nil)...)
}

func keysStatement(digest [32]byte, id uint32, mask, enc []byte) []byte {
	return statement("keys", digest, binary.BigEndian.AppendUint32(nil, id), mask, enc)
}

// survivorsHash is what clients agree on: the set by places on the circle and, in the complete
// graph, where everybody knows it, who sits at which place.
func survivorsHash(digest [32]byte, set []bool, order []uint32) [hashSize]byte {
	b := statement("survivors", digest, survivors{set: set}.head(nil))
	for _, id := range order {
		b = binary.BigEndian.AppendUint32(b, id)
	}
	return sha256.Sum256(b)
}

// rosterHash is the graph that a client was told of, as far as it knows it: its shape and, in the
// complete graph, who sits at which place.
func rosterHash(digest [32]byte, p Params, order []uint32) [hashSize]byte {
	b := statement("roster", digest)
	for _, v := range []int{p.N, p.K, p.T} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, id := range order {
		b = binary.BigEndian.AppendUint32(b, id)
	}
	return sha256.Sum256(b)
}

func verify(key ed25519.PublicKey, message, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, signature)
}
