package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// blind is a scrubber that does not know the secret yet.
type blind struct{ fakeScrubber }

func (blind) Bytes(b []byte) ([]byte, bool) { return b, false }

// TestHideLate: trees that were taken before a secret was known become those that are taken afterwards.
func TestHideLate(t *testing.T) {
	root := t.TempDir()
	model{
		"conf": "key=" + secretWord, "sub/again": "key=" + secretWord, "plain": "x", "l": "->plain", "to": "->" + secretWord,
		"named-" + secretWord: "y", secretWord + "/in": "z", ".gitignore": "*.log\n", secretWord + ".log": "", ".env": "A=b\n",
	}.build(t, root)
	store := cas.NewMemory()
	before := snap(t, root, &SnapOptions{Store: store, Scrubber: blind{}})
	must(t, os.WriteFile(filepath.Join(root, "new"), []byte("also "+secretWord), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "plain"), []byte("changed"), 0o644))
	// The snapshot after a run knows the secret where it reads, and does not where it believes a cache.
	after := snap(t, root, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})
	half := *snap(t, root, &SnapOptions{Store: store, Scrubber: blind{}})
	want := snap(t, root, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})
	changed, err := HideLate(&LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}, before, after, &half)
	if err != nil || changed == 0 {
		t.Fatalf("%d changed, %v", changed, err)
	}
	for name, got := range map[string]*Tree{"after": after, "half": &half} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"new", "plain"}, changedPaths(Changes(before, &half))); diff != "" {
		t.Errorf("changes:\n%s", diff)
	}
	if again, err := HideLate(&LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}, before, after); err != nil || again != 0 {
		t.Errorf("a second time changes %d, %v", again, err)
	}
}

func changedPaths(changes []Change) (out []string) {
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

// failing is a store that cannot take what is put.
type failing struct{ cas.Store }

var errFull = errors.New("no space left on device")

func (failing) Put([]byte) (cas.Digest, error) { return cas.Digest{}, errFull }

func TestHideLateFails(t *testing.T) {
	root := t.TempDir()
	model{"conf": "key=" + secretWord, "plain": "x"}.build(t, root)
	store := cas.NewMemory()
	tree := snap(t, root, &SnapOptions{Store: store, Scrubber: blind{}})
	_, err := HideLate(&LateOptions{Store: failing{store}, Late: fakeScrubber{}, All: fakeScrubber{}}, tree)
	if !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if e, _ := tree.Lookup("conf"); e.Secret != "" {
		t.Error("a file is marked whose scrubbed form is nowhere")
	}
}

// TestHideLateTells: the progress counts each content once and comes to the end; after a failure little more is looked into.
func TestHideLateTells(t *testing.T) {
	root, m := t.TempDir(), model{"same": "x0"}
	const n = 3 * progressEvery
	for i := range n {
		m[fmt.Sprintf("d/%d", i)] = fmt.Sprintf("x%d", i)
	}
	m.build(t, root)
	store := cas.NewMemory()
	tree := snap(t, root, &SnapOptions{Store: store, Scrubber: blind{}})
	var told []int
	var size, want int64
	_, err := HideLate(&LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}, Progress: func(files int, bytes int64) {
		told, size = append(told, files), bytes
	}}, tree)
	must(t, err)
	for i := range n {
		want += int64(len(fmt.Sprintf("x%d", i)))
	}
	if diff := cmp.Diff([]int{progressEvery, 2 * progressEvery, n, n}, told); diff != "" || size != want {
		t.Errorf("%d bytes, want %d:\n%s", size, want, diff)
	}
	broken := &unreadableStore{Store: store}
	if _, err := HideLate(&LateOptions{Store: broken, Late: fakeScrubber{}, All: fakeScrubber{}}, tree); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if reads := broken.reads.Load(); reads > int64(numWorkers()) {
		t.Errorf("%d reads of a store that fails", reads)
	}
}

// unreadableStore fails to read, and counts how often.
type unreadableStore struct {
	cas.Store
	reads atomic.Int64
}

func (s *unreadableStore) Get(cas.Digest) ([]byte, error) {
	s.reads.Add(1)
	return nil, errFull
}

// ownNames is a scrubber with names of its own for files that hold credentials.
type ownNames struct{ fakeScrubber }

func (ownNames) CredentialFile(path string) bool { return path == "odd.txt" }

// TestCredentialNamesAreTheScrubbers: a snapshot takes whole what the scrubber says that it takes whole.
func TestCredentialNamesAreTheScrubbers(t *testing.T) {
	root := t.TempDir()
	model{"odd.txt": "x", ".netrc": "x"}.build(t, root)
	tree := snap(t, root, &SnapOptions{Store: cas.NewMemory(), Scrubber: ownNames{}})
	odd, _ := tree.Lookup("odd.txt")
	usual, _ := tree.Lookup(".netrc")
	if odd.Secret == "" || usual.Secret != "" {
		t.Errorf("odd.txt %+v, .netrc %+v", odd, usual)
	}
}

