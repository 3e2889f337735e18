package vt

// Scrolls reports whether a newline in the last row moves the whole screen: there are no margins (DECSTBM, DECLRMM). Then nothing
// stays but what is printed.
func (s *Screen) Scrolls() bool {
	return s.top == 0 && s.bottom == s.rows-1 && s.left == 0 && s.right == s.cols-1
}
