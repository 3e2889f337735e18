package process

import "testing"

// BenchmarkNoRecorder is the hook of a Spawner that records nothing.
func BenchmarkNoRecorder(b *testing.B) {
	s, c, res := NewSpawner(nil), &Command{Program: "git"}, &Result{Stdout: make([]byte, 1<<20)}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.recorded(c, res, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNoRecorderAllocatesNothing is what the benchmark says of memory.
func TestNoRecorderAllocatesNothing(t *testing.T) {
	s, c, res := NewSpawner(nil), &Command{Program: "git"}, &Result{Stdout: make([]byte, 1<<20)}
	if n := testing.AllocsPerRun(100, func() { _ = s.recorded(c, res, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
