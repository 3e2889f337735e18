package otlp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
)

// A receiver is one of OTLP over HTTP that keeps what it takes.
type receiver struct {
	mu       sync.Mutex
	requests bytes.Buffer
	got      chan struct{} // has one for every request, as far as there is room
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests.Write(append(b, '\n'))
	select {
	case r.got <- struct{}{}:
	default:
	}
}

func (r *receiver) names(t *testing.T) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spansIn(t, r.requests.Bytes()) {
		names = append(names, s.Name)
	}
	return names
}

func queueTo(t *testing.T, url string) *otlp.Queue {
	t.Helper()
	to, err := otlp.To(url, vars{}.get)
	if err != nil {
		t.Fatal(err)
	}
	return otlp.NewQueue(to, nil)
}

// TestQueue: what is added arrives while the queue is open, in order.
func TestQueue(t *testing.T) {
	r := &receiver{got: make(chan struct{}, 1)}
	server := httptest.NewServer(r)
	defer server.Close()
	q := queueTo(t, server.URL)
	q.Add(&otlp.Span{Name: "first"})
	<-r.got
	for n := range 2500 {
		q.Add(&otlp.Span{Name: fmt.Sprint(n)})
	}
	if tally := q.Close(time.Minute); tally.Sent != 2501 || tally.Dropped != 0 || tally.Lost() != "" {
		t.Errorf("%+v", tally)
	}
	names := r.names(t)
	if len(names) != 2501 || names[0] != "first" || names[2500] != "2499" {
		t.Errorf("%d spans", len(names))
	}
}

// TestQueueRestarted: a receiver that was down, then failed, gets all that was added meanwhile.
func TestQueueRestarted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody is there
	q := queueTo(t, "http://"+address)
	q.Add(&otlp.Span{Name: "early"})
	for q.Tally().Err == nil {
		time.Sleep(time.Millisecond)
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	r := &receiver{got: make(chan struct{}, 1)}
	fails := 1
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if fails > 0 {
			fails--
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		r.ServeHTTP(w, q)
	})}
	go func() { _ = server.Serve(l) }() // ends with Close
	defer server.Close()
	<-r.got
	q.Add(&otlp.Span{Name: "late"})
	if tally := q.Close(time.Minute); tally.Sent != 2 || tally.Dropped != 0 {
		t.Errorf("%+v", tally)
	}
	if names := r.names(t); !slices.Equal(names, []string{"early", "late"}) {
		t.Errorf("%q", names)
	}
}

// TestQueueDrops: with a receiver that fails, refuses or hangs nobody waits, and what was not sent is counted, with why.
func TestQueueDrops(t *testing.T) {
	hangs := func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		<-q.Context().Done()
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		added   int
		within  time.Duration // long where an answer ends it earlier
		why     string
	}{
		"fails":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }, 20_000, time.Minute, "URL does not take the spans: 500 Internal Server Error: broken"},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no key", http.StatusUnauthorized) }, 20_000, time.Minute, "URL does not take the spans: 401 Unauthorized: no key"},
		"hangs":   {hangs, 100, 50 * time.Millisecond, "the receiver does not answer"},
		"floods":  {hangs, 20_000, 50 * time.Millisecond, "the receiver is too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			q := queueTo(t, server.URL)
			for range c.added {
				q.Add(&otlp.Span{Name: "x"})
			}
			tally := q.Close(c.within)
			why := strings.Replace(c.why, "URL", server.URL+"/v1/traces", 1)
			if want := fmt.Sprintf("%d of %d spans were not sent: %s", c.added, c.added, why); tally.Sent != 0 || tally.Lost() != want {
				t.Errorf("%+v: %s, want %s", tally, tally.Lost(), want)
			}
			q.Add(&otlp.Span{}) // nobody is there any more
		})
	}
}

// TestEnvironment: an address of the environment is heeded where that is asked for.
func TestEnvironment(t *testing.T) {
	for want, env := range map[string]vars{
		"http://c:4318/base/v1/traces": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/base/"},
		"http://t:1/x":                 {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:1/x"},
	} {
		if to, err := otlp.To(otlp.FromEnv, env.get); err != nil || to.String() != want {
			t.Errorf("%v, %v, want %s", to, err, want)
		}
	}
	if _, err := otlp.To(otlp.FromEnv, vars{}.get); err == nil {
		t.Error("no address is one")
	}
}

// TestContent: with content asked for, what was said and done is there, and bounded.
func TestContent(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	rec := made(t, func(tt *Tape) {
		agent(tt)
		tt.Call("llm:2", Asks("be kind", ReadTool, User(long)), Says("the end"))
	})
	var out bytes.Buffer
	if _, err := otlp.Export(rec, &otlp.Options{Content: true}, otlp.ToFile(&out)); err != nil {
		t.Fatal(err)
	}
	spans := spansIn(t, out.Bytes())
	chat, tool := spans[0].of, spans[1].of
	for key, want := range map[string]string{
		"gen_ai.input.messages":      `[{"role":"user","parts":[{"type":"text","content":"the prompt"}]}]`,
		"gen_ai.system_instructions": `[{"type":"text","content":"be kind"}]`,
	} {
		if chat[key] != want {
			t.Errorf("%s is %s", key, chat[key])
		}
	}
	if !strings.Contains(chat["gen_ai.output.messages"], `"content":"the answer"`) {
		t.Error(chat["gen_ai.output.messages"])
	}
	if tool["gen_ai.tool.call.arguments"] != `{"path":"secret plan"}` || tool["gen_ai.tool.call.result"] != `{"content":[],"isError":true}` {
		t.Error(tool)
	}
	if out.Len() > 64<<10 || !strings.Contains(out.String(), "the end") {
		t.Errorf("%d bytes", out.Len())
	}
}
