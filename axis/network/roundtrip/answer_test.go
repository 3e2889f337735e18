package roundtrip_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// dialogue asks a server some things; what it hears says what was asked.
func dialogue(r *rig, base string) (heard []string) {
	for _, path := range []string{"/a", "/a", "/long", "/b?x=1"} {
		heard = append(heard, r.get(base+path))
	}
	return append(heard, r.post(base+"/post", `{"b":1,"a":[2]}`), r.post(base+"/post", `{"b":2}`))
}

// TestAgain records against a server, answers from that tape, and from the tape of that: all hear the same, and the two
// answered runs write the same bytes as the live one.
func TestAgain(t *testing.T) {
	n := 0
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Count", strings.Repeat("i", n))
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		io.WriteString(w, r.URL.String()+string(b)+strings.Repeat("i", n))
		if r.URL.Path == "/long" {
			io.WriteString(w, strings.Repeat("0123456789", tape.InlineLimit))
		}
	})
	live := newRig(t, &roundtrip.Options{Allow: []string{hostOf(srv)}})
	want := dialogue(live, srv.URL)
	from := live.tape()
	written := live.buf.String()
	srv.Close()
	for range 2 {
		r := newRig(t, &roundtrip.Options{Tape: from})
		if got := dialogue(r, srv.URL); !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
		if left := r.Unasked(); len(left) > 0 {
			t.Errorf("%d unasked", len(left))
		}
		from = r.tape()
		if diff := cmp.Diff(written, r.buf.String()); diff != "" {
			t.Errorf("the tape of the answered run (-live +answered):\n%s", diff)
		}
	}
}

// TestUnmatched names the nearest and what differs, and gives the record that was asked for.
func TestUnmatched(t *testing.T) {
	live := newRig(t, &roundtrip.Options{Next: &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, io.NopCloser(strings.NewReader("ok")))(req)
	}}})
	live.post("http://h.example/v1/items", `{"name":"one","n":1}`)
	r := newRig(t, &roundtrip.Options{Tape: live.tape()})
	_, err := r.client.Post("http://h.example/v1/items", "application/json", strings.NewReader(`{"name":"two","n":1}`))
	var un *roundtrip.UnmatchedError
	if !errors.As(err, &un) || un.Nearest == nil || un.Nearest.Seq != 0 || un.Call != 1 {
		t.Fatalf("%+v, %v", un, err)
	}
	if !strings.Contains(un.Why, `"one" -> "two"`) {
		t.Errorf("why: %s", un.Why)
	}
	x := tape.ExchangeOf(un.Asked)
	if x.Method != "POST" || x.URL != "http://h.example/v1/items" || x.RequestPayload.Text != `{"name":"two","n":1}` || x.Status != 0 {
		t.Errorf("asked %+v", x)
	}
	r.post("http://h.example/v1/items", `{"name":"one","n":1}`)
	if _, err := r.client.Post("http://h.example/v1/items", "", strings.NewReader(`{"name":"one","n":1}`)); !errors.As(err, &un) || !strings.Contains(un.Why, "asked 2 times, recorded once") {
		t.Errorf("%v", err)
	}
	if x := r.exchanges(); len(x) != 1 {
		t.Errorf("%d records: what nothing answers is on no tape", len(x))
	}
}

// TestBesideTape sends to allowed hosts what the tape lacks.
func TestBesideTape(t *testing.T) {
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, io.NopCloser(strings.NewReader("live "+req.URL.Path)))(req)
	}}
	live := newRig(t, &roundtrip.Options{Next: next})
	live.get("http://h.example/a")
	r := newRig(t, &roundtrip.Options{Tape: live.tape(), Allow: []string{"h.example"}, Next: next})
	if got := r.get("http://h.example/a") + r.get("http://h.example/b"); got != "live /alive /b" || next.calls != 2 {
		t.Errorf("%s, %d sent", got, next.calls)
	}
	var un *roundtrip.UnmatchedError
	if _, err := r.client.Get("http://other.example/"); !errors.As(err, &un) {
		t.Errorf("%v", err)
	}
	if x := r.exchanges(); len(x) != 2 || x[0].Arrival != 1 || x[1].Arrival != 2 || x[1].Lane != "http:h.example" {
		t.Errorf("%+v", x)
	}
}

