package processlock

import "runtime/pprof"

// summon makes sure that somebody sees to the news. Called under mu.
func (g *Group) summon() {
	if !g.moving && g.news.first != nil {
		g.moving = true
		go g.move()
	}
}

// move sees to the tasks that need more than a word under a mutex: those that
// ask for another key, and those that end without having run. It is there while
// there are any.
func (g *Group) move() {
	defer g.moved() // also if a hook exits the goroutine
	pprof.SetGoroutineLabels(g.ctx)
	for t := g.nextNews(); t != nil; t = g.nextNews() {
		t.settle()
	}
}

func (g *Group) nextNews() *task {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.news.first
	if t != nil {
		g.news.remove(t)
	}
	return t
}

func (g *Group) moved() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.moving = false
	g.summon()
}
