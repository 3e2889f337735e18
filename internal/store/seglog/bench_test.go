package seglog_test

import (
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog/logload"
)

// BenchmarkAppend measures the log with a number of concurrent appenders, then in the same run (a) a file for each of them
// with its own sync, (b) a bare loop that writes and syncs the same blocks: the disk's limit.
func BenchmarkAppend(b *testing.B) {
	for _, appenders := range []int{1, 16, 2000} {
		b.Run(fmt.Sprintf("appenders=%d", appenders), func(b *testing.B) {
			load := logload.Load{Appenders: appenders, Size: 300, Records: max(b.N, appenders)}
			b.ReportAllocs()
			log, err := logload.Run(b.Context(), b.TempDir(), load)
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			load.Records = max(min(load.Records, 10_000), appenders)
			sessions, err := logload.Sessions(b.Context(), b.TempDir(), load)
			if err != nil {
				b.Fatal(err)
			}
			bare, err := logload.Bare(b.TempDir(), log.Blocks)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(log.PerSecond(), "records/s")
			b.ReportMetric(float64(log.P99.Microseconds()), "p99-µs")
			b.ReportMetric(float64(log.Records)/float64(len(log.Blocks)), "records/block")
			b.ReportMetric(log.PerSecond()/sessions.PerSecond(), "x-file-a-session")
			b.ReportMetric(bare.Seconds()/log.Elapsed.Seconds(), "of-bare-loop")
			b.ReportMetric(float64(sessions.P99)/float64(log.P99), "p99-x-better-than-file-a-session")
		})
	}
}
