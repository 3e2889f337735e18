package exchange

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// BeginStream is Begin for a request that is passed on as it comes: the body of r is its first message, nil where none came before
// the exchange begins. Whole must follow before End.
func (t *Tap) BeginStream(r *Request) (*Open, error) {
	o, err := t.begin(nil, r, true)
	if err == nil {
		o.key.Stream, o.identity.Key.Stream = true, true
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
	if o.taken != nil && o.exchange.Lane != Unmatched && o.tap.sameCall(o.request, o.book.body(o.taken), c.request.Body) {
		o.exchange.RequestDigest = o.taken.Exchange.RequestDigest
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

// sameCall reports whether the whole messages of two requests are equal after masks. What else had come of a call when it was cut is a
// matter of moments.
func (t *Tap) sameCall(of *Request, was, now []byte) bool {
	var digests [2]cas.Digest
	for i, body := range [][]byte{was, now} {
		rest := body
		for m := FirstMessage(rest); m != nil; m = FirstMessage(rest) {
			rest = rest[len(m):]
		}
		c := t.clean(&Request{Method: of.Method, URL: of.URL, Header: of.Header, Body: body[:len(body)-len(rest)]})
		id, err := t.classifier.Classify(c.request)
		if err != nil {
			return false
		}
		digests[i] = id.Key.Request
	}
	return digests[0] == digests[1]
}

// Calls says of the calls on b that have the method and the URL of r whether some were answered while their request still came, and whether that was before
// its first message; and how long the longest of them, and least more, is waited for.
func (t *Tap) Calls(b *Book, r *Request, least time.Duration) (streams, eager bool, patience time.Duration) {
	m := b.methods[Key{Method: r.Method, URL: b.classifier.MaskURL(t.scrubber.URL(r.URL))}]
	if m == nil {
		return false, false, least
	}
	return m.streams, m.eager, m.patience + least
}

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

// messages reads a recorded gRPC call, however long it is: its first message, with its head, and how many are whole.
func (b *Book) messages(rec *Recorded) (first []byte, count int) {
	p := rec.Exchange.RequestPayload
	if p == nil || !p.Inline && b.store == nil {
		return nil, 0
	}
	body, err := p.Open(b.store)
	if err != nil {
		return nil, 0
	}
	defer body.Close()
	for r := bufio.NewReader(body); ; count++ {
		head, err := r.Peek(messageHead)
		if err != nil {
			return first, count
		}
		m := io.LimitReader(r, messageHead+int64(binary.BigEndian.Uint32(head[1:])))
		if count > 0 {
			_, err = io.Copy(io.Discard, m)
		} else if first, err = io.ReadAll(m); FirstMessage(first) == nil {
			return nil, 0
		}
		if err != nil || m.(*io.LimitedReader).N > 0 {
			return first, count
		}
	}
}

// A Call is how much of a recorded gRPC call had come when its answer ended.
type Call struct {
	Steps int  // how many messages, and one more for their end
	Ended bool // their end had
}

// A method is what the tape holds of the calls of one method.
type method struct {
	streams  bool // some were answered while they still came
	eager    bool // one before its first message
	patience time.Duration
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
