package inputs

import (
	"bytes"
	"os"
	"testing"
)

// TestProfiledClock: of a program that was built by a profile, which may have inlined what makes durations, the clock stays the kernel's.
func TestProfiledClock(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	const setting, other = "\nbuild\t-compiler=gc\n", "\nbuild\t-pgo=default\n"
	if at := bytes.Index(program, []byte(setting)); at < 0 || byProfile(bytes.NewReader(program)) {
		t.Fatal("this program says nothing of how it was built, or of a profile")
	}
	if !byProfile(bytes.NewReader(bytes.ReplaceAll(program, []byte(setting), []byte(other)))) {
		t.Error("a profile is not seen")
	}
}