// TestCacheOfAnotherKnowledge: a stat cache that was made before a secret was known does not make a marked file another one,
// neither for a snapshot nor for a layer.
func TestCacheOfAnotherKnowledge(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	model{"conf": "key=" + secretWord, "plain": "x"}.build(t, root)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"conf", "plain"} {
		must(t, os.Chtimes(filepath.Join(root, name), old, old))
	}
	store, err := cas.OpenDir(filepath.Join(dir, "cas"), nil)
	must(t, err)
	opts := SnapOptions{Store: store, Scrubber: blind{}, ScrubID: "one", CachePath: filepath.Join(dir, "cache")}
	tree := snap(t, root, &opts)
	_, err = HideLate(&LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}, tree)
	must(t, err)
	opts.Known, opts.KeepCache, opts.Scrubber = tree, true, fakeScrubber{}
	if changes := Changes(tree, snap(t, root, &opts)); len(changes) > 0 {
		t.Errorf("changed: %v", changedPaths(changes))
	}
	stats, err := BuildLayer(tree, store, root, filepath.Join(dir, "layer"), &LayerOptions{
		Scrubber: fakeScrubber{}, ScrubID: "one", CachePath: opts.CachePath,
	})
	must(t, err)
	if stats.Written > 0 || len(stats.Notes) > 0 {
		t.Errorf("the layer holds %+v", stats)
	}
}

// TestLayerReveals: a secret file that is not there as recorded is shown with the values of the replay, and a snapshot of that
// is what WithStandIns says.
func TestLayerReveals(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	model{"conf": "key=" + secretWord}.build(t, root)
	store := cas.NewMemory()
	tree := snap(t, root, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})
	must(t, os.Remove(filepath.Join(root, "conf")))
	reveal := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), placeholder, secretWord)) }
	layer := filepath.Join(dir, "layer")
	_, err := BuildLayer(tree, store, root, layer, &LayerOptions{Scrubber: fakeScrubber{}, Reveal: reveal})
	must(t, err)
	b, err := os.ReadFile(filepath.Join(layer, "conf"))
	if err != nil || string(b) != "key="+secretWord {
		t.Errorf("shown is %q, %v", b, err)
	}
	shown, err := tree.WithStandIns([]string{"conf"}, store, fakeScrubber{}, reveal)
	must(t, err)
	if changes := Changes(shown, snap(t, layer, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})); len(changes) > 0 {
		t.Errorf("changed: %v", changedPaths(changes))
	}
}

// A secret that stands in an attribute alone changes the tree too.
func TestHideLateInAnAttribute(t *testing.T) {
	store := cas.NewMemory()
	digest, err := store.Put([]byte("plain"))
	must(t, err)
	attrs := attrSet{"user.k": []byte(secretWord)}.encode(nil)
	tree := &Tree{Entries: []Entry{{Path: "a", Mode: Regular | 0o644, Digest: digest, Size: 5, Attrs: attrs}}}
	n, err := HideLate(&LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}, tree)
	if err != nil || n != 1 || tree.Entries[0].Attrs != `{"user.k":null}` {
		t.Errorf("%d changed, %v: %q", n, err, tree.Entries[0].Attrs)
	}
}

// TestHideLateRecord: a record of a changed file that was written before a secret was known becomes that which is written afterwards, of
// what stood there before and of its path too.
func TestHideLateRecord(t *testing.T) {
	const text, clean = "key=" + secretWord, "key=" + placeholder
	store := cas.NewMemory()
	o := &LateOptions{Store: store, Late: fakeScrubber{}, All: fakeScrubber{}}
	payload := func(text string) *tape.Payload {
		p, err := tape.MakePayload(store, []byte(text))
		must(t, err)
		return p
	}
	file := func(path, content, before string) (f tape.File) {
		f = tape.File{Path: path, Mode: "100644"}
		if content != "" {
			f.Content = payload(content)
			f.ContentHash, f.LenBytes = f.Content.Hash, f.Content.Len
		}
		if before != "" {
			f.Before = payload(before)
		}
		return f
	}
	for name, test := range map[string]struct {
		kind   tape.Kind
		want   tape.File
		marked bool // as a file that holds a secret
		hidden bool // its path, with which no tree has it
	}{
		"written":            {&tape.FileWrite{File: file("conf", text, "")}, file("conf", clean, ""), true, false},
		"written over":       {&tape.FileWrite{File: file("conf", "x", text)}, file("conf", "x", clean), false, false},
		"deleted":            {&tape.FileDelete{File: file("conf", "", text)}, file("conf", "", clean), true, false},
		"named so":           {&tape.FileWrite{File: file("of-"+secretWord, "x", "")}, file("of-"+placeholder, "x", ""), false, true},
		"named so, deleted":  {&tape.FileDelete{File: file("of-"+secretWord, "", "x")}, file("of-"+placeholder, "", "x"), false, true},
		"without the secret": {&tape.FileDelete{File: file("conf", "", "x")}, file("conf", "", "x"), false, false},
	} {
		must(t, HideLateRecord(&tape.Record{Kind: test.kind}, o))
		got := *tape.FileOf(test.kind)
		if (secretOf(&got) != "") != test.marked || (tape.FieldValue(got.Extra, ignoredKey) != nil) != test.hidden {
			t.Errorf("%s: it says %v", name, got.Extra)
		}
		got.Extra = nil
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
