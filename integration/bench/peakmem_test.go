package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// written is the argument of the job that writes files: Files of them in all, the same number in each of Dirs, of Bytes
// together. Those that are there are written over.
type written struct {
	Dirs  []string
	Files int
	Bytes int64
	Salt  string // in the text, so that two runs write different files
}

// doWrite is the job.
func doWrite(arg []byte) error {
	var w written
	if err := json.Unmarshal(arg, &w); err != nil {
		return err
	}
	for i := range w.Files {
		dir := filepath.Join(w.Dirs[i%len(w.Dirs)], fmt.Sprintf("d%03d", i/500))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := w.file(filepath.Join(dir, fmt.Sprintf("f%05d.txt", i)), i); err != nil {
			return err
		}
	}
	return nil
}

// file writes one: text, of which every 4 KB are found nowhere else.
func (w *written) file(path string, i int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := []byte(words(4 << 10))
	buf := bufio.NewWriterSize(f, 256<<10)
	for left := w.Bytes / int64(w.Files); left > 0; left -= int64(len(block)) {
		copy(block, fmt.Sprintf("\nblock %s %d %d ", w.Salt, i, left))
		if _, err := buf.Write(block[:min(left, int64(len(block)))]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(buf.Flush(), f.Close())
}

// peakRun is a source: the most memory that the recorder of a program that writes much ever held.
type peakRun struct {
	files, few   int // few of a short run
	bytes, small int64
	over         bool // the files are there already
}

func (r peakRun) how(short bool) string {
	files, size := r.files, r.bytes
	if short {
		files, size = r.few, r.small
	}
	over := ""
	if r.over {
		over = ", over ones that are there"
	}
	where := "in the work tree"
	if files > 1 {
		where = "half of them in the work tree, half in HOME"
	}
	return fmt.Sprintf("VmHWM of the `tapedeck record` process, not of the program, which writes %s MB of text in %s, %s%s",
		count(float64(size>>20)), plural(files, "file"), where, over)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(float64(n)) + " " + noun + "s"
}

func (r peakRun) measure(ctx context.Context, e *env) (reading, error) {
	t, err := newTrial(ctx, e, command(nil))
	if err != nil {
		return reading{}, err
	}
	defer os.RemoveAll(t.place.root) // gigabytes; these rows come last
	job := written{Dirs: []string{t.place.work(), t.place.home()}, Files: pick(e, r.files, r.few), Bytes: pick(e, r.bytes, r.small)}
	if r.over {
		before := job
		before.Salt = "before"
		argv := e.jobArgs("write", before)
		if _, err := do(e.command(ctx, e.tmp, argv[0], argv[1:]...)); err != nil {
			return reading{}, err
		}
	}
	t.e.settle(t.place.root)
	rec := filepath.Join(e.tmp, filepath.Base(t.place.root)+".rec")
	defer os.RemoveAll(rec)
	argv := e.recording(rec, t.flags, e.jobArgs("write", job))
	cmd := e.command(ctx, t.place.work(), argv[0], argv[1:]...)
	cmd.Env = append(cmd.Env, t.place.env()...)
	peak, took, err := doWatched(cmd)
	return reading{value: float64(peak) / (1 << 20), beside: fmt.Sprintf("in %s; %s", duration(float64(took)), t.world)}, err
}

// watchEvery is how often a process is looked at. The kernel keeps the peak: only what comes after the last look is missed.
const watchEvery = 20 * time.Millisecond

// doWatched runs a command and returns the most memory that its own process held, in bytes. One that ends before it is looked
// at is an error.
func doWatched(cmd *exec.Cmd) (peak int64, took time.Duration, err error) {
	peak, took, err = doPeak(cmd)
	if err == nil && peak == 0 {
		err = errors.New("the process ended before it was looked at")
	}
	return peak, took, err
}

// doPeak is doWatched for a command that may end before it is looked at: it held 0 bytes then.
func doPeak(cmd *exec.Cmd) (peak int64, took time.Duration, err error) {
	said := new(tail)
	cmd.Stdout, cmd.Stderr = said, said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // received below, whatever comes first
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			took = time.Since(begun)
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", strings.Join(short(cmd.Args), " "), err, said)
			}
			return peak, took, err
		case <-tick.C:
			peak = max(peak, peakOf(cmd.Process.Pid))
		}
	}
}

// peakOf is the most memory that a process has held so far, in bytes; 0 where it has ended.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	line, _, _ := strings.Cut(string(rest), " kB")
	kb, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0 // a zombie has no such line
	}
	return kb << 10
}

// needProc is a need: what tells the memory of another process.
func needProc(context.Context, *env) string {
	if peakOf(os.Getpid()) == 0 {
		return "Linux's /proc"
	}
	return ""
}

// needJail is a need: the jail.
func needJail(ctx context.Context, e *env) string {
	ok, err := e.jailed(ctx)
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return "a jail (tapedeck doctor says what is missing)"
	}
	return ""
}
