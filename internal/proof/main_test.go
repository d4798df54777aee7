package proof

import (
	"flag"
	"strconv"
	"testing"
	"time"
)

// soak is how long TestSoak runs; if it is longer than usual, the model and the
// histories go on for about as long.
var soak = flag.Duration("soak", time.Second, "how long to soak")

// usualPrograms is how many the model is compared with at a time, unless
// -rapid.checks says something else; rapid's own 100 are few.
const usualPrograms = 2000

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(usualPrograms)); err != nil {
		panic(err)
	}
	flag.Parse()
	m.Run()
}
