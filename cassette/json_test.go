package cassette_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// TestErrOfAnExit: an object or null is written, and read; a string of an older cassette is read; nothing else is.
func TestErrOfAnExit(t *testing.T) {
	for _, c := range []struct{ in, read, written string }{
		{`null`, ``, `null`},
		{`{"Op":"wait"}`, `{"Op":"wait"}`, `{"Op":"wait"}`},
		{`{}`, `{}`, `{}`},
		{`"not known"`, `"not known"`, `null`},
		{`5`, `refused`, ``},
		{`[1]`, `refused`, ``},
		{`true`, `refused`, ``},
	} {
		var e cassette.Exit
		if err := json.Unmarshal([]byte(`{"Code":1,"Signal":"","Exited":true,"Signaled":false,"Err":`+c.in+`}`), &e); err != nil {
			if c.read != "refused" {
				t.Errorf("%s: %v", c.in, err)
			}
			continue
		}
		if string(e.Err) != c.read {
			t.Errorf("%s is read as %q", c.in, e.Err)
		}
		var back struct{ Err json.RawMessage }
		b, err := json.Marshal(e)
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || string(back.Err) != c.written {
			t.Errorf("%s is written as %s: %v", c.in, b, err)
		}
	}
}

// TestFinishRefusesADuration: a duration below 0 is not written, and the recording goes on.
func TestFinishRefusesADuration(t *testing.T) {
	r, err := cassette.Create(filepath.Join(t.TempDir(), "c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(&cassette.Final{DurationMS: -5}); !errors.Is(err, cassette.ErrBadJSON) {
		t.Errorf("%v", err)
	}
	if _, err := r.Finish(&cassette.Final{DurationMS: 5}); err != nil {
		t.Error(err)
	}
}
