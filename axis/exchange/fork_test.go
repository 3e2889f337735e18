package exchange_test

import (
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// history is a call of a conversation that an opening begins, with its history.
func history(opening, said string) string {
	if said != "" {
		said = "," + said
	}
	return `{"model":"m","messages":["` + opening + `"` + said + `]}`
}

// laneOf is the lane of a conversation.
func laneOf(t *testing.T, opening string) string {
	t.Helper()
	id, _ := identify(t, "https://h/call", history(opening, ""))
	return new(exchange.Lanes).Begin(id, "https://h/call")
}

// forking is a replay of three turns of one conversation beside two of another, with a POST before each turn of the first, forked at some
// record.
type forking struct {
	*rig
	fork *exchange.Fork
	past int
}

func newForking(t *testing.T, at uint64, o exchange.ForkOptions) *forking {
	t.Helper()
	a, b := laneOf(t, "a"), laneOf(t, "b")
	book := newBook(t,
		post(1, "https://h/p", "1"), said(2, a, history("a", "")),
		said(3, b, history("b", "")),
		post(4, "https://h/p", "2"), said(5, a, history("a", "1")),
		said(6, b, history("b", "1")),
		post(7, "https://h/p", "3"), said(8, a, history("a", "1,2")),
	)
	f := &forking{rig: newRig(t, exchange.TapOptions{Replay: true})}
	o.Passing = func() { f.past++ }
	var err error
	if f.fork, err = book.Fork(at, o); err != nil {
		t.Fatal(err)
	}
	return f
}

// ask asks for something, and says where that stands and the arrival of what answers it.
func (f *forking) ask(url, body string) (exchange.Place, uint64) {
	f.t.Helper()
	rec, place := f.fork.Take(f.begin(url, body))
	if rec == nil {
		return place, 0
	}
	return place, rec.Arrival
}

// want asks, and compares.
func (f *forking) want(url, body string, place exchange.Place, arrival uint64) {
	f.t.Helper()
	if p, a := f.ask(url, body); p != place || a != arrival {
		f.t.Errorf("%s %s: got place %d, answered by %d; want %d, %d", url, body, p, a, place, arrival)
	}
}

const call, plain = "https://h/call", "https://h/p"

// TestFork comes to the second turn of a conversation: what stands before it answers, also what comes late; the other conversation, which
// is ahead, goes on from the tape until then.
func TestFork(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{})
	f.want(call, history("a", ""), exchange.OnTape, 2)
	f.want(call, history("b", ""), exchange.OnTape, 3)
	f.want(call, history("b", "1"), exchange.OnTape, 6)
	f.want(plain, "2", exchange.OnTape, 4)
	if f.fork.Past() || f.past > 0 {
		t.Error("it is past the point before it came there")
	}
	f.want(call, history("a", "1"), exchange.At, 0)
	f.want(call, history("a", "1,2"), exchange.Past, 0)
	f.want(plain, "3", exchange.Past, 0)
	f.want(plain, "1", exchange.OnTape, 1)
	if !f.fork.Past() || f.past != 1 || f.fork.Lost() != "" {
		t.Errorf("past %v, told %d times, lost %q", f.fork.Past(), f.past, f.fork.Lost())
	}
}

// TestForkOtherAtThePoint: the request at the point may be another one, for what came before it was the same.
func TestForkOtherAtThePoint(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{})
	f.want(call, history("a", ""), exchange.OnTape, 2)
	f.want(call, history("a", `"other"`), exchange.At, 0)
}

// TestForkLost: a run that asks for something else before the point does not come there, whatever follows.
func TestForkLost(t *testing.T) {
	for _, other := range []string{history("a", `"other"`), history("b", `"other"`), history("c", ""), "other"} {
		f := newForking(t, 7, exchange.ForkOptions{})
		f.want(call, history("a", ""), exchange.OnTape, 2)
		f.want(call, history("b", ""), exchange.OnTape, 3)
		f.want(call, other, exchange.Before, 0)
		f.want(call, history("a", "1"), exchange.OnTape, 5)
		f.want(call, history("a", "1,2"), exchange.Before, 0)
		if f.fork.Past() || f.fork.Lost() == "" {
			t.Errorf("%s: past %v, lost %q", other, f.fork.Past(), f.fork.Lost())
		}
	}
}

// TestForkOthersAtThePoint: once the conversation has all its answers another one that asks for something new, and a host, are still before
// the point.
func TestForkOthersAtThePoint(t *testing.T) {
	for _, other := range []string{history("b", `"other"`), history("c", ""), "other"} {
		f := newForking(t, 7, exchange.ForkOptions{})
		f.want(call, history("a", ""), exchange.OnTape, 2)
		f.want(call, history("b", ""), exchange.OnTape, 3)
		f.want(call, history("a", "1"), exchange.OnTape, 5)
		f.want(call, other, exchange.Before, 0)
		f.want(call, history("a", "1,2"), exchange.Before, 0)
	}
}

// TestForkClosed: what was recorded past the point answers where it fits, but not the exchange at the point.
func TestForkClosed(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{Closed: true})
	f.want(call, history("a", ""), exchange.OnTape, 2)
	f.want(call, history("a", "1"), exchange.At, 0)
	f.want(plain, "3", exchange.OnTape, 7)
	f.want(call, history("a", "1,2"), exchange.OnTape, 8)
	f.want(call, history("a", "1"), exchange.Past, 0)
	f.want(call, history("a", "3"), exchange.Past, 0)
}

