package deck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A crafted recording needs no jail: it is what a recorder leaves, written by hand.
type crafted struct {
	dir   string
	store *cas.Dir
	blobs []cas.Digest // named by the tape
}

// craft writes the recording id into dir, with a blob a record.
func craft(t testing.TB, dir, id, state string, records int) *crafted {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "run.tape"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test", Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	c := &crafted{dir: dir}
	if c.store, err = cas.OpenDir(f.Name()+".cas", nil); err != nil {
		t.Fatal(err)
	}
	r := tape.NewRecorder(w, &tape.RecorderOptions{Store: c.store})
	for i := range records {
		p, err := r.Payload([]byte(strings.Repeat(fmt.Sprintf("%s %d\n", id, i), 2000)))
		if err != nil {
			t.Fatal(err)
		}
		c.blobs = append(c.blobs, p.Hash)
		if err := r.Record(&tape.RandomRead{Payload: p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	c.manifest(t, id, state, records)
	return c
}

func (c *crafted) manifest(t testing.TB, id, state string, records int) {
	t.Helper()
	c.write(t, "recording.json", fmt.Sprintf(`{"id":%q,"format":1,"state":%q,"program":{"path":"/bin/true"},"argv":["true"],
"cwd":"/","stdin":null,"axes":{},"records":%d,"started_at":"2026-01-01T00:00:00Z","exit":{"code":0}}`, id, state, records))
}

func (c *crafted) write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *crafted) open(t testing.TB) *recording.Recording {
	t.Helper()
	rec, err := recording.Open(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// sound fails the test unless dir verifies with so many records and blobs.
func sound(t testing.TB, dir string, records, blobs int) {
	t.Helper()
	v, err := verified(dir)
	if err != nil || len(v.Problems) > 0 || v.Records != records || v.Blobs != blobs {
		t.Errorf("verify %s: %+v, %v", dir, v, err)
	}
}

// contents returns the files below dir, with what is in them.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pack(t testing.TB, rec *recording.Recording) (*library.Packing, []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "packed.tar.zst")
	p, err := library.Pack(context.Background(), rec, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != p.Size || cas.Sum(b).String() != p.Digest {
		t.Errorf("%d bytes, told were %+v", len(b), p)
	}
	return p, b
}

func TestPackIsTheSameAndComesBack(t *testing.T) {
	root := t.TempDir()
	c := craft(t, filepath.Join(root, "a.rec"), "an-id", "finished", 20)
	c.write(t, "run.tape.part/3", "a part")
	c.write(t, "terminal/frames.ndjson", "{}\n")
	_, want := pack(t, c.open(t))

	// Another copy, of another age and mode, with leftovers, a stray blob and a link beside it: the same bytes.
	twin := filepath.Join(root, "b.rec")
	if err := os.CopyFS(twin, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	d := &crafted{dir: twin}
	d.write(t, ".tmp-1", "half")
	d.write(t, "run.tape.cas/.tmp-2", "half")
	d.write(t, "Notes.txt", "mine")
	stray := cas.Sum([]byte("stray"))
	d.write(t, "run.tape.cas/"+stray.String(), "stray")
	if err := os.Chtimes(filepath.Join(twin, "run.tape"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(twin, "recording.json"), 0o640); err != nil {
		t.Fatal(err)
	}
	p, got := pack(t, d.open(t))
	if !bytes.Equal(got, want) {
		t.Error("the same recording packs to other bytes")
	}
	if len(p.LeftOut) != 2 || p.Files != 24 {
		t.Errorf("%+v", p)
	}

	lib := library.Of(filepath.Join(root, "other"))
	if err := os.MkdirAll(filepath.Dir(lib.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "x.tar.zst")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	rec, err := lib.Unpack(context.Background(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Dir != filepath.Join(lib.Dir, "an-id.rec") || fmt.Sprint(contents(t, rec.Dir)) != fmt.Sprint(contents(t, c.dir)) {
		t.Errorf("%s is another than %s", rec.Dir, c.dir)
	}
	sound(t, rec.Dir, 20, 20)
	if _, again := pack(t, rec); !bytes.Equal(again, want) {
		t.Error("what was unpacked packs to other bytes")
	}
	if found, err := lib.Find("an-id"); err != nil || found.Dir != rec.Dir {
		t.Errorf("%v, %v", found, err)
	}

	// Nothing is replaced, neither there nor elsewhere, and nothing is left of the attempt.
	if _, err := lib.Unpack(context.Background(), file, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("unpacked twice: %v", err)
	}
	if _, err := lib.Unpack(context.Background(), file, &library.UnpackOptions{Output: twin}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("unpacked over a recording: %v", err)
	}
	if _, err := library.Pack(context.Background(), rec, file, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("packed over a file: %v", err)
	}
	noneLeft(t, root, lib.Dir)
}

// noneLeft fails the test where a temporary file is left in one of dirs.
func noneLeft(t testing.TB, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if left, err := filepath.Glob(filepath.Join(d, ".tmp-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

func TestUnpackElsewhereIsListed(t *testing.T) {
	root := t.TempDir()
	c := craft(t, filepath.Join(root, "a.rec"), "an-id", "recording", 2)
	_, b := pack(t, c.open(t))
	file := filepath.Join(root, "packed")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	lib := library.Of(root)
	rec, err := lib.Unpack(context.Background(), file, &library.UnpackOptions{Output: filepath.Join(root, "b.rec")})
	if err != nil || rec.Finished() {
		t.Fatalf("%+v, %v", rec, err)
	}
	if found, err := lib.Find("an-id"); err != nil || found.Dir != rec.Dir {
		t.Errorf("%v, %v", found, err)
	}
}

func TestPackRefuses(t *testing.T) {
	root := t.TempDir()
	out := filepath.Join(root, "out.tar.zst")
	damaged := func(name string, damage func(*crafted)) error {
		c := craft(t, filepath.Join(root, name), "id", "finished", 3)
		damage(c)
		_, err := library.Pack(context.Background(), c.open(t), out, nil)
		return err
	}
	var corrupt *cas.CorruptError
	err := damaged("corrupt", func(c *crafted) {
		c.write(t, "run.tape.cas/"+c.blobs[1].String(), strings.Repeat("y", 8000))
	})
	if !errors.As(err, &corrupt) {
		t.Errorf("a damaged blob: %v", err)
	}
	if err := damaged("missing", func(c *crafted) { os.Remove(c.store.Path(c.blobs[0])) }); err == nil {
		t.Error("a missing blob was packed")
	}
	c := craft(t, filepath.Join(root, "inside"), "id", "finished", 1)
	if _, err := library.Pack(context.Background(), c.open(t), filepath.Join(c.dir, "out"), nil); err == nil {
		t.Error("packed into itself")
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := library.Pack(gone, c.open(t), out, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was left: %v", err)
	}
	noneLeft(t, root)
}

// What a packed file holds may be whatever its maker liked: the recording in it is looked at before it gets its name.
func TestUnpackRefuses(t *testing.T) {
	root := t.TempDir()
	good := craft(t, filepath.Join(root, "good"), "good", "finished", 3)
	_, whole := pack(t, good.open(t))
	manifest := contents(t, good.dir)["recording.json"]
	forge := func(ix packed.Index, files ...string) []byte {
		var buf bytes.Buffer
		for i := 1; i < len(files); i += 2 {
			ix.Files++
			ix.Bytes += int64(len(files[i]))
		}
		w, err := packed.NewWriter(&buf, &ix)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(files); i += 2 {
			if err := w.Add(files[i], int64(len(files[i+1])), strings.NewReader(files[i+1])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	finished := packed.Index{ID: "good", State: "finished"}
	for name, tt := range map[string]struct {
		file []byte
		want error
	}{
		"cut":               {whole[:len(whole)-1], packed.ErrDamaged},
		"half":              {whole[:len(whole)/2], packed.ErrDamaged},
		"garbage":           {append(whole[:len(whole):len(whole)], "x"...), packed.ErrDamaged},
		"no recording":      {forge(finished, "run.tape", "x"), recording.ErrNotRecording},
		"empty":             {forge(finished), recording.ErrNotRecording},
		"no manifest":       {forge(finished, "recording.json", "{}"), packed.ErrDamaged},
		"another id":        {forge(packed.Index{ID: "x", State: "finished"}, "recording.json", manifest), packed.ErrDamaged},
		"another state":     {forge(packed.Index{ID: "good", State: "recording"}, "recording.json", manifest), packed.ErrDamaged},
		"a file and below":  {forge(finished, "a", "", "a/b", "", "recording.json", manifest), nil},
		"an id that climbs": {forge(packed.Index{ID: "../../x", State: "finished"}, "recording.json", manifest), nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lib := library.Of(filepath.Join(dir, "work"))
			file := filepath.Join(dir, "file")
			if err := errors.Join(os.MkdirAll(lib.Dir, 0o700), os.WriteFile(file, tt.file, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := lib.Unpack(context.Background(), file, nil)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v", err)
			}
			for path := range contents(t, dir) {
				if path != "file" && path != "work/.tapedeck/.gitignore" {
					t.Errorf("%s was left", path)
				}
			}
		})
	}
	lib := library.Of(root)
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	var le *packed.LimitError
	if _, err := lib.Unpack(context.Background(), file, &library.UnpackOptions{Limits: packed.Limits{Bytes: 100}}); !errors.As(err, &le) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := lib.Unpack(context.Background(), filepath.Join(good.dir, "run.tape"), nil); !errors.Is(err, packed.ErrNotPacked) {
		t.Errorf("a tape: %v", err)
	}
}

// Through a link to it a recording is what it is by its own name.
func TestPackOfALinkedRecording(t *testing.T) {
	root := t.TempDir()
	c := craft(t, filepath.Join(root, "a.rec"), "an-id", "finished", 3)
	_, want := pack(t, c.open(t))
	movedTo(t, c.dir)
	rec := c.open(t)
	if _, got := pack(t, rec); !bytes.Equal(got, want) {
		t.Error("the link packs to other bytes")
	}
	for _, inside := range []string{filepath.Join(c.dir, "out"), filepath.Join(rec.Dir, "out")} {
		if _, err := library.Pack(context.Background(), rec, inside, nil); err == nil {
			t.Errorf("%s lies in the recording, and was packed into it", inside)
		}
	}
}

// A directory may have the name of a store of blobs: nothing is left out on that account.
func TestPackOfARecordingNamedAsAStore(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "x.cas"), "an-id", "finished", 3)
	if p, _ := pack(t, c.open(t)); p.Files != 5 || len(p.LeftOut) != 0 {
		t.Errorf("%+v", p)
	}
}

// Without a file that is a link elsewhere the packed recording would be another, or none.
func TestPackRefusesLinks(t *testing.T) {
	for _, name := range []string{"recording.json", "run.tape", "run.tape.cas", "a blob"} {
		c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "an-id", "finished", 2)
		path := filepath.Join(c.dir, name)
		if name == "a blob" {
			path = c.store.Path(c.blobs[0])
		}
		movedTo(t, path)
		out := filepath.Join(t.TempDir(), "out")
		if p, err := library.Pack(context.Background(), c.open(t), out, nil); err == nil || !missing(out) {
			t.Errorf("%s is a link, and was packed: %+v", name, p)
		}
	}
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "an-id", "finished", 2)
	movedTo(t, c.write(t, "notes.txt", "mine"))
	if p, _ := pack(t, c.open(t)); len(p.LeftOut) != 1 || p.Files != 4 {
		t.Errorf("%+v", p)
	}
}

// Of a recorder that was killed before its tape began everything is packed.
func TestPackWithoutATape(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "an-id", "recording", 2)
	if err := os.Remove(filepath.Join(c.dir, "run.tape")); err != nil {
		t.Fatal(err)
	}
	if p, _ := pack(t, c.open(t)); p.Files != 3 || len(p.LeftOut) != 0 {
		t.Errorf("%+v", p)
	}
}

// A file that appears while Pack works is not replaced either.
func TestPackReplacesNothing(t *testing.T) {
	root := t.TempDir()
	c := craft(t, filepath.Join(root, "a.rec"), "an-id", "finished", 2)
	out := filepath.Join(root, "out")
	_, err := library.Pack(context.Background(), c.open(t), out, &library.PackOptions{Progress: func(int64, int64) {
		if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
	}})
	b, errRead := os.ReadFile(out)
	if !errors.Is(err, fs.ErrExist) || errRead != nil || string(b) != "mine" {
		t.Errorf("%v; %q, %v", err, b, errRead)
	}
	noneLeft(t, root)
}
