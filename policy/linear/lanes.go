package linear

// lanes are the columns of a lower triangle W, eight by eight: of each eight all rows from the first of them on, eight
// numbers a row. So Wᵀz is eight sums at a time, none of which waits for another, and each in the order of rows.
type lanes []float64

func newLanes(n int) lanes {
	size := 0
	for j := 0; j < n; j += 8 {
		size += 8 * (n - j)
	}
	return make(lanes, size)
}

// set takes W, row by row.
func (l lanes) set(w []float64, n int) {
	for j := 0; j < n; j += 8 {
		for i := j; i < n; i++ {
			clear(l[:8])
			copy(l[:8], w[i*(i+1)/2:][j:i+1])
			l = l[8:]
		}
	}
}

// product makes x = Wᵀz.
func (l lanes) product(x, z []float64) {
	for len(x) > 0 {
		var y0, y1, y2, y3, y4, y5, y6, y7 float64
		for _, c := range z {
			t := (*[8]float64)(l)
			l = l[8:]
			y0 += float64(t[0] * c)
			y1 += float64(t[1] * c)
			y2 += float64(t[2] * c)
			y3 += float64(t[3] * c)
			y4 += float64(t[4] * c)
			y5 += float64(t[5] * c)
			y6 += float64(t[6] * c)
			y7 += float64(t[7] * c)
		}
		n := copy(x, (&[8]float64{y0, y1, y2, y3, y4, y5, y6, y7})[:])
		x, z = x[n:], z[n:]
	}
}
