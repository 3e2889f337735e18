package exchange_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const anyURL = "https://h.test/any"

// recordAlike records one socket a conversation, all opened before anything is said.
func recordAlike(t *testing.T, conversations ...[]string) *rig {
	t.Helper()
	g := newRig(t, exchange.TapOptions{})
	sockets := make([]*exchange.Socket, len(conversations))
	for i := range sockets {
		sockets[i] = g.socket(anyURL)
	}
	for i, c := range conversations {
		converse(t, sockets[i], c...)
	}
	for _, s := range sockets {
		closeSocket(t, s, hungUp)
	}
	return g
}

// wantConversation has a conversation on a replay.
func wantConversation(t *testing.T, p *exchange.SocketPlay, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if m[0] == '<' {
			if got := next(t, p); got != m[1:] {
				t.Errorf("got %q, want %q", got, m[1:])
			}
		} else if refused := send(t, p, m[1:]); refused != nil {
			t.Errorf("%s: refused: %s", m, refused.Why)
		}
	}
}

// byLane are the texts of a tape by what its sockets are called, without numbers of connections.
func (g *rig) byLane() map[string][]string {
	lanes, of := make(map[string][]string), make(map[string]string)
	for _, text := range g.said() {
		if rest, ok := strings.CutPrefix(text, "open "); ok {
			words := strings.Fields(rest)
			of[words[2]] = words[1]
			continue
		}
		connection, rest, _ := strings.Cut(text, " ")
		lanes[of[connection]] = append(lanes[of[connection]], rest)
	}
	return lanes
}

// wantHeard checks that what stands on the tape of a replay r in another lane than on that of g names its record there.
func (g *rig) wantHeard(r *rig) {
	g.t.Helper()
	lanes := func(g *rig) map[string]string {
		of := make(map[string]string) // of a message of a server, by its text
		var sockets fidelity.SocketLanes
		for rec := range g.records() {
			lane := sockets.Of(rec.Kind)
			if k, ok := rec.Kind.(*tape.WSMessage); ok && k.Direction == "received" {
				of[g.payload(k.Payload)] = lane
				if at, ok := tape.ElsewhereOf(k); ok {
					of[g.payload(k.Payload)] = fmt.Sprint("record ", at)
				}
			}
		}
		return of
	}
	was, now := lanes(g), lanes(r)
	for rec := range g.records() {
		k, ok := rec.Kind.(*tape.WSMessage)
		if !ok || k.Direction != "received" {
			continue
		}
		text := g.payload(k.Payload)
		if where := now[text]; where != was[text] && where != fmt.Sprint("record ", rec.Seq) {
			g.t.Errorf("%s was heard at %s, where %s was recorded, seq %d", text, where, was[text], rec.Seq)
		}
	}
}

// TestSocketsByWhatIsSaid: 32 sockets that are opened alike are told apart by what the program says, however late that differs, and in
// whatever order they come.
func TestSocketsByWhatIsSaid(t *testing.T) {
	const sockets = 32
	var all [][]string
	for i := range sockets {
		c := []string{"<welcome", ">hello", "<hi"}
		if i%3 == 0 {
			c = append(c, ">and", "<what?")
		}
		all = append(all, append(c, fmt.Sprintf(">ask %d", i/2), fmt.Sprintf("<told %d", i/2), fmt.Sprintf(">more %d", i), fmt.Sprintf("<all of %d", i)))
	}
	g := recordAlike(t, all...)
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			r, b := g.replay()
			random := rand.New(rand.NewPCG(seed, 0))
			var programs sync.WaitGroup
			for _, i := range random.Perm(sockets) {
				opens, talks := time.Duration(random.IntN(20))*time.Millisecond, time.Duration(random.IntN(5))*time.Millisecond
				programs.Go(func() {
					time.Sleep(opens)
					s, p := r.play(b, anyURL, nil)
					for _, m := range all[i] {
						time.Sleep(talks)
						wantConversation(t, p, m)
					}
					p.Ended(nil)
					if got := next(t, p); got != "" {
						t.Errorf("%d more: %s", i, got)
					}
					closeSocket(t, s, hungUp)
				})
			}
			programs.Wait()
			if n := b.Audit(); n != 0 || len(b.Unasked()) != 0 {
				t.Errorf("crossed %d, unasked %d", n, len(b.Unasked()))
			}
			want := g.byLane()
			for lane, said := range r.byLane() {
				if !slices.Equal(said, want[lane]) {
					t.Errorf("%s: %q, want %q", lane, said, want[lane])
				}
			}
		})
	}
}

