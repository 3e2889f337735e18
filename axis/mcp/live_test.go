package mcp_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// livePatience is that of these tests: of a clock that goes by itself.
const livePatience = time.Hour

// liveCalls are what the clients of these tests ask.
var liveCalls = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}`,
}

func liveAnswer(id int) string {
	return fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n\n", id)
}

// recordLive records a conversation, over HTTP+SSE or Streamable HTTP.
func recordLive(t *testing.T, sse bool) *webRig {
	t.Helper()
	said := make(chan string, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		var id int
		_, _ = fmt.Sscanf(string(body), `{"jsonrpc":"2.0","id":%d`, &id)
		switch {
		case r.Method == http.MethodPost && !sse:
			io.WriteString(w, liveAnswer(id))
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
			said <- liveAnswer(id)
		default:
			io.WriteString(w, "event: endpoint\ndata: /messages\n\n")
			for range liveCalls {
				w.(http.Flusher).Flush()
				io.WriteString(w, <-said)
			}
		}
	})
	g := recordWeb(t, h)
	defer g.end()
	if !sse {
		for _, call := range liveCalls {
			g.post(call)
		}
		return g
	}
	events := g.open(http.MethodGet, "/sse", "", "Accept", "text/event-stream", "Last-Event-ID", "4").Body
	defer events.Close()
	lines := bufio.NewReader(events)
	next := func() {
		for line := ""; line != "\n"; {
			var err error
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	next()
	for _, call := range liveCalls {
		g.do(http.MethodPost, "/messages", call)
		next()
	}
	return g
}

// A liveFork is the replay of a recordLive that leaves its tape after all of it. far answers in the place of the server.
type liveFork struct {
	*mcp.OverHTTP
	last exchange.Live // what the client sent last
	get  exchange.Live // the stream of HTTP+SSE; nil for none
	told []*mcp.ToldAnswer
	sent []*exchange.Request
	far  exchange.Sender
	mu   sync.Mutex // guards sent
}

func newLiveFork(t *testing.T, g *webRig, far exchange.Sender) *liveFork {
	t.Helper()
	book, err := mcp.NewBook(g.reader().Records(), g.store, &mcp.BookOptions{Scrub: scrub.New(scrub.Key{1}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	f := &liveFork{OverHTTP: mcp.NewOverHTTP(&mcp.OverHTTPOptions{Book: book}), far: far}
	f.GoLive(&mcp.LiveOptions{
		Serves: func(string) bool { return true }, Patience: livePatience,
		Told: func(_ *mcp.Recorded, a *mcp.ToldAnswer) { f.told = append(f.told, a) },
	})
	var all []*tape.Exchange
	for _, r := range g.records() {
		if x := tape.ExchangeOf(r.Kind); x != nil {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *tape.Exchange) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for _, x := range all {
		f.begin(t, g, x)
	}
	f.Leave()
	return f
}

// begin has the client send a recorded request again.
func (f *liveFork) begin(t *testing.T, g *webRig, x *tape.Exchange) {
	t.Helper()
	r := &exchange.Request{Method: x.Method, URL: x.URL, Header: exchange.HeaderOf(x.RequestHeaders)}
	if x.RequestPayload != nil {
		r.Body, _ = x.RequestPayload.Bytes(g.store)
	}
	p, err := f.Begin(&exchange.Asked{Request: r, Arrival: x.Arrival, Recorded: &exchange.Recorded{Arrival: x.Arrival, Exchange: x}})
	if err != nil || p == nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	f.last = p.(exchange.Live)
	if r.Method == http.MethodGet {
		f.get = f.last
		_ = p.Head(x.Status, exchange.HeaderOf(x.ResponseHeaders))
		if _, err := p.Chunk(t.Context(), []byte("event: endpoint\ndata: /messages\n\n"), false); err != nil {
			t.Fatal(err)
		}
	}
}

// send is the exchange.Sender.
func (f *liveFork) send(ctx context.Context, r *exchange.Request) (*http.Response, error) {
	f.mu.Lock()
	f.sent = append(f.sent, r)
	f.mu.Unlock()
	return f.far(ctx, r)
}

// why says of each answer of the tape what came in its place.
func (f *liveFork) why() (all []string) {
	for _, a := range f.told {
		all = append(all, a.Why)
	}
	return all
}

// events are an answer that say writes, until ctx is done.
func events(ctx context.Context, say func(w io.Writer)) (*http.Response, error) {
	body, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() {
		say(w)
		w.CloseWithError(ctx.Err()) // nil is an end as any other
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

// silent is an answer of which nothing comes, not even a head.
func silent(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func accepted() (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody}, nil
}

var errRefused = errors.New("connection refused")

// TestLiveServerThatFails: whatever a server does, it is waited for once at most, and what it was not told is said.
func TestLiveServerThatFails(t *testing.T) {
	t.Parallel()
	const late, endpoint = "no answer came in time", "event: endpoint\ndata: /messages\n\n"
	isGet := func(r *exchange.Request) bool { return r.Method == http.MethodGet }
	for _, tt := range []struct {
		name  string
		sse   bool
		far   exchange.Sender
		why   []string
		after time.Duration
		sent  int // before the client's own
	}{
		{"refuses", false, func(context.Context, *exchange.Request) (*http.Response, error) { return nil, errRefused }, repeated("connection refused"), 0, 1},
		{"silent", false, func(ctx context.Context, _ *exchange.Request) (*http.Response, error) { return silent(ctx) }, repeated(late), livePatience, 1},
		{"silent behind the head", false, func(ctx context.Context, _ *exchange.Request) (*http.Response, error) {
			return events(ctx, func(io.Writer) { <-ctx.Done() })
		}, repeated(late), livePatience, 1},
		{"no answer in an answer", false, func(ctx context.Context, _ *exchange.Request) (*http.Response, error) {
			return events(ctx, func(io.Writer) {})
		}, repeated("it gave no answer"), 0, 3},
		{"answers to others first", false, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			return events(ctx, func(w io.Writer) { io.WriteString(w, liveAnswer(99)+liveAnswer(idIn(r))) })
		}, repeated(""), 0, 3},
		{"never takes a reply", false, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			if idIn(r) == 7 {
				return silent(ctx)
			}
			return events(ctx, func(w io.Writer) { io.WriteString(w, `data: {"jsonrpc":"2.0","id":7,"method":"roots/list"}`+"\n\n") })
		}, repeated(late), livePatience, 2},
		{"no stream", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) { return silent(ctx) }, repeated(late), livePatience, 1},
		{"no endpoint", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			return events(ctx, func(io.Writer) { <-ctx.Done() })
		}, repeated(late), livePatience, 1},
		{"refuses the stream", true, func(context.Context, *exchange.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 404, Status: "404 Not Found", Header: http.Header{}, Body: http.NoBody}, nil
		}, repeated("it answered 404 Not Found"), 0, 1},
		{"an endpoint elsewhere", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			return events(ctx, func(w io.Writer) {
				io.WriteString(w, "event: endpoint\ndata: http://evil.example.com/messages\n\n")
				<-ctx.Done()
			})
		}, repeated("it wants messages at http://evil.example.com, and its events are at http://mcp.example.com: nothing is sent there"), 0, 1},
		{"dies behind its endpoint", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			if isGet(r) {
				return events(ctx, func(w io.Writer) { io.WriteString(w, endpoint); time.Sleep(time.Second) })
			}
			return accepted()
		}, repeated("its stream of events ended"), time.Second, 2},
		{"refuses messages", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			if isGet(r) {
				return events(ctx, func(w io.Writer) { io.WriteString(w, endpoint); <-ctx.Done() })
			}
			return nil, errRefused
		}, repeated("connection refused"), 0, 2},
		{"an answer before its endpoint, and none behind it", true, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			if isGet(r) {
				return events(ctx, func(w io.Writer) { io.WriteString(w, liveAnswer(1)+endpoint); <-ctx.Done() })
			}
			return accepted()
		}, repeated(late), livePatience, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := recordLive(t, tt.sse)
			synctest.Test(t, func(t *testing.T) {
				f, begun := newLiveFork(t, g, tt.far), time.Now()
				ctx, stop := context.WithTimeout(t.Context(), tt.after+time.Second)
				defer stop()
				if res, ok, err := f.last.Send(ctx, f.send); !ok {
					t.Errorf("%v: nothing of the conversation's", err)
				} else if err == nil {
					res.Body.Close()
				}
				if err := f.End(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took < tt.after || took > tt.after+time.Second {
					t.Errorf("it was waited for %v, want %v", took, tt.after)
				}
				if why := f.why(); !slices.Equal(why, tt.why) {
					t.Errorf("told %q, want %q", why, tt.why)
				}
				if n := len(f.sent) - 1; n != tt.sent {
					t.Errorf("%d requests were sent before the client's, want %d", n, tt.sent)
				}
				for _, r := range f.sent {
					if !strings.HasPrefix(r.URL, "http://"+webHost+"/") {
						t.Errorf("sent to %s", r.URL)
					}
				}
			})
		})
	}
}

// repeated is why each answer did not come.
func repeated(why string) []string { return slices.Repeat([]string{why}, len(liveCalls)) }

// idIn is the id of what a request asks or answers.
func idIn(r *exchange.Request) (id int) {
	m, _, _ := mcp.Parse(r.Body)
	_ = json.Unmarshal(m[0].ID, &id)
	return id
}

// TestLiveClientThatGoes: who waits for a server to be told goes when it likes, and End does not wait for the server.
func TestLiveClientThatGoes(t *testing.T) {
	t.Parallel()
	g := recordLive(t, false)
	synctest.Test(t, func(t *testing.T) {
		f, begun := newLiveFork(t, g, func(ctx context.Context, _ *exchange.Request) (*http.Response, error) { return silent(ctx) }), time.Now()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, ok, err := f.last.Send(ctx, f.send); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := f.End(); err != nil || time.Since(begun) != time.Second {
			t.Errorf("ended after %v: %v", time.Since(begun), err)
		}
	})
}

// TestLiveStreamNobodyReads: what a server says unasked waits for no client for ever.
func TestLiveStreamNobodyReads(t *testing.T) {
	t.Parallel()
	g := recordLive(t, true)
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string)
		f := newLiveFork(t, g, func(ctx context.Context, r *exchange.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				said <- liveAnswer(idIn(r))
				return accepted()
			}
			if id := r.Header.Get("Last-Event-ID"); id != "" {
				t.Errorf("the stream goes on after %s, which the server does not know", id)
			}
			return events(ctx, func(w io.Writer) {
				for line := "event: endpoint\ndata: /messages\n\n"; line != ""; {
					io.WriteString(w, line)
					select {
					case line = <-said:
					case <-ctx.Done():
						line = ""
					}
				}
			})
		})
		if _, _, err := f.last.Send(t.Context(), f.send); err != nil {
			t.Error(err)
		}
		synctest.Wait() // its answer stands in the pipe
		if err := f.End(); err != nil || !slices.Equal(f.why(), repeated("")) {
			t.Errorf("told %q: %v", f.why(), err)
		}
	})
}
