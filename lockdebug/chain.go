package lockdebug

import (
	"cmp"
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// The bounds of the chains of a report.
const (
	maxChains    = 20 // chains listed and drawn
	maxChainKeys = 50 // keys listed of one chain
)

// chain is a part of the wait-for graph that hangs together: keys that are
// waited for, of which a waiter for one holds the next. Most are one key and its
// queue.
type chain struct {
	Keys        []keyRef `json:"keys"` // longest wait first
	KeysCut     int      `json:"keys_cut"`
	Roots       []keyRef `json:"roots"` // keys of Keys whose holders wait for none of Keys
	Waiters     int      `json:"waiters"`
	LongestWait span     `json:"longest_wait_seconds,omitzero"`

	// Prone tells that a waiter in it holds a key: one wait more can make a
	// deadlock of it.
	Prone bool `json:"prone"`

	Drawing *drawing `json:"-"`
}

// knot is a key of the wait-for graph: one that is waited for.
type knot struct {
	*lockState
	order  int   // by longest wait
	leader *knot // toward the knot that stands for the chain
	held   bool  // by a request that waits
	prone  bool  // one of its waiters holds a key

	seen    bool // drawn
	onStack bool // being drawn, with what hangs below it
}

func (k *knot) find() *knot {
	for k.leader != k {
		k.leader = k.leader.leader // halves the way for the next
		k = k.leader
	}
	return k
}

// graph is the wait-for graph of a snapshot. A snapshot's rows may be of
// slightly different instants, so it can show a cycle that never was.
type graph struct {
	knots []*knot

	// byText finds a knot by its key's canonical text: == tells keys apart that
	// are one lock. It is nil if no waiter holds anything.
	byText map[string]*knot
}

// newGraph reads states, which are in order of their longest waits.
func newGraph(states []*lockState) *graph {
	g := &graph{}
	linked := false
	for _, s := range states {
		if len(s.Waiters) == 0 {
			continue
		}
		k := &knot{lockState: s, order: len(g.knots)}
		k.leader = k
		k.prone = slices.ContainsFunc(s.Waiters, func(w processlock.Waiter) bool { return len(w.Holding) > 0 })
		linked = linked || k.prone
		g.knots = append(g.knots, k)
	}
	if !linked {
		return g
	}
	g.byText = make(map[string]*knot, len(g.knots))
	for _, k := range g.knots {
		g.byText[k.Key.Canonical()] = k
	}
	for _, k := range g.knots {
		for _, w := range k.Waiters {
			for _, h := range w.Holding {
				if o := g.knot(h); o != nil {
					o.held = true
					g.join(k, o)
				}
			}
		}
	}
	return g
}

// knot returns the knot of key; nil if nobody waits for it.
func (g *graph) knot(key processlock.Key) *knot {
	if g.byText == nil {
		return nil
	}
	return g.byText[key.Canonical()]
}

// join makes one chain of a's and b's, led by the one with the longest wait.
func (g *graph) join(a, b *knot) {
	a, b = a.find(), b.find()
	if b.order < a.order {
		a, b = b, a
	}
	b.leader = a
}

// chains returns the knots of each chain, each in order of the longest wait;
// first the chains of which a waiter holds a key, then in the same order.
func (g *graph) chains() [][]*knot {
	at := make(map[*knot]int)
	var chains [][]*knot
	prone := make(map[*knot]bool)
	for _, k := range g.knots {
		lead := k.find()
		i, ok := at[lead]
		if !ok {
			i = len(chains)
			at[lead] = i
			chains = append(chains, nil)
		}
		chains[i] = append(chains[i], k)
		prone[lead] = prone[lead] || k.prone
	}
	slices.SortStableFunc(chains, func(a, b []*knot) int {
		if p, q := prone[a[0]], prone[b[0]]; p != q {
			if p {
				return -1
			}
			return 1
		}
		return cmp.Compare(a[0].order, b[0].order)
	})
	return chains
}

// addChains lists the chains in which a key matches the filter.
func (r *report) addChains(states []*lockState, taken time.Time) {
	r.Chains = []*chain{}
	g := newGraph(states)
	for _, knots := range g.chains() {
		if !slices.ContainsFunc(knots, func(k *knot) bool { return k.matching }) {
			continue
		}
		if len(r.Chains) == maxChains {
			r.ChainsCut++
			continue
		}
		r.Chains = append(r.Chains, g.newChain(knots, taken))
	}
}

func (g *graph) newChain(knots []*knot, taken time.Time) *chain {
	c := &chain{LongestWait: knots[0].wait, Roots: []keyRef{}}
	for _, k := range knots {
		c.Waiters += len(k.Waiters)
		c.Prone = c.Prone || k.prone
		if len(c.Keys) == maxChainKeys {
			c.KeysCut++
			continue
		}
		ref := refOf(k.Key)
		c.Keys = append(c.Keys, ref)
		if !k.held {
			c.Roots = append(c.Roots, ref)
		}
	}
	c.Drawing = g.draw(knots, taken)
	return c
}

// KeyCount counts the keys that are cut, too.
func (c *chain) KeyCount() int { return len(c.Keys) + c.KeysCut }
