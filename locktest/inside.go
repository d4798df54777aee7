package locktest

import "sync/atomic"

// inside counts who is inside one key's critical section.
type inside struct {
	exclusive, shared atomic.Int64
	broken            atomic.Bool
}

// enter notes a breach if the section is not to be shared with whoever is in
// it, and returns the function that leaves.
func (in *inside) enter(shared bool) (leave func()) {
	if shared {
		in.shared.Add(1)
		if in.exclusive.Load() != 0 {
			in.broken.Store(true)
		}
		return func() { in.shared.Add(-1) }
	}
	if in.exclusive.Add(1) != 1 || in.shared.Load() != 0 {
		in.broken.Store(true)
	}
	return func() { in.exclusive.Add(-1) }
}
