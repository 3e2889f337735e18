package runfiles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// summary reads the first and the last lines of a trace.
func (d *Dir) summary(id runtrace.ID) (Run, error) {
	path, err := d.file(id)
	if err != nil {
		return Run{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Run{}, err
	}
	defer f.Close()
	run, err := summarize(f, id)
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func summarize(f *os.File, id runtrace.ID) (Run, error) {
	first, err := bufio.NewReaderSize(f, runtrace.MaxLine+1).ReadSlice('\n')
	if err != nil {
		return Run{}, fmt.Errorf("expected the record started in the first line: %w", err)
	}
	rec, err := runtrace.Parse(first)
	if err != nil || rec.Started == nil {
		return Run{}, errors.Join(errors.New("expected the record started in the first line"), err)
	}
	run := Run{ID: id, Intent: rec.Started.Intent, Started: moment(rec.Started.StartedAt), Status: runtrace.InProgress}
	last, err := lastLines(f, 2)
	if err != nil {
		return Run{}, err
	}
	for _, line := range last {
		switch rec, err := runtrace.Parse(line); {
		case err != nil:
			return Run{}, err
		case rec.Turn != nil:
			run.Turns = rec.Turn.Index + 1
		case rec.Ended != nil:
			run.Status, run.Ended = rec.Ended.Status, moment(rec.Ended.EndedAt)
		}
	}
	return run, nil
}

func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// lastLines returns the last n whole lines of f, or all that there are.
func lastLines(f *os.File, n int) ([][]byte, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	for size := int64(16 << 10); ; size *= 4 {
		size = min(size, end)
		b := make([]byte, size)
		if _, err := f.ReadAt(b, end-size); err != nil {
			return nil, err
		}
		b = b[:bytes.LastIndexByte(b, '\n')+1] // what stands behind it is being written
		lines := bytes.SplitAfter(b, []byte("\n"))
		lines = lines[:len(lines)-1]
		if size < end && len(lines) > 0 { // the first may be the end of one
			lines = lines[1:]
		}
		if len(lines) >= n || size == end {
			return lines[max(0, len(lines)-n):], nil
		}
	}
}
