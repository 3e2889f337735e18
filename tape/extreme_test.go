package tape_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// long reports whether the long forms of the tests run: TAPEDECK_LONG=1 go test ./tape ./cas. They write 2 GB to the
// temporary directory and take minutes.
func long() bool { return os.Getenv("TAPEDECK_LONG") == "1" }

// maxResident is what a process that records or reads may hold, in bytes, however long the tape.
const maxResident = 64 << 20

// jobEnv names what this test binary is to do in place of running tests: what a process holds at most is its own then.
const jobEnv = "TAPE_TEST_JOB"

// jobs are what a child does.
var jobs = map[string]func(args []string) error{
	"write":   func(args []string) error { return writeClocks(args[0], args[1]) },
	"read":    func(args []string) error { return readClocks(args[0], args[1]) },
	"endless": func(args []string) error { return readEndless(args[0]) },
	"full":    func(args []string) error { return fillDisk(args[0]) },
}

// doJob is the child's side: it does the job and says how much it held.
func doJob(name string) {
	err := jobs[name](os.Args[1:])
	fmt.Println("held", peakResident())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// jobCommand returns the command of a job.
func jobCommand(t *testing.T, job string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), jobEnv+"="+job)
	return cmd
}

// runJob runs a job in a process of its own, checks that it held little, and returns what it said.
func runJob(t *testing.T, most int64, job string, args ...string) string {
	t.Helper()
	out, err := jobCommand(t, job, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", job, err, out)
	}
	said, text, _ := strings.Cut(string(out), "held ")
	held, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v\n%s", job, err, out)
	}
	if held > most && !race {
		t.Errorf("%s held %d MiB, want at most %d", job, held>>20, most>>20)
	}
	t.Logf("%s held %d MiB", job, held>>20)
	return said
}

func writeClocks(path, count string) error {
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test"})
	if err != nil {
		return err
	}
	rec := tape.NewRecorder(w, nil)
	k := &tape.ClockRead{Source: "wall"}
	for i := range n {
		k.ValueMS = int64(i)
		if err := rec.Record(k); err != nil {
			return err
		}
	}
	return errors.Join(rec.Flush(), f.Close())
}

func readClocks(path, count string) error {
	f, err := tape.Open(path, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	for rec, err := range f.Records() {
		if err != nil {
			return err
		}
		if rec.Seq != uint64(n) || rec.Kind.(*tape.ClockRead).ValueMS != int64(n) {
			return fmt.Errorf("record %d: %+v", n, rec)
		}
		n++
	}
	if got := fmt.Sprint(n); got != count {
		return fmt.Errorf("%s records, want %s", got, count)
	}
	return nil
}

// 10,000,000 records in the long form.
func TestManyRecordsAreWrittenAndReadInLittleMemory(t *testing.T) {
	t.Parallel()
	count := "50000"
	if long() {
		count = "10000000"
	}
	path := filepath.Join(t.TempDir(), "run.tape")
	runJob(t, maxResident, "write", path, count)
	runJob(t, maxResident, "read", path, count)
}

// endlessLine is longer than any reader takes, and than what a process may hold.
const endlessLine = 1 << 30

// makeEndless writes a tape whose second line is a hole of a file of n bytes: zeros that take no room on the disk.
func makeEndless(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(header + line(`{"kind":"x"}`) + "\n" + `{"type":"`); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Truncate(n), f.Close())
}

func readEndless(path string) error {
	f, err := tape.Open(path, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	for _, err := range f.Records() {
		if err != nil {
			fmt.Println(errors.Is(err, tape.ErrLineTooLong), n, err)
			return nil
		}
		n++
	}
	return fmt.Errorf("no error behind %d records", n)
}

// The line is of 1 GB in the long form, else of a quarter. What came before it loads, and the error says where it is and what the limit is.
func TestALineOfAGigabyteIsRefusedInLittleMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	n := int64(endlessLine / 4)
	if long() {
		n = endlessLine
	}
	if err := makeEndless(path, n); err != nil {
		t.Fatal(err)
	}
	out := runJob(t, maxResident+2*tape.MaxLine, "endless", path)
	for _, want := range []string{"true 1 ", path + ":3: ", fmt.Sprint(tape.MaxLine)} {
		if !strings.Contains(out, want) {
			t.Errorf("%q does not say %q", out, want)
		}
	}
}

func TestTheWriterRefusesWhatNoReaderTakes(t *testing.T) {
	var buf bytes.Buffer
	rec := newRecorder(t, &buf, nil)
	if err := rec.Record(&tape.EnvRead{VarName: "before"}); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("\x01", tape.MaxLine/6+1) // six bytes each on the tape
	if err := rec.Record(&tape.EnvRead{VarName: big}); !errors.Is(err, tape.ErrLineTooLong) {
		t.Errorf("got %v", err)
	}
	if err := rec.Record(&tape.EnvRead{VarName: "after"}); !errors.Is(err, tape.ErrLineTooLong) || rec.Count() != 1 {
		t.Errorf("the recording goes on: %v, %d records", err, rec.Count())
	}
	if err := rec.Flush(); !errors.Is(err, tape.ErrLineTooLong) {
		t.Errorf("Flush: %v", err)
	}
	if all := loadAll(t, buf.Bytes()); len(all) != 1 {
		t.Errorf("%d records on the tape, want the one before the failure", len(all))
	}
}

// What is no regular file is refused at once: a FIFO would keep its reader waiting, and a device has no end.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	paths := append([]string{dir}, specialFiles(t, dir)...)
	for _, path := range paths {
		if f, err := tape.Open(path, nil); err == nil {
			f.Close()
			t.Errorf("%s opened", path)
		}
	}
}

// fillDisk records to a directory with little room until it is full, and goes on: the run does not end with its tape.
func fillDisk(dir string) error {
	path := filepath.Join(dir, "run.tape")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	store, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		return err
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test"})
	if err != nil {
		return err
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store})
	var first error
	failures := 0
	for i := range 100_000 {
		err := rec.Record(&tape.EnvRead{VarName: strings.Repeat("a", 100) + strconv.Itoa(i)})
		if err == nil && i%10 == 9 {
			err = rec.Flush()
		}
		if err != nil {
			if failures++; failures == 1 {
				first = err
			}
		}
	}
	full := errors.Is(first, syscall.ENOSPC) || errors.Is(first, syscall.EFBIG)
	if !full || !errors.Is(rec.Err(), first) || failures < 2 {
		return fmt.Errorf("%d failures, the first %w, kept %w", failures, first, rec.Err())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return countTorn(path, rec.Count())
}

// countTorn checks that the tape holds records, none of them more than were recorded, and a torn line at most.
func countTorn(path string, recorded int) error {
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	for rec, err := range f.Records() {
		if err != nil {
			return err
		}
		if rec.Seq != uint64(n) {
			return fmt.Errorf("record %d has seq %d", n, rec.Seq)
		}
		n++
	}
	if n == 0 || n > recorded {
		return fmt.Errorf("%d records on the tape, %d recorded", n, recorded)
	}
	fmt.Printf("loaded %d of %d\n", n, recorded)
	return nil
}
