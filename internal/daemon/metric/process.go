package metric

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// Process shows what this process takes of its machine, under the names that Prometheus' own clients use. What a system does not tell is
// left out.
func (s *Set) Process() {
	s.GaugeFunc("go_goroutines", "Goroutines that exist.", func() float64 { return float64(runtime.NumGoroutine()) })
	s.sampled("go_memstats_heap_objects_bytes", "Bytes of objects on the heap.", "/memory/classes/heap/objects:bytes")
	s.sampled("go_memstats_sys_bytes", "Bytes that the runtime has from the system.", "/memory/classes/total:bytes")
	began := float64(time.Now().UnixMilli()) / 1e3
	s.GaugeFunc("process_start_time_seconds", "When it started, in Unix time.", func() float64 { return began })
	s.CounterFunc("process_cpu_seconds_total", "Seconds that it had a processor.", func() float64 { return cputime.Spent().Seconds() })
	if _, err := os.ReadDir(descriptors); err != nil {
		return
	}
	s.GaugeFunc("process_open_fds", "Descriptors that are open.", func() float64 {
		list, _ := os.ReadDir(descriptors)
		return float64(len(list) - 1) // reading takes one
	})
	s.GaugeFunc("process_resident_memory_bytes", "Bytes in memory.", resident)
}

const descriptors = "/proc/self/fd"

func (s *Set) sampled(name, help, of string) {
	s.GaugeFunc(name, help, func() float64 {
		v := []metrics.Sample{{Name: of}}
		if metrics.Read(v); v[0].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return float64(v[0].Value.Uint64())
	})
}

// resident reads /proc/self/statm: pages of the address space, pages in memory.
func resident() float64 {
	data, _ := os.ReadFile("/proc/self/statm")
	words := strings.Fields(string(data))
	if len(words) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(words[1], 64)
	return pages * float64(os.Getpagesize())
}
