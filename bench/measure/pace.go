package measure

import "time"

// pace tells whether the machine is as fast as it has been at its best. Virtual
// processors aren't always: a neighbour on the same core halves them for seconds,
// which hits one contender of a round and not the next.
type pace struct {
	best time.Duration
	sink uint64
}

// slower is how much slower the machine may be.
const slower = 1.1

// calm reports whether it is about as fast as ever now. That takes some 0.1 ms.
func (p *pace) calm() bool {
	took := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		p.work()
		took = min(took, time.Since(start))
	}
	if p.best == 0 || took < p.best {
		p.best = took
	}
	return float64(took) <= slower*float64(p.best)
}

// work keeps a core's units busy: one that is shared shows.
func (p *pace) work() {
	a, b, c, d := uint64(1), uint64(2), uint64(3), uint64(4)
	for range 20_000 {
		a, b, c, d = a*5+1, b*9+2, c^c<<7+3, d^d>>3+4
	}
	p.sink += a + b + c + d
}