// TestForkKept: what is the tape's alone is never past the point, and never a divergence.
func TestForkKept(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{Kept: func(r *exchange.Request) bool { return r.URL == plain }})
	f.want(plain, "other", exchange.Before, 0)
	f.want(call, history("a", ""), exchange.OnTape, 2)
	f.want(call, history("a", "1"), exchange.At, 0)
	f.want(plain, "other", exchange.Before, 0)
	if f.fork.Lost() != "" {
		t.Error(f.fork.Lost())
	}
}

// TestForkSocket: a point within a WebSocket is refused, and so is one that is no exchange's.
func TestForkSocket(t *testing.T) {
	b := newBook(t, &tape.WSOpen{Arrival: 1, URL: "wss://h/s", Lane: "ws:h"}, &tape.ClockRead{})
	for _, seq := range []uint64{0, 1, 2} {
		if _, err := b.Fork(seq, exchange.ForkOptions{}); err == nil {
			t.Errorf("record %d was taken", seq)
		}
	}
}

// TestSendOn: a request past the point is recorded as one that an upstream answers, in the lane that the tape's calls had.
func TestSendOn(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{})
	o := f.begin(call, history("a", ""))
	if _, place := f.fork.Take(o); place != exchange.OnTape {
		t.Fatal(place)
	}
	f.answer(o, "", http.Header{}, []byte("recorded"))
	o = f.begin(call, history("a", "1"))
	f.fork.Take(o)
	if err := o.SendOn(); err != nil {
		t.Fatal(err)
	}
	o.Note(tape.SentFields(&tape.Sent{Model: "other", Changed: []string{"model"}})...)
	if !f.fork.Own(o.Lane()) {
		t.Errorf("it stands in lane %s", o.Lane())
	}
	f.answer(o, "", http.Header{}, []byte("live"))
	var before []bool
	for rec := range f.records() {
		before = append(before, f.fork.Before(rec, false))
		if k := rec.Kind.(*tape.LLMCall); rec.Seq == 1 && (tape.SentOf(k) == nil || tape.SentOf(k).Model != "other") {
			t.Errorf("what was sent is not told: %s", k.Extra)
		}
	}
	if len(before) != 2 || !before[0] || before[1] {
		t.Errorf("before the point stand %v, want the first of two", before)
	}
}

// TestForkTwins: of two conversations of one opening the one that is forked takes the run past the point; the other one is answered from the
// tape until then, and not changed.
func TestForkTwins(t *testing.T) {
	a := laneOf(t, "a")
	for own, at := range map[string]uint64{"1": 2, "2": 3} {
		rig := newRig(t, exchange.TapOptions{Replay: true})
		book := newBook(t,
			said(1, a, history("a", "")), said(2, a+"#2", history("a", "")),
			said(3, a, history("a", "1")), said(4, a+"#2", history("a", "2")),
			said(5, a, history("a", "1,1")), said(6, a+"#2", history("a", "2,2")))
		fork, err := book.Fork(at, exchange.ForkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := &forking{rig: rig, fork: fork}
		begin := func(said string) (*exchange.Open, exchange.Place) {
			o := f.begin(call, history("a", said))
			_, place := fork.Take(o)
			if err := o.SendOn(); err != nil {
				t.Fatal(err)
			}
			return o, place
		}
		f.want(call, history("a", ""), exchange.OnTape, 1)
		f.want(call, history("a", ""), exchange.OnTape, 2)
		other, its := "2", uint64(4)
		if own == "2" {
			other, its = "1", 3
		}
		f.want(call, history("a", other), exchange.OnTape, its)
		f.want(call, history("a", other+","+other), exchange.OnTape, its+2)
		if o, place := begin(own); place != exchange.At || !fork.Own(o.Lane()) {
			t.Errorf("%s: place %d in %s", own, place, o.Lane())
		}
		if o, place := begin(other + "," + other + ",5"); place != exchange.Past || fork.Own(o.Lane()) {
			t.Errorf("%s: the other goes on at place %d in %s", own, place, o.Lane())
		}
		if o, place := begin(own + ",5"); place != exchange.Past || !fork.Own(o.Lane()) {
			t.Errorf("%s: it goes on at place %d in %s", own, place, o.Lane())
		}
	}
}

// TestForkRefuse: a refusal past the point stands in the lane of its conversation, as an answer.
func TestForkRefuse(t *testing.T) {
	f := newForking(t, 4, exchange.ForkOptions{Closed: true})
	f.want(call, history("a", ""), exchange.OnTape, 2)
	f.want(call, history("a", "1"), exchange.At, 0)
	o := f.begin(call, history("a", "1,3"))
	if _, place := f.fork.Take(o); place != exchange.Past {
		t.Fatal(place)
	}
	if err := f.fork.Refuse(o); err != nil || !f.fork.Own(o.Lane()) {
		t.Errorf("in lane %s, %v", o.Lane(), err)
	}
	if got := f.fork.Refused(); len(got) != 1 || got[0] != "POST "+call {
		t.Errorf("refused are %q", got)
	}
}
