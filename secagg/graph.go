package secagg

// A Harary graph: N clients on a circle, each joined to the K/2 nearest on either side; with K =
// N−1 all of them. A neighbour sits at a seat 1…K, counted around the circle, and the seat is the
// neighbour's evaluation point in Shamir's scheme (never 0). If j sits at i's seat x then i sits
// at j's seat K+1−x.

// offset is the distance on the circle, clockwise, to the neighbour at seat x.
func (p Params) offset(x int) int {
	if x <= p.K/2 {
		return x
	}
	return p.N - p.K - 1 + x
}

// neighbour is the place of the neighbour at seat x of the client at a place.
func (p Params) neighbour(place, x int) int { return (place + p.offset(x)) % p.N }

// mirror is the seat at which the neighbour at seat x sees this client.
func (p Params) mirror(x int) int { return p.K + 1 - x }

// permute shuffles ids uniformly (Fisher–Yates) with a stream of the seed. The clients must be
// fixed before the seed is drawn: a corrupt client who could foresee it would choose where to sit.
func permute(ids []uint32, seed [32]byte) error {
	g, err := newStream(seed[:])
	if err != nil {
		return err
	}
	for i := len(ids) - 1; i > 0; i-- {
		j := g.at(uint64(i), uint64(i+1))
		ids[i], ids[j] = ids[j], ids[i]
	}
	return nil
}