// TestChunks keeps the boundaries of a stream, whatever the program's buffer, and gives them again.
func TestChunks(t *testing.T) {
	said := []string{"data: 1\n\n", "data: twenty\n\n", "data: 3\n\n"}
	h := http.Header{"Content-Type": {"text/event-stream"}}
	now := int64(1000)
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, h, &pieces{left: said})(req)
	}}
	ask := func(r *rig) (got []string) {
		res, err := r.client.Get("http://h.example/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		buf := make([]byte, 100)
		for {
			n, err := res.Body.Read(buf)
			if errors.Is(err, io.EOF) {
				return got
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(buf[:n]))
			now += 7
		}
	}
	live := newRig(t, &roundtrip.Options{Next: next, NowMS: func() int64 { return now }})
	if got := ask(live); !cmp.Equal(got, said) {
		t.Fatal(got)
	}
	want := []tape.Chunk{{Length: 9}, {Offset: 9, Length: 14, TMS: 7}, {Offset: 23, Length: 9, TMS: 14}}
	if diff := cmp.Diff(want, live.exchanges()[0].Stream); diff != "" {
		t.Error(diff)
	}
	from := live.tape()
	for i := range want {
		want[i].TMS = 0
	}
	r := newRig(t, &roundtrip.Options{Tape: from, NowMS: func() int64 { return now }})
	if got := ask(r); !cmp.Equal(got, said) {
		t.Fatal(got)
	}
	if diff := cmp.Diff(want, r.exchanges()[0].Stream); diff != "" {
		t.Error(diff)
	}
}

// TestTimed has chunks wait on the run's clock, and the program's own doings count.
func TestTimed(t *testing.T) {
	from := &roundtrip.Tape{Records: []*tape.Record{{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: "GET", URL: "http://h.example/", RequestDigest: cas.Sum(nil), Status: 200,
		Response: tapePayload(t, "onetwo"), Stream: []tape.Chunk{{Length: 3, TMS: 50}, {Offset: 3, Length: 3, TMS: 60_000}},
	}}}}}
	now := int64(0)
	var waited []time.Duration
	r := newRig(t, &roundtrip.Options{Tape: from, Timed: true, NowMS: func() int64 { return now }, Wait: func(_ context.Context, d time.Duration) error {
		now += d.Milliseconds()
		waited = append(waited, d)
		return nil
	}})
	res, err := r.client.Get("http://h.example/")
	if err != nil {
		t.Fatal(err)
	}
	now += 20
	if got := r.read(res, nil); got != "onetwo" {
		t.Error(got)
	}
	if diff := cmp.Diff([]time.Duration{30 * time.Millisecond, 59_950 * time.Millisecond}, waited); diff != "" {
		t.Error(diff)
	}
	if x := r.exchanges()[0]; x.Stream[1].TMS != 60_000 {
		t.Errorf("%+v", x.Stream)
	}
}

func tapePayload(t *testing.T, text string) *tape.Payload {
	t.Helper()
	p, err := tape.MakePayload(cas.NewMemory(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCut gives an upstream's failures again: before an answer, and in the middle of one.
func TestCut(t *testing.T) {
	n := 0
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return nil, syscall.ECONNREFUSED
		}
		return answerOf(200, nil, &pieces{left: []string{"half"}, err: io.ErrUnexpectedEOF})(req)
	}}
	ask := func(r *rig) (string, error, error) {
		_, first := r.client.Get("http://h.example/")
		res, err := r.client.Get("http://h.example/")
		if err != nil {
			t.Fatal(err)
		}
		got, second := io.ReadAll(res.Body)
		return string(got), first, second
	}
	live := newRig(t, &roundtrip.Options{Next: next})
	ask(live)
	r := newRig(t, &roundtrip.Options{Tape: live.tape()})
	got, first, second := ask(r)
	if got != "half" || !errors.Is(first, syscall.ECONNREFUSED) || !errors.Is(second, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v, %v", got, first, second)
	}
	r.tape()
	if diff := cmp.Diff(live.buf.String(), r.buf.String()); diff != "" {
		t.Error(diff)
	}
}

