package client

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// A Session is what the client of a decision is to do about the session that its reward is summed
// in, of an experiment with trust secagg. Package private takes part in it.
type Session struct {
	Status  SessionStatus
	AfterMS int64 // from now, when to ask again; unless it is over
	// of one that is open
	Address, Name   string // where it is held, and the name of its server
	ID              [32]byte
	Arm, Start, End int                 // of decisions Start to End−1 of an arm
	Keys            []ed25519.PublicKey // of those who registered, numbered from 1 on
}

// A SessionStatus is how far a decision's session is.
type SessionStatus string

// The states of a decision's session.
const (
	SessionWait SessionStatus = "wait" // it is not yet held
	SessionOpen SessionStatus = "open" // clients are awaited
	SessionOver SessionStatus = "over" // there will be none
)

// Register registers a key for a decision of an experiment with trust secagg, by the ticket of its
// Report, and returns when that is durable. Whether it is done must not depend on the outcome.
func (c *Client) Register(ctx context.Context, experiment, ticket string,
	key ed25519.PublicKey) (Status, error) {
	type one struct {
		Ticket string `json:"ticket"`
		Key    string `json:"key"`
	}
	in := struct {
		Reports []one `json:"reports"`
	}{[]one{{ticket, base64.RawURLEncoding.EncodeToString(key)}}}
	var out struct {
		Results []struct {
			Status Status `json:"status"`
			Error  string `json:"error"`
		} `json:"results"`
	}
	err := c.post(ctx, in, &out, experiment, "reports")
	switch {
	case err != nil:
	case len(out.Results) != 1, out.Results[0].Status == "" && out.Results[0].Error == "":
		err = ErrAnswer
	case out.Results[0].Error != "":
		err = fmt.Errorf("%w: %s", ErrRequest, out.Results[0].Error)
	default:
		return out.Results[0].Status, nil
	}
	return "", fmt.Errorf("experiment %q: %w", experiment, err)
}

// Session asks about the session of a decision, by the ticket of its Report.
func (c *Client) Session(ctx context.Context, experiment, ticket string) (Session, error) {
	in := struct {
		Ticket string `json:"ticket"`
	}{ticket}
	var got struct {
		Status          SessionStatus
		AfterMS         int64 `json:"after_ms"`
		Address, Name   string
		ID              string
		Arm, Start, End int
		Keys            []string
	}
	err := c.post(ctx, in, &got, experiment, "session")
	out := Session{Status: got.Status, AfterMS: got.AfterMS, Address: got.Address, Name: got.Name, Arm: got.Arm,
		Start: got.Start, End: got.End, Keys: make([]ed25519.PublicKey, len(got.Keys))}
	switch {
	case err != nil:
	case got.Status == SessionOpen:
		if n, wrong := hex.Decode(out.ID[:], []byte(got.ID)); len(got.ID) != 64 || wrong != nil || n != 32 {
			err = ErrAnswer
		}
		for i, k := range got.Keys {
			var wrong error
			if out.Keys[i], wrong = base64.RawURLEncoding.DecodeString(k); wrong != nil ||
				len(out.Keys[i]) != ed25519.PublicKeySize {
				err = ErrAnswer
			}
		}
	case got.Status != SessionWait && got.Status != SessionOver:
		err = ErrAnswer
	}
	if err != nil {
		return Session{}, fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return out, nil
}
