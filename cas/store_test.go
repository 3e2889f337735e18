package cas_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cas/castest"
)

func TestStores(t *testing.T) {
	for name, open := range map[string]func(*testing.T) cas.Store{
		"Memory": func(*testing.T) cas.Store { return cas.NewMemory() },
		"Fake":   func(*testing.T) cas.Store { return castest.NewFake() },
		"Dir":    func(t *testing.T) cas.Store { return openDir(t, nil) },
		"Synced": func(t *testing.T) cas.Store { return openDir(t, &cas.DirOptions{Sync: true}) },
	} {
		t.Run(name, func(t *testing.T) { castest.Conformance(t, open) })
	}
}

// openDir opens a store whose directory, and the one around it, are not there yet.
func openDir(t testing.TB, o *cas.DirOptions) *cas.Dir {
	t.Helper()
	s, err := cas.OpenDir(filepath.Join(t.TempDir(), "new", "run.tape.cas"), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFakeFailsAsItIsTold(t *testing.T) {
	s := castest.NewFake()
	d := mustPut(t, s, "a blob")
	s.Damage(d)
	checkCorrupt(t, s, d)
	s.Lose(d)
	var missing *cas.MissingError
	if _, err := s.Size(d); !errors.As(err, &missing) {
		t.Errorf("lost: %v", err)
	}
	s.FailPut = func() error { return io.ErrShortWrite }
	if _, err := s.Put(nil); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("failing: %v", err)
	}
}

func mustPut(t testing.TB, s cas.Store, text string) cas.Digest {
	t.Helper()
	d, err := s.Put([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkCorrupt checks that neither way of reading d gives its bytes for good.
func checkCorrupt(t *testing.T, s cas.Store, d cas.Digest) {
	t.Helper()
	_, getErr := s.Get(d)
	r, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, readErr := io.ReadAll(r)
	for _, err := range []error{getErr, readErr} {
		var corrupt *cas.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Digest != d || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("damaged blob: %v", err)
		}
	}
}

func TestParse(t *testing.T) {
	d := cas.Sum([]byte("a blob"))
	if got, err := cas.Parse(d.String()); err != nil || got != d {
		t.Errorf("%s, %v", got, err)
	}
	name := d.String()
	for _, bad := range []string{
		"", name[1:], name + "0", strings.ToUpper(name), "g" + name[1:], "../" + name[3:], strings.Repeat("/", 64),
		strings.Repeat("\x00", 64), strings.Repeat(".", 64), " " + name[1:],
	} {
		if got, err := cas.Parse(bad); !errors.Is(err, cas.ErrName) || !got.IsZero() {
			t.Errorf("%q: %s, %v", bad, got, err)
		}
		if err := new(cas.Digest).UnmarshalText([]byte(bad)); !errors.Is(err, cas.ErrName) {
			t.Errorf("%q as text: %v", bad, err)
		}
	}
}

// The vectors are those of the BLAKE3 team: byte i of an input is i mod 251.
func TestSumIsBLAKE3(t *testing.T) {
	for n, want := range map[int]string{
		0:    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		1:    "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
	} {
		in := make([]byte, n)
		for i := range in {
			in[i] = byte(i % 251)
		}
		h := cas.NewHasher()
		h.Write([]byte("forgotten"))
		h.Reset()
		h.Write(in[:n/2])
		h.Write(in[n/2:])
		if sum := cas.Sum(in); sum.String() != want || h.Sum() != sum {
			t.Errorf("%d bytes: %s and piece by piece %s, want %s", n, sum, h.Sum(), want)
		}
	}
}
