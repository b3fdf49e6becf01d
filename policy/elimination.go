package policy

// elimination is the set S of surviving arms and the batches that give every survivor the same
// number of rounds, round robin.
type elimination struct {
	alive []int // increasing
	batch Batch
}

func newElimination(arms int) elimination {
	e := elimination{alive: make([]int, arms)}
	for a := range e.alive {
		e.alive[a] = a
	}
	e.batch.Plays = make([]Play, 0, arms)
	return e
}

// NoArm says why no arm can be added.
func (e *elimination) NoArm() string {
	return "it drops arms by comparing equal numbers of rewards of all, and an arm that comes later was in no " +
		"comparison"
}

// each is so many rounds of every survivor, to be released; the last survivor is played for ever.
func (e *elimination) each(rounds int) *Batch {
	e.batch.Plays = e.batch.Plays[:0]
	if len(e.alive) == 1 {
		e.batch.Plays = append(e.batch.Plays, Play{Arm: e.alive[0], Rounds: Forever})
		return &e.batch
	}
	for _, a := range e.alive {
		e.batch.Plays = append(e.batch.Plays, Play{Arm: a, Rounds: rounds, Release: true})
	}
	return &e.batch
}
