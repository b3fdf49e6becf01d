package dap

import (
	"fmt"
	"io"
)

// DeriveKeySeed is what DeriveKey gives to HPKE's DeriveKeyPair.
func DeriveKeySeed(secret []byte, configID uint8) ([]byte, error) {
	return derive(secret, nil, fmt.Sprintf("sotto %s hpke key %d", Version, configID))
}

// SealReport is a report of any two input shares: what a client that does as it likes can send.
func SealReport(t Task, leader, helper Config, m Metadata, forLeader, forHelper []byte,
	rnd io.Reader) (r Report, err error) {
	r.Metadata = m
	if r.Leader, err = leader.seal(roleLeader, m.aad(t), plaintext(forLeader), rnd); err != nil {
		return r, err
	}
	r.Helper, err = helper.seal(roleHelper, m.aad(t), plaintext(forHelper), rnd)
	return r, err
}
