package paper

func thesisBandits() []Figure { return nil }
