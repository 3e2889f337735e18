//go:build unix

package tty_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// streams are what programs write, about 1 MiB of each.
var streams = map[string][]byte{
	"plain log": repeat(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "2026-11-22T10:%02d:%02d.%03dZ INFO  server: request handled path=/v1/items/%d status=200 bytes=%d in %dms\r\n", i/60%60, i%60, i%1000, i, i*37%9999, i%90)
	}),
	"heavy SGR": repeat(func(b *strings.Builder, i int) {
		for w := range 12 {
			fmt.Fprintf(b, "\x1b[38;5;%dmword%d\x1b[0m ", (i+w)%256, w)
		}
		b.WriteString("\r\n")
	}),
	"redraws": repeat(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "\x1b[%d;%dH\x1b[1;32m%5d\x1b[m process %d running\x1b[K", i%24+1, i%3*20+1, i, i*7%1000)
	}),
	"progress": repeat(func(b *strings.Builder, i int) {
		fmt.Fprintf(b, "\rdownloading %3d%% [%-40s]", i%101, strings.Repeat("#", i%41))
	}),
}

func repeat(line func(*strings.Builder, int)) []byte {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		line(&b, i)
	}
	return []byte(b.String())
}

// used is the time that this process had a processor.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perCPU reports the speed by the time of processors: that by the clock says little where others run.
func perCPU(b *testing.B, size int, from time.Duration) {
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(used()-from).Seconds(), "MB/cpu-s")
}

const piece = 32 << 10 // bytes of a write

// BenchmarkLive writes a stream and takes what need not be held.
func BenchmarkLive(b *testing.B) {
	for name, stream := range streams {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			l := tty.NewLive(nil)
			now := time.Duration(0)
			defer perCPU(b, len(stream), used())
			for b.Loop() {
				for rest := stream; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					now += time.Millisecond
					l.Write(rest[:min(piece, len(rest))], now)
					l.Take(now)
				}
			}
		})
	}
}

// BenchmarkScrubAlone is the limit: a Finder over the same streams.
func BenchmarkScrubAlone(b *testing.B) {
	s := scrub.New(scrub.Key{}, nil)
	for name, stream := range streams {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			f := s.Finder(func(scrub.Range) {})
			defer perCPU(b, len(stream), used())
			for b.Loop() {
				for rest := stream; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					f.Write(rest[:min(piece, len(rest))])
				}
			}
		})
	}
}
