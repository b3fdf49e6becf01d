package paper

func identification() []Figure { return nil }
