module github.com/dbx-tools/processlock/examples/pools

go 1.26.0

require (
	github.com/dbx-tools/processlock v0.0.0
	github.com/panjf2000/ants/v2 v2.12.1
	github.com/sourcegraph/conc v0.3.0
)

require (
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.9.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
)

replace github.com/dbx-tools/processlock => ../../