// TestClosedEarly records what a program left unread, and a replay says the same of it: of a stream that would have gone on it
// was cut, of a value whose end had come it was whole.
func TestClosedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &through{do: func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/json" {
				return answerOf(200, nil, &pieces{left: []string{`{"a":1}`, "\n"}})(req)
			}
			return answerOf(200, nil, &waits{"first", req.Context()})(req)
		}}
		ask := func(r *rig) {
			for _, path := range []string{"/json", "/stream"} {
				res, err := r.client.Get("http://h.example" + path)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := res.Body.Read(make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				if err := res.Body.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		live := newRig(t, &roundtrip.Options{Next: next})
		ask(live)
		x := live.exchanges()
		if x[0].Error != "" || x[0].Response.Text != "{\"a\":1}\n" || x[1].Error != tape.Cancelled || x[1].Response.Text != "first" {
			t.Errorf("%+v\n%+v", x[0], x[1])
		}
		r := newRig(t, &roundtrip.Options{Tape: live.tape()})
		began := time.Now()
		ask(r)
		r.tape()
		if diff := cmp.Diff(live.buf.String(), r.buf.String()); diff != "" || time.Since(began) != 0 {
			t.Errorf("took %s:\n%s", time.Since(began), diff)
		}
	})
}

// TestEndsAgain has a program end on a replay what it had ended: by its own clock, which the answer waits on; one that does not is told.
func TestEndsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &through{do: func(req *http.Request) (*http.Response, error) {
			return answerOf(200, nil, &waits{"first", req.Context()})(req)
		}}
		ask := func(r *rig, ctx context.Context) error {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://h.example/", nil)
			res, err := r.client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			_, err = io.ReadAll(res.Body)
			return err
		}
		wait := func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		live := newRig(t, &roundtrip.Options{Next: next})
		if err := ask(live, ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if x := live.exchanges()[0]; x.Error != exchange.DeadlinePassed {
			t.Fatalf("%+v", x)
		}
		r := newRig(t, &roundtrip.Options{Tape: live.tape(), Wait: wait})
		again, cancelAgain := context.WithTimeout(t.Context(), time.Second)
		defer cancelAgain()
		began := time.Now()
		if err := ask(r, again); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		r.tape()
		if diff := cmp.Diff(live.buf.String(), r.buf.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestCutAtOnce lets no time of the machine pass before the last chunk of an answer that was ended.
func TestCutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &roundtrip.Tape{Records: []*tape.Record{{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{
			Method: "GET", URL: "http://h.example/", RequestDigest: cas.Sum(nil), Status: 200, Response: tapePayload(t, "ab"), Error: tape.Cancelled,
			Stream: []tape.Chunk{{Length: 1}, {Offset: 1, Length: 1}},
		}}}}}
		r := newRig(t, &roundtrip.Options{Tape: from})
		began := time.Now()
		res, err := r.client.Get("http://h.example/")
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(res.Body); string(got) != "ab" || time.Since(began) != 0 {
			t.Errorf("%q after %s", got, time.Since(began))
		}
	})
}

// TestHeldOn tells a program that does not end what it had ended.
func TestHeldOn(t *testing.T) {
	from := &roundtrip.Tape{Records: []*tape.Record{{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: "GET", URL: "http://h.example/", RequestDigest: cas.Sum(nil), Status: 200, Response: tapePayload(t, "a"), Error: tape.Cancelled,
	}}}}}
	r := newRig(t, &roundtrip.Options{Tape: from})
	res, err := r.client.Get("http://h.example/")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(res.Body)
	var cut *exchange.RecordedError
	if !errors.As(err, &cut) || cut.Text != tape.HeldOn {
		t.Errorf("%v", err)
	}
	if x := r.exchanges()[0]; x.Error != tape.HeldOn {
		t.Errorf("%+v", x)
	}
}

// TestLeftOpen ends at Close what a program never closed, by arrival.
func TestLeftOpen(t *testing.T) {
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, &pieces{left: []string{req.URL.Path}})(req)
	}}
	r := newRig(t, &roundtrip.Options{Next: next})
	for _, path := range []string{"/1", "/2", "/3", "/4", "/5"} {
		if _, err := r.client.Get("http://h.example" + path); err != nil {
			t.Fatal(err)
		}
	}
	for i, x := range r.exchanges() {
		if x.Arrival != uint64(i+1) {
			t.Errorf("record %d is arrival %d", i, x.Arrival)
		}
	}
}

