package files

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// TestAttributesAndTimes: extended attributes, FIFOs and the times of directories and links are in a snapshot, survive tree.json,
// are put back, and are shown by a layer where the disk has others.
func TestAttributesAndTimes(t *testing.T) {
	root := t.TempDir()
	model{"d/a": "1", "e": "/", "l": "->d/a"}.build(t, root)
	in := func(path string) string { return filepath.Join(root, path) }
	if err := unix.Setxattr(in("d/a"), "user.k", []byte("v\xff"), 0); err != nil {
		t.Skip("no extended attributes here: ", err)
	}
	must(t, unix.Setxattr(in("e"), "user.dir", nil, 0))
	must(t, unix.Mkfifo(in("d/pipe"), 0o640))
	then := time.Date(2020, 1, 2, 3, 4, 5, 67, time.UTC)
	for _, path := range []string{"d/a", "l", "e", "d"} {
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, in(path), []unix.Timespec{unix.NsecToTimespec(then.UnixNano()), unix.NsecToTimespec(then.UnixNano())},
			unix.AT_SYMLINK_NOFOLLOW))
	}
	store := cas.NewMemory()
	opts := &SnapOptions{Store: store, Times: true}
	var text bytes.Buffer
	must(t, snap(t, root, opts).Encode(&text))
	tree, err := DecodeTree(&text)
	must(t, err)

	restored := filepath.Join(t.TempDir(), "there")
	must(t, second(Restore(tree, store, restored)))
	if diff := cmp.Diff(tree.Entries, snap(t, restored, opts).Entries); diff != "" {
		t.Error(diff)
	}

	// On the disk nothing is as it was; the layer holds all of it.
	must(t, unix.Removexattr(in("d/a"), "user.k"))
	must(t, unix.Removexattr(in("e"), "user.dir"))
	must(t, os.Remove(in("d/pipe")))
	must(t, os.Chtimes(in("e"), time.Time{}, time.Now()))
	layer := filepath.Join(t.TempDir(), "layer")
	if _, err := BuildLayer(tree, store, root, layer, nil); err != nil {
		t.Fatal(err)
	}
	shown := snap(t, layer, opts)
	for _, path := range []string{"d", "d/a", "d/pipe", "e"} {
		want, _ := tree.Lookup(path)
		got, _ := shown.Lookup(path)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(path, diff)
		}
	}
}

// TestChangesOfAttributes: two trees that differ in an attribute, a whole mode or an empty directory alone differ.
func TestChangesOfAttributes(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	model{"a": "1", "m": "2", "same": "s"}.build(t, one)
	model{"a": "1", "m": "2", "same": "s", "empty": "/"}.build(t, two)
	if err := unix.Setxattr(filepath.Join(two, "a"), "user.k", []byte("v"), 0); err != nil {
		t.Skip("no extended attributes here: ", err)
	}
	must(t, os.Chmod(filepath.Join(two, "m"), 0o640))
	store := cas.NewMemory()
	opts := &SnapOptions{Store: store}
	var got []string
	for rec, err := range records(Changes(snap(t, one, opts), snap(t, two, opts)), store) {
		must(t, err)
		f := recordFile(&rec)
		got = append(got, f.Path+" "+f.Mode+" "+attrsOf(f))
	}
	if diff := cmp.Diff([]string{`a 100644 {"user.k":"dg=="}`, "empty 040755 ", "m 100640 "}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAttributesThatHoldASecret are kept by name alone.
func TestAttributesThatHoldASecret(t *testing.T) {
	a := attrSet{"user.a": []byte("plain"), "user.b": []byte(secretWord)}
	if got := a.encode(fakeScrubber{}); got != `{"user.a":"cGxhaW4=","user.b":null}` {
		t.Error(got)
	}
}

// Whether a file has attributes is not looked at where the stat cache knows that it has none and that is long ago; values it never has.
func TestAttrsAndTheCache(t *testing.T) {
	root, path := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	model{"a": "one", "b": "two"}.build(t, root)
	age(t, root)
	set := func(file, value string) {
		if err := unix.Setxattr(filepath.Join(root, file), "user.k", []byte(value), 0); err != nil {
			t.Skipf("no extended attributes here: %v", err)
		}
	}
	set("a", "v")
	opts := SnapOptions{Store: cas.NewMemory(), CachePath: path}
	attrsOf := func(later time.Duration, bare bool, file string) string { // with a cache that was made later and says of both what bare says
		c, err := loadCache(path, "")
		must(t, err)
		c.began += int64(later)
		for name, e := range c.entries {
			e.bare = bare
			c.entries[name] = e
		}
		must(t, c.save(path))
		o := opts
		o.KeepCache = true
		got, _ := snap(t, root, &o).Lookup(file)
		return got.Attrs
	}
	snap(t, root, &opts)
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("user.k")) || bytes.Contains(b, []byte("dg==")) {
		t.Errorf("the cache keeps attributes: %q, %v", b, err)
	}
	const has = `{"user.k":"dg=="}`
	if got := attrsOf(0, true, "a"); got != has {
		t.Errorf("written just now, and the cache is believed: %s", got)
	}
	if got := attrsOf(time.Hour, true, "a"); got != "" {
		t.Errorf("the cache is not used: %s", got)
	}
	if got := attrsOf(0, false, "a"); got != has {
		t.Errorf("one that has attributes: %s", got)
	}
	set("b", "v")
	if got := attrsOf(time.Hour, true, "b"); got != has {
		t.Errorf("given one since: %s", got)
	}
}
