// Package metric counts what a daemon does and writes it as Prometheus reads it: text format 0.0.4, families and series in the order of
// their names. Labels are the caller's to keep to closed sets. Its methods may be called from several goroutines.
package metric

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// The kinds of a family.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// A Set is what is shown together. All of it is named before it is first written.
type Set struct{ families []*family }

// A family is what stands below one name. collect hands out its series: what follows the name, the labels, the value.
type family struct {
	name, help, kind string
	collect          func(sample func(suffix, labels string, value float64))
}

func (s *Set) add(f *family) { s.families = append(s.families, f) }

// ServeHTTP writes the set.
func (s *Set) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var b bytes.Buffer
	s.write(&b)
	_, _ = w.Write(b.Bytes())
}

func (s *Set) write(w io.Writer) {
	for _, f := range slices.SortedFunc(slices.Values(s.families), func(a, b *family) int { return cmp.Compare(a.name, b.name) }) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		f.collect(func(suffix, labels string, v float64) {
			if labels != "" {
				labels = "{" + labels + "}"
			}
			fmt.Fprintf(w, "%s%s%s %s\n", f.name, suffix, labels, number(v))
		})
	}
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// A Counter only grows.
type Counter struct{ n atomic.Uint64 }

// Inc counts one more.
func (c *Counter) Inc() { c.n.Add(1) }

// Add counts n more.
func (c *Counter) Add(n int) { c.n.Add(uint64(n)) }

// Counter returns a new one.
func (s *Set) Counter(name, help string) *Counter {
	c := new(Counter)
	s.add(&family{name, help, counter, func(sample func(string, string, float64)) { sample("", "", float64(c.n.Load())) }})
	return c
}

// A Gauge goes up and down.
type Gauge struct{ n atomic.Int64 }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Gauge returns a new one.
func (s *Set) Gauge(name, help string) *Gauge {
	g := new(Gauge)
	s.GaugeFunc(name, help, func() float64 { return float64(g.n.Load()) })
	return g
}

// GaugeFunc shows what f returns; CounterFunc does so of what only grows.
func (s *Set) GaugeFunc(name, help string, f func() float64) { s.fn(name, help, gauge, f) }

// CounterFunc shows what f returns, which only grows.
func (s *Set) CounterFunc(name, help string, f func() float64) { s.fn(name, help, counter, f) }

func (s *Set) fn(name, help, kind string, f func() float64) {
	s.add(&family{name, help, kind, func(sample func(string, string, float64)) { sample("", "", f()) }})
}

// A by holds one T for each combination of values of labels.
type by[T any] struct {
	labels []string
	make   func() *T
	series sync.Map // of the labels, written, to *T
}

// With returns that of values, one for each label.
func (b *by[T]) With(values ...string) *T {
	key := b.written(values)
	if v, ok := b.series.Load(key); ok {
		return v.(*T)
	}
	v, _ := b.series.LoadOrStore(key, b.make())
	return v.(*T)
}

func (b *by[T]) written(values []string) string {
	var out strings.Builder
	for i, l := range b.labels {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%s=%q", l, values[i])
	}
	return out.String()
}

// each calls f with each series, in the order of its labels.
func (b *by[T]) each(f func(labels string, v *T)) {
	var keys []string
	b.series.Range(func(key, _ any) bool {
		keys = append(keys, key.(string))
		return true
	})
	slices.Sort(keys)
	for _, key := range keys {
		v, _ := b.series.Load(key)
		f(key, v.(*T))
	}
}

// Counters are a Counter for each combination of values of labels.
type Counters struct{ by[Counter] }

// Counters returns new ones.
func (s *Set) Counters(name, help string, labels ...string) *Counters {
	c := &Counters{by[Counter]{labels: labels, make: func() *Counter { return new(Counter) }}}
	s.add(&family{name, help, counter, func(sample func(string, string, float64)) {
		c.each(func(labels string, c *Counter) { sample("", labels, float64(c.n.Load())) })
	}})
	return c
}

// A Histogram counts values by the bounds that they do not exceed.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // of each bound, and of what is above all
	sum    atomic.Uint64   // bits of a float64
}

func newHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts v.
func (h *Histogram) Observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (h *Histogram) collect(labels string, sample func(string, string, float64)) {
	before := labels
	if before != "" {
		before += ","
	}
	total := 0.
	for i := range h.counts {
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		total += float64(h.counts[i].Load())
		sample("_bucket", fmt.Sprintf("%sle=%q", before, number(bound)), total)
	}
	sample("_sum", labels, math.Float64frombits(h.sum.Load()))
	sample("_count", labels, total)
}

// Histogram returns a new one; bounds ascend.
func (s *Set) Histogram(name, help string, bounds []float64) *Histogram {
	h := newHistogram(bounds)
	s.add(&family{name, help, histogram, func(sample func(string, string, float64)) { h.collect("", sample) }})
	return h
}

// Histograms are a Histogram for each value of a label.
type Histograms struct{ by[Histogram] }

// Histograms returns new ones; bounds ascend.
func (s *Set) Histograms(name, help string, bounds []float64, label string) *Histograms {
	hs := &Histograms{by[Histogram]{labels: []string{label}, make: func() *Histogram { return newHistogram(bounds) }}}
	s.add(&family{name, help, histogram, func(sample func(string, string, float64)) {
		hs.each(func(labels string, h *Histogram) { h.collect(labels, sample) })
	}})
	return hs
}

// Doubling are n bounds, each twice the one before.
func Doubling(first float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = first * math.Ldexp(1, i)
	}
	return out
}

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
