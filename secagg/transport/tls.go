package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// protocol is the name by which both ends of a TLS handshake know that they mean the same.
const protocol = "sotto-secagg/1"

// Certificate is a self-signed certificate of an identity key. It carries the key and nothing else:
// whoever reads it has pinned the key, and believes neither names nor dates. The key signs TLS
// handshakes and the messages of secagg; both begin what they sign with a label of their own.
func Certificate(identity ed25519.PrivateKey) (tls.Certificate, error) {
	if len(identity) != ed25519.PrivateKeySize {
		return tls.Certificate{}, fmt.Errorf("transport: identity key of %d bytes, must be %d",
			len(identity), ed25519.PrivateKeySize)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sotto"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, identity.Public(), identity)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("transport: certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: identity}, nil
}

// serverTLS asks for a client's certificate and accepts any: that it holds its key is what the
// handshake proves, whose key it is the server looks up after it, so that it can say a word to
// those it does not know.
func serverTLS(c tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c},
		NextProtos: []string{protocol},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true}
}

// clientTLS wants the server to prove that it holds the pinned key, or to have a certificate
// of an authority.
func clientTLS(c tls.Certificate, pinned ed25519.PublicKey, roots *x509.CertPool, name string) *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c},
		NextProtos: []string{protocol}, ServerName: name, RootCAs: roots}
	if roots != nil {
		return out
	}
	// This turns off the check of names and chains alone: a self-signed certificate has none. The
	// handshake still proves possession of the certificate's key, and VerifyConnection wants it to
	// be the pinned one.
	out.InsecureSkipVerify = true
	out.VerifyConnection = func(s tls.ConnectionState) error {
		key, err := peerKey(s)
		if err != nil {
			return err
		}
		if !pinned.Equal(key) {
			return fmt.Errorf("%w: the server's certificate is not of its pinned key", ErrPeer)
		}
		return nil
	}
	return out
}

// peerKey is the Ed25519 key that the other end has proved to hold.
func peerKey(s tls.ConnectionState) (ed25519.PublicKey, error) {
	if len(s.PeerCertificates) == 0 {
		return nil, fmt.Errorf("%w: no certificate", ErrPeer)
	}
	key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: a certificate with a key of type %T, must be Ed25519", ErrPeer,
			s.PeerCertificates[0].PublicKey)
	}
	return key, nil
}

// agreed says whether the other end means this protocol. A peer that names none gets
// through a handshake.
func agreed(s tls.ConnectionState) error {
	if s.NegotiatedProtocol != protocol {
		return fmt.Errorf("%w: it does not speak %s", ErrPeer, protocol)
	}
	return nil
}

// handshakeError names what a failed handshake shows about the other end.
func handshakeError(err error) error {
	var chain *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.Is(err, ErrPeer):
		return err
	case errors.As(err, &chain), errors.As(err, &record), errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return fmt.Errorf("%w: in the handshake: %w", ErrLost, err)
}
