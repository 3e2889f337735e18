package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A RecordedSocket is what a tape holds of one WebSocket: what passed on it, in order.
type RecordedSocket struct {
	url     string         // that it was opened by
	entries []*socketEntry // by place; guarded by the Book while there is a choice
	asked   []*socketEntry // those of the program, as they were recorded
	end     SocketEnd
	endMS   int64
	ended   bool // the tape holds its end

	choice *choice // of the one of the replay that it is; nil for none. Guarded by the Book.
}

// A socketEntry is one message, or the program's end, and its place.
type socketEntry struct {
	at      uint64          // ordinal; of a tape without ordinals the seq of the record
	ms      int64           // since the recording began
	seq     uint64          // of its record
	on      *RecordedSocket // of what belongs to no turn: where it was said
	from    Side
	message *tape.WSMessage // nil for what belongs to a turn, and for the end
	turn    *Recorded       // the turn that it belongs to; nil for none
	part    int             // of a turn: its chunk, or asking
	once    sync.Once
	said    *saying // of the program: how it compares; see Book.said
}

// asking is the part of a turn that is the program's message.
const asking = -1

// readSocket takes a record that is part of a WebSocket; nil for one that begins none, which its messages are kept for.
func (b *Book) readSocket(r *tape.Record) *Recorded {
	switch k := r.Kind.(type) {
	case *tape.WSOpen:
		return b.openSocket(r, k)
	case *tape.WSMessage:
		s := b.sockets[k.Connection]
		if s == nil || tape.FieldValue(k.Extra, refusedKey) != nil {
			return nil
		}
		e := &socketEntry{at: placeOf(r), ms: r.MonotonicMS, seq: r.Seq, on: s, message: k}
		if k.Direction == directions[FromServer] {
			e.from = FromServer
		}
		s.entries = append(s.entries, e)
	case *tape.WSClose:
		if s := b.sockets[k.Connection]; s != nil {
			s.close(r, k)
		}
	}
	return nil
}

// placeOf is the place of a record on its tape.
func placeOf(r *tape.Record) uint64 {
	if r.G != 0 {
		return r.G
	}
	return r.Seq
}

func (b *Book) openSocket(r *tape.Record, k *tape.WSOpen) *Recorded {
	restoreFields(rawRequest, k.RequestHeaders, r.Raw)
	restoreFields(rawResponse, k.ResponseHeaders, r.Raw)
	if k.Status != 0 && k.Status != http.StatusSwitchingProtocols {
		return nil
	}
	rec := &Recorded{
		Seq: r.Seq, Lane: k.Lane, Arrival: k.Arrival, Length: -1, Socket: &RecordedSocket{url: socketURL(k.URL)},
		endedMS: r.MonotonicMS, wallMS: r.VirtualTimeMS, g: r.G,
		Exchange: &tape.Exchange{
			Method: http.MethodGet, URL: httpURL(k.URL), RequestHeaders: k.RequestHeaders,
			Status: http.StatusSwitchingProtocols, ResponseHeaders: k.ResponseHeaders, Lane: k.Lane, Arrival: k.Arrival,
		},
	}
	id, err := b.classifier.Classify(b.request(rec))
	if err != nil {
		return nil
	}
	rec.Key = id.Key
	rec.Key.Socket = true
	b.sockets[cmp.Or(k.Connection, k.Arrival)] = rec.Socket
	return rec
}

// close takes the end of a socket.
func (s *RecordedSocket) close(r *tape.Record, k *tape.WSClose) {
	s.ended, s.endMS = true, r.MonotonicMS
	s.end = SocketEnd{Code: k.Code, Reason: k.Reason, Error: textIn(k.Extra, errorKey), At: numberIn(k.Extra, placeKey)}
	if s.end.At == 0 {
		s.end.At = placeOf(r)
	}
	if textIn(k.Extra, directionKey) == directions[FromServer] {
		s.end.First = FromServer
	}
	if textIn(k.Extra, goneKey) == sides[FromServer] {
		s.end.Gone = FromServer
	}
	c := new(CloseCode)
	answer := []any{&c.Code, &c.Reason}
	if raw := tape.FieldValue(k.Extra, answerKey); raw != nil && json.Unmarshal(raw, &answer) == nil && len(answer) == 2 {
		s.end.Answer = c
	}
}

