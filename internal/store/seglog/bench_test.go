package seglog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog/logload"
)

// BenchmarkAppend measures the log with a number of concurrent appenders, and in the same run (a) a file for each of them with
// its own sync, (b) a bare loop that writes and syncs the same blocks: the disk's limit. They take turns, for a disk and a
// machine have moods.
func BenchmarkAppend(b *testing.B) {
	for _, appenders := range []int{1, 16, 2000} {
		b.Run(fmt.Sprintf("appenders=%d", appenders), func(b *testing.B) {
			const rounds = 3
			load := logload.Load{Appenders: appenders, Size: 300, Records: max(b.N/rounds, appenders)}
			few := load
			few.Records = max(min(load.Records, 5000), appenders)
			var log, sessions logload.Result // of all rounds
			var bare time.Duration
			var p99, sessionsP99 []time.Duration
			b.ReportAllocs()
			for range rounds {
				b.StartTimer()
				r, err := logload.Run(b.Context(), b.TempDir(), load)
				b.StopTimer()
				s, failed := logload.Sessions(b.TempDir(), few)
				if err = errors.Join(err, failed); err != nil {
					b.Fatal(err)
				}
				took, err := bareLoop(b.TempDir(), r.Blocks)
				if err != nil {
					b.Fatal(err)
				}
				log.Records, log.Elapsed, log.Blocks = log.Records+r.Records, log.Elapsed+r.Elapsed, append(log.Blocks, r.Blocks...)
				sessions.Records, sessions.Elapsed = sessions.Records+s.Records, sessions.Elapsed+s.Elapsed
				bare += took
				p99, sessionsP99 = append(p99, r.P99), append(sessionsP99, s.P99)
			}
			slices.Sort(p99)
			slices.Sort(sessionsP99)
			b.ReportMetric(log.PerSecond(), "records/s")
			b.ReportMetric(float64(p99[rounds/2].Microseconds()), "p99-µs")
			b.ReportMetric(float64(log.Records)/float64(len(log.Blocks)), "records/block")
			b.ReportMetric(log.PerSecond()/sessions.PerSecond(), "x-file-a-session")
			b.ReportMetric(bare.Seconds()/log.Elapsed.Seconds(), "of-bare-loop")
			b.ReportMetric(float64(sessionsP99[rounds/2])/float64(p99[rounds/2]), "p99-x-better-than-file-a-session")
		})
	}
}

// bareLoop writes blocks of the given lengths one after another to a file in dir, each with its own sync, and returns how long
// that took: what the disk takes when nobody thinks.
func bareLoop(dir string, blocks []int) (time.Duration, error) {
	f, err := faultfs.OS.OpenFile(filepath.Join(dir, "bare"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	all := int64(0)
	for _, n := range blocks {
		all += int64(n)
	}
	if err := f.Truncate(all); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	block := slices.Repeat([]byte("r"), slices.Max(blocks))
	began, at := time.Now(), int64(0)
	for _, n := range blocks {
		if _, err := f.WriteAt(block[:n], at); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		at += int64(n)
	}
	return time.Since(began), nil
}

// BenchmarkOpen opens and reads a log whose last segment is full: 60 MiB in blocks of 32 records.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	load := logload.Load{Appenders: 64, Size: 300, Records: 200_000}
	if _, err := logload.Run(b.Context(), dir, load); err != nil {
		b.Fatal(err)
	}
	var opening, reading time.Duration
	var bytes int64
	for b.Loop() {
		began := time.Now()
		l := open(b, dir, nil)
		opened := time.Now()
		for r, err := range l.Records(0) {
			if err != nil {
				b.Fatal(err)
			}
			bytes += int64(len(r.Data))
		}
		opening, reading = opening+opened.Sub(began), reading+time.Since(opened)
		shut(b, l)
	}
	b.ReportMetric(float64(opening.Milliseconds())/float64(b.N), "ms-to-open")
	b.ReportMetric(float64(bytes)/1e6/reading.Seconds(), "MB/s-read")
}