// TestSocketsWhereTheServerIsFirst: what the servers say first, the program hears each once, whichever socket is which.
func TestSocketsWhereTheServerIsFirst(t *testing.T) {
	g := recordAlike(t,
		[]string{"<you are 1", ">a", "<A1", ">#1", "<end a"},
		[]string{"<you are 2", ">b", "<B1", ">#2", "<end b"},
		[]string{"<you are 3", "<yes, 3", ">c", "<C1", ">#3", "<end c"},
	)
	r, b := g.replay()
	var plays []*exchange.SocketPlay
	for i := range 2 {
		_, p := r.play(b, anyURL, nil)
		wantNext(t, p, fmt.Sprintf("you are %d", i+1))
		plays = append(plays, p)
	}
	wantConversation(t, plays[0], ">c", "<C1", ">#9", "<end c") // which no other is yet
	wantConversation(t, plays[1], ">a", "<A1", ">#1", "<end a")
	_, p := r.play(b, anyURL, nil)
	wantConversation(t, p, "<you are 3", "<yes, 3", ">b", "<B1", ">#2", "<end b")
	r.flush()
	g.wantHeard(r)
	if n := b.Audit(); n != 0 || len(b.Unasked()) != 0 {
		t.Errorf("crossed %d, unasked %d", n, len(b.Unasked()))
	}
}

// TestSocketsInAnotherOrder: a message that comes before its turn tells a socket too.
func TestSocketsInAnotherOrder(t *testing.T) {
	g := recordAlike(t, []string{">hello", ">beat", ">a", "<A"}, []string{">hello", ">beat", ">b", "<B"})
	r, b := g.replay()
	_, p := r.play(b, anyURL, nil)
	_, q := r.play(b, anyURL, nil)
	wantConversation(t, p, ">hello", ">b", ">beat", "<B")
	wantConversation(t, q, ">hello", ">beat", ">a", "<A")
	if refused := send(t, q, "b"); refused == nil {
		t.Error("what another socket said was not refused")
	}
}

// TestSocketUndecided: a socket of which nothing tells which it is goes on, and its records wait no longer than for a while.
func TestSocketUndecided(t *testing.T) {
	long := []string{">hello"}
	for range 100 {
		long = append(long, "<tick")
	}
	g := recordAlike(t, append(slices.Clone(long), ">a"), append(slices.Clone(long), ">b"))
	r, b := g.replay()
	_, p := r.play(b, anyURL, nil)
	wantConversation(t, p, long...)
	if n := len(r.said()); n != 102 {
		t.Errorf("%d records on the tape", n)
	}
	if refused := send(t, p, "b"); refused == nil {
		t.Error("it became another one")
	}
}

// TestSocketIDs: an answer names the ids that the program made up, and of equal messages each gets the answer to its own ids.
func TestSocketIDs(t *testing.T) {
	g := recordAlike(t, []string{">get #u1", ">get #u2", ">of #item1", ">of #item2", "<#item1 is here, #other", "<#u2 done", "<#u1 done, #u2"})
	r, b := g.replay()
	_, p := r.play(b, anyURL, nil)
	wantConversation(t, p, ">of #item2", ">get #n1", ">get #n2", ">of #item1", "<#item1 is here, #other", "<#n2 done", "<#n1 done, #n2")
}

// TestSocketsByIDs: of sockets that say the same but for an id, each has the one with its own.
func TestSocketsByIDs(t *testing.T) {
	g := recordAlike(t, []string{">of #item1", "<one"}, []string{">of #item2", "<two"}, []string{">of #item3", "<three"})
	r, b := g.replay()
	for _, c := range [][]string{{">of #item3", "<three"}, {">of #item1", "<one"}, {">of #item2", "<two"}} {
		_, p := r.play(b, anyURL, nil)
		wantConversation(t, p, c...)
	}
}
