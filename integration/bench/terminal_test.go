package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// flood is a source: the pace at which a program that prints a long log into a terminal is recorded, by that of a peer that
// records the same.
type flood struct {
	peer  func(dir, log string) []string // its command line; it writes to dir
	long  int64                          // bytes of the log
	short int64                          // the same of a short run
	runs  int
}

// scriptPeer is script(1), which keeps the bytes and looks at none of them.
func scriptPeer(dir, log string) []string {
	return []string{"script", "-q", "-f", "-c", "cat " + log, filepath.Join(dir, "typescript")}
}

// asciinemaPeer is asciinema's recorder.
func asciinemaPeer(dir, log string) []string {
	return []string{"asciinema", "rec", "-q", "--overwrite", "-c", "cat " + log, filepath.Join(dir, "log.cast")}
}

func (f flood) size(short bool) (int64, int) {
	if short {
		return f.short, 1
	}
	return f.long, f.runs
}

func (f flood) how(short bool) string {
	size, runs := f.size(short)
	return fmt.Sprintf("wall time of `tapedeck cassette record -- cat LOG`, digests, scan for secrets and screen model to their end, against `%s`; "+
		"a log of %d MB in lines of 106 bytes, stdout to /dev/null, stdin from it; medians of alternating runs after one of each that does not count: %d",
		f.peer("DIR", "LOG")[0]+" …", size>>20, runs)
}

func (f flood) measure(ctx context.Context, e *env) (reading, error) {
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return reading{}, err
	}
	dir, err := e.dir("flood")
	if err != nil {
		return reading{}, err
	}
	defer os.RemoveAll(dir)
	size, runs := f.size(e.short)
	log := filepath.Join(dir, "log")
	if err := writeLog(log, size); err != nil {
		return reading{}, err
	}
	cassette := filepath.Join(dir, "log.cassette")
	t, err := alternate(runs,
		f.run(ctx, e, dir, []string{tapedeck, "cassette", "record", "-o", cassette, "--", "cat", log}, cassette),
		f.run(ctx, e, dir, f.peer(dir, log), ""))
	if err != nil {
		return reading{}, err
	}
	ours, theirs := t[0].median(), t[1].median()
	return reading{value: theirs / ours, beside: fmt.Sprintf("%s against %s MB/s", figure(float64(size)/1e6/(ours/1e9)), figure(float64(size)/1e6/(theirs/1e9)))}, nil
}

// run runs a recorder once, whose output of before is taken away first.
func (f flood) run(ctx context.Context, e *env, dir string, argv []string, before string) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if before != "" {
			if err := os.RemoveAll(before); err != nil {
				return 0, err
			}
		}
		cmd := e.command(ctx, dir, argv[0], argv[1:]...)
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		defer null.Close()
		var said tail
		cmd.Stdout, cmd.Stderr = null, &said
		return timed(cmd, &said)
	}
}

func timed(cmd *exec.Cmd, said *tail) (time.Duration, error) {
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", cmd.Args[0], err, said)
	}
	return time.Since(begun), nil
}

// writeLog writes a log as servers write them, no line like the one before.
func writeLog(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var written int64
	for i := 0; written < size; i++ {
		n, err := fmt.Fprintf(w, "2026-11-22T09:%02d:%02d.%03dZ INFO  worker-%02d handled request %08d path=/api/v1/items/%04d status=200 in %03d ms\n",
			i/60%60, i%60, i%1000, i%17, i*7919%100_000_000, i*31%10_000, i%900)
		if err != nil {
			f.Close()
			return err
		}
		written += int64(n)
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
