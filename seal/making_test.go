package seal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
	"golang.org/x/mod/sumdb/note"
)

func TestSealingAgainGivesTheSame(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	before := tree(t, dir)
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k}); !errors.Is(err, seal.ErrSealed) {
		t.Errorf("%v", err)
	}
	d, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, Replace: true, Sync: true, TrustBlobs: true})
	if err != nil {
		t.Fatal(err)
	}
	if tree(t, dir) != before {
		t.Error("the second seal is another one")
	}
	b, err := os.ReadFile(filepath.Join(dir, "seal.json"))
	if err != nil || !bytes.Equal(d.Encode(), b) {
		t.Errorf("what Seal returns is not what it wrote: %v", err)
	}
}

// TestTheCheckpointIsANote opens it with the library of signed notes alone.
func TestTheCheckpointIsANote(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	d, err := seal.ReadDocument(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(k.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(d.Checkpoint), note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	if want := k.Name() + "/recording/20261122-test\n8\n" + d.Root.String() + "\n"; n.Text != want {
		t.Errorf("%q, want %q", n.Text, want)
	}
}

func TestWhatCannotBeSealed(t *testing.T) {
	for name, c := range map[string]struct {
		do func(*testing.T, string)
		o  seal.Options
	}{
		"a symlink": {func(t *testing.T, dir string) {
			if err := os.Symlink("run.tape", filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
		}, seal.Options{}},
		"a FIFO":           {func(t *testing.T, dir string) { makeFIFO(t, filepath.Join(dir, "fifo")) }, seal.Options{}},
		"a temporary file": {add("run.tape.cas/.tmp-1", "x"), seal.Options{}},
		"a damaged blob":   {edit(firstBlob, replace("first", "First")), seal.Options{}},
		"no id":            {remove("recording.json"), seal.Options{}},
		"an empty id":      {edit("recording.json", replace("20261122-test", "")), seal.Options{}},
		"a bad id":         {edit("recording.json", replace("20261122-test", `a\nb`)), seal.Options{}},
		"no manifest":      {edit("recording.json", replace("}", "")), seal.Options{}},
		"another id":       {func(*testing.T, string) {}, seal.Options{ID: "other"}},
		"no UTF-8": {func(t *testing.T, dir string) {
			if runtime.GOOS != "linux" {
				t.Skip("such a name cannot be there")
			}
			add("\xff", "")(t, dir)
		}, seal.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			c.do(t, dir)
			c.o.Key = newKey(t)
			d, err := seal.Seal(context.Background(), dir, &c.o)
			t.Log(err)
			if d != nil || !errors.Is(err, seal.ErrCannotSeal) {
				t.Errorf("%v, %v", d, err)
			}
			none(t, dir)
		})
	}
	if _, err := seal.Seal(context.Background(), small(t), nil); err == nil {
		t.Error("it was sealed without a key")
	}
}

// none checks that nothing of a seal is in dir.
func none(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "seal") || strings.HasPrefix(e.Name(), ".tmp-seal") {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestADirectoryWithoutManifest(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.jsonl": "x\ny"})
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: newKey(t), ID: "bare"}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, &seal.VerifyOptions{ID: "bare"}); !r.OK() || r.Leaves != 2 {
		t.Errorf("%+v", r)
	}
	r := verify(t, dir, &seal.VerifyOptions{ID: "other"})
	(&tampering{code: seal.CodeID, path: "seal.json", leaf: -1}).check(t, r.Problems)
}

func TestAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: newKey(t), ID: "bare"}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, nil); !r.OK() || r.Leaves != 0 {
		t.Errorf("%+v", r)
	}
}

// TestTheDirectoryMayBeALink names a recording by a link, as the library's "last" may.
func TestTheDirectoryMayBeALink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "last")
	if err := os.Symlink(small(t), link); err != nil {
		t.Skip(err)
	}
	sealed(t, link)
	if r := verify(t, link, nil); !r.OK() {
		t.Errorf("%+v", r)
	}
}

func TestCancelled(t *testing.T) {
	dir := small(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := seal.Seal(ctx, dir, &seal.Options{Key: newKey(t)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	none(t, dir)
	sealed(t, dir)
	if _, err := seal.Verify(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"run.tape": strings.Repeat(strings.Repeat("x", 999)+"\n", 20_000)})
	var last, calls int64
	told := func(done, total int64) {
		if done < last || done > total || total != 20_000_000 {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last = done
		calls++
	}
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: newKey(t), ID: "x", Progress: told}); err != nil {
		t.Fatal(err)
	}
	if last != 20_000_000 || calls < 3 {
		t.Errorf("%d calls, the last %d", calls, last)
	}
}

// TestAManifestThatSaysSo seals the recording.json to come, and puts it there.
func TestAManifestThatSaysSo(t *testing.T) {
	dir := small(t)
	to := []byte(`{"id":"20261122-test","format":1,"sealed":true}`)
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: newKey(t), Manifest: to, Sync: true}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "recording.json")); err != nil || !bytes.Equal(b, to) {
		t.Errorf("%s, %v", b, err)
	}
	if r := verify(t, dir, nil); !r.OK() {
		t.Error(r.Problems)
	}
	if entries, err := filepath.Glob(filepath.Join(dir, ".tmp-*")); err != nil || len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	edit("recording.json", replace("true", "null"))(t, dir)
	(&tampering{code: seal.CodeChanged, path: "recording.json"}).check(t, verify(t, dir, nil).Problems)
}
