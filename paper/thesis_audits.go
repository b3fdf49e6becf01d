package paper

func thesisAudits() []Figure { return nil }
