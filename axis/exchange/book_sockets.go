package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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
	var answer []json.RawMessage
	if raw := tape.FieldValue(k.Extra, answerKey); raw != nil && json.Unmarshal(raw, &answer) == nil && len(answer) == 2 {
		c := new(CloseCode)
		if json.Unmarshal(answer[0], &c.Code) == nil && json.Unmarshal(answer[1], &c.Reason) == nil {
			s.end.Answer = c
		}
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
func idsOf(c Classifier, r *Request) (ids []string) {
	for _, id := range c.Traits(r).IDs {
		ids = append(ids, id.Text)
	}
	return ids
}

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
