package golden

import "testing"

// A test binary is told of the flag only once it has one: another would end at it.
func TestHow(t *testing.T) {
	if got, want := How(), "TAPEDECK_UPDATE=1"; got != want {
		t.Errorf("without the flag: %q, want %q", got, want)
	}
	Flag()
	if got, want := How(), "-update or TAPEDECK_UPDATE=1"; got != want {
		t.Errorf("with the flag: %q, want %q", got, want)
	}
}
