package httptape_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// recordTo sends one GET through tr.
func recordTo(t *testing.T, tr *httptape.Transport, serve http.HandlerFunc) {
	t.Helper()
	srv := httptest.NewServer(serve)
	defer srv.Close()
	req := request(t, t.Context(), "GET", srv.URL, nil)
	req.Header.Set("Accept-Encoding", "identity")
	res, err := tr.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text(t, res)
}

// TestModes: what each mode does, with a tape and without, under each environment.
func TestModes(t *testing.T) {
	const (
		once, replay, anew, episodes, pass = httptape.ModeRecordOnce, httptape.ModeReplayOnly, httptape.ModeRecordOnly,
			httptape.ModeReplayWithNewEpisodes, httptape.ModePassthrough
		missing = httptape.Mode(99)
	)
	there := filepath.Join(t.TempDir(), "there")
	recordAt(t, there, nil, say("x"), func(c *http.Client, url string) { get(t, c, url) })
	for _, c := range []struct {
		ci, record  string
		mode        httptape.Mode
		with, empty httptape.Mode
	}{
		{"", "", once, replay, anew},
		{"", "", replay, replay, missing},
		{"", "", anew, anew, anew},
		{"", "", episodes, episodes, anew},
		{"", "", pass, pass, pass},
		{"false", "", once, replay, anew},
		{"true", "", once, replay, missing},
		{"true", "", anew, anew, anew},
		{"true", "", episodes, replay, missing},
		{"true", "", pass, pass, pass},
		{"true", "1", once, anew, anew},
		{"", "1", replay, anew, anew},
		{"", "1", pass, pass, pass},
		{"", "0", once, replay, missing},
		{"", "0", anew, replay, missing},
	} {
		t.Setenv("CI", c.ci)
		t.Setenv(httptape.RecordVariable, c.record)
		for path, want := range map[string]httptape.Mode{there: c.with, filepath.Join(t.TempDir(), "none"): c.empty} {
			tr, err := httptape.Open(path, &httptape.Options{Mode: c.mode, AllowUnasked: true})
			var gone *httptape.MissingTapeError
			switch {
			case errors.As(err, &gone):
				if want != missing {
					t.Errorf("%+v: %v", c, err)
				}
			case err != nil:
				t.Error(err)
			default:
				if tr.Mode() != want {
					t.Errorf("%+v: %s: does %v", c, filepath.Base(path), tr.Mode())
				}
				tr.Discard()
				closed(t, tr)
			}
		}
	}
}

func TestVariableThatSaysNothing(t *testing.T) {
	t.Setenv(httptape.RecordVariable, "please")
	if _, err := httptape.Open(filepath.Join(t.TempDir(), "test"), nil); err == nil {
		t.Error("opened")
	}
}

// TestMissingTapeSaysHow: the error of a test has the command that records its tape.
func TestMissingTapeSaysHow(t *testing.T) {
	f := &fakeTB{name: "TestChat/with_tools"}
	if tr := httptape.New(f, filepath.Join(t.TempDir(), "chat"), &httptape.Options{Mode: httptape.ModeReplayOnly}); tr != nil {
		t.Error("opened")
	}
	if got := strings.Join(f.errors, ""); !strings.Contains(got, "TAPEDECK_RECORD=1 go test -run '^TestChat$/^with_tools$'") {
		t.Errorf("said %s", got)
	}
}

// TestOneTapeOneTransport: a tape that is open cannot be opened again, by whatever name.
func TestOneTapeOneTransport(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, filepath.Join(dir, "test"), nil)
	for _, name := range []string{"test", "test.tape", "./x/../test"} {
		if _, err := httptape.Open(dir+"/"+name, nil); !errors.Is(err, httptape.ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	closed(t, tr)
	closed(t, open(t, filepath.Join(dir, "test.tape"), &httptape.Options{AllowUnasked: true}))
}

// TestPassthrough keeps nothing.
func TestPassthrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test")
	recordAt(t, path, &httptape.Options{Mode: httptape.ModePassthrough}, say("x"), func(c *http.Client, url string) {
		if got := get(t, c, url); got != "x" {
			t.Errorf("got %q", got)
		}
		if r := c.Transport.(*httptape.Transport).Report(); r.Recorded+r.Answered != 0 {
			t.Errorf("report: %s", r)
		}
	})
	if _, err := os.Stat(path + ".tape"); err == nil {
		t.Error("a tape stands")
	}
}

// TestNotAsRecorded: a request that is not on the tape is an error that explains, and fails the test at its end; so does a
// recorded one that nobody asked for.
func TestNotAsRecorded(t *testing.T) {
	ask := func(c *http.Client, url, model, text string) error {
		res, err := c.Post(url+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"`+text+`"}]}`))
		if err == nil {
			res.Body.Close()
		}
		return err
	}
	path, url := record(t, nil, say(`{}`), func(c *http.Client, url string) {
		if err := ask(c, url, "m", "hello"); err != nil {
			t.Fatal(err)
		}
		get(t, c, url+"/never")
	})
	f := &fakeTB{name: "TestChat"}
	tr := httptape.New(f, path, nil)
	for range 2 { // a client that tries again
		e := unmatched(t, ask(tr.Client(), url, "m", "goodbye"))
		if e.Nearest == nil || e.Nearest.Seq != 0 || !strings.Contains(e.Why, `messages[0].content[0].text (user): "hello" -> "goodbye"`) {
			t.Errorf("nearest %v: %s", e.Nearest, e.Why)
		}
	}
	f.end()
	if len(f.errors) != 1 {
		t.Fatalf("the test says %q", f.errors)
	}
	for _, part := range []string{"asked for and not recorded: POST", "goodbye", "never asked for: GET", "/never", "never asked for: POST"} {
		if !strings.Contains(f.errors[0], part) {
			t.Errorf("the test does not say %q: %s", part, f.errors[0])
		}
	}
	if n := strings.Count(f.errors[0], "asked for and not recorded"); n != 1 {
		t.Errorf("said %d times", n)
	}

	f = &fakeTB{name: "TestChat"}
	tr = httptape.New(f, path, &httptape.Options{AllowUnasked: true, AllowUnmatched: true})
	unmatched(t, ask(tr.Client(), url, "other", "hello"))
	f.end()
	if len(f.errors) != 0 {
		t.Errorf("allowed, and said %q", f.errors)
	}
	if _, err := tr.Client().Get(url); !errors.Is(err, httptape.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
