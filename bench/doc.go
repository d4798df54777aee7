// Package bench measures processlock against what a user would pick instead.
//
//	go run ./cmd/report          # results/: tables, raw figures, charts
//	go run ./cmd/report -quick   # the same, coarsely, in a temporary directory
//	go run ./cmd/guard           # fails when a ratio leaves its bound
//	go test -bench . -run '^$'   # the workloads as Go benchmarks
//
// Machines and their neighbours differ, so what counts are ratios: contenders
// take turns within a round, a ratio is formed within its round, and the median
// over the rounds is shown.
package bench
