package privacy

// Loss is an upper bound on what a record loses, in every currency at once.
type Loss struct{}
