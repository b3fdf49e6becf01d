package paper

func thesisAudits() []Figure {
	return []Figure{thesis21(), thesis22(), thesis312()}
}
