package exchange

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// keyAfter is the key of a record whose request was still coming when its answer began: a list of integers, how many of its messages
// had come, and one more once it had ended, before the head of the answer, before each chunk of "stream", and before its end.
const keyAfter = "answered_after"

// messageHead is the length in bytes of what stands before each message of gRPC: a flag, and the message's length in four bytes.
const messageHead = 5

// FirstMessage returns the first message of b, which are gRPC's, with its head; nil where b does not hold all of it.
func FirstMessage(b []byte) []byte {
	if len(b) < messageHead {
		return nil
	}
	if size := int64(binary.BigEndian.Uint32(b[1:])) + messageHead; size <= int64(len(b)) {
		return b[:size]
	}
	return nil
}

// messagesOf splits what was asked in gRPC's messages; ok is false where something else is left.
func messagesOf(b []byte) (all [][]byte, ok bool) {
	for m := FirstMessage(b); m != nil; m = FirstMessage(b) {
		all, b = append(all, m), b[len(m):]
	}
	return all, len(b) == 0
}

// BeginStream is Begin for a request that is passed on as it comes: the body of r is its first message, nil where none came before
// the exchange begins. Whole must follow before End.
func (t *Tap) BeginStream(r *Request) (*Open, error) {
	o, err := t.begin(r, true)
	if err == nil {
		o.identity.Key.Stream = true
	}
	return o, err
}

// Whole gives the body of a request that was passed on as it came, and how far it had come at each step of the answer: before its
// head, before each chunk, and before its end; nil where the whole request had come before the head, which is then one as any other.
func (o *Open) Whole(body []byte, after []int) {
	c := o.tap.clean(&Request{Method: o.request.Method, URL: o.request.URL, Header: o.request.Header, Body: body})
	id, err := o.tap.classifier.Classify(c.request)
	if err != nil {
		o.err = errors.Join(o.err, err)
		return
	}
	o.request, o.exchange.RequestDigest = c.request, id.Key.Request
	if o.taken != nil && o.exchange.Lane != Unmatched {
		o.exchange.RequestDigest = o.taken.Exchange.RequestDigest // of which each message was compared
	}
	if o.tap.rec == nil {
		return
	}
	o.unkept = c.stored
	o.keepRequest()
	if len(after) > 0 {
		list, _ := json.Marshal(after) // numbers always have a JSON form
		o.extra = append(o.extra, tape.Field{Name: keyAfter, Value: list})
	}
}

// Alike reports whether two messages of the request are equal after masks.
func (o *Open) Alike(was, now []byte) bool {
	if string(was) == string(now) {
		return true
	}
	a, b := o.digestOf(was), o.digestOf(now)
	return a != nil && b != nil && *a == *b
}

func (o *Open) digestOf(message []byte) *cas.Digest {
	c := o.tap.clean(&Request{Method: o.request.Method, URL: o.request.URL, Header: o.request.Header, Body: message})
	id, err := o.tap.classifier.Classify(c.request)
	if err != nil {
		return nil
	}
	return &id.Key.Request
}

// Recorded is what answers the request; nil for nothing, and before Take.
func (o *Open) Recorded() *Recorded { return o.taken }

// TurnDown says that the request went on otherwise than the recorded one that answered it so far: it is refused, for a reason, and
// the recorded one was not asked for.
func (o *Open) TurnDown(reason string) {
	o.book.giveBack(o.taken)
	o.exchange.Lane = Unmatched
	o.exchange.Error = o.tap.scrubber.String(reason)
}

// giveBack undoes that a recorded exchange was handed out.
func (b *Book) giveBack(rec *Recorded) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec.served = false
	for i := len(b.log) - 1; i >= 0; i-- {
		if b.log[i].seq == rec.Seq {
			b.log = append(b.log[:i], b.log[i+1:]...)
			break
		}
	}
	if q := b.queues[rec.Key]; q != nil { // it may have been cut off what waits
		q.waiting = nil
		for _, other := range q.all {
			if !other.served {
				q.waiting = append(q.waiting, other)
			}
		}
	}
}