// addTurn gives the messages of a turn their places.
func (s *RecordedSocket) addTurn(rec *Recorded, extra []tape.Field) {
	stream := rec.Exchange.Stream
	begun := rec.endedMS
	if n := len(stream); n > 0 {
		begun -= stream[n-1].TMS
	}
	at := cmp.Or(numberIn(extra, placeKey), cmp.Or(rec.g, rec.Seq))
	rec.ownTurn = textIn(extra, begunKey) == sides[FromServer]
	if !rec.ownTurn {
		s.entries = append(s.entries, &socketEntry{at: at, ms: begun, seq: rec.Seq, turn: rec, part: asking})
	}
	for i, c := range stream {
		s.entries = append(s.entries, &socketEntry{at: cmp.Or(c.G, at), ms: begun + c.TMS, seq: rec.Seq, from: FromServer, turn: rec, part: i})
	}
}

// sortSockets puts what was read of every socket in order.
func (b *Book) sortSockets() {
	for _, s := range b.sockets {
		if s.ended && s.endsByProgram() {
			s.entries = append(s.entries, &socketEntry{at: s.end.At, ms: s.endMS, from: FromProgram})
		}
		slices.SortStableFunc(s.entries, func(x, y *socketEntry) int { return cmp.Compare(x.at, y.at) })
		for _, e := range s.entries {
			if e.asks() {
				s.asked = append(s.asked, e)
			}
		}
	}
}

// endsByProgram reports whether it was the program that ended the socket.
func (s *RecordedSocket) endsByProgram() bool {
	if s.end.Code == Abnormal {
		return s.end.Gone == FromProgram
	}
	return s.end.First == FromProgram
}

// isEnd reports whether an entry is the program's end.
func (e *socketEntry) isEnd() bool { return e.message == nil && e.turn == nil }

// Sockets reports whether the tape holds a WebSocket.
func (b *Book) Sockets() bool { return len(b.sockets) > 0 }

// choose begins a choice for a socket that is handed out; nil where there is none. The caller holds mu.
func (b *Book) choose(rec *Recorded, q *queue, asked *Traits) *choice {
	like := q.Likeness(asked, &b.ids)
	c := &choice{book: b, queue: q, asked: asked, rec: rec}
	for _, r := range q.All {
		if r.Socket != nil && len(c.rivals) < maxRivals && (r == rec || !r.decided()) && like(r) == like(rec) {
			c.rivals = append(c.rivals, r)
		}
	}
	if len(c.rivals) < 2 || !slices.Contains(c.rivals, rec) {
		return nil
	}
	rec.Socket.choice = c
	return c
}

// begins reports whether what was said are the first messages of a recorded socket.
func (b *Book) begins(s *RecordedSocket, said []*saying) bool {
	if len(said) > len(s.asked) {
		return false
	}
	for i := range said {
		if b.said(s, s.asked[i]).key != said[i].key {
			return false
		}
	}
	return true
}

// whole reads a payload of the tape, however long.
func (b *Book) whole(p *tape.Payload) ([]byte, error) {
	switch {
	case p == nil:
		return nil, errors.New("it was not kept")
	case b.store == nil && !p.Inline:
		return nil, errors.New("no store")
	}
	return p.Bytes(b.store)
}

// A messageKey is what must be equal for a message of the program to be a recorded one.
type messageKey struct {
	opcode string // turnOpcode of what begins a turn
	kept   bool   // else it was too long to be kept
	digest cas.Digest
}

// endOpcode stands in the key of the end of a socket, which no message is.
const endOpcode = "end"

