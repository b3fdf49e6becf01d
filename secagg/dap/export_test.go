package dap

import "fmt"

// DeriveKeySeed is what DeriveKey gives to HPKE's DeriveKeyPair.
func DeriveKeySeed(secret []byte, configID uint8) ([]byte, error) {
	return derive(secret, nil, fmt.Sprintf("sotto %s hpke key %d", Version, configID))
}
