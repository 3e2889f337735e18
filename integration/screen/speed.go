package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/internal/vt/workload"
)

const (
	sizeOfKind = 16 << 20 // bytes
	least      = 30       // MB/s
	chunk      = 64 << 10
)

// speed measures both on every kind of output, in processor time with that of their collectors: what else runs on the machine
// must not decide.
func (b *bench) speed() error {
	var files []string
	for _, k := range workload.Kinds {
		file := filepath.Join(b.dir, k.Name)
		if err := os.WriteFile(file, k.Make(sizeOfKind), 0o600); err != nil {
			return err
		}
		files = append(files, file)
	}
	theirs := map[string][]float64{}
	if err := b.xterm(&theirs, append([]string{"speed", strconv.Itoa(b.runs)}, files...)...); err != nil {
		return err
	}
	fmt.Printf("speed: MB per second of processor time, on %d MiB of each, 24x80, 1000 lines of scrollback, median of %d\n", sizeOfKind>>20, b.runs)
	fmt.Printf("  %-24s %8s %16s %7s\n", "", "ours", "@xterm/headless", "ratio")
	var failed []error
	for i, k := range workload.Kinds {
		data, err := os.ReadFile(files[i])
		if err != nil {
			return err
		}
		var runs []float64
		for range b.runs {
			runs = append(runs, once(data))
		}
		we, they := median(runs), median(theirs[files[i]])
		fmt.Printf("  %-24s %8.0f %16.0f %7.1f%s\n", k.Name, we, they, we/they, slow(we))
		if we < they {
			failed = append(failed, fmt.Errorf("%s: %.0f MB/s, @xterm/headless does %.0f", k.Name, we, they))
		}
	}
	return errors.Join(failed...)
}

// slow says that a pace is below what we promise. That is no failure: a machine may be slower than the one that it was promised for.
func slow(pace float64) string {
	if pace >= least {
		return ""
	}
	return fmt.Sprintf("  (below %d MB/s)", least)
}

func once(data []byte) float64 {
	s := vt.New(nil)
	from := spent()
	for p := range slices.Chunk(data, chunk) {
		s.Write(p)
	}
	return float64(len(data)) / (spent() - from).Seconds() / 1e6
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
