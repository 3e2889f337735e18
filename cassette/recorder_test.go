package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A fullDisk takes n bytes.
type fullDisk struct {
	w io.Writer
	n int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.n)
	d.n -= n
	if _, err := d.w.Write(p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestFullDisk has each stream's disk full at several places: one error, and what is there loads as unfinished.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	names := []string{OutputFile, ChunksFile, InputFile, FramesFile, ServiceFile}
	for i := range names {
		for _, room := range []int{0, 1, 100, 5000, 20000} {
			if StreamFrames.File() == names[i] && room > 100 {
				continue // there are few frames
			}
			o := &CreateOptions{ResolutionMS: 1}
			if err := o.fill(); err != nil {
				t.Fatal(err)
			}
			f, err := createFiles(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s := f.all()[i]
			s.Reset(&fullDisk{s.f, room})
			r := startRecorder(f, o, newTexts(nil))
			err = fill(r)
			_, finishErr := r.Finish(&Final{})
			if !errors.Is(finishErr, syscall.ENOSPC) || err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s, room %d: %v, then %v", names[i], room, err, finishErr)
			}
			loadsUnfinished(t, f.dir)
		}
	}
}

// fill records until there is an error, or much.
func fill(r *Recorder) error {
	for i := range 3000 {
		if err := errors.Join(r.Output(fmt.Appendf(nil, "line %06d\r\n", i)), r.Input([]byte("key\r"), ""), r.ServiceEvent([]byte(`{"n":1}`))); err != nil {
			return err
		}
		if i%500 == 0 {
			time.Sleep(time.Millisecond) // for the recorder to write in between
		}
	}
	return nil
}

func loadsUnfinished(t *testing.T, dir string) {
	t.Helper()
	if _, err := Open(dir, nil); !errors.Is(err, ErrNoManifest) {
		t.Fatal(err)
	}
	r, err := Open(dir, &OpenOptions{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := r.RawOutput()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.SplitAfter(raw, []byte("\r\n")) {
		if len(line) > 0 && string(line) != fmt.Sprintf("line %06d\r\n", i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// TestManyAtOnce has several goroutines record: nothing is lost, and the order is that of the ordinals.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "c")
	var g uint64
	r, err := Create(dir, &CreateOptions{ResolutionMS: 1, G: func() uint64 { g++; return g }})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for n := range 4 {
		wait.Go(func() {
			for range 2000 {
				switch n {
				case 0:
					r.Output(bytes.Repeat([]byte("output\r\n"), 100))
				case 1:
					r.Input([]byte("i"), "")
				case 2:
					r.Resize(Size{10, 30})
				case 3:
					r.ServiceEvent([]byte("1"))
				}
			}
		})
	}
	wait.Wait()
	if _, err := r.Finish(&Final{}); err != nil {
		t.Fatal(err)
	}
	rd, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var n [6]int
	for e, err := range rd.Events(nil) {
		if err != nil || e.G != e.Seq {
			t.Fatal(e, err)
		}
		n[e.Stream]++
	}
	if n[StreamInput] != 4000 || n[StreamService] != 2000 || n[StreamOutput] != 2000 || rd.Size() != 1600000 {
		t.Errorf("%v, %d bytes", n, rd.Size())
	}
}

// TestLiveFrames records in made time: a frame when the screen has settled, and one each FrameEvery while it changes.
func TestLiveFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var live []string
		r, err := Create(dir, &CreateOptions{ResolutionMS: 1, Terminal: Terminal{InitialRows: 2, InitialCols: 20},
			Live: func(f *Frame) { live = append(live, fmt.Sprint(f.TMS/10*10, " ", f.Text[0])) }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r.Output([]byte("one"))
		time.Sleep(time.Second)
		for i := range 30 {
			r.Output(fmt.Appendf(nil, "\r%d  ", i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if _, err := r.Finish(&Final{}); err != nil {
			t.Fatal(err)
		}
		t.Log(strings.Join(live, "\n"))
		if len(live) != 4 || live[0] != "1050 one" || !strings.HasPrefix(live[1], "2100 ") || !strings.HasSuffix(live[3], " 29") {
			t.Errorf("%q", live)
		}
	})
}

// TestTime has a clock that jumps back: t_ms stays, floored to the resolution.
func TestTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	times := []time.Duration{5 * time.Millisecond, 149 * time.Millisecond, 40 * time.Millisecond, 250 * time.Millisecond, 0, 399 * time.Millisecond, 400 * time.Millisecond}
	i := -1
	r, err := Create(dir, &CreateOptions{FrameEvery: -1, Clock: func() time.Duration { i = min(i+1, len(times)-1); return times[i] }})
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		r.Output([]byte("x"))
	}
	if _, err := r.Finish(&Final{}); err != nil {
		t.Fatal(err)
	}
	rd, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var got []int64
	for e := range rd.Events(&EventsOptions{Streams: []Stream{StreamOutput, StreamFinal}}) {
		got = append(got, e.TMS)
	}
	if !slices.Equal(got, []int64{0, 100, 100, 200, 200, 300, 400}) {
		t.Error(got)
	}
}

// TestCreateRefuses sees what a writer may not do.
func TestCreateRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	r, err := Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(nil); !errors.Is(err, ErrNoFinal) {
		t.Error(err)
	}
	if err := r.Output([]byte("still on")); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir, nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if _, err := r.Finish(&Final{}); err != nil {
		t.Error(err)
	}
	for _, err := range []error{r.Output([]byte("x")), r.Input(nil, ""), r.Resize(Size{1, 1}), r.Signal("x"), r.ServiceEvent([]byte("1")), r.Abort(), r.Quota(&Capability{})} {
		if !errors.Is(err, ErrFinished) {
			t.Error(err)
		}
	}
	if _, err := Create(dir, nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if r, err = Create(dir, &CreateOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.Abort(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, &CreateOptions{Overwrite: true}); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
	if r, err := Create(filepath.Join(dir, "new"), nil); err != nil {
		t.Error(err)
	} else if err := r.ServiceEvent([]byte(`{"torn"`)); err == nil {
		t.Error("a service event that is no JSON is recorded")
	} else {
		r.Abort()
	}
}

// TestHurry has more output than the screen keeps up with: the recorder falls behind and comes back, and the last frame is right.
func TestHurry(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "c")
	var told []int64
	r, err := Create(dir, &CreateOptions{ResolutionMS: 1, Progress: func(done, total int64) { told = append(told, done*100/total) }})
	if err != nil {
		t.Fatal(err)
	}
	redraw := []byte(strings.Repeat("\x1b[2;1H\x1b[Kone\x1b[5;20Htwo\x1b[3;3r\x1b[r", 3000))
	for i := range 60 {
		r.Output(redraw)
		if i == 30 {
			r.Resize(Size{30, 90})
		}
	}
	r.Output([]byte("\x1b[10;1Hthe end"))
	if _, err := r.Finish(&Final{}); err != nil {
		t.Fatal(err)
	}
	rd, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	f, err := rd.LastFrame()
	if err != nil || f.Size != (Size{30, 90}) || f.Text[9] != "the end" || f.RawEnd != rd.Size() {
		t.Errorf("%+v, %v", f, err)
	}
	t.Log(told)
}
