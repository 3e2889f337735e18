package vdso

import (
	"slices"
	"testing"
)

// TestAnotherImage does not touch what it does not understand.
func TestAnotherImage(t *testing.T) {
	t.Parallel()
	image, err := Image()
	if err != nil {
		t.Skip(err)
	}
	stub := func(string, uint64, uint64) []byte { return []byte{0xc3} }
	if _, err := New(image, stub); err != nil {
		t.Error("our own:", err)
	}
	full := append(slices.Clone(image[:len(image)-spare]), slices.Repeat([]byte{0x90}, spare)...)
	for name, other := range map[string][]byte{"nothing": nil, "cut": image[:100], "no room": full} {
		if _, err := New(other, stub); err == nil {
			t.Error(name, "is patched")
		}
	}
}
