package cassette

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// FuzzLine decodes a line of each stream: no panic, and what is decoded is the same after it was encoded.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{"seq":1,"t_ms":2,"offset":3,"length":4,"sha256":"aa","g":5}`,
		`{"seq":2,"t_ms":0,"kind":"input","bytes":"aGkN","key":"enter"}`,
		`{"seq":2,"t_ms":0,"kind":"resize","size":{"Rows":3,"cols":9}}`,
		`{"seq":3,"t_ms":0,"size":{"Rows":2,"Cols":8},"text":["hello",""],"cells":[[{"Char":104,"Mode":0,"FG":1,"BG":null},{"Char":"é"}]],"cursor":{"Row":1,"Col":0,"Visible":true},"raw_start":0,"raw_end":7,"parser_offset":7}`,
		`{"seq":5,"t_ms":200,"payload":{"a":[1,null]}}`,
		`{"Seq":5,"exit":{"Code":1,"Signal":9,"Err":{}}}`,
	} {
		for stream := range byte(5) {
			f.Add(stream, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, stream byte, line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return
		}
		first, err := decodeAny(stream, line)
		if err != nil {
			return
		}
		b, err := jsonscan.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := decodeAny(stream, b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		again, err := jsonscan.Marshal(second)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%s\n%s\n%v", b, again, err)
		}
	})
}

func decodeAny(stream byte, line []byte) (any, error) {
	if stream%5 == 4 {
		final := new(Final)
		return final, decode(FinalFile, 0, line, final)
	}
	e, err := decodeEvent(lineStreams[stream%5], 1, line)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Chunk != nil:
		return e.Chunk, nil
	case e.Input != nil:
		return e.Input, nil
	case e.Frame != nil:
		return e.Frame, nil
	}
	return e.Service, nil
}

// FuzzOpen changes a file of a sound cassette: no panic, bounded memory, and nothing that loads strictly is read with an error.
func FuzzOpen(f *testing.F) {
	dir := filepath.Join("..", "corpus", "cassettes", "good-first-producer")
	files := map[string][]byte{}
	for _, name := range allFiles {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			files[name] = b
		}
	}
	for i, name := range allFiles {
		f.Add(byte(i), files[name])
		f.Add(byte(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which byte, content []byte) {
		dir := t.TempDir()
		for name, b := range files {
			if name == allFiles[int(which)%len(allFiles)] {
				b = content
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range []OpenOptions{{}, {Lazy: true}, {Partial: true}} {
			useAll(t, dir, &o)
		}
		if _, err := Verify(dir); err != nil && Code(err) == "" {
			t.Error(err)
		}
	})
}

// useAll opens dir and does everything with it.
func useAll(t *testing.T, dir string, o *OpenOptions) {
	r, err := Open(dir, o)
	if err != nil {
		if Code(err) == "" {
			t.Fatalf("%v is no refusal", err)
		}
		return
	}
	defer r.Close()
	sound := func(err error) {
		if err != nil && (!o.Lazy || Code(err) == "") {
			t.Fatal(err)
		}
	}
	for _, err := range r.Events(nil) {
		sound(err)
	}
	for _, err := range r.Events(&EventsOptions{From: 1e8}) {
		sound(err)
	}
	for _, err := range r.Derive(nil) {
		sound(err)
	}
	for _, err := range r.Frames() {
		sound(err)
	}
	_, err = r.LastFrame()
	sound(err)
	_, err = r.FrameAt(1e8)
	sound(err)
}

// FuzzEdit edits JSON of others: what is not edited stays.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a": [1, "x\"y"], "text": "s", "TEXT":2, "n":1e400}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		same, err := mapStrings(b, func(s string) string { return s })
		if err == nil && !bytes.Equal(same, b) {
			t.Fatalf("%q became %q", b, same)
		}
		if !json.Valid(b) {
			return
		}
		if out, err := set(b, "text", "masked"); err == nil && !json.Valid(out) {
			t.Fatalf("%q became %q", b, out)
		}
		if out, err := mapStrings(b, func(s string) string { return s + "*\"" }); err != nil || !json.Valid(out) {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
	})
}