// TestMissingBlob says which answer is damaged.
func TestMissingBlob(t *testing.T) {
	from := &roundtrip.Tape{Store: cas.NewMemory(), Records: []*tape.Record{{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: "GET", URL: "http://h.example/", RequestDigest: cas.Sum(nil), Status: 200, Response: tape.PayloadOf(cas.Sum([]byte("gone")), 5000),
	}}}}}
	r := newRig(t, &roundtrip.Options{Tape: from})
	_, err := r.client.Get("http://h.example/")
	var damaged *exchange.DamagedError
	var missing *cas.MissingError
	if !errors.As(err, &damaged) || !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
}

// TestHTTPTape has a tape that was kept by package httptape answer, trailers and protocol too.
func TestHTTPTape(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "ask me again")
		w.Header().Set("X-Sum", "12")
	})
	path := filepath.Join(t.TempDir(), "kept.tape")
	kept, err := httptape.Open(path, &httptape.Options{Mode: httptape.ModeRecordOnly})
	if err != nil {
		t.Fatal(err)
	}
	res, err := kept.Client().Get(srv.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	from, err := roundtrip.OpenTape(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := newRig(t, &roundtrip.Options{Tape: from})
		if res, err = r.client.Get(srv.URL + "/x"); err != nil {
			t.Fatal(err)
		}
		if got := r.read(res, nil); got != "ask me again" || res.Trailer.Get("X-Sum") != "12" || res.Proto != "HTTP/1.1" {
			t.Errorf("%q, %+v", got, res)
		}
		from = r.tape()
	}
}

// TestSecrets has none on the tape, whether it stands in a header, a query, or a body.
func TestSecrets(t *testing.T) {
	const key = "open-sesame-0123456789"
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		b, _ := json.Marshal(map[string]string{"echo": req.Header.Get("Authorization")})
		return answerOf(200, http.Header{"Content-Type": {"application/json"}}, io.NopCloser(strings.NewReader(string(b))))(req)
	}}
	ask := func(r *rig) string {
		req, _ := http.NewRequest(http.MethodPost, "http://h.example/?token="+key, strings.NewReader(`{"k":"`+key+`"}`))
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := r.client.Do(req)
		return r.read(res, err)
	}
	live := newRig(t, &roundtrip.Options{Next: next})
	if got := ask(live); !strings.Contains(got, key) {
		t.Errorf("the program got %s", got)
	}
	from := live.tape()
	if strings.Contains(live.buf.String(), key) {
		t.Errorf("on the tape: %s", live.buf.String())
	}
	ask(newRig(t, &roundtrip.Options{Tape: from}))
}

