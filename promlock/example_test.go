package promlock_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

func Example() {
	locks := promlock.NewCollector(processlock.Default(), nil)
	defer locks.Close()

	registry := prometheus.NewRegistry() // or prometheus.MustRegister(locks)
	registry.MustRegister(locks)

	err := processlock.WithLock(context.Background(), "invoice-7", func(context.Context) error { return nil })
	if err != nil {
		fmt.Println(err)
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if f.GetName() == "processlock_acquired_total" {
			fmt.Println(f.GetMetric()[0].GetCounter().GetValue(), "acquired")
		}
	}
	// Output: 1 acquired
}

// Keys are without number, so none is a label; their classes are few.
func ExampleClass() {
	kind := func(k processlock.Key) string {
		switch text := k.String(); {
		case strings.HasPrefix(text, `["invoice",`):
			return "invoice"
		case strings.HasPrefix(text, `["user",`):
			return "user"
		}
		return "other"
	}
	c := processlock.New(processlock.Options{})
	locks := promlock.NewCollector(c, prometheus.Labels{"pool": "billing"}, promlock.Class(kind))
	defer locks.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(locks)

	_ = c.WithLock(context.Background(), processlock.All([]any{"invoice", 7}, []any{"invoice", 8}, "x"),
		func(context.Context) error { return nil })
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "processlock_acquired_total" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// invoice 2
	// other 1
}

// Bounds where the objectives are: nobody waits longer than 50 ms, no lock is
// held longer than 200.
func ExampleBuckets() {
	c := processlock.New(processlock.Options{})
	locks := promlock.NewCollector(c, nil, promlock.Buckets(0.001, 0.01, 0.05, 0.2, 1, 10))
	defer locks.Close()
	fmt.Println(prometheus.NewRegistry().Register(locks))
	// Output: <nil>
}
