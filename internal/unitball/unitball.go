// Package unitball says which vectors are in the unit ball, of which all norms of actions and
// parameters must be.
package unitball

// Slack is by how much a norm may exceed 1 through rounding alone.
const Slack = 1e-9
