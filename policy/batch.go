package policy

import "math/bits"

// Rounds is the length of the batch, Forever if any play is.
func (b *Batch) Rounds() int {
	total := 0
	for i := range b.Plays {
		n := b.Plays[i].Rounds
		if n >= Forever-total {
			return Forever
		}
		total += n
	}
	return total
}

// Counts writes into k, one entry a play, how often each play has been made after the first m
// rounds of the batch, 0 ≤ m ≤ Rounds.
//
// The j-th round of a play of n rounds is due at (j − ½)/n; rounds go in the order in which they
// are due, ties to the earlier play. So the play furthest behind its share goes next, and equal
// plays take turns.
func (b *Batch) Counts(m int, k []int) {
	if len(b.Plays) == 1 {
		k[0] = m
		return
	}
	total := b.Rounds()
	if m == total && total < Forever {
		for i := range b.Plays {
			k[i] = b.Plays[i].Rounds
		}
		return
	}
	if b.equal() {
		p := len(b.Plays)
		for i := range k[:p] {
			k[i] = m / p
			if i < m%p {
				k[i]++
			}
		}
		return
	}
	// All rounds due at or before x = (m − p)/total are among the first m: there are at most
	// x·total + p/2 < m of them, and at least x·total − p/2. At most 1.5·p rounds are then left to
	// place one by one.
	left := m
	if x := m - len(b.Plays); x > 0 {
		if total == Forever {
			// The sum of the plays may have left the integers. Any x/total that is no larger
			// serves; here total·2^shift is the least bit above the sum, and at most 2^shift
			// rounds more are left.
			shift := bits.Len(uint(len(b.Plays)))
			x, total = x>>shift, 0
			for i := range b.Plays {
				total += b.Plays[i].Rounds>>shift + 1
			}
		}
		for i := range b.Plays {
			k[i] = due(b.Plays[i].Rounds, x, total)
			left -= k[i]
		}
	} else {
		clear(k[:len(b.Plays)])
	}
	for ; left > 0; left-- {
		next := -1
		for i := range b.Plays {
			if k[i] < b.Plays[i].Rounds && (next < 0 ||
				earlier(k[i], b.Plays[i].Rounds, k[next], b.Plays[next].Rounds)) {
				next = i
			}
		}
		k[next]++
	}
}

func (b *Batch) equal() bool {
	for i := range b.Plays {
		if b.Plays[i].Rounds != b.Plays[0].Rounds {
			return false
		}
	}
	return true
}

// due is how many of n rounds are due at or before x/total: ⌊n·x/total + ½⌋, in integers.
func due(n, x, total int) int {
	hi, lo := bits.Mul64(uint64(n), 2*uint64(x))
	lo, carry := bits.Add64(lo, uint64(total), 0)
	q, _ := bits.Div64(hi+carry, lo, 2*uint64(total))
	return int(q)
}

// earlier says whether round i+1 of n is due before round j+1 of m: (2i+1)/n < (2j+1)/m, in integers.
func earlier(i, n, j, m int) bool {
	ahi, alo := bits.Mul64(2*uint64(i)+1, uint64(m))
	bhi, blo := bits.Mul64(2*uint64(j)+1, uint64(n))
	return ahi < bhi || ahi == bhi && alo < blo
}
