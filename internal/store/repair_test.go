package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// crashed is a store's directory as a process that is killed now leaves it: some runs ended and in the index, some ended, some
// open, some with turns of before the last sync.
func crashed(t *testing.T) (dir string, want map[string][]string) {
	t.Helper()
	live, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	s := openDisk(t, live, &store.Options{IndexEvery: time.Hour})
	want = map[string][]string{}
	write := func(run string, n int) {
		id := runtrace.ID{Agent: "a", Run: run}
		if len(want[run]) == 0 {
			begin(t, s, run)
		}
		for range n {
			text := fmt.Sprint(run, "/", len(want[run]))
			if _, err := say(s, id, text); err != nil {
				t.Fatal(err)
			}
			want[run] = append(want[run], text)
		}
		if err := s.Verdict(t.Context(), id, []byte(`"`+run+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	write("old", 5)
	if err := s.End(t.Context(), runtrace.ID{Agent: "a", Run: "old"}, &runtrace.Ended{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil { // a sync, and all in the index
		t.Fatal(err)
	}
	s = openDisk(t, live, &store.Options{IndexEvery: time.Hour})
	write("open", 7)
	write("new", 3)
	if err := s.End(t.Context(), runtrace.ID{Agent: "a", Run: "new"}, &runtrace.Ended{}); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

// whole checks that a store has what it should, in memory, in the files and in the list.
func whole(t *testing.T, s *store.Disk, dir string, want map[string][]string) {
	t.Helper()
	list, err := s.List(t.Context(), "a")
	if err != nil || len(list) != len(want) {
		t.Errorf("%d runs listed, %v", len(list), err)
	}
	for i, run := range []string{"new", "open", "old"} {
		id := runtrace.ID{Agent: "a", Run: run}
		equal(t, prompts(t, s, id), want[run])
		b, err := os.ReadFile(filepath.Join(dir, "runs", "a", run+".jsonl"))
		if err != nil || strings.Count(string(b), "\n") != len(want[run])+2 || !strings.HasSuffix(string(b), "}\n") {
			t.Errorf("%v\n%s", err, b)
		}
		status := runtrace.Completed
		if run == "open" {
			status = runtrace.Incomplete
		}
		if i < len(list) && (list[i].Run != run || list[i].Turns != len(want[run]) || list[i].Status != status || list[i].EndedAt == "") {
			t.Errorf("listed as %+v", list[i])
		}
		if all, err := s.Verdicts(t.Context(), id); err != nil || len(all) != 1 || string(all[0]) != `"`+run+`"` {
			t.Errorf("verdicts of %s: %s, %v", run, all, err)
		}
	}
}

// What may happen to a file of a run while nobody looks.
var damages = map[string]func(path string) error{
	"nothing": func(string) error { return nil },
	"deleted": os.Remove,
	"emptied": func(path string) error { return os.Truncate(path, 0) },
	"torn":    func(path string) error { return shorten(path, 9) },
	"cut at a line": func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b[:strings.LastIndexByte(string(b[:len(b)-1]), '\n')+1], 0o600)
	},
	"garbage behind":  func(path string) error { return appendTo(path, "garbage") },
	"a line behind":   func(path string) error { return appendTo(path, `{"record":"turn","index":99}`+"\n") },
	"zeros behind":    func(path string) error { return appendTo(path, strings.Repeat("\x00", 5000)) },
	"a byte changed":  func(path string) error { return overwrite(path, 70) },
	"its end changed": func(path string) error { return overwrite(path, -4) },
}

func shorten(path string, n int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()-n)
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func overwrite(path string, at int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 1
	return os.WriteFile(path, b, 0o600)
}

// After a crash the files are what the log says, whatever has become of them, and the log says so.
func TestDamagedFiles(t *testing.T) {
	image, want := crashed(t)
	for name, do := range damages {
		for _, run := range []string{"old", "open", "new"} {
			t.Run(name+"/"+run, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(image)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "runs", "a", run+".jsonl")
				if err := do(path); err != nil {
					t.Fatal(err)
				}
				logger, said := logged()
				s := openDisk(t, dir, &store.Options{Logger: logger})
				// A byte that changed before the last sync changes no length: that is found by who reads it.
				if strings.Contains(name, "changed") && run == "old" {
					prompts(t, s, runtrace.ID{Agent: "a", Run: run})
				}
				if b, err := os.ReadFile(path); err != nil || strings.Count(string(b), "\n") != len(want[run])+2 {
					t.Errorf("the file has %d lines, %v", strings.Count(string(b), "\n"), err)
				}
				repaired := strings.Contains(said.String(), "written again from the log") && strings.Contains(said.String(), "a/"+run)
				if repaired != (name != "nothing") || s.Stats().Repairs > 1 {
					t.Errorf("repairs %d, said: %s", s.Stats().Repairs, said)
				}
				whole(t, s, dir, want)
			})
		}
	}
}

// While the store is open, whoever reads finds it out.
func TestDamagedWhileOpen(t *testing.T) {
	for name, do := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openDisk(t, dir, nil)
			id := begin(t, s, "r")
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprint(i))
				if _, err := say(s, id, want[i]); err != nil {
					t.Fatal(err)
				}
				if i%5 == 0 {
					if err := do(filepath.Join(dir, "runs", "a", "r.jsonl")); err != nil {
						t.Fatal(err)
					}
				}
				if i%5 == 1 {
					equal(t, prompts(t, s, id), want)
				}
			}
			equal(t, prompts(t, s, id), want)
		})
	}
}

