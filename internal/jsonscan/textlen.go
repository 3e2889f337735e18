package jsonscan

// TextLen is the length, in bytes and with its quotes, of the string that b begins with; that of b where the string has no end.
func TextLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