// turnOpcode stands in the key of a message that begins a turn, whose digest is that of what is asked.
const turnOpcode = "turn"

// A saying is a message of the program as it compares.
type saying struct {
	key messageKey
	ids []string // those that masks took out of it, in order
}

// sentMethod stands for a method where a message is classified: it is none of HTTP's.
const sentMethod = "SEND"

// sayingOf is how a message compares that the program sent to a URL, scrubbed, and what of it does.
func sayingOf(c Classifier, url, opcode string, b []byte) (s saying, surface []byte) {
	s.key = messageKey{opcode: opcode, kept: true, digest: cas.Sum(b)}
	r := &Request{Method: sentMethod, URL: url, Body: b}
	id, err := c.Classify(r)
	if err != nil {
		return s, b
	}
	s.key.digest = id.Key.Request
	if bytes.IndexByte(id.Surface, '<') >= 0 { // where a mask took something out, its name stands
		s.ids = idsOf(c, &Request{Method: sentMethod, Body: b})
	}
	return s, id.Surface
}

// idsOf are the ids that masks take out of a request, in order.
func idsOf(c Classifier, r *Request) []string { return c.Traits(r).IDTexts() }

// turnSaying is how the beginning of a turn compares.
func turnSaying(k Key) *saying {
	return &saying{key: messageKey{opcode: turnOpcode, kept: true, digest: k.Request}}
}

// said is how a message compares that the program sent on a recorded socket. It is found out once.
func (b *Book) said(s *RecordedSocket, e *socketEntry) *saying {
	e.once.Do(func() {
		switch {
		case e.isEnd():
			e.said = &saying{key: messageKey{opcode: endOpcode}}
			return
		case e.turn != nil:
			e.said = turnSaying(e.turn.Key)
			return
		case e.message.Payload != nil:
			if text, err := b.whole(e.message.Payload); err == nil {
				said, _ := sayingOf(b.classifier, s.url, e.message.Opcode, text)
				e.said = &said
				return
			}
		}
		e.said = &saying{key: messageKey{opcode: e.message.Opcode}}
	})
	return e.said
}

// asks reports whether an entry is a message of the program, or begins a turn of its.
func (e *socketEntry) asks() bool { return e.from == FromProgram && !e.isEnd() }

// rename puts the program's own ids into a message of the server.
func rename(c Classifier, names *lane.Names, message []byte) []byte {
	if names.Empty() {
		return message
	}
	return c.Rename(message, func(id string) string {
		now, _ := names.Replayed(id)
		return now
	})
}

// A program that opens several sockets by equal requests says by nothing which of them is which until it speaks. So one of a replay is
// given a recorded one by arrival, as equal requests are, and becomes another one where what the program says next fits that, and not
// the one that it was. The two change places from there on: what the server had said of the one before, on which the program had
// said the same, is what it had said of the other from now on. So a program hears all that it heard, each once.

const (
	// maxUndecided is how many records of a socket wait at most until it is known which it is: then it stays what it is.
	maxUndecided = 64
	// maxRivals is how many recorded sockets at most one of a replay may be.
	maxRivals = 1024
)

// A choice is which recorded socket one of a replay is, while several may be it. What it holds is guarded by the mu of its Book.
type choice struct {
	book   *Book
	queue  *queue
	asked  *Traits
	rec    *Recorded
	rivals []*Recorded // that were opened by requests as like the program's as that of rec, with rec
	heard  []*saying   // what the program said: the first messages of rec
	made   bool
	times  int         // that it has changed
	play   *SocketPlay // nil before there is one
}

// hear takes what the program says next. A recorded socket whose next message that is goes before one that has it in another place.
func (c *choice) hear(now *saying, names *lane.Names) {
	found, rivals := c.become(now, 1, names)
	if !found {
		c.become(now, math.MaxInt, nil)
	}
	if !found || !rivals {
		c.decide()
	}
}

