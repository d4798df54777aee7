module github.com/dbx-tools/processlock/internal/proof

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/dbx-tools/processlock v0.0.0
	golang.org/x/exp v0.0.0-20261113113407-e3970619a1a4
	pgregory.net/rapid v1.3.0
)

replace github.com/dbx-tools/processlock => ../../
