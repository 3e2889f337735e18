package llm

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A lastRequest is what of a request the next one is held against.
type lastRequest struct {
	list []byte              // its messages, from the bracket on
	ends []int               // where in list each message ends
	tops map[string]topValue // what its other keys said
}

// A topValue is what the value of a key beside the messages says.
type topValue struct {
	raw     []byte
	system  string
	tools   bool
	follows string
}

// hearing is the reading of one request.
type hearing struct {
	l    *Listener
	s    *jsonscan.Scanner
	t    *tongue
	said *Said
	top  topValue // of the key that is read
	next lastRequest
	cur  *Heard
}

// request reads the body of a request. After a failure nothing is known of it.
func (l *Listener) request(t *tongue, body []byte, said *Said) error {
	h := &hearing{l: l, s: &l.scan, t: t, said: said, next: lastRequest{tops: make(map[string]topValue)}}
	l.scan.Reset(body)
	h.members()
	l.was = h.next
	if err := l.scan.Err(); err != nil {
		l.was = lastRequest{}
		return err
	}
	if said.Known == 0 {
		l.system = ""
	}
	h.systemMessages()
	l.pair(said.New)
	return nil
}

// members reads the keys of the request.
func (h *hearing) members() {
	for h.s.Begin('{'); h.s.More('}'); {
		switch key := h.s.Key(); {
		case string(key) == h.t.messages && h.next.list == nil:
			h.messages()
		case string(key) == h.t.messages:
			h.s.Fail("%s stands twice", h.t.messages)
		case h.t.wrapped != "" && string(key) == h.t.wrapped && h.s.Peek() == '{':
			h.members()
		default:
			h.value(key)
		}
	}
}

// value reads the value of another key, unless it is what it was.
func (h *hearing) value(key []byte) {
	name := string(key)
	v, known := h.l.was.tops[name]
	if rest := h.s.Rest(); known && closed(v.raw) && bytes.HasPrefix(rest, v.raw) {
		h.s.Reset(rest[len(v.raw):])
	} else {
		from := h.s.Offset()
		h.top = topValue{}
		if !h.t.top(h, key) {
			h.s.Skip()
			return
		}
		v = h.top
		if h.s.Err() == nil {
			v.raw = h.s.Since(from)
		}
	}
	h.next.tops[name] = v
	if v.system != "" {
		h.said.System = v.system
	}
	if v.follows != "" {
		h.said.Follows = v.follows
	}
	h.said.Tools = h.said.Tools || v.tools
}

// closed reports whether a value shows by itself where it ends: a number does not.
func closed(raw []byte) bool {
	return len(raw) > 0 && strings.IndexByte(`}]"`, raw[len(raw)-1]) >= 0
}

// messages reads the history behind what of it is known.
func (h *hearing) messages() {
	h.s.Peek()
	list := h.s.Rest()
	if h.s.Peek() != '[' {
		h.lone(list)
		return
	}
	was := &h.l.was
	same := commonPrefix(was.list, list)
	known := sort.Search(len(was.ends), func(i int) bool { return was.ends[i] > same })
	for known > 0 && !closed(was.list[:was.ends[known-1]]) {
		known--
	}
	base := -h.s.Offset()
	h.next.ends = was.ends[:known] // whose rest nobody reads again
	if known > 0 {
		base = was.ends[known-1]
		h.s.Reset(list[base:])
	} else {
		h.s.Begin('[')
	}
	for h.s.More(']') {
		h.t.message(h)
		h.next.ends = append(h.next.ends, base+h.s.Offset())
	}
	if h.s.Err() != nil {
		return
	}
	h.next.list = list[:base+h.s.Offset()]
	h.said.Messages, h.said.Known = len(h.next.ends), known
}

// lone reads a history that is one bare text of the user's.
func (h *hearing) lone(list []byte) {
	from := h.s.Offset()
	text := readText(h.s)
	if h.s.Err() != nil {
		return
	}
	h.next.list = list[:h.s.Offset()-from]
	h.next.ends = []int{len(h.next.list)}
	h.said.Messages = 1
	if bytes.Equal(h.l.was.list, h.next.list) {
		h.said.Known = 1
		return
	}
	h.begin(RoleUser)
	h.text(text)
}

// begin begins a message of the history.
func (h *hearing) begin(role string) {
	switch role {
	case "developer":
		role = RoleSystem
	case "model":
		role = RoleAssistant
	case "function":
		role = RoleTool
	case "":
		role = RoleUser
	}
	h.said.New = append(h.said.New, Heard{Role: role})
	h.cur = &h.said.New[len(h.said.New)-1]
}

func (h *hearing) text(s string) {
	if s != "" {
		h.cur.Texts = append(h.cur.Texts, s)
	}
}

func (h *hearing) attach(raw []byte) {
	if h.cur.Role == RoleUser && len(raw) > 0 {
		h.cur.Attachments = append(h.cur.Attachments, oneLine(raw))
	}
}

func (h *hearing) call(c sessionlog.ToolCall) { h.cur.Calls = append(h.cur.Calls, c) }

// result notes what a tool gave; name is that of the tool, where the protocol has it.
func (h *hearing) result(r sessionlog.ToolResult, name string) {
	h.cur.Results = append(h.cur.Results, r)
	h.cur.names = append(h.cur.names, name)
}

// systemMessages takes the system text from the messages that begin the history, where the protocol keeps it there.
func (h *hearing) systemMessages() {
	if h.said.System != "" {
		return
	}
	if h.said.Known == 0 {
		var texts []string
		for _, m := range h.said.New {
			if m.Role != RoleSystem {
				break
			}
			texts = append(texts, m.Texts...)
		}
		h.l.system = strings.Join(texts, "\n")
	}
	h.said.System = h.l.system
}

// commonPrefix returns how many bytes two texts have in common from their beginning.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for const4k := 4096; i+const4k <= n && bytes.Equal(a[i:i+const4k], b[i:i+const4k]); {
		i += const4k
	}
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
