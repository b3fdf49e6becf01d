package policy

// An Outsider is a policy that something else plays, such as another process: it can fail in the
// middle of a run, and it holds what must be given back. Whoever plays a run to its end calls End,
// and asks Err where Next has returned nil.
type Outsider interface {
	Policy
	// Err is why Next returned nil, nil if the policy has stopped by itself or goes on.
	Err() error
	// End gives back what the policy holds. It may be called again; Next is not called after it.
	End()
}

// Err is the error of a policy that is an Outsider, nil of any other.
func Err(p Policy) error {
	if o, ok := p.(Outsider); ok {
		return o.Err()
	}
	return nil
}

// End ends a policy that is an Outsider, and does nothing to any other.
func End(p Policy) {
	if o, ok := p.(Outsider); ok {
		o.End()
	}
}
