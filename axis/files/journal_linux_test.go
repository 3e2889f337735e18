package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// home begins a journal of one root, HOME, which holds m.
func home(t testing.TB, m model, o *JournalOptions) (*program, string) {
	t.Helper()
	dir := t.TempDir()
	m.build(t, dir)
	if o == nil {
		o = &JournalOptions{}
	}
	if o.Store == nil {
		o.Store = cas.NewMemory()
	}
	return newProgram(t, o, JournalRoot{Dir: dir, Prefix: "~/"}), dir
}

// wants compares what barriers gave.
func wants(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// foundAs lists a partial tree: entries with their contents, "/" for directories, then what is absent, then what is not covered.
func foundAs(t testing.TB, p *program) (out []string) {
	t.Helper()
	tree := p.j.Found(0)
	must(t, tree.Validate())
	for _, e := range tree.Entries {
		switch {
		case e.Mode.IsDir():
			out = append(out, e.Path+"/")
		case e.Mode.IsLink():
			out = append(out, e.Path+" -> "+e.Target)
		default:
			b, err := p.store.Get(e.Digest)
			must(t, err)
			out = append(out, e.Path+" "+string(b))
		}
	}
	for _, a := range tree.Absent {
		out = append(out, "no "+a)
	}
	for _, n := range tree.NotCovered {
		out = append(out, fmt.Sprintf("%s? %s", n.Path, n.Reason))
	}
	return out
}

// TestJournalTellsWhatChanged: each barrier tells what is not as it was at the one before, and what stood there in between.
func TestJournalTellsWhatChanged(t *testing.T) {
	p, dir := home(t, model{"d/a": "1", "gone": "g", "same": "s", "l": "->d/a"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, p.write(in("d/a"), "2"))
	must(t, p.write(in("new"), "n"))
	must(t, p.write(in("short-lived"), "x"))
	must(t, p.remove(in("short-lived")))
	must(t, p.remove(in("gone")))
	must(t, p.write(in("same"), "s"))
	must(t, p.mkdir(in("e")))
	must(t, p.remove(in("l")))
	must(t, p.symlink("elsewhere", in("l")))
	wants(t, p.take(p.j.Barrier()), "+ ~/short-lived x (whole)", "+ ~/d/a 1 > 2", "+ ~/e  040755", "- ~/gone g", "+ ~/l d/a > elsewhere",
		"+ ~/new n", "- ~/short-lived x")
	wants(t, p.take(p.j.Barrier()))
	must(t, p.write(in("d/a"), "3"))
	must(t, p.chmod(in("new"), 0o755))
	must(t, p.remove(in("d/a")))
	must(t, p.write(in("d/a"), "2"))
	wants(t, p.take(p.j.Barrier()), "+ ~/d/a 2 > 3 (whole)", "+ ~/d/a 3 > 2", "+ ~/new n > n")
	must(t, p.remove(in("new")))
	wants(t, p.take(p.j.End(nil)), "- ~/new n (whole)")
	wants(t, foundAs(t, p), "d/", "d/a 1", "gone g", "l -> d/a", "same s", "no e", "no new", "no short-lived")
	if left := p.j.NotCovered(); len(left) > 0 {
		t.Errorf("not covered: %v", left)
	}
}

// TestJournalOfRoots: a path takes its most specific root, records stand in one order over all, and what lies outside of all, or
// is excluded, is passed over.
func TestJournalOfRoots(t *testing.T) {
	dir := t.TempDir()
	model{"home/app/x": "1", "home/y": "1", "home/out.rec/z": "1", "home/app/.tapedeck/r": "1", "else/w": "1"}.build(t, dir)
	in := func(path string) string { return filepath.Join(dir, path) }
	store := cas.NewMemory()
	p := newProgram(t, &JournalOptions{Store: store, Exclude: []string{in("home/out.rec")}},
		JournalRoot{Dir: in("home"), Prefix: "~/"},
		JournalRoot{Dir: in("home/app"), Tree: snap(t, in("home/app"), &SnapOptions{Store: store})})
	for _, path := range []string{"home/app/x", "home/y", "home/out.rec/z", "home/app/.tapedeck/r", "else/w"} {
		must(t, p.write(in(path), "2"))
	}
	wants(t, p.take(p.j.Barrier()), "+ x 1 > 2", "+ ~/y 1 > 2")
	if diff := cmp.Diff([]string{"y"}, paths(p.j.Found(0))); diff != "" {
		t.Error(diff)
	}
	if found := p.j.Found(1); len(found.Entries) > 0 {
		t.Errorf("found in the work tree, whose snapshot has it: %v", paths(found))
	}
}

// TestJournalOfIgnoredPaths: they are told and marked, found, and no part of the work tree.
func TestJournalOfIgnoredPaths(t *testing.T) {
	dir := t.TempDir()
	model{".gitignore": "dist\n*.log\n", "dist/old": "1", "x": "1"}.build(t, dir)
	in := func(path string) string { return filepath.Join(dir, path) }
	store := cas.NewMemory()
	before := snap(t, dir, &SnapOptions{Store: store})
	p := newProgram(t, &JournalOptions{Store: store}, JournalRoot{Dir: dir, Tree: before})
	must(t, p.write(in("dist/old"), "2"))
	must(t, p.write(in("dist/new"), "n"))
	must(t, p.write(in("a.log"), "l"))
	must(t, p.write(in("x"), "2"))
	must(t, p.write(in("late"), "z"))
	wants(t, p.take(p.j.Barrier()), "+ a.log l (ignored)", "+ dist/new n (ignored)", "+ dist/old 1 > 2 (ignored)", "+ late z", "+ x 1 > 2")
	must(t, p.write(in(".gitignore"), "dist\nlate\n"))
	after := snap(t, dir, &SnapOptions{Store: store})
	wants(t, p.take(p.j.End(after)), "+ .gitignore dist\n*.log\n > dist\nlate\n", "+ a.log l > l", "+ late z > z (ignored)")
	played, err := After(before, p.records(), store)
	must(t, err)
	if diff := cmp.Diff([]string{".gitignore", "a.log", "x"}, paths(played)); diff != "" {
		t.Error(diff)
	}
	for _, rec := range p.tape {
		if f := recordFile(rec); isIgnoredRecord(f) && (&Tree{Entries: []Entry{{Path: f.Path, Mode: Regular | 0o644, Digest: f.ContentHash}}}).Holds(rec) {
			t.Errorf("%s counts as part of the work tree", f.Path)
		}
	}
	found := p.j.Found(0)
	if diff := cmp.Diff([]string{"dist", "dist/old"}, paths(found)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"dist/new", "late"}, found.Absent); diff != "" {
		t.Error(diff)
	}
	both := before.With(found)
	must(t, both.Validate())
	if _, ok := both.Lookup("dist/old"); !ok || len(both.Entries) != 4 {
		t.Errorf("together: %v", paths(both))
	}
}

// TestJournalOfMovedDirectories: what lies below is deleted there and written here, and was found where it lay.
func TestJournalOfMovedDirectories(t *testing.T) {
	p, dir := home(t, model{"d/x": "1", "d/e/y": "2", "w": "->d", "into": "/"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, p.rename(in("d"), in("into")))
	wants(t, p.take(p.j.Barrier()), "- ~/d 040755", "- ~/d/e 040755", "- ~/d/e/y 2", "- ~/d/x 1", "+ ~/into/e  040755", "+ ~/into/e/y 2",
		"+ ~/into/x 1")
	must(t, p.rename(in("into"), in("third")))
	must(t, p.write(in("third/x"), "9"))
	must(t, p.exchange(in("third"), in("w")))
	wants(t, p.take(p.j.End(nil)), "- ~/into 040755", "- ~/into/e 040755", "- ~/into/e/y 2", "- ~/into/x 1", "+ ~/third d",
		"+ ~/w d >  040755", "+ ~/w/e  040755", "+ ~/w/e/y 2", "+ ~/w/x 9")
	wants(t, foundAs(t, p), "d/", "d/e/", "d/e/y 2", "d/x 1", "into/", "w -> d", "no into/e", "no into/x", "no third")
}

// TestJournalOfMovesThatFail: what a call that failed would have moved stays what it is.
func TestJournalOfMovesThatFail(t *testing.T) {
	p, dir := home(t, model{"a/x": "1", "b/y": "2"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	if p.rename(in("a"), in("b")) == nil || p.rename(in("a"), in("a/into")) == nil {
		t.Fatal("it moved")
	}
	must(t, p.write(in("b/y"), "3"))
	wants(t, p.take(p.j.End(nil)), "+ ~/b/y 2 > 3")
	wants(t, foundAs(t, p), "a/", "a/x 1", "b/", "b/y 2", "no a/into")
}

// TestJournalOfALinkForADirectory: what stood in a directory is gone once a link stands there, wherever that leads.
func TestJournalOfALinkForADirectory(t *testing.T) {
	p, dir := home(t, model{"d/f": "1", "other/f": "2"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, p.remove(in("d/f")))
	must(t, p.remove(in("d")))
	must(t, p.symlink("other", in("d")))
	wants(t, p.take(p.j.Barrier()), "+ ~/d other", "- ~/d/f 1")
	if left := p.j.NotCovered(); len(left) > 0 {
		t.Error(left)
	}
	wants(t, p.take(p.j.End(nil)))
}

// TestJournalOfFIFOs: none is opened, and each is told.
func TestJournalOfFIFOs(t *testing.T) {
	p, dir := home(t, model{"f": "1"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	for _, name := range []string{"pipe", "brief"} {
		p.touch(Touch{}, in(name))
		must(t, unix.Mkfifo(in(name), 0o600))
	}
	must(t, p.remove(in("brief")))
	must(t, p.remove(in("f")))
	p.touch(Touch{}, in("f"))
	must(t, unix.Mkfifo(in("f"), 0o600))
	wants(t, p.take(p.j.Barrier()), "+ ~/brief  010600 (whole)", "- ~/brief 010600", "+ ~/f 1 >  010600", "+ ~/pipe  010600")
	must(t, p.remove(in("pipe")))
	must(t, p.remove(in("f")))
	wants(t, p.take(p.j.End(nil)), "- ~/f 010600 (whole)", "- ~/pipe 010600 (whole)")
	if left := p.j.NotCovered(); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

// TestJournalOfLongFiles: a sparse file over the limit costs nothing and is listed; one under it is kept by what Touch returns.
func TestJournalOfLongFiles(t *testing.T) {
	p, dir := home(t, model{}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	long := strings.Repeat("0123456789abcdef", shortFile/16+1)
	must(t, os.WriteFile(in("long"), []byte(long), 0o644))
	for _, name := range []string{"sparse", "was-sparse"} {
		must(t, os.WriteFile(in(name), nil, 0o644))
	}
	must(t, os.Truncate(in("was-sparse"), 2<<30))
	p.touch(Touch{}, in("sparse"))
	must(t, os.Truncate(in("sparse"), 2<<30))
	must(t, p.write(in("was-sparse"), "short"))
	then := p.j.Touch(&Touch{Paths: []TouchedPath{{Path: in("long"), Dir: -1}}})
	if then == nil {
		t.Fatal("a long file is copied while other calls wait")
	}
	again := p.j.Touch(&Touch{Paths: []TouchedPath{{Path: in("long"), Dir: -1}}})
	if again == nil {
		t.Fatal("a second call goes on before the file is kept")
	}
	wants(t, p.take(p.j.Barrier()), "+ ~/was-sparse short")
	must(t, then())
	must(t, again())
	must(t, os.WriteFile(in("long"), nil, 0o644))
	wants(t, p.take(p.j.End(nil)), "+ ~/long "+cas.Sum([]byte(long)).Short()+" > ")
	want := []NotCovered{{"~/sparse", TooLarge}, {"~/was-sparse", TooLarge}}
	if diff := cmp.Diff(want, p.j.NotCovered()); diff != "" {
		t.Error(diff)
	}
	if e, ok := p.j.Found(0).Lookup("long"); !ok || e.Digest != cas.Sum([]byte(long)) {
		t.Errorf("found %+v", e)
	}
}

// TestJournalOfMovesBetweenRoots: what moves from one root to another ends in the first, as it does where these are two mounts.
func TestJournalOfMovesBetweenRoots(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	p := newProgram(t, &JournalOptions{Store: cas.NewMemory()}, JournalRoot{Dir: from, Prefix: "$TMP/"}, JournalRoot{Dir: to, Prefix: "~/"})
	must(t, p.write(from+"/made", "m"))
	must(t, p.mkdir(from+"/d"))
	must(t, p.write(from+"/d/f", "f"))
	for _, name := range []string{"/made", "/d"} {
		must(t, p.rename(from+name, to+name))
	}
	wants(t, p.take(p.j.Barrier()), "+ $TMP/d  040755 (whole)", "+ $TMP/d/f f (whole)", "+ $TMP/made m (whole)",
		"- $TMP/d 040755", "- $TMP/d/f f", "- $TMP/made m", "+ ~/d  040755", "+ ~/d/f f", "+ ~/made m")
}

// TestJournalOfHardLinks: what is written through one name is told of all that the run made.
func TestJournalOfHardLinks(t *testing.T) {
	p, dir := home(t, model{"a": "1", "own": "1"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, os.Link(in("own"), in("other")))
	must(t, p.link(in("a"), in("b")))
	must(t, p.rename(in("b"), in("c")))
	wants(t, p.take(p.j.Barrier()), "+ ~/c 1")
	must(t, p.write(in("c"), "2"))
	must(t, p.write(in("own"), "2"))
	wants(t, p.take(p.j.Barrier()), "+ ~/a 1 > 2", "+ ~/c 1 > 2 (whole)", "+ ~/own 1 > 2")
	wants(t, foundAs(t, p), "a 1", "own 1", "no b", "no c")
	if diff := cmp.Diff([]NotCovered{{"~/own", Linked}}, p.j.NotCovered()); diff != "" {
		t.Error(diff)
	}
}

// TestJournalOfNamelessFiles: a file that gets its name late, and is written further, is told as it stands at each barrier.
func TestJournalOfNamelessFiles(t *testing.T) {
	p, dir := home(t, model{}, nil)
	p.touch(Touch{}, dir+"/.")
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o644)
	if err != nil {
		t.Skip("no O_TMPFILE here: ", err)
	}
	f := os.NewFile(uintptr(fd), "nameless")
	defer f.Close()
	must(t, second(f.WriteString("one")))
	path := filepath.Join(dir, "named")
	p.touch(Touch{Link: true}, path) // what is linked has no path
	p.touch(Touch{Link: true}, filepath.Join(dir, "#12 (deleted)"), path)
	must(t, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW))
	wants(t, p.take(p.j.Barrier()), "+ ~/named one")
	must(t, second(f.WriteString(" two")))
	wants(t, p.take(p.j.Barrier()), "+ ~/named one > one two")
	must(t, f.Close())
	wants(t, p.take(p.j.End(nil)))
}

// TestJournalOfMappedFiles: what is written through a mapping is told, also when the descriptor is long closed, at the end too.
func TestJournalOfMappedFiles(t *testing.T) {
	p, dir := home(t, model{"m": "1234"}, nil)
	path := filepath.Join(dir, "m")
	p.touch(Touch{}, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	b, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	must(t, f.Close())
	wants(t, p.take(p.j.Barrier()))
	p.j.old()
	b[0] = 'x'
	wants(t, p.take(p.j.Barrier()), "+ ~/m 1234 > x234")
	p.j.old()
	b[1] = 'y'
	wants(t, p.take(p.j.Barrier()), "+ ~/m x234 > xy34")
	must(t, unix.Munmap(b))
	p.j.old()
	wants(t, p.take(p.j.Barrier()))
	if n := p.j.find(path); n.is(isDirty) {
		t.Error("a file that nobody holds is looked at for ever")
	}
}

// old makes it long ago that paths were touched.
func (j *Journal) old() { j.began = j.began.Add(-2 * youngTime) }

// TestJournalOfFilesHeldOpen: a file that is written over several barriers is told at each; one that is deleted meanwhile is
// deleted, whatever is written to it then.
func TestJournalOfFilesHeldOpen(t *testing.T) {
	p, dir := home(t, model{"log": "0"}, nil)
	path := filepath.Join(dir, "log")
	p.touch(Touch{}, path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	for i, want := range []string{"+ ~/log 0 > 01", "+ ~/log 01 > 012"} {
		must(t, second(fmt.Fprint(f, i+1)))
		wants(t, p.take(p.j.Barrier()), want)
		p.j.old()
	}
	must(t, p.remove(path))
	must(t, second(fmt.Fprint(f, "lost")))
	wants(t, p.take(p.j.Barrier()), "- ~/log 012 (whole)")
	wants(t, p.take(p.j.End(nil)))
}

// TestJournalOfSecrets: nothing secret is stored, and what is marked in a snapshot is marked here.
func TestJournalOfSecrets(t *testing.T) {
	p, dir := home(t, model{".ssh/id_rsa": "k1", "conf": "pw=" + secretWord}, &JournalOptions{Scrubber: fakeScrubber{}})
	in := func(path string) string { return filepath.Join(dir, path) }
	must(t, p.write(in(".ssh/id_rsa"), "k2"))
	must(t, p.write(in("conf"), "new="+secretWord))
	must(t, p.write(in("named-"+secretWord), "x"))
	must(t, p.symlink(secretWord, in("l")))
	p.take(p.j.End(nil))
	if len(p.tape) != 2 {
		t.Fatalf("%d records", len(p.tape))
	}
	for _, rec := range p.tape {
		f := recordFile(rec)
		if secretOf(f) == "" || strings.Contains(f.Content.Text+f.Before.Text, secretWord) || strings.Contains(f.Content.Text+f.Before.Text, "k") {
			t.Errorf("%s: %q, before %q, secret %q", f.Path, f.Content.Text, f.Before.Text, secretOf(f))
		}
	}
	found := p.j.Found(0)
	if diff := cmp.Diff([]string{".ssh", ".ssh/id_rsa", "conf"}, paths(found)); diff != "" {
		t.Error(diff)
	}
	want := []NotCovered{{"~/l", SecretName}, {"~/named-" + placeholder, SecretName}}
	if diff := cmp.Diff(want, p.j.NotCovered()); diff != "" {
		t.Error(diff)
	}
}

// TestJournalFailsWithItsStore: what cannot be kept ends the run, wherever it happens.
func TestJournalFailsWithItsStore(t *testing.T) {
	p, dir := home(t, model{"short": "1", "long": strings.Repeat("x", shortFile+1), "d/x": "1"}, &JournalOptions{Store: failing{cas.NewMemory()}})
	in := func(path string) string { return filepath.Join(dir, path) }
	for name, err := range map[string]error{
		"short": p.tryTouch(Touch{}, in("short")),
		"long":  p.tryTouch(Touch{}, in("long")),
		"moved": p.tryTouch(Touch{Rename: true}, in("d"), in("e")),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.touch(Touch{}, in("new"))
	must(t, os.WriteFile(in("new"), []byte("x"), 0o644))
	var got error
	for _, err := range p.j.Barrier() {
		got = err
	}
	if !errors.Is(got, errFull) {
		t.Errorf("a barrier gives %v", got)
	}
}

// TestJournalOfTooMuchMoved: a directory that holds more than is kept at once is listed, and what was kept of it stands.
func TestJournalOfTooMuchMoved(t *testing.T) {
	lower(t, &maxMovedEntries, 400)
	p, dir := home(t, model{"d/a/x": "1"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	for i := range maxMovedEntries {
		must(t, os.WriteFile(in(fmt.Sprintf("d/%d", i)), nil, 0o644))
	}
	must(t, p.rename(in("d"), in("e")))
	must(t, p.write(in("e/a/x"), "2"))
	found := p.j.Found(0)
	must(t, found.Validate())
	if diff := cmp.Diff([]NotCovered{{"d", TooMany}}, found.NotCovered); diff != "" {
		t.Error(diff)
	}
	if len(found.Entries) < maxMovedEntries-10 {
		t.Errorf("%d entries", len(found.Entries))
	}
}

// TestJournalOfManyWriters: calls, what they return, and barriers run side by side.
func TestJournalOfManyWriters(t *testing.T) {
	p, dir := home(t, model{}, nil)
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 300 {
			path := filepath.Join(dir, fmt.Sprintf("f%d", i%50))
			if err := p.write(path, strings.Repeat("x", i*3000)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			p.take(p.j.Barrier())
		}
	}
	p.take(p.j.End(nil))
	last := make(map[string]cas.Digest)
	for _, rec := range p.tape {
		last[recordFile(rec).Path] = recordFile(rec).ContentHash
	}
	for i := range 50 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("f%d", i)))
		must(t, err)
		if last[fmt.Sprintf("~/f%d", i)] != cas.Sum(b) {
			t.Errorf("f%d is not told as it is", i)
		}
	}
}

// BenchmarkTouch measures the call for a new file in an existing directory, and for one that is known.
func BenchmarkTouch(b *testing.B) {
	dir := b.TempDir()
	p := newProgram(b, &JournalOptions{Store: cas.NewMemory()}, JournalRoot{Dir: dir, Prefix: "~/"})
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(b, err)
	defer unix.Close(fd)
	touch := func(name string) {
		if then := p.j.Touch(&Touch{Paths: []TouchedPath{{Path: dir + "/" + name, Dir: fd, Name: name}}}); then != nil {
			must(b, then())
		}
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		names := make([]string, b.N)
		for i := range names {
			names[i] = fmt.Sprint("f", i)
		}
		b.ResetTimer()
		for _, name := range names {
			touch(name)
		}
	})
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			touch("f0")
		}
	})
}

// BenchmarkJournalOfNewFiles measures a run that writes 20,000 files: the calls, the snapshot at the end, and the records.
func BenchmarkJournalOfNewFiles(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir, done := scratch(b)
		store := openStore(b, filepath.Join(b.TempDir(), "s"))
		before := snap(b, dir, &SnapOptions{Store: store})
		p := newProgram(b, &JournalOptions{Store: store, Staged: newStaging(b, store), Scrubber: scrub.New(scrub.Key{}, nil)}, JournalRoot{Dir: dir, Tree: before})
		text := strings.Repeat("some line of text\n", 80)
		began := time.Now()
		for i := range 20_000 {
			if i%100 == 0 {
				must(b, p.mkdir(filepath.Join(dir, fmt.Sprint("d", i/100))))
			}
			must(b, p.write(filepath.Join(dir, fmt.Sprintf("d%d/f%d", i/100, i)), fmt.Sprint(i, text)))
		}
		ran := time.Now()
		b.StartTimer()
		after := snap(b, dir, &SnapOptions{Store: p.j.o.Staged, Scrubber: p.j.o.Scrubber})
		snapped := time.Now()
		n := 0
		for _, err := range p.j.End(after) {
			must(b, err)
			n++
		}
		b.ReportMetric(float64(ran.Sub(began).Milliseconds()), "run-ms")
		b.ReportMetric(float64(snapped.Sub(ran).Milliseconds()), "snap-ms")
		b.ReportMetric(float64(time.Since(snapped).Milliseconds()), "end-ms")
		b.StopTimer()
		done()
		b.StartTimer()
		if n != 20_000 {
			b.Fatalf("%d records", n)
		}
	}
}

// TestSnapBelievesTheJournal: the snapshot at the end reads no file again that the journal read, unless it changed since.
func TestSnapBelievesTheJournal(t *testing.T) {
	dir := t.TempDir()
	store := cas.NewMemory()
	before := snap(t, dir, &SnapOptions{Store: store})
	p := newProgram(t, &JournalOptions{Store: store, Scrubber: fakeScrubber{}}, JournalRoot{Dir: dir, Tree: before})
	for name, text := range map[string]string{"a": "12345", "b": "pw=" + secretWord, "c": "1"} {
		must(t, p.write(filepath.Join(dir, name), text))
	}
	time.Sleep(2 * settleTime) // the file system's clock ticks, and nothing tells when
	p.take(p.j.Barrier())
	must(t, os.WriteFile(filepath.Join(dir, "c"), []byte("234"), 0o644)) // by whom the journal is not told of
	opts := SnapOptions{Store: store, Scrubber: fakeScrubber{}}
	want := snap(t, dir, &opts)
	opts.Journal = p.j
	got, n := reads(t, dir, opts)
	if diff := cmp.Diff(want, got); diff != "" || n != 3 {
		t.Errorf("%d bytes read of one changed file of 3\n%s", n, diff)
	}
}

// TestJournalsMemory: what is allocated does not grow with contents, neither of long files nor of many.
func TestJournalsMemory(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, filepath.Join(t.TempDir(), "s"))
	before := snap(t, dir, &SnapOptions{Store: store})
	s := scrub.New(scrub.Key{}, nil)
	p := newProgram(t, &JournalOptions{Store: store, Scrubber: s}, JournalRoot{Dir: dir, Tree: before})
	line := []byte(strings.Repeat("words of a line, now and then more of them\n", 1000))
	for i := range 153 {
		size := 200 << 10
		if i < 3 {
			size = 20 << 20
		}
		path := filepath.Join(dir, fmt.Sprint("f", i))
		p.touch(Touch{}, path)
		f, err := os.Create(path)
		must(t, err)
		must(t, second(fmt.Fprintln(f, i)))
		for n := 0; n < size; n += len(line) {
			must(t, second(f.Write(line)))
		}
		must(t, f.Close())
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	for _, err := range p.j.Barrier() {
		must(t, err)
	}
	runtime.ReadMemStats(&is)
	if made := (is.TotalAlloc - was.TotalAlloc) >> 20; made > 30 {
		t.Errorf("%d MiB were allocated for 90 MiB of contents", made)
	}
}

// TestJournalHidesLate: what became known after a barrier makes no new record at the end, where nothing else changed.
func TestJournalHidesLate(t *testing.T) {
	dir, store := t.TempDir(), cas.NewMemory()
	model{"old": "key=" + secretWord}.build(t, dir)
	opts := &SnapOptions{Store: store, Scrubber: blind{}}
	before := snap(t, dir, opts)
	p := newProgram(t, &JournalOptions{Store: store, Scrubber: blind{}}, JournalRoot{Dir: dir, Tree: before})
	must(t, p.write(filepath.Join(dir, "new"), "pw="+secretWord))
	must(t, p.write(filepath.Join(dir, "old"), "plain"))
	wants(t, p.take(p.j.Barrier()), "+ new pw="+secretWord, "+ old key="+secretWord+" > plain")
	after := snap(t, dir, opts)
	late := &LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}
	must(t, second(HideLate(late, before, after)))
	must(t, second(p.j.HideLate(late)))
	wants(t, p.take(p.j.End(after)))
}
