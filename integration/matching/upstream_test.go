package matching

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fault is what an upstream does instead of a whole answer.
type fault string

const (
	none      fault = ""
	limited   fault = "429"
	broken    fault = "500"
	overload  fault = "529"
	slow      fault = "a stream that takes too long to wait for"
	late      fault = "a whole answer that begins a while after the one to the same request has ended"
	hang      fault = "no answer until the client goes"
	stall     fault = "a part of the stream, then nothing until the client goes"
	noHeader  fault = "the connection ends before a byte"
	inHeader  fault = "the connection ends inside the header"
	reset     fault = "the connection is reset before a byte"
	inChunked fault = "the connection ends inside a chunked body"
	resetBody fault = "the connection is reset inside a chunked body"
	inLength  fault = "the connection ends before the length"
)

// lateness is how long after the other one a late answer begins: enough to tell the two apart on a busy machine too.
const lateness = 100 * time.Millisecond

// aside is how long two equal requests are at least under way together.
const aside = 5 * time.Millisecond

// An upstream answers model calls with event streams, and all else with one line. Each answer names the request that it is
// for and has a number of its own.
type upstream struct {
	// fault says what becomes of a request whose body came before, in the same attempt of its sender, as often as times says,
	// from 0. Nil is none.
	fault func(body string, attempt, times int) fault
	// same gives equal requests equal answers: their numbers are left out.
	same bool
	// twice lets no request be answered before its double is there.
	twice bool
	// crowd lets no request be answered before so many are there.
	crowd int
	// pace is the longest wait before a chunk, half of it the shortest.
	pace time.Duration
	held arrivals // bodies that were left without an answer
	sent arrivals // bodies that were answered whole

	mu    sync.Mutex
	rng   *rand.Rand
	times map[string]int
	pairs map[string]chan struct{} // by body; closed when it has come twice
	here  chan struct{}            // closed when the crowd is there
	count int
}

// serve starts the upstream, and returns its URL.
func (u *upstream) serve(t testing.TB) string {
	u.rng, u.times = rand.New(rand.NewPCG(1, 2)), make(map[string]int)
	u.pairs = make(map[string]chan struct{})
	u.here = make(chan struct{})
	if u.pace == 0 {
		u.pace = time.Millisecond
	}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	return srv.URL
}

// double waits until a request has come twice.
func (u *upstream) double(r *http.Request, body string) {
	if !u.twice {
		return
	}
	u.mu.Lock()
	pair := u.pairs[body]
	if pair == nil {
		pair = make(chan struct{})
		u.pairs[body] = pair
	} else {
		close(pair)
	}
	u.mu.Unlock()
	select {
	case <-pair:
		time.Sleep(aside) // the tape tells only to the millisecond whether a request came before an answer had ended
	case <-r.Context().Done():
	}
}

// gather waits until the crowd is there; t is of one of it.
func (u *upstream) gather(r *http.Request, t *turn) {
	if t.number == u.crowd {
		close(u.here)
	}
	if t.number <= u.crowd {
		select {
		case <-u.here:
		case <-r.Context().Done():
		}
	}
}

// late waits until a request has been answered, and for a while; false where its sender has gone.
func (u *upstream) late(r *http.Request, body string) bool {
	select {
	case <-u.sent.wait(body):
	case <-r.Context().Done():
		return false
	}
	select {
	case <-time.After(lateness):
		return true
	case <-r.Context().Done():
		return false
	}
}

// turn is how one answer goes.
type turn struct {
	number int
	fault  fault
	pieces []string        // of the text
	waits  []time.Duration // before each
}

// plan decides how the request is answered.
func (u *upstream) plan(body, attempt string) *turn {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	t := &turn{number: u.count}
	if u.fault != nil {
		n, _ := strconv.Atoi(attempt) // 0 for none
		t.fault = u.fault(body, n, u.times[attempt+body])
	}
	u.times[attempt+body]++
	number := strconv.Itoa(t.number)
	if u.same {
		number = "any"
	}
	text := "for " + digest(body) + " number " + number + "."
	for range u.rng.IntN(12) {
		text += strings.Repeat(" more", u.rng.IntN(20))
	}
	for len(text) > 0 {
		n := min(len(text), 1+u.rng.IntN(60))
		t.pieces, text = append(t.pieces, text[:n]), text[n:]
		pace := u.pace
		if t.fault == slow {
			pace = max(pace, time.Second)
		}
		t.waits = append(t.waits, pace/2+time.Duration(u.rng.Int64N(int64(pace/2))))
	}
	if u.same { // the text depends on the request alone
		t.pieces = t.pieces[:1]
		t.pieces[0] = "for " + digest(body) + " number any."
	}
	return t
}

// digest names a text by letters alone: no mask takes them for something volatile.
func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	out := make([]byte, 16)
	for i := range out {
		out[i] = 'a' + sum[i]%26
	}
	return string(out)
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	u.double(r, r.URL.String()+string(b))
	t := u.plan(r.URL.String()+string(b), r.Header.Get("X-Stainless-Retry-Count"))
	u.gather(r, t)
	switch t.fault {
	case limited, broken, overload:
		status, _ := strconv.Atoi(string(t.fault))
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"try_again","message":"number %d"}}`, t.number)
	case hang:
		u.held.note(string(b))
		<-r.Context().Done()
	case none, slow, late, stall:
		if t.fault == late && !u.late(r, string(b)) {
			return
		}
		defer u.sent.note(string(b))
		if strings.HasPrefix(r.URL.Path, "/tool") {
			io.WriteString(w, strings.Join(t.pieces, ""))
			return
		}
		t.stream(w, r)
	default:
		t.cut(w)
	}
}

// stalled is how many events come of an answer that stalls.
const stalled = 2

// stream sends the answer of a model, event by event.
func (t *turn) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	io.WriteString(w, event("message_start", `{"message":{"usage":{"input_tokens":1}}}`))
	flush()
	for i, piece := range t.pieces {
		select {
		case <-time.After(t.waits[i]):
		case <-r.Context().Done():
			return
		}
		io.WriteString(w, deltaOf(piece))
		flush()
		if t.fault == stall {
			<-r.Context().Done()
			return
		}
	}
	io.WriteString(w, event("message_delta", `{"usage":{"output_tokens":1}}`)+event("message_stop", `{}`))
}

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func deltaOf(text string) string {
	b, _ := json.Marshal(text) // a string always has a JSON form
	return event("content_block_delta", `{"delta":{"text":`+string(b)+`}}`)
}

// cut ends the connection in the way of the fault.
func (t *turn) cut(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // the recorder speaks HTTP/1.1 to it
	}
	defer c.Close()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	begun := event("message_start", `{}`) + deltaOf("for nobody")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(begun), begun)
	switch t.fault {
	case inHeader:
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty")
	case inChunked:
		io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk+"40\r\nhalf")
	case resetBody:
		io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk)
		c.(*net.TCPConn).SetLinger(0)
	case inLength:
		io.WriteString(c, head+"Content-Length: 5000\r\n\r\n"+begun)
	case reset:
		c.(*net.TCPConn).SetLinger(0)
	}
}