// fits reports whether a recorded socket begins with what was heard, and now is among its next messages, of so many.
func (c *choice) fits(s *RecordedSocket, now *saying, next int) bool {
	if !c.book.begins(s, c.heard) {
		return false
	}
	asked := s.asked[len(c.heard):]
	return slices.ContainsFunc(asked[:min(next, len(asked))], func(e *socketEntry) bool { return c.book.said(s, e).key == now.key })
}

// become makes the choice one of the recorded sockets that fit what the program says now, by so many of their next messages: by names,
// which may be nil, that most like it, then the one that it is, then the first. It reports whether one fits, and whether several do of
// which it is not known yet.
func (c *choice) become(now *saying, next int, names *lane.Names) (found, rivals bool) {
	var fitting []*Recorded
	for _, r := range c.rivals { // before the lock is taken, for messages are read
		if c.fits(r.Socket, now, next) {
			fitting = append(fitting, r)
		}
	}
	c.book.mu.Lock()
	fitting = slices.DeleteFunc(fitting, (*Recorded).decided)
	rivals = len(fitting) > 1
	fitting = slices.DeleteFunc(fitting, func(r *Recorded) bool { return r != c.rec && !c.mayBecome(r) })
	var other *SocketPlay
	if found = len(fitting) > 0; found {
		other = c.change(c.likest(fitting, now, names))
		c.heard = append(slices.Clip(c.heard), now)
	}
	c.book.mu.Unlock()
	if other != nil {
		other.changed()
	}
	return found, rivals
}

// mayBecome reports whether the choice can be r, which is not decided: nobody is it, or one of which no more was heard, and that may be
// what the choice is now. The caller holds the Book's mu.
func (c *choice) mayBecome(r *Recorded) bool {
	other := r.Socket.choice
	return other == nil || len(other.heard) <= len(c.heard) && c.book.begins(c.rec.Socket, other.heard)
}

// likest is what the choice becomes of those that fit. The caller holds the Book's mu.
func (c *choice) likest(fitting []*Recorded, now *saying, names *lane.Names) *Recorded {
	best := c.rec
	if !slices.Contains(fitting, best) {
		best = fitting[0]
	}
	if names == nil || len(now.ids) == 0 {
		return best
	}
	like := func(r *Recorded) int {
		return names.Likeness(c.book.said(r.Socket, r.Socket.asked[len(c.heard)]).ids, now.ids)
	}
	most := like(best)
	for _, r := range fitting {
		if n := like(r); n > most {
			best, most = r, n
		}
	}
	return best
}

// change makes the choice rec; who was that becomes what it was, and its play is returned. The caller holds the Book's mu.
func (c *choice) change(rec *Recorded) *SocketPlay {
	was := c.rec
	if was == rec {
		return nil
	}
	changePlaces(was.Socket, rec.Socket, len(c.heard))
	other := rec.Socket.choice
	c.rec, rec.Socket.choice = rec, c
	c.times++
	if was.Socket.choice = other; other == nil {
		rec.Served, was.Served = true, false
		c.queue.GiveBack(was)
		return nil
	}
	other.rec = was
	other.times++
	return other.play
}

// changePlaces gives each of two recorded sockets what passed on the other before the nth message of the program.
func changePlaces(a, b *RecordedSocket, n int) {
	i, j := a.before(n), b.before(n)
	a.entries, b.entries = slices.Concat(b.entries[:j], a.entries[i:]), slices.Concat(a.entries[:i], b.entries[j:])
}

// before is how many entries stand before the nth message of the program.
func (s *RecordedSocket) before(n int) int {
	for i, e := range s.entries {
		if e.isEnd() {
			return i
		}
		if e.asks() {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return len(s.entries)
}

// decide ends the choice: it stays what it is.
func (c *choice) decide() {
	b := c.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.made {
		return
	}
	c.made, c.rec.Socket.choice = true, nil
	b.hand(c.rec, c.asked)
}
