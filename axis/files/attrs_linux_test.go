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
	for rec, err := range records(Changes(snap(t, one, opts), snap(t, two, opts)), store, nil) {
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

// Attributes of a file that is as it was come from the stat cache; one that was given another since is looked at.
func TestAttrsFromTheCache(t *testing.T) {
	root, path := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	model{"a": "one"}.build(t, root)
	age(t, root)
	if err := unix.Setxattr(filepath.Join(root, "a"), "user.k", []byte("v"), 0); err != nil {
		t.Skipf("no extended attributes here: %v", err)
	}
	opts := SnapOptions{Store: cas.NewMemory(), CachePath: path}
	kept := func(later time.Duration, change func(*cached)) string { // what a snapshot says, with a cache that was made later and is changed
		c, err := loadCache(path, "")
		must(t, err)
		c.began += int64(later)
		e := c.entries["a"]
		change(&e)
		c.entries["a"] = e
		must(t, c.save(path))
		o := opts
		o.KeepCache = true
		got, _ := snap(t, root, &o).Lookup("a")
		return got.Attrs
	}
	const true1, other = `{"user.k":"dg=="}`, `{"user.k":"eA=="}`
	snap(t, root, &opts)
	if got := kept(0, func(e *cached) { e.attrs = other }); got != true1 {
		t.Errorf("they were written just now: what the cache has is believed: %s", got)
	}
	if got := kept(time.Hour, func(e *cached) { e.attrs = other }); got != other {
		t.Errorf("the cache is not used: %s", got)
	}
	must(t, unix.Setxattr(filepath.Join(root, "a"), "user.k", []byte("w"), 0))
	if got := kept(0, func(*cached) {}); got != `{"user.k":"dw=="}` {
		t.Errorf("after a change: %s", got)
	}
}
