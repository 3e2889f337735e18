package exchange_test

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tapeOf yields kinds as records.
func tapeOf(kinds ...tape.Kind) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for i, k := range kinds {
			if !yield(&tape.Record{Seq: uint64(i), Kind: k}, nil) {
				return
			}
		}
	}
}

func newBook(t testing.TB, kinds ...tape.Kind) *exchange.Book {
	t.Helper()
	b, err := exchange.NewBook(tapeOf(kinds...), classifier{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// post is a recorded POST with its body inline.
func post(arrival uint64, url, body string) *tape.HTTPExchange {
	return &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: http.MethodPost, URL: url, Status: 200, Arrival: arrival, Lane: "http:h",
		RequestDigest:  cas.Sum([]byte(body)),
		RequestPayload: &tape.Payload{Text: body, Inline: true, Len: int64(len(body))},
	}}
}

// said is a recorded call in the conversation that the first message opens.
func said(arrival uint64, lane, body string) *tape.LLMCall {
	x := post(arrival, "https://h/call", body).Exchange
	x.Lane = lane
	return &tape.LLMCall{Provider: "test", Endpoint: "messages", Model: "m", Exchange: x}
}

func identify(t testing.TB, url, body string) (*exchange.Identity, *exchange.Request) {
	t.Helper()
	r := &exchange.Request{Method: http.MethodPost, URL: url, Body: []byte(body)}
	id, err := classifier{}.Classify(r)
	if err != nil {
		t.Fatal(err)
	}
	return id, r
}

func TestBookOrder(t *testing.T) {
	b := newBook(t, post(3, "https://h/a", "x"), &tape.ClockRead{}, post(1, "https://h/a", "x"), post(2, "https://h/a", "y"))
	id, _ := identify(t, "https://h/a", "x")
	for _, want := range []uint64{1, 3} {
		rec, ok := b.Take(id.Key)
		if !ok || rec.Arrival != want {
			t.Errorf("got %+v, want arrival %d", rec, want)
		}
	}
	if rec, ok := b.Take(id.Key); ok || rec != nil {
		t.Errorf("a third answer: %+v", rec)
	}
	if left := b.Unasked(); len(left) != 1 || left[0].Seq != 3 {
		t.Errorf("%+v", left)
	}
	if n := b.Audit(); n != 0 {
		t.Errorf("crossed %d", n)
	}
}

func TestBookError(t *testing.T) {
	broken := errors.New("broken")
	records := func(yield func(*tape.Record, error) bool) { yield(nil, broken) }
	if _, err := exchange.NewBook(records, classifier{}, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestBookLeavesOut sees refused requests of a replay's own tape answer nothing.
func TestBookLeavesOut(t *testing.T) {
	refused := post(1, "https://h/a", "x")
	refused.Lane = exchange.Unmatched
	b := newBook(t, refused, &tape.LLMCall{})
	id, _ := identify(t, "https://h/a", "x")
	if _, ok := b.Take(id.Key); ok {
		t.Error("a refusal is an answer")
	}
}

func TestDeadHost(t *testing.T) {
	silent := func(arrival uint64, url string) *tape.HTTPExchange {
		p := post(arrival, url, "")
		p.Status = 0
		return p
	}
	call := said(7, "llm:x", `{"model":"m"}`)
	call.URL, call.Status = "https://model/x", 0
	b := newBook(t, silent(1, "https://dead/a"), silent(2, "https://dead/b"), silent(3, "https://half/a"),
		post(4, "https://half/b", ""), post(5, "https://half2/b", ""), silent(6, "https://half2/a"), call)
	for host, want := range map[string]bool{
		"dead": true, "DEAD": true, "dead:8443": false, "half": false, "half2": false, "model": false, "other": false,
	} {
		if b.DeadHost(host) != want {
			t.Errorf("%s: %t", host, !want)
		}
	}
	if left := b.Unasked(); len(left) != 3 {
		t.Errorf("%d unasked, want the two answered and the call of a model", len(left))
	}
	upgrade := post(1, "https://h/ws", "")
	upgrade.Status, upgrade.RequestHeaders = 426, []tape.HeaderField{{Name: "Upgrade", Value: "websocket"}}
	if left := newBook(t, upgrade).Unasked(); len(left) != 0 {
		t.Errorf("a refused upgrade is unasked")
	}
}

func TestNearest(t *testing.T) {
	const u1, u2 = `{"model":"m","messages":["write hello.txt"]}`, `{"model":"m","messages":["write hello.txt","ok","thanks"]}`
	opening, _ := identify(t, "https://h/call", u1)
	lane := "llm:" + opening.Talk().Opening.Short()
	book := func() *exchange.Book {
		return newBook(t, said(1, lane, u1), said(2, lane, u2), said(3, "llm:other", `{"model":"m","messages":["lunch?"]}`),
			post(4, "https://h/a?n=1", `{"n":1}`), post(5, "https://h/a?n=1", `{"n":2,"m":3}`), post(6, "https://g/b", "one\ntwo\n"))
	}
	for _, tc := range []struct {
		name, url, body string
		seq             uint64 // of the nearest; 99 for none
		says            []string
	}{
		{"prompt", "https://h/call", `{"model":"m","messages":["write bye.txt"]}`, 0,
			[]string{"record 0", lane, "messages[0]", "hello.txt", "bye.txt"}},
		{"later turn", "https://h/call", `{"model":"m","messages":["write hello.txt","ok","bye"]}`, 1, []string{"messages[2]", "thanks", "bye"}},
		{"model", "https://h/call", `{"model":"n","messages":["lunch?"]}`, 2, []string{`model: "m" -> "n"`}},
		{"query", "https://h/a?n=2", `{"n":1}`, 3, []string{"n=1", "n=2"}},
		{"fewest differences", "https://h/a?n=1", `{"n":2,"m":4}`, 4, []string{"m: 3 -> 4"}},
		{"same host", "https://h/z", `{"n":1}`, 3, []string{`"https://h/a?n=1" -> "https://h/z"`}},
		{"text", "https://g/b", "one\nthree\n", 5, []string{"two", "three"}},
		{"nothing", "https://nowhere/", "", 99, []string{"nowhere"}},
	} {
		b := book()
		id, r := identify(t, tc.url, tc.body)
		if _, ok := b.Take(id.Key); ok {
			t.Fatalf("%s is on the tape", tc.name)
		}
		rec, why := b.Nearest(id, r)
		if (rec == nil) != (tc.seq == 99) || rec != nil && rec.Seq != tc.seq {
			t.Errorf("%s: %+v: %s", tc.name, rec, why)
		}
		for _, part := range tc.says {
			if !strings.Contains(why, part) {
				t.Errorf("%s: no %q in %s", tc.name, part, why)
			}
		}
	}
}

func TestNearestExhausted(t *testing.T) {
	b := newBook(t, post(1, "https://h/a", "x"), post(2, "https://h/a", "x"))
	id, r := identify(t, "https://h/a", "x")
	for range 3 {
		b.Take(id.Key)
	}
	rec, why := b.Nearest(id, r)
	if rec == nil || rec.Seq != 1 || !strings.Contains(why, "asked 3 times, recorded 2 times") {
		t.Errorf("%+v: %s", rec, why)
	}
}

// TestNearestBounded does not look at every record of a long tape.
func TestNearestBounded(t *testing.T) {
	store := &countingStore{Memory: cas.NewMemory()}
	var kinds []tape.Kind
	for i := range 500 {
		body := fmt.Sprintf(`{"n":%d}`, i)
		p := post(uint64(i+1), "https://h/a", body)
		d, err := store.Put([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		p.RequestPayload = &tape.Payload{Hash: d, Len: int64(len(body))}
		kinds = append(kinds, p)
	}
	b, err := exchange.NewBook(tapeOf(kinds...), classifier{}, store)
	if err != nil {
		t.Fatal(err)
	}
	id, r := identify(t, "https://h/a", `{"n":"x"}`)
	if rec, why := b.Nearest(id, r); rec == nil || store.gets == 0 || store.gets > 16 {
		t.Errorf("%d bodies read: %s", store.gets, why)
	}
}

type countingStore struct {
	*cas.Memory
	gets int
}

func (s *countingStore) Get(d cas.Digest) ([]byte, error) {
	s.gets++
	return s.Memory.Get(d)
}

func TestRefusal(t *testing.T) {
	_, r := identify(t, "https://h/a", "x")
	got := exchange.Refusal(r, "nearest is record 4, differs in n: 1 -> 2")
	for _, part := range []string{"POST https://h/a", "record 4", "n: 1 -> 2"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in %s", part, got)
		}
	}
}

func TestDamaged(t *testing.T) {
	second := post(2, "https://h/b", "x")
	second.Response = &tape.Payload{Hash: cas.Sum([]byte("answer")), Len: 6}
	b := newBook(t, post(1, "https://h/a", "x"), second)
	if got := b.Damaged(); got != nil {
		t.Fatal(got)
	}
	for _, url := range []string{"https://h/b", "https://h/a"} {
		id, _ := identify(t, url, "x")
		rec, ok := b.Take(id.Key)
		if !ok {
			t.Fatal(url)
		}
		b.Damage(rec, errors.New("first of "+url))
		b.Damage(rec, errors.New("second"))
	}
	got := b.Damaged()
	want := [][]string{
		{"record 0", "https://h/a", "first of https://h/a"},
		{"record 1", "https://h/b", "first of https://h/b", second.Response.Hash.Short()},
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(got[i], part) {
				t.Errorf("no %q in %q", part, got[i])
			}
		}
	}
}

// TestAnswerAlike: where it is asked for, what is not on the tape is answered as what differs from it in the fewest words alone.
func TestAnswerAlike(t *testing.T) {
	const u = "https://h/a?run=1"
	for body, want := range map[string]uint64{`{"of":"a","run":9}`: 1, `{"of":"b","run":9}`: 2, `{"of":"b"}`: 0, `{"of":["b"],"run":9}`: 0} {
		b := newBook(t, post(1, u, `{"of":"a","run":1}`), post(2, u, `{"of":"b","run":2}`))
		id, r := identify(t, "https://h/a?run=8", body)
		arrival := func() uint64 {
			if rec := b.LikeAsked(id, r); rec != nil {
				return rec.Arrival
			}
			return 0
		}
		if got := arrival(); got != 0 {
			t.Errorf("%s: answered unasked by %d", body, got)
		}
		b.AnswerAlike()
		got := arrival()
		if got != want {
			t.Errorf("%s: got %d, want %d", body, got, want)
		}
		if again := arrival(); got != 0 && again == got {
			t.Errorf("%s: answered twice by %d", body, got)
		}
	}
}
