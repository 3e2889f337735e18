package mcp

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// taped is what the tape that is replayed says of the conversations over HTTP.
type taped struct {
	talks map[uint64]*tapedTalk // by number
	of    map[uint64]*tapedTalk // by the arrival of an http_exchange that carried a line
}

// A tapedTalk is one recorded conversation.
type tapedTalk struct {
	Recorded
	lines   []tapedLine // by place
	order   *webOrder
	carried map[uint64]*carried // by the arrival of the exchange
	batched batched
}

// carried is the lines that one exchange carried, by their places, in order.
type carried struct{ client, server []uint64 }

// A tapedLine is one line of a recorded conversation.
type tapedLine struct {
	place    uint64
	from     Side
	counts   bool   // of the client: what the server says later waits for it
	answer   bool   // it answers something
	exchange uint64 // arrival
	ms       int64  // when it passed, in ms since the recording began
	seq      uint64 // of its record
}

// readTaped reads the conversations over HTTP of a tape. The error is one that records gave.
func readTaped(records iter.Seq2[*tape.Record, error]) (*taped, error) {
	t := &taped{talks: make(map[uint64]*tapedTalk), of: make(map[uint64]*tapedTalk)}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		switch k := r.Kind.(type) {
		case *tape.MCPOpen:
			if k.Transport == HTTP {
				talk := t.talk(k.Conversation)
				talk.Server, talk.URL, talk.Protocol = k.Server, k.URL, k.Protocol
			}
		case *tape.MCPJSONRPC:
			if k.Transport == HTTP && k.Conversation > 0 {
				t.message(r, k)
			}
		}
	}
	for _, talk := range t.talks {
		talk.finish()
		for arrival := range talk.carried {
			t.of[arrival] = talk
		}
	}
	return t, nil
}

func (t *taped) talk(number uint64) *tapedTalk {
	talk := t.talks[number]
	if talk == nil {
		talk = &tapedTalk{Recorded: Recorded{Conversation: number, Transport: HTTP}, carried: make(map[uint64]*carried)}
		t.talks[number] = talk
	}
	return talk
}

// message notes the lines of one record. Those of one batch are one line.
func (t *taped) message(r *tape.Record, k *tape.MCPJSONRPC) {
	talk, asker := t.talk(k.Conversation), Client
	if talk.Server == "" {
		talk.Server = k.Server
	}
	if Side(k.From) == Server {
		asker = Server
	}
	talk.batched.note(k)
	answered := k.Answered > 0
	asked := tapedLine{
		place: k.Arrival, from: asker, exchange: k.Exchange, ms: r.MonotonicMS - k.LatencyMS, seq: r.Seq,
		counts: asker == Client && k.Method != "ping" && (answered || k.Error != "" || k.Method == "notifications/initialized"),
	}
	talk.lines = append(talk.lines, asked)
	if answered {
		talk.lines = append(talk.lines, tapedLine{
			place: k.Answered, from: asker.Other(), answer: true, exchange: k.AnswerExchange, ms: r.MonotonicMS, seq: r.Seq,
			counts: asker == Server && k.Method != "ping",
		})
	}
}

// finish puts the lines into order.
func (t *tapedTalk) finish() {
	slices.SortStableFunc(t.lines, func(a, b tapedLine) int { return cmp.Compare(a.place, b.place) })
	merged := t.lines[:0]
	for _, l := range t.lines {
		if n := len(merged); n > 0 && merged[n-1].place == l.place && merged[n-1].from == l.from {
			merged[n-1].counts = merged[n-1].counts || l.counts
			merged[n-1].answer = merged[n-1].answer || l.answer
			continue
		}
		merged = append(merged, l)
	}
	t.lines = merged
	for _, l := range t.lines {
		c := t.carried[l.exchange]
		if c == nil {
			c = new(carried)
			t.carried[l.exchange] = c
		}
		if l.from == Client {
			c.client = append(c.client, l.place)
		} else {
			c.server = append(c.server, l.place)
		}
	}
	t.order = newWebOrder(t.lines)
	t.batched.settle()
}

// before is the last place of the conversation that had been recorded when the exchange was: what it ended after.
func (t *tapedTalk) before(seq uint64) (place uint64) {
	for _, l := range t.lines {
		if l.seq < seq {
			place = max(place, l.place)
		}
	}
	return place
}

// at lists the conversations with the server at a place, in recorded order; none of no tape.
func (t *taped) at(place string) (list []*tapedTalk) {
	if t == nil {
		return nil
	}
	for _, talk := range t.talks {
		if talk.URL == place {
			list = append(list, talk)
		}
	}
	slices.SortFunc(list, func(a, b *tapedTalk) int { return cmp.Compare(a.Conversation, b.Conversation) })
	return list
}

// A webOrder keeps what the server says in a replayed conversation in its place, whatever streams it comes on: the exchanges, by their
// recorded arrival.
type webOrder struct {
	*lane.Order[tapedLine]

	mu   sync.Mutex
	told time.Time // when a line of the server passed last that is no answer
	tale int64     // when it had, in ms of the recording
}

// newWebOrder returns the order of lines, which stand by their places.
func newWebOrder(lines []tapedLine) *webOrder {
	out := make([]lane.Line[tapedLine], len(lines))
	for i, l := range lines {
		out[i] = lane.Line[tapedLine]{Place: l.place, MS: l.ms, Counts: l.counts, Value: l}
		if l.from == Server {
			out[i].From, out[i].Stream = lane.Far, l.exchange
		}
	}
	return &webOrder{Order: lane.NewOrder(out, holdAsked, nil)}
}

// begin notes that a recorded exchange is under way again: the lines of the client in it have come.
func (o *webOrder) begin(exchange uint64, c *carried) {
	o.Open(exchange)
	o.Done(o.indexes(c.client)...)
}

// end notes that an exchange is over: what it would have carried does not come.
func (o *webOrder) end(exchange uint64, c *carried) {
	o.Close(exchange)
	o.Done(o.indexes(c.server)...)
}

// indexes are the lines at places.
func (o *webOrder) indexes(places []uint64) (lines []int) {
	for _, p := range places {
		if i, ok := o.At(p); ok {
			lines = append(lines, i)
		}
	}
	return lines
}

// said notes that the line at place has been passed on.
func (o *webOrder) said(place uint64) {
	i, ok := o.At(place)
	if !ok {
		return
	}
	o.Done(i)
	if l := &o.Lines()[i].Value; !l.answer {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.told, o.tale = time.Now(), l.ms
	}
}

// await waits until the line at place, which an exchange carries, is due: what that carries before it passes before it anyway. The
// error is ctx's.
func (o *webOrder) await(ctx context.Context, place, exchange uint64) error {
	i, ok := o.At(place)
	if !ok {
		return nil
	}
	l := &o.Lines()[i].Value
	if err := o.Await(ctx, i, exchange, l.ms); err != nil {
		return err
	}
	return lane.Pause(ctx, nil, o.unread(l))
}

// unread is how long a line is still held because of what passed just before: some times as long as it came after that, for the
// rest of the machine does not go faster.
func (o *webOrder) unread(l *tapedLine) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !l.answer || o.told.IsZero() {
		return 0
	}
	return min(reading, 5*time.Millisecond+4*lane.Between(o.tale, l.ms)) - time.Since(o.told)
}

// awaitEnd waits, for as long as it takes, until what had come when an exchange ended has come.
func (o *webOrder) awaitEnd(ctx context.Context, last, exchange uint64) error {
	i, _ := o.At(last + 1)
	return o.AwaitAll(ctx, i, exchange)
}
