package lockdebug

import "strings"

// run is a part of a text that is read in one direction.
type run struct {
	Text string
	RTL  bool
}

// runs takes the words of scripts that are read from right to left out of s, for
// each to be isolated. In a text that is shown as a whole they would draw the
// punctuation and digits beside them to their other side: the key ["x",1] would
// look like another one.
func runs(s string) []run {
	if strings.IndexFunc(s, isRTL) < 0 {
		return []run{{Text: s}}
	}
	var all []run
	for s != "" {
		start := strings.IndexFunc(s, isRTL)
		if start < 0 {
			start = len(s)
		}
		if start > 0 {
			all = append(all, run{Text: s[:start]})
			s = s[start:]
		}
		if end := endOfRTL(s); end > 0 {
			all = append(all, run{s[:end], true})
			s = s[end:]
		}
	}
	return all
}

// endOfRTL is where the words at the beginning of s end, spaces between them
// counted in.
func endOfRTL(s string) int {
	end := 0
	for i, r := range s {
		switch {
		case isRTL(r):
			end = i + len(string(r))
		case r != ' ':
			return end
		}
	}
	return end
}

// isRTL covers the blocks that Unicode sets aside for scripts from right to left.
func isRTL(r rune) bool {
	return r >= 0x590 && r < 0x900 || r >= 0xFB1D && r < 0xFE00 || r >= 0xFE70 && r < 0xFF00 ||
		r >= 0x10800 && r < 0x11000 || r >= 0x1E800 && r < 0x1F000
}
