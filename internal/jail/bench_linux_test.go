package jail

import "testing"

// BenchmarkStart measures what a jail adds to a program that does nothing.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		run(b, shellConfig(b, ""), nil)
	}
}
