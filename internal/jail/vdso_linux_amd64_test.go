package jail

import (
	"slices"
	"testing"
)

// TestPatchOfAnotherImage does not touch what it does not understand.
func TestPatchOfAnotherImage(t *testing.T) {
	t.Parallel()
	image, err := vdsoImage()
	if err != nil {
		t.Skip(err)
	}
	if _, err := patchOf(image); err != nil {
		t.Error("our own:", err)
	}
	full := append(slices.Clone(image[:len(image)-vdsoSpare]), slices.Repeat([]byte{0x90}, vdsoSpare)...)
	for name, other := range map[string][]byte{"nothing": nil, "cut": image[:100], "no room": full} {
		if _, err := patchOf(other); err == nil {
			t.Error(name, "is patched")
		}
	}
}