// A Pace is how the request of a recorded call and its answer went side by side.
type Pace struct {
	Messages [][]byte // of the request, with their heads, as they stand on the tape
	Ended    bool     // the request came to its end before its answer did
	after    []int    // nil where the whole request came first
}

// Head is how many messages of the request, and one more for its end, came before the head of the answer; so are Chunk and End
// before its chunk i and its end.
func (p *Pace) Head() int { return p.at(0) }

// Chunk stands at Head.
func (p *Pace) Chunk(i int) int { return p.at(i + 1) }

// End stands at Head.
func (p *Pace) End() int { return p.at(len(p.after) - 1) }

func (p *Pace) at(i int) int {
	if p.after == nil {
		return len(p.Messages) + 1
	}
	return p.after[max(0, min(i, len(p.after)-1))]
}

// PaceOf is that of a recorded call; ok is false where its request cannot be read as messages.
func (b *Book) PaceOf(rec *Recorded) (p *Pace, ok bool) {
	p = &Pace{after: rec.after, Ended: true}
	if p.Messages, ok = messagesOf(b.body(rec)); !ok && rec.after == nil {
		return p, false
	}
	if rec.after != nil { // the beginning of a message may stand behind the last
		p.Ended = p.End() > len(p.Messages)
	}
	return p, true
}

// streamKey names what calls of one method have in common.
type streamKey struct{ method, url string }

// A method is what the tape holds of the calls of one method.
type method struct {
	streams  bool // some were answered while they still came
	eager    bool // one before its first message
	patience time.Duration
}

// Calls says of the calls on b that have the method and the URL of r whether some were answered while their request still came, and whether that was before
// its first message; and how long the longest of them, and least more, is waited for.
func (t *Tap) Calls(b *Book, r *Request, least time.Duration) (streams, eager bool, patience time.Duration) {
	m := b.methods[streamKey{r.Method, b.classifier.MaskURL(t.scrubber.URL(r.URL))}]
	if m == nil {
		return false, false, least
	}
	return m.streams, m.eager, m.patience + least
}

// noteCalls finds the calls that were answered while their request still came. Those of the same method are known by their first
// message.
func (b *Book) noteCalls() {
	for _, rec := range b.recorded {
		key := streamKey{rec.Key.Method, rec.Key.URL}
		m := b.methods[key]
		if m == nil {
			m = new(method)
			b.methods[key] = m
		}
		m.streams = m.streams || rec.after != nil
		m.eager = m.eager || rec.after != nil && rec.after[0] == 0
		m.patience = max(m.patience, rec.Patience(0))
	}
	for _, rec := range b.recorded {
		if rec.Key.Kind == HTTP && b.methods[streamKey{rec.Key.Method, rec.Key.URL}].streams {
			b.keyByFirst(rec)
		}
	}
}

// keyByFirst makes the key of rec that of a request of which its first message alone is known; none of one that was answered before.
func (b *Book) keyByFirst(rec *Recorded) {
	r := b.request(rec)
	if r.Body = FirstMessage(r.Body); rec.after != nil && rec.after[0] == 0 {
		r.Body = nil
	}
	id, err := b.classifier.Classify(r)
	if err != nil {
		return // it is asked for by nobody
	}
	rec.Key = id.Key
	rec.Key.Stream = true
}

// afterOf reads the further key of a record that tells how its request came; nil for none, and for one that tells nothing.
func afterOf(extra []tape.Field) []int {
	var after []int
	raw := tape.FieldValue(extra, keyAfter)
	if raw == nil || json.Unmarshal(raw, &after) != nil || len(after) < 2 {
		return nil
	}
	for i := range after {
		if after[i] < 0 || i > 0 && after[i] < after[i-1] {
			return nil
		}
	}
	return after
}
