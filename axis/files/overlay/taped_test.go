package overlay_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A recording is a tape in memory that a tree writes.
type recording struct {
	t     testing.TB
	buf   bytes.Buffer
	store *cas.Memory
	rec   *tape.Recorder
}

// record has f write to a tape.
func record(t testing.TB, f *overlay.FS) *recording {
	t.Helper()
	r := &recording{t: t, store: cas.NewMemory()}
	w, err := tape.NewWriter(&r.buf, &tape.Header{Producer: "test"})
	must(t, err)
	r.rec = tape.NewRecorder(w, &tape.RecorderOptions{Store: r.store, Now: func() (int64, int64) { return 0, 0 }})
	f.Record(r.rec)
	return r
}

// records reads the tape.
func (r *recording) records() []*tape.Record {
	r.t.Helper()
	must(r.t, r.rec.Flush())
	reader, err := tape.NewReader(bytes.NewReader(r.buf.Bytes()), "tape")
	must(r.t, err)
	var all []*tape.Record
	for rec, err := range reader.Records() {
		must(r.t, err)
		all = append(all, rec)
	}
	return all
}

// lines says what is on the tape, one line a record.
func (r *recording) lines() []string {
	var out []string
	for _, rec := range r.records() {
		switch k := rec.Kind.(type) {
		case *tape.FileRead:
			out = append(out, join("read", k.Path, text(k.Content), k.Mode))
		case *tape.FileWrite:
			out = append(out, join("write", k.Path, text(k.Content), k.Mode, "before", text(k.Before)))
		case *tape.FileDelete:
			out = append(out, join("delete", k.Path, k.Mode, "before", text(k.Before)))
		case *tape.DirList:
			out = append(out, join("list", k.Path, text(k.Names)))
		case *tape.FileStat:
			out = append(out, join("stat", k.Path, k.Type, k.Mode))
		default:
			out = append(out, k.Name())
		}
	}
	return out
}

func join(words ...string) string { return strings.Join(strings.Fields(strings.Join(words, " ")), " ") }

func text(p *tape.Payload) string {
	switch {
	case p == nil:
		return "-"
	case !p.Inline:
		return "…"
	}
	return strings.ReplaceAll(p.Text, " ", "_")
}

// agent reads, writes, removes and renames, on every way there is.
func agent(f *overlay.FS) (saw []string) {
	say := func(what any, err error) {
		if err != nil {
			what = cause(err)
		}
		switch w := what.(type) {
		case []byte:
			saw = append(saw, string(w))
		case string:
			saw = append(saw, w)
		case []string:
			saw = append(saw, strings.Join(w, " "))
		case bool:
			saw = append(saw, map[bool]string{true: "yes", false: "no"}[w])
		case fs.FileInfo:
			saw = append(saw, fs.FormatFileInfo(w))
		case nil:
			saw = append(saw, "done")
		}
	}
	read := func(name string) { b, err := f.ReadFile(name); say(b, err) }
	list := func(name string) { names, err := f.List(name); say(names, err) }
	exists := func(name string) { ok, err := f.Exists(name); say(ok, err) }
	stat := func(name string) { i, err := f.Stat(name); say(i, err) }
	list(".")
	read("a.txt")
	read("none")
	read("dir")
	read("a.txt/below")
	list("a.txt")
	exists("dir/b.txt")
	exists("gone/deep/down")
	say(nil, f.WriteFile("a.txt", []byte("one"), 0o644))
	read("a.txt")
	say(nil, f.WriteFile("out/deep/new.txt", []byte("new"), 0o755))
	stat("out/deep/new.txt")
	list("out")
	say(nil, f.Mkdir("dir", 0))
	say(nil, f.Mkdir("made", 0))
	exists("made")
	list("dir")
	read("latest")
	say(nil, f.WriteFile("latest", []byte("through a link"), 0o644))
	read("dir/b.txt")
	read("bin/sub/c")
	target, err := f.ReadLink("latest")
	say(target, err)
	say(nil, f.Remove("dir"))
	say(nil, f.Remove("empty"))
	say(nil, f.Remove("empty"))
	say(nil, f.Rename("dir", "moved"))
	list("moved")
	read("moved/sub/c")
	read("latest")
	exists("dir")
	say(nil, f.Rename("old", "a.txt"))
	say(nil, f.Remove("latest"))
	say(nil, f.WriteFile("dir", []byte("a file now"), 0o644))
	stat("run.sh")
	say(nil, f.WriteFile("run.sh", []byte("#!/bin/sh\necho 2\n"), 0o644))
	stat("run.sh")
	h, err := f.OpenFile("log", os.O_RDWR|os.O_APPEND, 0)
	say(nil, err)
	if err == nil {
		_, err = h.Write([]byte("more\n"))
		say(nil, errors.Join(err, h.Close()))
	}
	read("log")
	list(".")
	return saw
}

