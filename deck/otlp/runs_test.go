package otlp_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func runsTo(t *testing.T, url string, content func([]byte) []byte) *otlp.Runs {
	t.Helper()
	to, err := otlp.To(url, vars{}.get)
	if err != nil {
		t.Fatal(err)
	}
	return otlp.NewRuns(to, "host", content)
}

// said is a turn with a prompt.
func said(prompt string) []runtrace.Turn { return []runtrace.Turn{{Prompt: &prompt}} }

// TestRunsApart: while secrets are taken out of one run's content, nothing waits that is told of another run.
func TestRunsApart(t *testing.T) {
	r := &receiver{got: make(chan struct{}, 1)}
	server := httptest.NewServer(r)
	defer server.Close()
	began, goOn := make(chan struct{}), make(chan struct{})
	runs := runsTo(t, server.URL, func(b []byte) []byte {
		if bytes.Equal(b, []byte("slow")) {
			close(began)
			<-goOn
		}
		return b
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		runs.Turns(runtrace.ID{Agent: "a", Run: "1"}, 0, said("slow"))
	}()
	<-began
	told := make(chan struct{})
	go func() {
		defer close(told)
		other := runtrace.ID{Agent: "b", Run: "2"}
		runs.Verdict(other, []byte(`{"tool":"bash","verdict":{"kind":"deny","reason":"r"}}`))
		runs.Turns(other, 0, said("fast"))
		runs.Ended(other, &runtrace.Ended{})
	}()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Error("another run waits")
	}
	close(goOn)
	<-done
	if tally := runs.Close(time.Minute); tally.Sent != 4 || tally.Dropped != 0 {
		t.Errorf("%+v", tally)
	}
}

// TestRunsFull: of what is dropped for want of room no secrets are taken out, and it is counted.
func TestRunsFull(t *testing.T) {
	for name, prompt := range map[string]string{"spans": "p", "bytes": strings.Repeat("p", 16<<10)} {
		t.Run(name, func(t *testing.T) {
			asked, hangs := make(chan struct{}, 1), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				asked <- struct{}{}
				<-hangs
			}))
			defer server.Close()
			defer close(hangs)
			var hidden atomic.Int64
			runs := runsTo(t, server.URL, func(b []byte) []byte { hidden.Add(1); return b })
			id := runtrace.ID{Agent: "a", Run: "1"}
			runs.Turns(id, 0, said(prompt))
			<-asked // nothing is taken from here on
			dropped := 0
			for n := 1; dropped == 0; n++ {
				runs.Turns(id, n, said(prompt))
				_, dropped = runs.Counts()
			}
			before := hidden.Load()
			for range 100 {
				runs.Verdict(id, []byte(`{"verdict":{"kind":"deny","reason":"r"}}`))
				runs.Turns(id, 0, said(prompt))
			}
			if _, now := runs.Counts(); hidden.Load() != before || now != dropped+200 {
				t.Errorf("%d texts, %d spans dropped", hidden.Load()-before, now-dropped)
			}
			runs.Close(0)
		})
	}
}

// TestRunsNames: names that clients chose are cut, and without secrets where there is somebody to take them out.
func TestRunsNames(t *testing.T) {
	long := "hunter2" + strings.Repeat("x", 10_000)
	for _, content := range []func([]byte) []byte{nil, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("***")) }} {
		r := &receiver{got: make(chan struct{}, 1)}
		server := httptest.NewServer(r)
		runs := runsTo(t, server.URL, content)
		id := runtrace.ID{Agent: "a", Run: "1"}
		runs.Turns(id, 0, []runtrace.Turn{{Tool: &long, VerifierVerdict: long, PolicyRejected: &runtrace.PolicyRejected{Rule: long}}})
		runs.Verdict(id, []byte(`{"tool":"`+long+`","verdict":{"kind":"deny","violations":[{"policy_name":"`+long+`"}]}}`))
		runs.Ended(id, &runtrace.Ended{Outcome: []byte(`{"status":"` + long + `"}`)})
		if tally := runs.Close(time.Minute); tally.Sent != 3 {
			t.Errorf("%+v", tally)
		}
		server.Close()
		for _, s := range spansIn(t, r.requests.Bytes()) {
			texts := []string{s.Name}
			for _, text := range s.of {
				texts = append(texts, text)
			}
			for _, text := range texts {
				if len(text) > 300 || content != nil && strings.Contains(text, "hunter2") {
					t.Errorf("%s: %s", s.Name, text)
				}
			}
		}
	}
}
