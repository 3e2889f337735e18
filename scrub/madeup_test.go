package scrub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// secretsOf returns n secrets of a shape.
func secretsOf(n int, shape string) (out []scrub.Secret) {
	for i := range n {
		out = append(out, scrub.Secret{Placeholder: fmt.Sprintf("td_a_%012x", i), Shape: shape})
	}
	return out
}

// TestDummiesAreBounded: what a hostile recording asks for is 16 MiB, also where every try gives the same value: without a
// bound on what is tried this test does not end.
func TestDummiesAreBounded(t *testing.T) {
	t.Parallel()
	shapes := []string{":1000000:aA0", "jwt:4096.0.0", ":8:", strings.Repeat("p", 1<<20) + ":0:a"}
	if long {
		shapes = append(shapes, "jwt:1000000.0.0", "pem:A:n:1000000", "prefix:0:a")
	}
	for _, shape := range shapes {
		sum := 0
		for _, d := range scrub.DummiesOf(secretsOf(scrub.MaxFound, shape), none) {
			sum += len(d.Value)
		}
		if sum > 16<<20 {
			t.Errorf("%.40s: %d bytes", shape, sum)
		}
	}
	made := scrub.DummiesOf(append(secretsOf(40, ":1000000:aA0"), scrub.Secret{Placeholder: "td_b_0123456789ab", Shape: ":8:a"}), none)
	if len(made) != 17 || len(made[16].Value) != 8 {
		t.Errorf("%d dummies, want those that 16 MiB hold", len(made))
	}
}

// TestDummiesAreSearchedFor: as many as are learnt from the traffic are found anywhere, further ones where they stand alone.
func TestDummiesAreSearchedFor(t *testing.T) {
	t.Parallel()
	const searched = 512 + 512 + 256
	made := scrub.DummiesOf(secretsOf(searched+1, ":20:aA0"), none)
	s := scrub.New(testKey, nil)
	s.AddDummies(made)
	for i, d := range made {
		if got := s.String("is "+d.Value+" here") != "is "+d.Value+" here"; got != (i < searched) {
			t.Errorf("dummy %d: found %v", i, got)
		}
		if got := s.Header("X-Api-Key", d.Value); got != d.Placeholder {
			t.Errorf("dummy %d reads as %q, want %q", i, got, d.Placeholder)
		}
	}
}

// TestFoundIsBounded: of more secrets than a Scrubber tells the shapes of, each is hidden all the same.
func TestFoundIsBounded(t *testing.T) {
	s := scrub.New(testKey, nil)
	for i := range scrub.MaxFound + 5 {
		value := fmt.Sprintf("c%d", i)
		if got := s.Header("Cookie", "sid="+value); !strings.HasPrefix(got, "sid=td_") {
			t.Fatalf("cookie %d: %q", i, got)
		}
	}
	if n := len(s.Found()); n != scrub.MaxFound {
		t.Errorf("%d shapes, want %d", n, scrub.MaxFound)
	}
}

// BenchmarkAddDummies adds as many dummies as are searched for.
func BenchmarkAddDummies(b *testing.B) {
	made := scrub.DummiesOf(secretsOf(1280, ":20:aA0"), none)
	for b.Loop() {
		scrub.New(testKey, nil).AddDummies(made)
	}
}