func TestDamagedIndex(t *testing.T) {
	image, want := crashed(t)
	for name, do := range map[string]func(path string) error{
		"deleted": os.Remove,
		"garbage": func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)
		},
		"emptied":       func(path string) error { return os.Truncate(path, 0) },
		"cut":           func(path string) error { return os.Truncate(path, 5000) },
		"its tables":    func(path string) error { return execute(path, "DROP TABLE runs") },
		"older version": func(path string) error { return execute(path, "DROP TABLE verdicts; PRAGMA user_version = 0") },
		"newer version": func(path string) error { return execute(path, "PRAGMA user_version = 99") },
		"of another log": func(path string) error {
			return execute(path, "UPDATE meta SET applied = 100000")
		},
		"other turns": func(path string) error {
			return execute(path, "UPDATE meta SET applied = 3; UPDATE runs SET bytes = 10")
		},
		"more turns": func(path string) error { // than the log has, where the entries that it lacks are none of the log's
			return execute(path, "UPDATE runs SET turns = turns + 1, bytes = bytes + 90 WHERE status <> 'in_progress'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(image)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "index.sqlite")
			if err := do(path); err != nil {
				t.Fatal(err)
			}
			if name != "older version" && name != "newer version" && name != "of another log" && !strings.HasSuffix(name, " turns") {
				os.Remove(path + "-wal")
				os.Remove(path + "-shm")
			}
			logger, said := logged()
			s := openDisk(t, dir, &store.Options{Logger: logger})
			if !strings.Contains(said.String(), "the index was made again from the log") {
				t.Errorf("said: %s", said)
			}
			whole(t, s, dir, want)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			logger, said = logged()
			whole(t, openDisk(t, dir, &store.Options{Logger: logger}), dir, want)
			if said.Len() > 0 {
				t.Errorf("the next time it says: %s", said)
			}
		})
	}
}

func execute(path, statements string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec(statements)
	return errors.Join(err, db.Close())
}

// Rebuilding says how far it is.
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir, nil)
	id := begin(t, s, "r")
	for range 7 {
		if _, err := say(s, id, make([]string, runtrace.MaxBatch)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "index.sqlite")); err != nil {
		t.Fatal(err)
	}
	var last store.Progress
	openDisk(t, dir, &store.Options{Progress: func(p store.Progress) { last = p }})
	if last.Phase == "" || last.Done != last.Total || last.Total == 0 {
		t.Errorf("the last that was heard: %+v", last)
	}
}

// The log is damaged: that is said with file and place, and nothing is touched.
func TestDamagedLog(t *testing.T) {
	dir, _ := crashed(t)
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	if err := overwrite(segments[0], 200); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "index.sqlite")); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Open(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), ".seg") {
		t.Errorf("opened %v, %v", s, err)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir, nil)
	_, err := store.Open(t.Context(), dir, nil)
	var locked *store.LockedError
	if !errors.As(err, &locked) || locked.Dir != dir || runtime.GOOS == "linux" && locked.PID != os.Getpid() {
		t.Errorf("the second one: %v", err)
	}
	begin(t, s, "r")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	openDisk(t, dir, nil)
}

// What stands in the place of a new run's file is put aside, not mixed in.
func TestAFileOfNobody(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir, nil)
	path := filepath.Join(dir, "runs", "a", "r.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := begin(t, s, "r")
	equal(t, prompts(t, s, id), nil)
	if b, err := os.ReadFile(path + ".aside"); err != nil || string(b) != "somebody's" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := filepath.Join(t.TempDir(), "new", "data")
	s := openDisk(t, dir, nil)
	begin(t, s, "r")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %s, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Many open runs take no more descriptors than they may.
func TestDescriptors(t *testing.T) {
	s := openDisk(t, t.TempDir(), &store.Options{Descriptors: 10})
	before := open(t)
	for i := range 300 {
		id := begin(t, s, fmt.Sprint("r", i))
		if _, err := say(s, id, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Files; n > 10 {
		t.Errorf("%d files", n)
	}
	if n := open(t); n > before+10+4 { // and what SQLite and the log took meanwhile
		t.Errorf("%d descriptors, %d before", n, before)
	}
	for i := range 300 {
		equal(t, prompts(t, s, runtrace.ID{Agent: "a", Run: fmt.Sprint("r", i)}), []string{"x"})
	}
}

func open(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(entries)
}

// An Open that is called off says nothing about the index, and leaves it.
func TestAnOpenThatIsCalledOffKeepsTheIndex(t *testing.T) {
	dir, _ := crashed(t)
	path := filepath.Join(dir, "index.sqlite")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := store.Open(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", s, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the index was %d bytes, and is %d: %v", len(before), len(after), err)
	}
}
