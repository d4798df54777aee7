package proof

// text is the same for equal states.
func (s *state) text() string {
	var b []byte
	put := func(ns ...int) {
		for _, n := range ns {
			b = append(b, byte(n+1))
		}
	}
	list := func(ns []int) {
		put(len(ns))
		put(ns...)
	}
	flag := func(f bool) {
		if f {
			put(1)
		} else {
			put(0)
		}
	}
	why := func(r reason) { b = append(b, byte(r), byte(r>>8)) }
	for _, c := range s.calls {
		put(int(c.phase), c.next, int(c.told), c.deadline, c.left, c.since, c.refused, c.again, c.owed)
		flag(c.exempt)
		flag(c.doomed)
		flag(c.ran)
		flag(c.asked)
		flag(c.slot)
		flag(c.own)
		why(c.result)
		list(c.under)
	}
	for _, r := range s.rows {
		put(len(r.holders))
		for _, h := range r.holders {
			put(h.call, h.since)
		}
		list(r.queue)
	}
	for _, end := range s.ends {
		why(end)
	}
	for _, end := range s.cut {
		why(end)
	}
	for _, c := range s.closed {
		flag(c)
	}
	for _, d := range s.down {
		flag(d)
	}
	list(s.swept)
	for _, d := range s.shuts {
		flag(d.over)
		why(d.result)
	}
	for _, g := range s.groups {
		flag(g.canceled)
		flag(g.waits)
		flag(g.over)
		list(g.ready)
		put(g.active, g.left, g.dropped, g.skipped)
		why(g.err)
		why(g.result)
	}
	for _, t := range s.stats {
		put(t.acquired, t.waited, t.canceled, t.unavailable, t.deadlocks, t.closed, t.lost, t.ticks, t.ticks>>8)
	}
	return string(b)
}
