package workload

import "strconv"

// Tenant is a key of two fields.
type Tenant struct {
	Region string
	ID     int
}

var made []string

// names returns n strings, the same for everyone.
func names(n int) []string {
	for i := len(made); i < n; i++ {
		made = append(made, "tenant-"+strconv.Itoa(i))
	}
	return made[:n:n]
}

func keysOf[K any](n int, of func(i int) K) func() []K {
	return func() []K {
		ks := make([]K, n)
		for i := range ks {
			ks[i] = of(i)
		}
		return ks
	}
}
