package processlock_test

import (
	"bytes"
	"regexp"
	"runtime/pprof"
	"strings"
)

var gtLabelsLine = regexp.MustCompile(`(?m)^# labels: (.*)$`)

// gtLabels returns the pprof labels of the calling goroutine, as the goroutine
// profile shows them; "" if it has none.
func gtLabels() string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	for _, record := range strings.Split(b.String(), "\n\n") {
		if strings.Contains(record, "processlock_test.gtLabels+") {
			if m := gtLabelsLine.FindStringSubmatch(record); m != nil {
				return m[1]
			}
			return ""
		}
	}
	return "not found"
}
