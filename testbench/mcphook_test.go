package testbench

import "testing"

// BenchmarkToolsNoRecorder is the hook of calls of tools where nothing records.
func BenchmarkToolsNoRecorder(b *testing.B) {
	t, x := &tools{core: new(core)}, &toolExchange{server: "files"}
	b.ReportAllocs()
	for b.Loop() {
		if err := t.recorded(x); err != nil {
			b.Fatal(err)
		}
	}
}

// TestToolsNoRecorderAllocatesNothing is what the benchmark says of memory.
func TestToolsNoRecorderAllocatesNothing(t *testing.T) {
	tools, x := &tools{core: new(core)}, &toolExchange{server: "files"}
	if n := testing.AllocsPerRun(100, func() { _ = tools.recorded(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
