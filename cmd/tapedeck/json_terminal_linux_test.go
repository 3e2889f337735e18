package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJSONOnATerminal: what would steer a terminal is escaped there, in JSON, and stands in a file as it came.
func TestJSONOnATerminal(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "x.tape")
	const steers = "a\u009b2J\u202eb\u2066 ä\u2028"
	tape := `{"type":"header","version":1,"harn_version":"x 1","started_at_unix_ms":null,"script_path":null,"argv":["` + steers + `"]}` + "\n" +
		`{"type":"record","seq":0,"phase":"user_script","virtual_time_ms":1,"monotonic_ms":0,"kind":{"kind":"file_delete","path":"` + steers + `"}}` + "\n"
	other := strings.Replace(tape, steers, "x", 1)
	for name, content := range map[string]string{path: tape, path + "2": other} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"show", path, "--json"}, {"show", path, "--json", "--seq", "0"}, {"diff", path, path + "2", "--json"}} {
		shown := onTerminal(t, args...)
		if strings.ContainsAny(shown, "\u009b\u202e\u2066\u2028") || !strings.Contains(shown, `\u009b2J\u202eb\u2066 ä`) {
			t.Errorf("%q: %q", args, shown)
		}
		if !json.Valid([]byte(shown)) {
			t.Errorf("%q is no JSON: %q", args, shown)
		}
		var piped bytes.Buffer
		run(t.Context(), args, streams{strings.NewReader(""), &piped, io.Discard})
		if !strings.Contains(piped.String(), "\u202e") {
			t.Errorf("%q into a pipe: %q", args, piped.String())
		}
	}
}

// TestShownJSON: characters that come in pieces are whole.
func TestShownJSON(t *testing.T) {
	var out bytes.Buffer
	s := &shownJSON{w: &out}
	for _, b := range []byte("\"ä\u202e漢\u009b\"\n") {
		if n, err := s.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "\"ä\\u202e漢\\u009b\"\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
