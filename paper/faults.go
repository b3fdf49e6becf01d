package paper

func faults() []Figure { return nil }
