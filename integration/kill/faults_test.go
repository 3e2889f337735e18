//go:build kill

package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// A fault is one way in which a recording cannot be written.
type fault struct {
	name string
	// shell runs tapedeck: $RECORD is its command line, $DIR an empty directory in which the recording r.rec is made, $OUT
	// where it is copied to when it does not outlive the shell, $STRACE strace without what it does.
	shell string
	says  []string // parts of what the recorder says
	keeps bool     // records and answers, which are checked
}

// inNamespace runs the rest of a fault where it may mount.
const inNamespace = "exec unshare -Urm sh -ec '%s'"

// onTmpfs records on a file system of a size, and copies the recording out of it.
func onTmpfs(size string) string {
	return fmt.Sprintf(inNamespace, `mount -t tmpfs -o size=`+size+` tmpfs $DIR; set +e; $RECORD; s=$?; cp -r $DIR/r.rec $OUT; exit $s`)
}

var faults = []fault{
	{"a disk of 300 KiB", onTmpfs("300k"), []string{"no space left on device", "was ended", "is unfinished and keeps", "make room there"}, true},
	{"a disk of 1 MiB", onTmpfs("1m"), []string{"no space left on device", "was ended", "is unfinished and keeps", "make room there"}, true},
	{"a disk of 8 KiB", onTmpfs("8k"), []string{"no space left on device", "was not started", "make room there"}, false},
	{"no inodes", onTmpfs("10m,nr_inodes=90"), []string{"no space left on device", "was ended"}, true},
	{
		"a read-only disk", fmt.Sprintf(inNamespace, `mount -t tmpfs -o ro tmpfs $DIR; exec $RECORD`),
		[]string{"read-only file system", "name a place that can be written to"}, false,
	},
	{"a limit of a file's size", `trap "" XFSZ; ulimit -f 60; $RECORD`, []string{"file too large"}, false},
	{"the tape fails", "$STRACE -P $DIR/r.rec/run.tape -e trace=write -e inject=write:error=EIO:when=4+ $RECORD", []string{"run.tape: input/output error", "was ended", "look at the disk"}, true},
	{"a part fails", "$STRACE -P $DIR/r.rec/run.tape.part/20 -e trace=write -e inject=write:error=EIO $RECORD", []string{"run.tape.part/20: input/output error", "was ended", "look at the disk"}, true},
	{"the disk cannot be synced", "$STRACE -P $DIR/r.rec/run.tape -e trace=fsync -e inject=fsync:error=EIO:when=3+ $RECORD_SYNC", []string{"sync", "run.tape: input/output error", "was ended", "look at the disk"}, true},
}

// However a recording fails to be written: the program is ended, the recorder says why and what is kept, and that loads.
func TestFaults(t *testing.T) {
	strace := run.Tool(t, "strace")
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		b.Setenv(agentVar, "20s") // it works until it is ended
		if res := b.Run("/bin/sh", "-c", "unshare -Urm mount -t tmpfs tmpfs "+b.Work); res.Status != 0 {
			t.Skipf("nothing can be mounted in a namespace here: %v", res)
		}
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				s.t = t
				s.fault(i, &f, strace)
			})
		}
	})
}

func (s *stage) fault(i int, f *fault, strace string) {
	dir, out := filepath.Join(s.top, fmt.Sprint("disk", i)), filepath.Join(s.top, fmt.Sprint("out", i))
	s.b.WriteFile(filepath.Join(dir, ".there"), "")
	if err := os.Remove(filepath.Join(dir, ".there")); err != nil {
		s.t.Fatal(err)
	}
	os.Remove(filepath.Join(s.b.Work, logName))
	record := func(flags ...string) string {
		return s.b.Binary() + " " + strings.Join(s.recordArgs(append(flags, "-o", dir+"/r.rec")...), " ")
	}
	text := strings.NewReplacer("$RECORD_SYNC", record("--sync"), "$RECORD", record(), "$DIR", dir, "$OUT", out,
		"$STRACE", strace+" -qq -f -b execve -o /dev/null").Replace(f.shell) // of the recorder alone: whom it traces itself has no other tracer
	res := s.b.Run("/bin/sh", "-c", text)
	if res.Status != 125 {
		s.t.Errorf("status %d, want 125", res.Status)
	}
	for _, part := range f.says {
		if !strings.Contains(res.Stderr, part) {
			s.t.Errorf("%q is not said", part)
		}
	}
	if n := strings.Count(res.Stderr, "the recording cannot be written"); n > 1 || f.keeps && n != 1 {
		s.t.Errorf("%d errors, want one", n)
	}
	if left := nothingRuns(nil, s.mark); len(left) > 0 {
		s.t.Errorf("still running: %v", left)
	}
	rec, err := recording.Open(out)
	if err != nil {
		rec, err = recording.Open(dir + "/r.rec")
	}
	switch {
	case err == nil:
		s.loads(i, rec, new(tally))
		whole, _ := s.answers(rec, filepath.Join(s.b.Work, logName))
		if f.keeps && whole == 0 {
			s.t.Error("no answer came before the fault: the test has tried nothing")
		}
	case f.keeps:
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("%s\nstatus %d, stderr: %s", text, res.Status, res.Stderr)
	}
}

// However few files may be open: the program is recorded, or the recorder says what it lacks; nothing is half a recording.
func TestFewFiles(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		ended := 0
		for i, n := range []int{14, 24, 30, 36, 40, 44, 48, 52} {
			os.Remove(filepath.Join(b.Work, logName))
			dir := filepath.Join(s.top, fmt.Sprint("few", n))
			// The program gets the limit too, and may fail by it; what it says is then its own.
			res := b.Run("/bin/sh", "-c", fmt.Sprintf("ulimit -n %d; exec %s %s", n, b.Binary(), strings.Join(s.recordArgs("-o", dir), " ")))
			if left := nothingRuns(nil, s.mark); len(left) > 0 {
				t.Errorf("%d files: still running: %v", n, left)
			}
			rec, err := recording.Open(dir)
			if res.Status == 125 {
				ended++
				if !strings.Contains(res.Stderr, "too many open files") || !strings.Contains(res.Stderr, "ulimit -n") {
					t.Errorf("%d files: %v", n, res)
				}
			} else if err != nil || !rec.Finished() || rec.Manifest.Exit.Code != res.Status {
				t.Errorf("%d files: %v, %v", n, err, res)
			}
			if err == nil {
				s.loads(i, rec, new(tally))
				s.answers(rec, filepath.Join(b.Work, logName))
			}
		}
		if ended == 0 {
			t.Error("every recorder had enough files: the test has tried nothing")
		}
	})
}