// TestRecording has the tape in the directory of a recording answer, torn as a killed recorder leaves it; one that is not there is
// named.
func TestRecording(t *testing.T) {
	live := newRig(t, &roundtrip.Options{Next: &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, io.NopCloser(strings.NewReader("from the recording")))(req)
	}}})
	live.get("http://h.example/")
	live.tape()
	dir := filepath.Join(t.TempDir(), "one.rec")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.tape"), append(live.buf.Bytes(), `{"type":"rec`...), 0o600); err != nil {
		t.Fatal(err)
	}
	from, err := roundtrip.OpenTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := newRig(t, &roundtrip.Options{Tape: from}).get("http://h.example/"); got != "from the recording" {
		t.Errorf("got %q", got)
	}
	if _, err := roundtrip.OpenTape(filepath.Join(t.TempDir(), "no.rec")); err == nil || !strings.Contains(err.Error(), "no.rec") {
		t.Errorf("%v", err)
	}
}

// TestCallsWithoutURL leaves out what package fixture recorded: it was asked over no wire.
func TestCallsWithoutURL(t *testing.T) {
	from := &roundtrip.Tape{Records: []*tape.Record{{Kind: &tape.LLMCall{Exchange: tape.Exchange{Response: tapePayload(t, "{}")}}}}}
	if left := newRig(t, &roundtrip.Options{Tape: from}).Unasked(); len(left) != 0 {
		t.Errorf("%d unasked", len(left))
	}
}

// TestAnyOrder is for the race detector: several goroutines ask one Transport.
func TestAnyOrder(t *testing.T) {
	next := &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, io.NopCloser(strings.NewReader(req.URL.Path)))(req)
	}}
	live := newRig(t, &roundtrip.Options{Next: next})
	for i := range 20 {
		live.get("http://h.example/" + strconv.Itoa(i))
	}
	r := newRig(t, &roundtrip.Options{Tape: live.tape()})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			path := "/" + strconv.Itoa(i)
			res, err := r.client.Get("http://h.example" + path)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if b, err := io.ReadAll(res.Body); err != nil || string(b) != path {
				t.Errorf("%s: %q, %v", path, b, err)
			}
		})
	}
	all.Wait()
	if x := r.exchanges(); len(x) != 20 {
		t.Errorf("%d records", len(x))
	}
}

// TestInOrder answers what another producer recorded in its order, whatever is asked, and no more than there is.
func TestInOrder(t *testing.T) {
	live := newRig(t, &roundtrip.Options{Next: &through{do: func(req *http.Request) (*http.Response, error) {
		return answerOf(200, nil, io.NopCloser(strings.NewReader(req.URL.Path)))(req)
	}}})
	live.get("http://h.example/1")
	live.get("http://h.example/2")
	r := newRig(t, &roundtrip.Options{Tape: live.tape(), InOrder: true})
	if got := r.get("http://h.example/a") + r.post("http://other.example/b", "{}"); got != "/1/2" {
		t.Errorf("got %s", got)
	}
	var un *roundtrip.UnmatchedError
	if _, err := r.client.Get("http://h.example/c"); !errors.As(err, &un) || un.Call != 3 {
		t.Errorf("%v", err)
	}
	if x := r.exchanges(); len(x) != 2 || x[1].URL != "http://other.example/b" || x[1].Response.Text != "/2" {
		t.Errorf("%+v", x)
	}
}

// TestProto keeps the protocol of an answer.
func TestProto(t *testing.T) {
	from := newRig(t, &roundtrip.Options{Next: &through{do: func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{}, Body: http.NoBody}, nil
	}}})
	from.get("https://h.example/")
	for range 2 {
		r := newRig(t, &roundtrip.Options{Tape: from.tape()})
		res, err := r.client.Get("https://h.example/")
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.Proto != "HTTP/2.0" || res.ProtoMajor != 2 {
			t.Errorf("%s %d", res.Proto, res.ProtoMajor)
		}
		from = r
	}
}

// TestEncoded keeps a body that the program decodes itself as it came, and one with a secret inside decoded.
func TestEncoded(t *testing.T) {
	const key = "open-sesame-0123456789"
	for _, secret := range []bool{false, true} {
		text := "in gzip: "
		if secret {
			text += key
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.WriteString(z, text)
		z.Close()
		ask := func(r *rig) string {
			req, _ := http.NewRequest(http.MethodGet, "http://h.example/", nil)
			req.Header.Set("Accept-Encoding", "gzip")
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			encoding := res.Header.Get("Content-Encoding")
			got := r.read(res, nil)
			if encoding == "" {
				return got
			}
			un, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(un)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		live := newRig(t, &roundtrip.Options{Next: &through{do: answerOf(200, http.Header{"Content-Encoding": {"gzip"}}, io.NopCloser(&packed))}})
		if got := ask(live); got != text {
			t.Errorf("the program got %q", got)
		}
		from := live.tape()
		x := tape.ExchangeOf(from.Records[0].Kind)
		stored, err := x.Response.Bytes(from.Store)
		if decoded := strings.HasPrefix(string(stored), "in gzip: "); err != nil || decoded != secret || strings.Contains(string(stored), key) {
			t.Errorf("with a secret: %t; stored %q, %v", secret, stored, err)
		}
		if got := ask(newRig(t, &roundtrip.Options{Tape: from})); !strings.HasPrefix(got, "in gzip: ") || strings.Contains(got, key) {
			t.Errorf("the answer of the tape is %q", got)
		}
	}
}
