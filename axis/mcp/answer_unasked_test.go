package mcp

import (
	"slices"
	"testing"
)

// What is said to a client before it was told that it is heard waits for that, and nobody who says it does.
func TestSubscriptionBegins(t *testing.T) {
	t.Parallel()
	var got []string
	s := &subscription{out: func(b []byte) { got = append(got, string(b)) }}
	s.say([]byte("a"))
	s.say([]byte("b"))
	s.out([]byte("heard"))
	s.begin()
	s.say([]byte("c"))
	if want := []string{"heard", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}
