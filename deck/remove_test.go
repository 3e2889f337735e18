package deck_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/library"
)

// pointTo makes a library with a pointer of the id z to dir.
func pointTo(t testing.TB, dir string) (lib *library.Library, pointer string) {
	t.Helper()
	lib = library.Of(t.TempDir())
	pointer = filepath.Join(lib.Dir, "z.elsewhere")
	if err := errors.Join(os.MkdirAll(lib.Dir, 0o700), os.WriteFile(pointer, []byte(dir+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return lib, pointer
}

func remove(t testing.TB, lib *library.Library, name string) *library.Removal {
	t.Helper()
	e, err := lib.Entry(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := lib.Remove(e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRemoveOfAPointer(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "out"), "z", "finished", 1)
	lib, pointer := pointTo(t, c.dir)
	r := remove(t, lib, "z")
	if r.ID != "z" || r.Left != "" || !missing(c.dir) || !missing(pointer) {
		t.Errorf("%+v, gone: %t and %t", r, missing(c.dir), missing(pointer))
	}
}

// By its path it goes with the pointer that leads to it, and with no other that bears its id.
func TestRemoveByPath(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "out"), "z", "finished", 1)
	lib, pointer := pointTo(t, c.dir)
	inside := craft(t, filepath.Join(lib.Dir, "copy.rec"), "z", "finished", 1)
	if r := remove(t, lib, "copy"); r.Left != "" || !missing(inside.dir) || missing(pointer) || missing(c.dir) {
		t.Errorf("%+v, gone: %t, %t and %t", r, missing(inside.dir), missing(pointer), missing(c.dir))
	}
	if r := remove(t, lib, c.dir); r.Left != "" || !missing(c.dir) || !missing(pointer) {
		t.Errorf("%+v, gone: %t and %t", r, missing(c.dir), missing(pointer))
	}
}

// A pointer is not believed: what it leads to is deleted where it is the recording of that id alone.
func TestRemoveOfAPointerToSomethingElse(t *testing.T) {
	for name, make := range map[string]func(t testing.TB, dir string){
		"another recording": func(t testing.TB, dir string) { craft(t, dir, "other", "finished", 1) },
		"a directory": func(t testing.TB, dir string) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t testing.TB, dir string) {
			if err := os.WriteFile(dir, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a damaged recording": func(t testing.TB, dir string) {
			c := craft(t, dir, "z", "finished", 1)
			c.write(t, "recording.json", "{")
		},
		"a link": func(t testing.TB, dir string) {
			craft(t, dir, "z", "finished", 1)
			movedTo(t, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			make(t, dir)
			lib, pointer := pointTo(t, dir)
			r := remove(t, lib, "z")
			if !strings.HasPrefix(r.Left, "only the pointer went: "+dir) || r.ID != "z" || missing(dir) || !missing(pointer) {
				t.Errorf("%+v, gone: %t and %t", r, missing(dir), missing(pointer))
			}
		})
	}
}

// Others' files stay, wherever the recording lies.
func TestRemoveLeavesForeignFiles(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "out"), "z", "finished", 1)
	mine := c.write(t, "src/main.go", "mine")
	lib, pointer := pointTo(t, c.dir)
	r := remove(t, lib, "z")
	names, err := os.ReadDir(c.dir)
	if err != nil || len(names) != 1 || missing(mine) || !missing(pointer) || !strings.HasSuffix(r.Left, ": src") {
		t.Errorf("%+v, %v, %v", r, names, err)
	}
}

// Of a link the link goes.
func TestRemoveOfALink(t *testing.T) {
	lib := library.Of(t.TempDir())
	c := craft(t, filepath.Join(lib.Dir, "z.rec"), "z", "finished", 1)
	to := movedTo(t, c.dir)
	if r := remove(t, lib, "z"); !strings.HasPrefix(r.Left, "only the link") || !missing(c.dir) {
		t.Errorf("%+v", r)
	}
	sound(t, to, 1, 1)
}
