package httptape_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// The examples stand outside of a test, so they have a stand-in for its *testing.T, a server that plays the world, and a
// directory that plays testdata.
var (
	t     = &fakeTB{name: "TestChat"}
	world = func(h http.HandlerFunc) *httptest.Server { return httptest.NewServer(h) }
)

func testdata() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "chat"), func() { os.RemoveAll(dir) }
}

// Three lines in any test. The first run records, the second has no server to ask.
func ExampleNew() {
	path, remove := testdata() // in your test: "testdata/chat"
	defer remove()
	srv := world(say("hello"))
	for range 2 {
		tr := httptape.New(t, path, nil)
		res, err := tr.Client().Get(srv.URL)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%s: %s\n", tr.Mode(), body)
		t.end()     // the end of the test
		srv.Close() // and of the world
	}
	// Output:
	// record only: hello
	// replay only: hello
}

// A request that was not recorded is an error that says what differs.
func ExampleUnmatchedError() {
	path, remove := testdata()
	defer remove()
	srv := world(say("{}"))
	for _, color := range []string{"red", "blue"} {
		tr, err := httptape.Open(path, &httptape.Options{AllowUnasked: true})
		if err != nil {
			panic(err)
		}
		_, err = tr.Client().Post(srv.URL, "application/json", strings.NewReader(`{"color":"`+color+`"}`))
		if e := new(httptape.UnmatchedError); errors.As(err, &e) {
			_, differs, _ := strings.Cut(e.Why, ", ")
			fmt.Println(e.Method, differs)
		}
		tr.Close()
		srv.Close()
	}
	// Output:
	// POST differs in color: "red" -> "blue"
}

// An event stream stays one: on a replay each read gives what one read gave while recording.
func ExampleTransport_stream() {
	path, remove := testdata()
	defer remove()
	srv := world(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{"one", "two", "three"} {
			fmt.Fprintf(w, "data: %s\n\n", word)
			w.(http.Flusher).Flush()
		}
	})
	for range 2 {
		tr := httptape.New(t, path, &httptape.Options{Speed: 10}) // ten times as fast as recorded
		res, err := tr.Client().Get(srv.URL)
		if err != nil {
			panic(err)
		}
		var events []string
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				events = append(events, event)
			}
		}
		res.Body.Close()
		fmt.Printf("%s: %s\n", tr.Mode(), strings.Join(events, " "))
		t.end()
		srv.Close()
	}
	// Output:
	// record only: one two three
	// replay only: one two three
}

// TAPEDECK_RECORD=1 go test records anew what there is.
func ExampleOptions_recordAgain() {
	path, remove := testdata()
	defer remove()
	for _, answer := range []string{"the old answer", "the new answer"} {
		srv := world(say(answer))
		tr := httptape.New(t, path, nil)
		res, err := tr.Client().Get(srv.URL)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%s: %s\n", tr.Mode(), body)
		t.end()
		srv.Close()
		os.Setenv(httptape.RecordVariable, "1") // what the command line does
	}
	os.Unsetenv(httptape.RecordVariable)
	// Output:
	// record only: the old answer
	// record only: the new answer
}

// Keys in headers never reach the tape. A secret of another name or place is named.
func ExampleOptions_secrets() {
	path, remove := testdata()
	defer remove()
	srv := world(say("ok"))
	defer srv.Close()
	tr := httptape.New(t, path, &httptape.Options{
		SecretNames: []string{"X-Tenant"},
		Secrets:     map[string]string{"customer": "Ada Lovelace"},
	})
	req, err := http.NewRequest("POST", srv.URL+"/orders", strings.NewReader(`{"for":"Ada Lovelace"}`))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer sk-live-0123456789")
	req.Header.Set("X-Tenant", "acme")
	res, err := tr.Client().Do(req)
	if err != nil {
		panic(err)
	}
	res.Body.Close()
	t.end()

	tape, _ := os.ReadFile(path + ".tape")
	for _, secret := range []string{"sk-live-0123456789", "acme", "Ada Lovelace"} {
		fmt.Println(strings.Contains(string(tape), secret))
	}
	fmt.Println(strings.Contains(string(tape), "td_customer_000000000003"))
	// Output:
	// false
	// false
	// false
	// true
}

// A client that takes a base URL and no transport talks to a handler that records and answers.
func ExampleTransport_Handler() {
	path, remove := testdata()
	defer remove()
	api := world(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "you asked for %s", r.URL.Path) })
	for range 2 {
		tr := httptape.New(t, path, nil)
		srv := httptest.NewServer(tr.Handler(api.URL)) // in your test: "https://api.openai.com"
		res, err := http.Get(srv.URL + "/v1/models")   // in your test: the SDK, with srv.URL as its base
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%s: %s\n", tr.Mode(), body)
		srv.Close()
		t.end()
		api.Close()
	}
	// Output:
	// record only: you asked for /v1/models
	// replay only: you asked for /v1/models
}
