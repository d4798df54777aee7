package lockdebug

import "unicode"

// fit returns s shortened to about the given number of pixels. Who reads it
// finds the whole text in the table.
func fit(s string, pixels int) string {
	room := max(int(float64(pixels)/charWidth), 1)
	if width(s) <= room {
		return s
	}
	used := 0
	for i, r := range s {
		if used += runeWidth(r); used > room-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// width is how many columns a fixed-width font needs for s, nearly.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100 && (r < 0x1160 || r >= 0x2E80 && r < 0xD7A4 || r >= 0xF900 && r < 0xFB00 || r >= 0xFE30 && r < 0xFE70 || r >= 0xFF00 && r < 0xFF61 || r >= 0x1F300):
		return 2 // East Asian scripts and pictures
	}
	return 1
}