// cause is an error without the paths in it.
func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Op + " " + at.Path + ": " + at.Err.Error()
	}
	return err.Error()
}

func agentsDir(t testing.TB) string {
	dir := hostDir(t, map[string]string{
		"a.txt": "a", "dir/b.txt": "bb", "dir/sub/c": "c", "empty/": "", "latest": "-> dir/b.txt", "bin": "-> dir", "old": "old",
		"run.sh": "#!/bin/sh\n", "log": "first\n", "big": strings.Repeat("long\n", 2000),
	})
	must(t, os.Chmod(dir+"/run.sh", 0o755))
	return dir
}

// TestTheTapeAnswersAsTheDirectoryDid runs a program over a directory, then over the tape of that run: it sees the same, and leaves
// the same tape.
func TestTheTapeAnswersAsTheDirectoryDid(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: agentsDir(t)})
	first := record(t, f)
	saw := agent(f)
	patch, err := f.Diff()
	must(t, err)

	again := newFS(t, &overlay.Options{Tape: overlay.NewTaped(first.records(), first.store, nil)})
	second := record(t, again)
	sawAgain := agent(again)
	if a, b := strings.Join(saw, "\n"), strings.Join(sawAgain, "\n"); a != b {
		t.Errorf("the program saw\n%s\nand from the tape\n%s", a, b)
	}
	if a, b := strings.Join(first.lines(), "\n"), strings.Join(second.lines(), "\n"); a != b {
		t.Errorf("the tape is\n%s\nand from the tape\n%s", a, b)
	}
	if !bytes.Equal(first.buf.Bytes(), second.buf.Bytes()) {
		t.Error("the bytes of the tapes differ")
	}
	if b, err := again.Diff(); err != nil || !bytes.Equal(patch, b) {
		t.Errorf("the patch is\n%s\nand from the tape\n%s, %v", patch, b, err)
	}
	_ = fidelity.ByteIdentical
	t.Logf("%s\n\n%s", strings.Join(saw, "\n"), strings.Join(first.lines(), "\n"))
}

// TestAFileIsAskedBeforeItIsWritten: what a program asks of a file that it made stands on the tape before its file_write, and says
// nothing of what stood there before the run.
func TestAFileIsAskedBeforeItIsWritten(t *testing.T) {
	program := func(f *overlay.FS) {
		h, err := f.Create("new.txt")
		must(t, err)
		info, err := h.Stat()
		must(t, err)
		if info.Size() != 0 {
			t.Errorf("a new file has %d bytes", info.Size())
		}
		_, err = h.Write([]byte("new"))
		must(t, err)
		must(t, h.Close())
	}
	f := newFS(t, nil)
	first := record(t, f)
	program(f)
	again := newFS(t, &overlay.Options{Tape: overlay.NewTaped(first.records(), first.store, nil)})
	second := record(t, again)
	program(again)
	if a, b := strings.Join(first.lines(), "\n"), strings.Join(second.lines(), "\n"); a != b {
		t.Errorf("the tape is\n%s\nand from the tape\n%s", a, b)
	}
}
