package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestRedo makes the changes of one run again in another: they stand there, and both journals tell the same of them.
func TestRedo(t *testing.T) {
	found := model{"d/a": "1", "gone": "g", "l": "->d/a", "t": "x"}
	o := func() *JournalOptions {
		return &JournalOptions{Store: cas.NewMemory(), By: func(by uint32) uint64 { return 10 * uint64(by) }}
	}
	was, dir := home(t, found, o())
	in := func(path string) string { return filepath.Join(dir, path) }
	server := Touch{By: 4}
	change := func(path string, do func() error) {
		was.touch(server, in(path))
		must(t, do())
	}
	must(t, errors.Join(was.mkdir(in("new")), was.mkdir(in("new/deep"))))
	change("d/a", func() error { return os.WriteFile(in("d/a"), []byte("2"), 0o644) })
	change("new/deep/b", func() error { return os.WriteFile(in("new/deep/b"), []byte("b"), 0o755) })
	change("gone", func() error { return os.Remove(in("gone")) })
	change("l", func() error { return errors.Join(os.Remove(in("l")), os.Symlink("elsewhere", in("l"))) })
	must(t, was.write(in("t"), "by the program"))
	recorded := was.take(was.j.Barrier())

	again, other := home(t, found, o())
	for _, rec := range was.tape {
		by := ConversationOf(rec.Kind)
		if path := tape.ChangedFile(rec.Kind).Path; (by == 0) != (path == "~/t" || strings.HasPrefix(path, "~/new") && path != "~/new/deep/b") || by != 0 && by != 40 {
			t.Errorf("%s was changed in conversation %d", path, by)
		}
		must(t, again.j.Redo(rec, &RedoOptions{Store: was.store, By: uint32(by / 10)}))
	}
	wants(t, again.take(again.j.Barrier()), recorded...)
	if diff := cmp.Diff(was.tape, again.tape, cmp.Comparer(func(a, b tape.Kind) bool { return ConversationOf(a) == ConversationOf(b) })); diff != "" {
		t.Error(diff)
	}
	if b, err := os.ReadFile(filepath.Join(other, "new/deep/b")); err != nil || string(b) != "b" {
		t.Errorf("new/deep/b: %q, %v", b, err)
	}
	wants(t, foundAs(t, again), foundAs(t, was)...)
}

// TestRedoReveals puts the program's own values into a file.
func TestRedoReveals(t *testing.T) {
	was, dir := home(t, model{}, nil)
	must(t, was.write(filepath.Join(dir, "conf"), "key=placeholder"))
	was.take(was.j.Barrier())
	again, other := home(t, model{}, nil)
	reveal := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("placeholder"), []byte("value")) }
	must(t, again.j.Redo(was.tape[0], &RedoOptions{Store: was.store, Reveal: reveal}))
	if b, err := os.ReadFile(filepath.Join(other, "conf")); err != nil || string(b) != "key=value" {
		t.Errorf("conf: %q, %v", b, err)
	}
}

// TestRedoLeavesAlone: what lies outside of every root, leads out of one, was not kept, or has something in its way.
func TestRedoLeavesAlone(t *testing.T) {
	again, dir := home(t, model{"full/f": "1", "file": "2"}, nil)
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
	write := func(path string) *tape.Record {
		p := &tape.Payload{Hash: cas.Sum([]byte("x")), Len: 1, Text: "x", Inline: true}
		return &tape.Record{Kind: &tape.FileWrite{File: tape.File{Path: path, ContentHash: p.Hash, LenBytes: 1, Content: p}}}
	}
	store := cas.NewMemory()
	_, err := store.Put([]byte("x"))
	must(t, err)
	unkept := write("~/unkept")
	unkept.Kind.(*tape.FileWrite).Content = nil
	for name, rec := range map[string]*tape.Record{
		"another root": write("of-the-tree"), "above": write("~/../x"), "through a link": write("~/out/x"), "not kept": unkept,
		"a directory in the way": write("~/full"), "below a file": write("~/file/x"), "no file": {Kind: &tape.ClockSleep{}},
		"a full directory": {Kind: &tape.FileDelete{File: tape.File{Path: "~/full"}}},
	} {
		if err := again.j.Redo(rec, &RedoOptions{Store: store}); !errors.Is(err, ErrNotRedone) {
			t.Errorf("%s: %v, want ErrNotRedone", name, err)
		}
	}
	must(t, again.j.Redo(&tape.Record{Kind: &tape.FileDelete{File: tape.File{Path: "~/never/was"}}}, &RedoOptions{Store: store}))
}
