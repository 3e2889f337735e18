package overlay_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// taped is a tree from records.
func taped(t testing.TB, store cas.Store, kinds ...tape.Kind) *overlay.FS {
	t.Helper()
	var all []*tape.Record
	for i, k := range kinds {
		all = append(all, &tape.Record{Seq: uint64(i), Kind: k})
	}
	return newFS(t, &overlay.Options{Tape: overlay.NewTaped(all, store, nil)})
}

func read(path, text string) *tape.FileRead {
	b := []byte(text)
	return &tape.FileRead{File: tape.File{Path: path, ContentHash: cas.Sum(b), LenBytes: int64(len(b)), Content: payload(text)}}
}

func payload(text string) *tape.Payload {
	return &tape.Payload{Hash: cas.Sum([]byte(text)), Inline: true, Text: text, Len: int64(len(text))}
}

// TestAnswersComeInTheirOrder, path by path, and the last for ever.
func TestAnswersComeInTheirOrder(t *testing.T) {
	f := taped(t, nil, read("a", "1"), read("b", "b"), read("a", "2"), &tape.FileStat{Path: "a", Type: "none"})
	var got []string
	for _, name := range []string{"b", "a", "a", "b", "a", "a"} {
		b, err := f.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			b = []byte("none")
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
	if want := []string{"b", "1", "2", "b", "none", "none"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// TestAForeignTape has hashes alone: the bytes are in its store, or the error says what to do.
func TestAForeignTape(t *testing.T) {
	store := cas.NewMemory()
	d, err := store.Put([]byte("bytes"))
	must(t, err)
	lost := cas.Sum([]byte("lost"))
	kinds := []tape.Kind{
		&tape.FileRead{File: tape.File{Path: "there", ContentHash: d, LenBytes: 5}},
		&tape.FileRead{File: tape.File{Path: "lost", ContentHash: lost, LenBytes: 4}},
		&tape.FileWrite{File: tape.File{Path: "out", ContentHash: d, LenBytes: 5}},
		&tape.FileDelete{File: tape.File{Path: "old"}},
		&tape.DirList{Path: "dir", NamesDigest: d},
	}
	f := taped(t, store, kinds...)
	if b, err := f.ReadFile("there"); err != nil || string(b) != "bytes" {
		t.Errorf("%q, %v", b, err)
	}
	if i, err := f.Stat("lost"); err != nil || i.Size() != 4 {
		t.Errorf("%v, %v", i, err)
	}
	_, err = f.ReadFile("lost")
	if err == nil || !strings.Contains(err.Error(), lost.String()) || !strings.Contains(err.Error(), ".cas") {
		t.Errorf("got %v", err)
	}
	_, err = taped(t, nil, kinds...).ReadFile("there")
	if err == nil || !strings.Contains(err.Error(), d.String()) {
		t.Errorf("without a store: %v", err)
	}
	must(t, f.WriteFile("out", []byte("bytes"), 0o644))
	if _, err := f.List("dir"); err == nil || !strings.Contains(err.Error(), "no JSON list") {
		t.Errorf("names that are none: %v", err)
	}
	if err := f.Remove("old"); err != nil { // without what stood there nothing is lost but that
		t.Error(err)
	}
}

// TestWhatATapeLacks is an error that names the nearest path it has, whatever is asked; writing needs no answer.
func TestWhatATapeLacks(t *testing.T) {
	kinds := []tape.Kind{read("src/main.go", "x"), read("docs/notes.md", "n"), &tape.FileStat{Path: "README.md", Type: "none"}}
	for what, try := range map[string]func(f *overlay.FS) error{
		"read":   func(f *overlay.FS) error { _, err := f.ReadFile("src/min.go"); return err },
		"look":   func(f *overlay.FS) error { _, err := f.Exists("src/min.go"); return err },
		"list":   func(f *overlay.FS) error { _, err := f.List("src/min.go"); return err },
		"remove": func(f *overlay.FS) error { return f.Remove("src/min.go") },
		"open":   func(f *overlay.FS) error { _, err := f.Open("src/min.go"); return err },
	} {
		f := taped(t, nil, kinds...)
		err := try(f)
		var unknown *overlay.UnknownError
		if !errors.As(err, &unknown) || unknown.Path != "src/min.go" || unknown.Nearest != "src/main.go" || !strings.Contains(err.Error(), "src/main.go") {
			t.Errorf("%s: %v", what, err)
		}
		must(t, f.WriteFile("src/min.go", []byte("new"), 0o644))
		if b, err := f.ReadFile("src/min.go"); err != nil || string(b) != "new" {
			t.Errorf("%s: what was written is %q, %v", what, b, err)
		}
	}
	if _, err := taped(t, nil).ReadFile("a"); err == nil || !strings.Contains(err.Error(), "no other path") {
		t.Errorf("got %v", err)
	}
}

// TestWhatATapeImplies without a record of it: the directories above, and what a list has or has not.
func TestWhatATapeImplies(t *testing.T) {
	f := taped(t, nil, read("a/b/c", "x"), &tape.DirList{Path: "d", Names: payload(`["e","f/"]`)})
	for name, want := range map[string]string{"a": "d", "a/b": "d", "d/e": "-", "d/f": "d"} {
		if i, err := f.Stat(name); err != nil || i.Mode().String()[:1] != want {
			t.Errorf("%s: %v, %v", name, i, err)
		}
	}
	if ok, err := f.Exists("d/none"); ok || err != nil {
		t.Errorf("what the list lacks: %t, %v", ok, err)
	}
	if _, err := f.ReadFile("d/e"); err == nil || !strings.Contains(err.Error(), "no read of d/e") {
		t.Errorf("got %v", err)
	}
	if _, err := f.ReadFile("a"); !errors.Is(err, fs.ErrInvalid) && err == nil {
		t.Error("a directory is read")
	}
}

// TestAProgramThatChanged sees what it wrote itself, not what the program of the tape did.
func TestAProgramThatChanged(t *testing.T) {
	f := taped(t, nil,
		&tape.FileWrite{File: tape.File{Path: "out", Content: payload("old"), Mode: "100644"}},
		&tape.DirList{Path: ".", Names: payload(`["in","out"]`)}, read("out", "old"), read("in", "in"))
	if names, err := f.List("."); err != nil || !slices.Equal(names, []string{"in"}) {
		t.Errorf("without having written: %q, %v", names, err)
	}
	if ok, err := f.Exists("out"); ok || err != nil {
		t.Errorf("what it did not write is there: %v", err)
	}
	must(t, f.WriteFile("out", []byte("new"), 0o644))
	if b, err := f.ReadFile("out"); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWhatAProcessMade is there for a program that does not run it again.
func TestWhatAProcessMade(t *testing.T) {
	f := taped(t, nil,
		&tape.FileWrite{File: tape.File{Path: "made", Content: payload("x"), Mode: "100644", SpawnID: 1}}, read("made", "x"))
	if b, err := f.ReadFile("made"); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

// FuzzTaped: whatever stands on a tape, a tree over it answers or refuses, and hostile names never get out of a list.
func FuzzTaped(f *testing.F) {
	for _, names := range []string{`[]`, `["a","b/","c/@"]`, `["../x","/etc","a/b","","."]`, `{}`, `[1]`, "\xff", `["` + strings.Repeat("n", 300) + `"]`} {
		f.Add("dir", names, "text", "100644", uint8(3))
	}
	f.Add("../out", `["x"]`, "../../x", "120000", uint8(1))
	f.Add("a/b", `["x"]`, "a/b", "120000", uint8(0))
	f.Fuzz(func(t *testing.T, path, names, text, mode string, which uint8) {
		types := []string{"file", "dir", "none", "link", "refused", mode}
		link := read(path, text)
		link.Mode = mode
		tree := taped(t, nil, &tape.DirList{Path: path, Names: payload(names)}, link,
			&tape.FileStat{Path: path, Type: types[int(which)%len(types)], LenBytes: int64(which)},
			&tape.FileDelete{File: tape.File{Path: path, Before: payload(text), Mode: mode}})
		for _, name := range []string{path, ".", path + "/" + text, text} {
			all, err := tree.List(name)
			for _, n := range all {
				if err == nil && (strings.ContainsAny(n, "/\x00") || n == "" || n == "." || n == "..") {
					t.Fatalf("%q is listed", n)
				}
			}
			_, _ = tree.ReadFile(name)  // any error will do
			_, _ = tree.Exists(name)    // and here
			_ = tree.Rename(name, "to") // and here
			_ = tree.WriteFile(name, []byte(text), 0o644)
			_ = tree.Remove(name)
			if _, err := tree.Diff(); err != nil {
				var unknown *overlay.UnknownError
				if !errors.As(err, &unknown) {
					t.Fatal(err)
				}
			}
		}
	})
}
