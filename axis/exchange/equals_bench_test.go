package exchange_test

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkCompany gives the answers of so many equal requests that were under way together while recording, each of which
// waits for all.
func BenchmarkCompany(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			spans := make([]span, n)
			for i := range spans {
				spans[i] = span{1000, []int64{900}, ""}
			}
			for b.Loop() {
				b.StopTimer()
				book, key := together(b, spans...)
				b.StartTimer()
				var all sync.WaitGroup
				for range n {
					all.Go(func() { _, _, _ = give(b.Context(), b, book, key) })
				}
				all.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/answer")
		})
	}
}
