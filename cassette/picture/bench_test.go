package picture

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// htop is a minute of something like it: 100 by 30, as many updates a second. It is harder than htop itself: every number of
// every row changes each time.
func htop(updates float64) *session {
	rng := rand.New(rand.NewPCG(1, 2))
	var writes []string
	for range int(60 * updates) {
		var b strings.Builder
		b.WriteString("\x1b[H")
		for cpu := range 4 {
			n := rng.IntN(60)
			fmt.Fprintf(&b, "\x1b[36m  %d\x1b[1m[\x1b[0;32m%s\x1b[31m%s\x1b[0m%*s\x1b[90m%3d.%d%%\x1b[0;1m]\x1b[0m\x1b[K\r\n", cpu, strings.Repeat("|", n/2), strings.Repeat("|", n-n/2), 70-n, "", n, rng.IntN(10))
		}
		b.WriteString("\x1b[30;42m    PID USER      PRI  NI  VIRT   RES   SHR S  CPU% MEM%   TIME+  Command\x1b[K\x1b[0m\r\n")
		for row := range 24 {
			fmt.Fprintf(&b, "%7d root       20   0 \x1b[36m%5d\x1b[0mM %5d %5d S \x1b[1m%5.1f\x1b[0m %4.1f  0:%02d.%02d \x1b[32m/usr/bin/\x1b[1mprogram-%d\x1b[0m --n=%d\x1b[K\r\n",
				1000+rng.IntN(30), rng.IntN(9999), rng.IntN(99999), rng.IntN(9999), rng.Float64()*100, rng.Float64()*9, rng.IntN(60), rng.IntN(100), rng.IntN(20), row)
		}
		b.WriteString("F1\x1b[30;46mHelp  \x1b[0mF2\x1b[30;46mSetup \x1b[0mF10\x1b[30;46mQuit\x1b[K\x1b[0m")
		writes = append(writes, b.String())
	}
	return script(30, 100, time.Duration(float64(time.Second)/updates), writes...)
}

// A minute of htop must be a GIF in less than five seconds, however fast it draws.
func BenchmarkGIF(b *testing.B) {
	for _, updates := range []float64{1 / 1.5, 20} {
		for _, scale := range []int{1, 2} {
			b.Run(fmt.Sprintf("updates=%.3g/scale=%d", updates, scale), func(b *testing.B) {
				s := htop(updates)
				n := new(counter)
				for b.Loop() {
					*n = 0
					if err := writeGIF(n, s, &Options{Scale: scale}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(*n)/1e6, "MB")
			})
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	s := htop(1 / 1.5)
	n := new(counter)
	for b.Loop() {
		*n = 0
		if err := writeHTML(n, s, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(*n)/1e6, "MB")
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)
