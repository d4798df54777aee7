package promlock

import (
	"maps"
	"strings"
	"sync"

	"github.com/dbx-tools/processlock"
	"github.com/prometheus/client_golang/prometheus"
)

// Collector is a [prometheus.Collector] of one Coordinator. Its methods may be
// called at any time from any goroutine.
type Collector struct {
	coordinator *processlock.Coordinator
	class       func(processlock.Key) string // nil: no classes
	detach      func()

	held, waiting                                                    *prometheus.Desc
	acquired, waited, canceled, unavailable, deadlocks, closed, lost *prometheus.CounterVec
	waits, holds                                                     *prometheus.HistogramVec

	series sync.Map // of each class that was seen, *series; of "" without classes
}

// series are the metrics of one class but for what is read at a scrape.
type series struct {
	acquired, waited, canceled, unavailable, deadlocks, closed, lost prometheus.Counter
	waits, holds                                                     prometheus.Observer
}

// NewCollector returns a Collector of c's locks, with labels on all of its
// metrics, which tell c from other coordinators in the same registry. It looks
// at requests from now on, by [processlock.Coordinator.AddHooks], until
// [Collector.Close]; register it yourself. A request that is under way is not
// counted, but for its part in the gauges.
//
//	processlock_held                  gauge, holders over all keys
//	processlock_waiting               gauge, requests in a queue
//	processlock_acquired_total        locks that were obtained
//	processlock_waited_total          requests that had to wait
//	processlock_canceled_total        requests that their context ended
//	processlock_unavailable_total     refused by IfAvailable, MaxWait, MaxWaiters
//	processlock_deadlocks_total       refused since they would never have ended
//	processlock_closed_total          ended or refused by Client.Close or Shutdown
//	processlock_lost_total            holds that Client.Close took from a running function
//	processlock_wait_seconds          histogram, ended waits
//	processlock_hold_seconds          histogram, ended holds
//
// A request for several keys counts for each that it asks for; one that Reentrant
// runs under the hold that is there is not counted. The gauges are read from c at
// each scrape: its Stats, or with [Class] a Snapshot, which takes time and memory
// by the number of keys held. The rest costs each request the hooks, and an
// update or two of a counter and of a histogram.
//
// It panics if c is nil or a copy of a used Coordinator, an Option is nil, or
// labels has le, or class beside Class. Other labels that Prometheus doesn't
// accept are an error of Register; Close a Collector that you could not register.
func NewCollector(c *processlock.Coordinator, labels prometheus.Labels, opts ...Option) *Collector {
	if c == nil {
		misuse("nil *Coordinator")
	}
	s := settings{buckets: prometheus.ExponentialBuckets(10e-6, 4, 12)}
	for _, o := range opts {
		if o == nil {
			misuse("nil Option")
		}
		o.apply(&s)
	}
	if _, ok := labels["le"]; ok { // else the first lock would panic
		misuse("labels have le, which is the histograms'; name yours otherwise")
	}
	labels = maps.Clone(labels)
	var variable []string
	if s.class != nil {
		if _, ok := labels[classLabel]; ok {
			misuse("labels have class, which is Class's; name yours otherwise")
		}
		variable = []string{classLabel}
	}
	l := &Collector{coordinator: c, class: s.class}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+name, help, variable, labels)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: namespace + name, Help: help, ConstLabels: labels}, variable)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: namespace + name, Help: help, ConstLabels: labels, Buckets: s.buckets,
		}, variable)
	}
	l.held = gauge("held", "Holders now, over all keys.")
	l.waiting = gauge("waiting", "Requests in a key's queue now.")
	l.acquired = counter("acquired_total", "Locks that were obtained.")
	l.waited = counter("waited_total", "Requests that had to wait.")
	l.canceled = counter("canceled_total", "Requests that their context ended while they waited.")
	l.unavailable = counter("unavailable_total", "Requests refused by IfAvailable, MaxWait or MaxWaiters.")
	l.deadlocks = counter("deadlocks_total", "Requests refused since their wait would never have ended.")
	l.closed = counter("closed_total", "Requests that the end of their client or coordinator ended or refused.")
	l.lost = counter("lost_total", "Holds taken from a running function by the end of its client.")
	l.waits = histogram("wait_seconds", "How long the waits took that have ended, in whatever way.")
	l.holds = histogram("hold_seconds", "How long the holds took that have ended.")
	if s.class == nil {
		l.of(processlock.Key{}) // so that all there is shows from the start
	}
	l.detach = c.AddHooks(processlock.Hooks{
		Waiting:  func(e processlock.Event) { l.of(e.Key).waited.Inc() },
		Acquired: l.sawAcquired,
		Released: func(e processlock.Event) { l.of(e.Key).holds.Observe(e.Held.Seconds()) },
		Failed:   l.sawFailed,
	})
	return l
}

const (
	namespace  = "processlock_"
	classLabel = "class"
)

// Close ends the counting, but for requests that are under way: nothing of the
// Collector is left on the Coordinator once they have ended. What was counted can
// still be scraped, and the gauges go on; unregister the Collector to be rid of
// it. Closing again does nothing.
func (l *Collector) Close() { l.detach() }

// className is the class of k, or "" without classes.
func (l *Collector) className(k processlock.Key) string {
	if l.class == nil {
		return ""
	}
	return strings.ToValidUTF8(l.class(k), "\uFFFD") // else Prometheus would panic
}

// of returns the series of k's class.
func (l *Collector) of(k processlock.Key) *series {
	class := l.className(k)
	if s, ok := l.series.Load(class); ok {
		return s.(*series)
	}
	values := l.values(class)
	s := &series{
		acquired:    l.acquired.WithLabelValues(values...),
		waited:      l.waited.WithLabelValues(values...),
		canceled:    l.canceled.WithLabelValues(values...),
		unavailable: l.unavailable.WithLabelValues(values...),
		deadlocks:   l.deadlocks.WithLabelValues(values...),
		closed:      l.closed.WithLabelValues(values...),
		lost:        l.lost.WithLabelValues(values...),
		waits:       l.waits.WithLabelValues(values...),
		holds:       l.holds.WithLabelValues(values...),
	}
	first, _ := l.series.LoadOrStore(class, s) // two are of the same metrics
	return first.(*series)
}

// values are those of the labels of a class.
func (l *Collector) values(class string) []string {
	if l.class == nil {
		return nil
	}
	return []string{class}
}

func (l *Collector) sawAcquired(e processlock.Event) {
	s := l.of(e.Key)
	s.acquired.Inc()
	if e.Waited > 0 { // it had to wait, if for no time
		s.waits.Observe(e.Waited.Seconds())
	}
}

func (l *Collector) sawFailed(e processlock.Event) {
	s := l.of(e.Key)
	why := reasonOf(e.Err)
	if why == isLost { // after it has been seen to be acquired
		s.lost.Inc()
		s.holds.Observe(e.Held.Seconds())
		return
	}
	if e.Waited > 0 {
		s.waits.Observe(e.Waited.Seconds())
	}
	switch why {
	case isUnavailable:
		s.unavailable.Inc()
	case isDeadlock:
		s.deadlocks.Inc()
	case isClosed:
		s.closed.Inc()
	default:
		s.canceled.Inc()
	}
}

// misuse panics: the call itself is wrong.
func misuse(what string) { panic("promlock: " + what) }
