package scrub

import "testing"

// TestShortest finds nothing in texts of up to six bytes, which package tape does not ask about, and something in one of seven.
func TestShortest(t *testing.T) {
	s := New(Key{}, nil)
	const letters = "a1:/@=%"
	var text [6]byte
	var all func(n int)
	all = func(n int) {
		if out, found := s.Bytes(text[:n]); found {
			t.Errorf("%q: %q", text[:n], out)
		}
		if n == len(text) {
			return
		}
		for i := range letters {
			text[n] = letters[i]
			all(n + 1)
		}
	}
	all(0)
	if _, found := s.Bytes([]byte("a://:b@")); !found {
		t.Error("the shortest secret is longer than it was: minCleaned of package tape may follow")
	}
}
