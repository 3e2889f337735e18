package cas_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/corpus"
)

// errCannotMake says that this system or user cannot make what a case needs.
var errCannotMake = errors.New("cannot be made here")

func TestCorpus(t *testing.T) {
	cases, err := corpus.Stores()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkStore(t, &c) })
	}
}

func checkStore(t *testing.T, c *corpus.Case) {
	dir := filepath.Join(t.TempDir(), "run.tape.cas")
	if c.Get("absent") == "" {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range c.Fields {
		if f.Key != "entry" {
			continue
		}
		if err := makeEntry(dir, f.Value); errors.Is(err, errCannotMake) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	s, err := cas.OpenDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkListed(t, s, c)
	for _, f := range c.Fields {
		checkField(t, s, f)
	}
}

// makeEntry makes what one line describes.
func makeEntry(dir, entry string) error {
	name, what, _ := strings.Cut(entry, " ")
	what, value, _ := strings.Cut(what, " ")
	path := filepath.Join(dir, name)
	switch what {
	case "file":
		b, err := base64.StdEncoding.DecodeString(value)
		return errors.Join(err, os.WriteFile(path, b, 0o600))
	case "dir":
		return os.Mkdir(path, 0o700)
	case "symlink":
		if err := os.Symlink(value, path); err != nil {
			return errors.Join(errCannotMake, err) // Windows may not let us
		}
		return nil
	}
	return makeSpecial(path, what)
}

func checkListed(t *testing.T, s *cas.Dir, c *corpus.Case) {
	t.Helper()
	var want, got []string
	for _, f := range c.Fields {
		if f.Key == "list" {
			want = append(want, f.Value)
		}
	}
	for d, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("lists %v, want %v", got, want)
	}
}

// checkField checks what one line promises.
func checkField(t *testing.T, s *cas.Dir, f corpus.Field) {
	t.Helper()
	value, want, _ := cutLast(f.Value)
	switch f.Key {
	case "get":
		d, err := cas.Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		_, getErr := s.Get(d)
		if got, streamed := word(getErr), word(readBlob(s, d)); got != want || streamed != want {
			t.Errorf("Get: %s, Open: %s, want %s", got, streamed, want)
		}
	case "put":
		b, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		d, putErr := s.Put(b)
		_, _, streamErr := s.PutReader(bytes.NewReader(b))
		for _, err := range []error{putErr, streamErr} {
			if got := word(err); got != want && (err != nil || d.String() != want) {
				t.Errorf("put: %s, want %s", got, want)
			}
		}
	case "parse":
		if _, err := cas.Parse(value); want != "refused" || !errors.Is(err, cas.ErrName) {
			t.Errorf("name %q: %v", value, err)
		}
	}
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func readBlob(s cas.Store, d cas.Digest) error {
	r, err := s.Open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// word is the corpus's word for what reading gave.
func word(err error) string {
	var missing *cas.MissingError
	var corrupt *cas.CorruptError
	switch {
	case err == nil:
		return "whole"
	case errors.As(err, &missing):
		return "missing"
	case errors.As(err, &corrupt):
		return "damaged"
	case errors.Is(err, cas.ErrNotRegular):
		return "not-regular"
	}
	return err.Error()
}
