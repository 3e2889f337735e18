package httptape_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

var anew = &httptape.Options{Mode: httptape.ModeRecordOnly}

// three asks for three things.
func three(t *testing.T) func(c *http.Client, url string) {
	return func(c *http.Client, url string) {
		for i := range 3 {
			get(t, c, fmt.Sprintf("%s/%d", url, i))
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRecordedAnew: what says the same keeps its line, blobs that nothing names go.
func TestRecordedAnew(t *testing.T) {
	answers := []string{"zero", strings.Repeat("one", 3000), "two"}
	n := 0
	serve := func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Date", fmt.Sprintf("Mon, 02 Jan 2006 15:04:%02d GMT", n))
		w.Header().Set("X-Request-Id", fmt.Sprintf("req_ab%016x", n))
		io.WriteString(w, answers[r.URL.Path[1]-'0'])
	}
	path := filepath.Join(t.TempDir(), "test")
	recordAt(t, path, anew, serve, three(t))
	first := lines(t, path)
	recordAt(t, path, anew, serve, three(t))
	if again := lines(t, path); strings.Join(first, "\n") != strings.Join(again, "\n") {
		t.Errorf("nothing new, and the tape changed:\n%s\n%s", first, again)
	}
	answers[1] = strings.Repeat("new", 3000)
	recordAt(t, path, anew, serve, three(t))
	again := lines(t, path)
	if again[0] != first[0] || again[2] != first[2] || again[1] == first[1] {
		t.Errorf("one answer changed:\n%s\n%s", first, again)
	}
	blobs, err := os.ReadDir(path + ".tape.cas")
	if err != nil || len(blobs) != 1 {
		t.Errorf("%d blobs, %v", len(blobs), err)
	}
	answers[1] = "short"
	recordAt(t, path, anew, serve, three(t))
	if _, err := os.Stat(path + ".tape.cas"); err == nil {
		t.Error("the store is still there")
	}
}

// TestNewEpisodes: what is on the tape is answered, the rest is recorded behind it, and nothing goes.
func TestNewEpisodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	o := &httptape.Options{Mode: httptape.ModeReplayWithNewEpisodes}
	recordAt(t, path, o, say("old"), three(t)) // there is none: it is made
	first := lines(t, path)
	url := recordAt(t, path, o, say("new"), func(c *http.Client, url string) {
		if got := get(t, c, url+"/1"); got != "old" {
			t.Errorf("got %q", got)
		}
		if got := get(t, c, url+"/9"); got != "new" {
			t.Errorf("got %q", got)
		}
		r := c.Transport.(*httptape.Transport).Report()
		if r.Answered != 1 || r.Recorded != 1 || len(r.Unasked) != 0 {
			t.Errorf("report: %s", r)
		}
	})
	got := lines(t, path)
	if len(got) != 4 || strings.Join(got[:3], "\n") != strings.Join(first, "\n") || !strings.Contains(got[3], "/9") {
		t.Errorf("the tape holds\n%s", strings.Join(got, "\n"))
	}
	replayed(t, path, url, nil, func(c *http.Client, url string) {
		three(t)(c, url)
		get(t, c, url+"/9")
	})
}

// TestFailedRecordingLeavesTheTape: of a test that failed, of one that was skipped, of one that was discarded.
func TestFailedRecordingLeavesTheTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	recordAt(t, path, anew, say("good"), three(t))
	before := read(t, path+".tape")
	for name, ruin := range map[string]func(*fakeTB, *httptape.Transport){
		"failed":    func(f *fakeTB, _ *httptape.Transport) { f.failed = true },
		"skipped":   func(f *fakeTB, _ *httptape.Transport) { f.skipped = true },
		"discarded": func(_ *fakeTB, tr *httptape.Transport) { tr.Discard() },
	} {
		f := &fakeTB{name: name}
		tr := httptape.New(f, path, anew)
		recordTo(t, tr, say("bad"))
		ruin(f, tr)
		f.end()
		if len(f.errors) > 0 || name != "discarded" && len(f.logs) == 0 {
			t.Errorf("%s: errors %q, logs %q", name, f.errors, f.logs)
		}
		if read(t, path+".tape") != before {
			t.Errorf("%s: the tape changed", name)
		}
	}
}

