// Package report writes what was measured: raw figures, tables and charts.
package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

// Report is a run of the suite.
type Report struct {
	Machine   Machine
	Options   measure.Options
	Workloads []workload.Workload // that were run
	Bounds    []bound.Bound
	Results   *measure.Results
}

// Write puts the report into a directory, which it makes if need be.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var raw, readme bytes.Buffer
	r.writeRaw(&raw)
	r.writeTables(&readme)
	digest, err := json.MarshalIndent(r.digest(), "", "\t")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"raw.txt":      raw.Bytes(),
		"README.md":    readme.Bytes(),
		"results.json": append(digest, '\n'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return r.draw(dir)
}
