package measure

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	p := new(pace)
	p.calm()
	if p.best <= 0 || p.best > time.Second {
		t.Errorf("work takes %v", p.best)
	}
	if p.best = time.Hour; !p.calm() {
		t.Error("not calm, though faster than ever")
	}
	if p.best == time.Hour {
		t.Error("the best is not kept")
	}
	if p.best = 1; p.calm() {
		t.Error("calm, though slower than it has been")
	}
}

// A turn that the machine was slow at is taken again, but not for ever.
func TestTurnsAreTakenAgain(t *testing.T) {
	for _, c := range []struct {
		calm []bool
		want int
	}{
		{[]bool{true, true}, 1},
		{[]bool{true, false, true, true}, 2},
		{[]bool{false, true, true, true}, 2},
		{make([]bool, 2*tries), tries},
	} {
		looks, turns := 0, 0
		calm := func() bool { looks++; return c.calm[looks-1] }
		got := calmly(calm, func() map[string]float64 { turns++; return map[string]float64{NsPerOp: float64(turns)} })
		if turns != c.want || looks != len(c.calm) {
			t.Errorf("%v: %d turns after %d looks, want %d", c.calm, turns, looks, c.want)
		}
		if got[NsPerOp] != float64(turns) && c.want < tries {
			t.Errorf("%v: turn %v counts", c.calm, got[NsPerOp])
		}
	}
}
