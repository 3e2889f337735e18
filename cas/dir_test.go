package cas_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

func TestDirIsMadeByTheFirstPut(t *testing.T) {
	s := openDir(t, nil)
	dir := filepath.Dir(s.Path(cas.Digest{}))
	if _, err := s.Size(cas.Digest{}); err == nil {
		t.Error("an absent store has a blob")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is there before the first Put: %v", err)
	}
	d := mustPut(t, s, "a blob")
	if got, want := s.Path(d), filepath.Join(dir, d.String()); got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	if b, err := os.ReadFile(s.Path(d)); err != nil || string(b) != "a blob" {
		t.Errorf("file holds %q, %v", b, err)
	}
}

func TestOpenDirRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := cas.OpenDir(path, nil); err == nil {
		t.Errorf("opened %v", s)
	}
}

func TestDamageIsFound(t *testing.T) {
	for name, damage := range map[string]string{"changed": "A blob", "cut": "a bl", "longer": "a blob.", "emptied": ""} {
		t.Run(name, func(t *testing.T) {
			s := openDir(t, nil)
			d := mustPut(t, s, "a blob")
			if err := os.WriteFile(s.Path(d), []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			checkCorrupt(t, s, d)
		})
	}
}

func TestPutMendsABlobOfAnotherLength(t *testing.T) {
	for name, put := range map[string]func(*cas.Dir) error{
		"Put":       func(s *cas.Dir) error { _, err := s.Put([]byte("a blob")); return err },
		"PutReader": func(s *cas.Dir) error { _, _, err := s.PutReader(strings.NewReader("a blob")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := openDir(t, nil)
			d := mustPut(t, s, "a blob")
			if err := os.Truncate(s.Path(d), 3); err != nil {
				t.Fatal(err)
			}
			if err := put(s); err != nil {
				t.Fatal(err)
			}
			if b, err := s.Get(d); err != nil || string(b) != "a blob" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

func TestWhatIsNoBlobIsNotListed(t *testing.T) {
	s := openDir(t, nil)
	d := mustPut(t, s, "a blob")
	dir := filepath.Dir(s.Path(d))
	for _, name := range []string{durable.TempPrefix + "123", "README", strings.ToUpper(d.String()), d.String() + ".bak"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half a bl"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []cas.Digest
	for d, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if len(got) != 1 || got[0] != d {
		t.Errorf("got %v", got)
	}
}

func TestADirectoryInABlobsPlaceIsRefused(t *testing.T) {
	s := openDir(t, nil)
	mustPut(t, s, "another blob")
	d := cas.Sum([]byte("a blob"))
	if err := os.Mkdir(s.Path(d), 0o700); err != nil {
		t.Fatal(err)
	}
	checkNotRegular(t, s, "a blob")
}

// checkNotRegular checks that what stands in the place of the blob of text is refused by every method.
func checkNotRegular(t *testing.T, s *cas.Dir, text string) {
	t.Helper()
	d := cas.Sum([]byte(text))
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, getErr := s.Get(d)
	_, openErr := s.Open(d)
	_, sizeErr := s.Size(d)
	_, putErr := s.Put([]byte(text))
	_, _, streamErr := s.PutReader(strings.NewReader(text))
	_, linkErr := s.Link(d, from)
	for i, err := range []error{getErr, openErr, sizeErr, putErr, streamErr, linkErr} {
		if !errors.Is(err, cas.ErrNotRegular) {
			t.Errorf("method %d: %v", i, err)
		}
	}
}

func TestLink(t *testing.T) {
	for name, o := range map[string]*cas.DirOptions{"plain": nil, "synced": {Sync: true}} {
		t.Run(name, func(t *testing.T) {
			s := openDir(t, o)
			from := filepath.Join(t.TempDir(), "from")
			if err := os.WriteFile(from, []byte("a blob"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := cas.Sum([]byte("a blob"))
			for range 2 {
				if n, err := s.Link(d, from); err != nil || n != 6 {
					t.Fatalf("%d bytes, %v", n, err)
				}
			}
			if b, err := s.Get(d); err != nil || string(b) != "a blob" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// Where a link cannot be made, here because something damaged has the name, the bytes are copied and checked.
func TestLinkFallsBackToAVerifiedCopy(t *testing.T) {
	s := openDir(t, nil)
	d := mustPut(t, s, "a blob")
	from := filepath.Join(t.TempDir(), "from")
	for _, tt := range []struct {
		text string
		ok   bool
	}{{"another blob", false}, {"a blob", true}} {
		if err := os.Truncate(s.Path(d), 1); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(from, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *cas.CorruptError
		if _, err := s.Link(d, from); errors.As(err, &corrupt) == tt.ok || (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
	if b, err := s.Get(d); err != nil || string(b) != "a blob" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(s.Path(d)), durable.TempPrefix+"*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLinkRefusesWhatIsNoFile(t *testing.T) {
	s := openDir(t, nil)
	if _, err := s.Link(cas.Digest{}, t.TempDir()); !errors.Is(err, cas.ErrNotRegular) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkPut against BenchmarkSum is what a file a blob costs over hashing alone.
func BenchmarkPut(b *testing.B) {
	s := openDir(b, nil)
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	b.SetBytes(int64(len(blob)))
	for i := 0; b.Loop(); i++ {
		copy(blob, cas.Sum([]byte{byte(i), byte(i >> 8), byte(i >> 16)}).String())
		if _, _, err := s.PutReader(bytes.NewReader(blob)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	b.SetBytes(int64(len(blob)))
	for b.Loop() {
		cas.Sum(blob)
	}
}