// TestFailedFirstRecording: where there was no tape, none is said to be as it was.
func TestFailedFirstRecording(t *testing.T) {
	said := make(map[bool]string)
	for _, there := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "test")
		name := path + ".tape"
		if there {
			recordAt(t, path, nil, say("good"), func(c *http.Client, url string) { get(t, c, url) })
		}
		f := &fakeTB{name: t.Name()}
		tr := httptape.New(f, path, &httptape.Options{Mode: httptape.ModeRecordOnly})
		recordTo(t, tr, say("bad"))
		f.failed = true
		f.end()
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) == there {
			t.Errorf("tape there before: %v, after: %v", there, err)
		}
		said[there] = strings.ReplaceAll(strings.Join(f.logs, "\n"), name, "TAPE")
	}
	if said[false] == "" || said[false] == said[true] {
		t.Errorf("without a tape %q, with one %q", said[false], said[true])
	}
}

// TestAnswerThatCannotBeKept fails the recording, and gives the program what came.
func TestAnswerThatCannotBeKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	tr := open(t, path, nil)
	recordTo(t, tr, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "unheard-of")
		io.WriteString(w, "?")
	})
	if err := tr.Close(); err == nil {
		t.Error("kept")
	}
	if _, err := os.Stat(path + ".tape"); err == nil {
		t.Error("a tape stands")
	}
}

// TestDamage: a blob that is missing or wrong is an error of its request and of Close.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	url := recordAt(t, path, nil, say(strings.Repeat("long", 3000)), func(c *http.Client, url string) { get(t, c, url) })
	blobs, err := os.ReadDir(path + ".tape.cas")
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	blob := filepath.Join(path+".tape.cas", blobs[0].Name())
	for name, ruin := range map[string]func() error{
		"1 corrupt": func() error {
			os.Chmod(blob, 0o644)
			return os.WriteFile(blob, []byte(strings.Repeat("lonG", 3000)), 0o644)
		},
		"2 missing": func() error { return os.Remove(blob) },
	} {
		if name == "2 missing" && !exists(blob) {
			continue
		}
		if err := ruin(); err != nil {
			t.Fatal(err)
		}
		tr := open(t, path, nil)
		res, err := tr.Client().Get(url)
		if err == nil {
			_, err = io.ReadAll(res.Body)
		}
		var damaged *httptape.DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
		var corrupt *cas.CorruptError
		var missing *cas.MissingError
		if !errors.As(err, &corrupt) && !errors.As(err, &missing) {
			t.Errorf("%s: %v", name, err)
		}
		var diverged *httptape.DivergenceError
		if err := tr.Close(); !errors.As(err, &diverged) || len(diverged.Report.Damaged) != 1 {
			t.Errorf("%s: Close gives %v", name, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestTapeThatDoesNotHold is an error at once, and recording replaces it.
func TestTapeThatDoesNotHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	if err := os.WriteFile(path+".tape", []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var bad *tape.LoadError
	if _, err := httptape.Open(path, nil); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	recordAt(t, path, anew, say("good"), three(t))
	if got := lines(t, path); len(got) != 3 {
		t.Errorf("%d records", len(got))
	}
}

// TestProducer: a tape names the version that wrote it, and is no other one because a later version records the same.
func TestProducer(t *testing.T) {
	const now = `"tapedeck httptape ` + version.Version + `"`
	for _, tt := range []struct {
		name, wrote string
		stays       bool
	}{
		{"an old version", `"tapedeck httptape 0.0.1"`, true},
		{"a version with a quote", `"tapedeck httptape 0.0.1 \"beta\""`, true},
		{"another program", `"tapedeck 0.0.1"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test")
			once := func(answer string) []byte {
				o := &httptape.Options{Mode: httptape.ModeRecordOnly}
				recordAt(t, path, o, say(answer), func(c *http.Client, base string) { get(t, c, base+"/x") })
				b, err := os.ReadFile(path + ".tape")
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			first := once("an answer")
			old := bytes.Replace(first, []byte(`"harn_version":`+now), []byte(`"harn_version":`+tt.wrote), 1)
			if bytes.Equal(first, old) {
				t.Fatalf("no version: %.200s", first)
			}
			if err := os.WriteFile(path+".tape", old, 0o644); err != nil {
				t.Fatal(err)
			}
			if got := once("an answer"); bytes.Equal(got, old) != tt.stays || bytes.Equal(got, first) == tt.stays {
				t.Errorf("the tape became %.200s", got)
			}
			if got := once("another answer"); !bytes.Contains(got, []byte(now)) {
				t.Errorf("a new tape of an old version: %.200s", got)
			}
		})
	}
}
