package deck_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
)

// age makes a file two hours old.
func age(t testing.TB, paths ...string) {
	t.Helper()
	then := time.Now().Add(-2 * time.Hour)
	for _, p := range paths {
		if err := os.Chtimes(p, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

func stray(t testing.TB, c *crafted, content string) string {
	t.Helper()
	return c.write(t, "run.tape.cas/"+cas.Sum([]byte(content)).String(), content)
}

// whats returns the kinds of garbage of a report, scratches aside: those belong to other tests that run now.
func whats(r *library.GCReport) string {
	var out []string
	for _, g := range r.Removed {
		if g.What != library.GarbageScratch {
			out = append(out, g.What)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func collect(t testing.TB, lib *library.Library, o *library.GCOptions) *library.GCReport {
	t.Helper()
	r, err := lib.GC(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestGC(t *testing.T) {
	root := t.TempDir()
	lib := library.Of(root)
	done := craft(t, filepath.Join(lib.Dir, "done.rec"), "done", "finished", 5)
	dead := craft(t, filepath.Join(lib.Dir, "dead.rec"), "dead", "recording", 5)
	sealed := craft(t, filepath.Join(lib.Dir, "sealed.rec"), "sealed", "finished", 1)
	sealed.write(t, "recording.json", strings.Replace(contents(t, sealed.dir)["recording.json"], `"axes"`, `"sealed":true,"axes"`, 1))
	part := dead.write(t, "run.tape.part/1", "an answer")

	garbage := []string{
		stray(t, done, "old"), stray(t, dead, "young"), dead.write(t, ".tmp-1", "half"), dead.write(t, "run.tape.cas/.tmp-2", "half"),
		done.write(t, "run.tape.cas/.tmp-3", "half"), filepath.Join(lib.Dir, "gone.elsewhere"), filepath.Join(lib.Dir, ".tmp-5"),
		filepath.Join(lib.Dir, ".tmp-unpack-1"), filepath.Join(lib.Dir, ".tmp-rm-x.rec"), filepath.Join(lib.Dir, "unbegun.rec"),
	}
	kept := []string{
		stray(t, done, "young"), stray(t, sealed, "sealed"), done.write(t, ".tmp-4", "somebody's"), part,
		filepath.Join(lib.Dir, "there.elsewhere"), filepath.Join(lib.Dir, ".tmp-6"), filepath.Join(lib.Dir, "other.rec"),
		filepath.Join(lib.Dir, ".gitignore"), filepath.Join(lib.Dir, "statcache"),
	}
	there := craft(t, filepath.Join(root, "elsewhere"), "there", "finished", 1)
	kept = append(kept, stray(t, there, "elsewhere"))
	age(t, kept[1], kept[len(kept)-1])
	in := func(name, content string) { (&crafted{dir: lib.Dir}).write(t, name, content) }
	in("gone.elsewhere", filepath.Join(root, "gone")+"\n")
	in("there.elsewhere", there.dir+"\n")
	in("other.rec/mine.txt", "no recording, and not empty")
	in(".tmp-unpack-1/run.tape", "half")
	in(".tmp-rm-x.rec/run.tape", "half")
	for _, name := range []string{".tmp-5", ".tmp-6", ".gitignore", "statcache"} {
		in(name, "x")
	}
	if err := os.Mkdir(filepath.Join(lib.Dir, "unbegun.rec"), 0o700); err != nil {
		t.Fatal(err)
	}
	age(t, garbage[0], garbage[4], garbage[6])

	dry := collect(t, lib, &library.GCOptions{DryRun: true})
	for _, p := range append(garbage, kept...) {
		if missing(p) {
			t.Errorf("a dry run removed %s", p)
		}
	}
	real := collect(t, lib, nil)
	const want = "blobs, blobs, pointer, temporary, temporary, temporary, temporary, temporary, temporary"
	if whats(dry) != want || whats(real) != want || dry.After != real.After || dry.Before != real.Before {
		t.Errorf("dry %+v\nreal %+v", dry, real)
	}
	for _, p := range garbage {
		if !missing(p) {
			t.Errorf("%s was not removed", p)
		}
	}
	for _, p := range kept {
		if missing(p) {
			t.Errorf("%s was removed", p)
		}
	}
	sound(t, dead.dir, 5, 5)
	sound(t, done.dir, 5, 6) // with the young stray
	if again := collect(t, lib, nil); whats(again) != "" || again.Before != real.After {
		t.Errorf("a second run: %+v", again)
	}
}

// Recordings share blobs by hard links: what goes from one stays whole in the other, and frees nothing.
func TestGCOfSharedBlobs(t *testing.T) {
	root := t.TempDir()
	lib := library.Of(root)
	a := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 4)
	b := craft(t, filepath.Join(lib.Dir, "b.rec"), "b", "finished", 0)
	for _, d := range a.blobs { // b does not name them
		if _, err := b.store.Link(d, a.store.Path(d)); err != nil {
			t.Fatal(err)
		}
		age(t, a.store.Path(d))
	}
	before := collect(t, lib, &library.GCOptions{DryRun: true}).Before
	r := collect(t, lib, nil)
	if whats(r) != "blobs" || r.Removed[0].Count != 4 || r.Removed[0].Bytes != 0 || r.After != before {
		t.Errorf("%+v", r)
	}
	sound(t, a.dir, 4, 4)
	sound(t, b.dir, 0, 0)
}

// A digest in a key or a kind that this version does not know keeps its blob.
func TestGCKeepsWhatIsOnlyMentioned(t *testing.T) {
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 0)
	mentioned := stray(t, c, "of another version")
	not := stray(t, c, "of nobody")
	d := cas.Sum([]byte("of another version")).String()
	c.write(t, "run.tape", contents(t, c.dir)["run.tape"]+
		`{"type":"record","seq":0,"phase":"user_script","virtual_time_ms":1,"monotonic_ms":0,"kind":{"kind":"from_the_future","see":"`+d+`x","is":"`+d+`"}}`+"\n"+
		`{"type":"record","seq":1,"phase":"user_script","virtual_time_ms":1,"monotonic_ms":0,"kind":{"kind":"from_the_future","longer":"`+strings.Repeat("a", 65)+`"}}`+"\n")
	age(t, mentioned, not)
	collect(t, lib, nil)
	if missing(mentioned) || !missing(not) {
		t.Errorf("mentioned gone: %t, not mentioned gone: %t", missing(mentioned), missing(not))
	}
}

func TestGCOfOldRecordings(t *testing.T) {
	for name, tt := range map[string]struct {
		o    library.GCOptions
		left string
	}{
		"nothing asked":  {library.GCOptions{}, "a b c d unfinished"},
		"keep two":       {library.GCOptions{Keep: 2}, "c d unfinished"},
		"older":          {library.GCOptions{OlderThan: 60 * 24 * time.Hour}, "d unfinished"},
		"both":           {library.GCOptions{OlderThan: 60 * 24 * time.Hour, Keep: 3}, "b c d unfinished"},
		"older than all": {library.GCOptions{OlderThan: 10000 * 24 * time.Hour}, "a b c d unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			lib := library.Of(t.TempDir())
			for i, id := range []string{"a", "b", "c", "d", "unfinished"} {
				state, began := "finished", "2026-01-0"+string(rune('1'+i))+"T00:00:00Z"
				switch id {
				case "unfinished":
					state = "recording"
				case "d":
					began = time.Now().UTC().Format(time.RFC3339)
				}
				c := craft(t, filepath.Join(lib.Dir, id+".rec"), id, state, 1)
				c.write(t, "recording.json", strings.Replace(contents(t, c.dir)["recording.json"], "2026-01-01T00:00:00Z", began, 1))
			}
			collect(t, lib, &tt.o)
			entries, err := lib.List()
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name)
			}
			slices.Sort(left)
			if got := strings.Join(left, " "); got != tt.left {
				t.Errorf("left %s, want %s", got, tt.left)
			}
		})
	}
}

func TestGCOfNoLibrary(t *testing.T) {
	r := collect(t, library.Of(filepath.Join(t.TempDir(), "none")), nil)
	if whats(r) != "" || r.Before != 0 {
		t.Errorf("%+v", r)
	}
}

// linkedLibrary holds a recording of which something is a link, with blobs that are old and named.
func linkedLibrary(t testing.TB, link func(t testing.TB, c *crafted)) (*library.Library, *crafted) {
	t.Helper()
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 3)
	for _, d := range c.blobs {
		age(t, c.store.Path(d))
	}
	link(t, c)
	return lib, c
}

// movedTo moves a file or directory out of the library and leaves a link to it.
func movedTo(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := errors.Join(os.Rename(path, to), os.Symlink(to, path)); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	return to
}

// What was not read may name every blob: none goes, and the report says why.
func TestGCKeepsWhatItDidNotRead(t *testing.T) {
	for name, link := range map[string]func(t testing.TB, c *crafted){
		"the recording is a link": func(t testing.TB, c *crafted) { movedTo(t, c.dir) },
		"the tape is a link":      func(t testing.TB, c *crafted) { movedTo(t, filepath.Join(c.dir, "run.tape")) },
		"a part is a link":        func(t testing.TB, c *crafted) { movedTo(t, c.write(t, "run.tape.part/1", "x")); stray(t, c, "x") },
		"the blobs are a link":    func(t testing.TB, c *crafted) { movedTo(t, filepath.Join(c.dir, "run.tape.cas")) },
		"no tape": func(t testing.TB, c *crafted) {
			if err := os.Remove(filepath.Join(c.dir, "run.tape")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lib, c := linkedLibrary(t, link)
			age(t, stray(t, c, "named by nothing that can be read"))
			r := collect(t, lib, &library.GCOptions{OlderThan: time.Hour, Keep: 1})
			if whats(r) != "" || len(r.Kept) != 1 || r.Before < 0 || r.After != r.Before {
				t.Errorf("%+v", r)
			}
			for _, d := range c.blobs {
				if missing(c.store.Path(d)) {
					t.Errorf("%s is gone", d)
				}
			}
		})
	}
}

// A recording that is a link in the library lies elsewhere: it stays, however old it is.
func TestGCLeavesLinkedRecordingsAlone(t *testing.T) {
	lib, c := linkedLibrary(t, func(t testing.TB, c *crafted) { movedTo(t, c.dir) })
	r := collect(t, lib, &library.GCOptions{OlderThan: time.Hour})
	if whats(r) != "" || r.After != r.Before || missing(c.dir) {
		t.Errorf("%+v", r)
	}
	sound(t, c.dir, 3, 3)
}

// Nothing outside of the library goes, whatever leads there: a recording's blobs or parts, a temporary file, a pointer.
func TestGCDeletesNothingElsewhere(t *testing.T) {
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 1)
	outside := t.TempDir()
	kept := []string{filepath.Join(outside, cas.Sum([]byte("mine")).String()), filepath.Join(outside, ".tmp-mine")}
	for _, f := range kept {
		if err := os.WriteFile(f, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	age(t, kept...)
	blobs := filepath.Join(c.dir, "run.tape.cas")
	for link, to := range map[string]string{
		blobs: outside, filepath.Join(c.dir, "run.tape.part"): outside, filepath.Join(lib.Dir, ".tmp-rm-b.rec"): outside,
		filepath.Join(lib.Dir, "c.rec"): outside, filepath.Join(lib.Dir, "statcache"): kept[0],
	} {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(to, link)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	if err := os.WriteFile(filepath.Join(lib.Dir, "d.elsewhere"), []byte(outside+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	collect(t, lib, &library.GCOptions{OlderThan: time.Hour, Grace: -1})
	for _, f := range kept {
		if missing(f) {
			t.Errorf("%s is gone", f)
		}
	}
}

// An old recording that somebody has put something into stays.
func TestGCKeepsForeignFiles(t *testing.T) {
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 1)
	notes := c.write(t, "notes.md", "mine")
	r := collect(t, lib, &library.GCOptions{OlderThan: time.Hour})
	if whats(r) != "" || len(r.Kept) != 1 || !strings.Contains(r.Kept[0].Why, "notes.md") || missing(notes) {
		t.Errorf("%+v", r)
	}
	sound(t, c.dir, 1, 1)
}

// A library may be a link itself; what is in it is counted and cleaned up as ever.
func TestGCOfLinkedLibrary(t *testing.T) {
	lib, c := linkedLibrary(t, func(t testing.TB, c *crafted) { movedTo(t, filepath.Dir(c.dir)) })
	age(t, stray(t, c, "nobody's"))
	r := collect(t, lib, nil)
	if whats(r) != "blobs" || r.Removed[0].Count != 1 || r.Before-r.After != r.Removed[0].Bytes || r.After <= 0 {
		t.Errorf("%+v", r)
	}
	sound(t, c.dir, 3, 3)
}

// What could not be removed is not reported, and counts as there.
func TestGCReportsWhatWent(t *testing.T) {
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "a.rec"), "a", "finished", 1)
	went := stray(t, c, "nobody's")
	stuck := filepath.Join(filepath.Dir(went), cas.Sum([]byte("a directory")).String())
	c.write(t, "run.tape.cas/"+filepath.Base(stuck)+"/inside", "so that no os.Remove takes it")
	age(t, went, stuck)
	r, err := lib.GC(context.Background(), nil)
	if err == nil || whats(r) != "blobs" || r.Removed[0].Count != 1 || r.Before-r.After != r.Removed[0].Bytes {
		t.Errorf("%+v, %v", r, err)
	}
	if !missing(went) || missing(stuck) {
		t.Errorf("gone: %t and %t", missing(went), missing(stuck))
	}
}

// An interrupted GC removes nothing more, and reports what went.
func TestGCInterrupted(t *testing.T) {
	lib := library.Of(t.TempDir())
	var strays []string
	for _, id := range []string{"a", "b", "c"} {
		c := craft(t, filepath.Join(lib.Dir, id+".rec"), id, "finished", 1)
		strays = append(strays, stray(t, c, "nobody's "+id))
	}
	in := &crafted{dir: lib.Dir}
	strays = append(strays, in.write(t, ".tmp-1", "half"), in.write(t, "gone.elsewhere", filepath.Join(lib.Dir, "none")+"\n"))
	age(t, strays[:4]...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := lib.GC(ctx, &library.GCOptions{Progress: func(done, _ int64) {
		if done == 2 { // the pointer, which has no date, and a
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || whats(r) != "blobs" || len(r.Removed) != 1 || !missing(strays[0]) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, p := range strays[1:] {
		if missing(p) {
			t.Errorf("%s went after the interrupt", p)
		}
	}
	before, errBefore := lib.GC(ctx, &library.GCOptions{Keep: 1})
	if !errors.Is(errBefore, context.Canceled) || len(before.Removed) != 0 || before.After != before.Before {
		t.Errorf("%+v, %v", before, errBefore)
	}
}
