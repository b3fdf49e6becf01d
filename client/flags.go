package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Flags are the plans of all experiments with leases as flag definitions of flagd, which
// flagd's providers evaluate without a request. The key must have the scope decide.
func (c *Client) Flags(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.request(ctx, http.MethodGet, nil, &out, "v1", "flagd")
	return out, err
}
