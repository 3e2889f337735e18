package tape

import (
	"encoding/json"
	"strconv"
)

// NumberField is the further key of that name that holds the number n; none for 0.
func NumberField(name string, n uint64) []Field {
	if n == 0 {
		return nil
	}
	return []Field{{Name: name, Value: strconv.AppendUint(nil, n, 10)}}
}

// FieldNumber returns the number that the first field called name holds; false for none.
func FieldNumber(fields []Field, name string) (uint64, bool) {
	value := FieldValue(fields, name)
	if value == nil { // most have none, and the error that ParseUint would make of that is allocated
		return 0, false
	}
	n, err := strconv.ParseUint(string(value), 10, 64)
	return n, err == nil
}

const (
	// ConversationKey is a further key of exchanges, ws_open, name_lookup and net_refused: the number of the conversation of the MCP server that asked. What
	// the program asked has none. Of a process_spawn it is that of the server that the process is, or that started it.
	ConversationKey = "conversation"
	// WithinKey is a further key of mcp_open: the number of the conversation of the MCP server that holds this one as a client.
	WithinKey = "within"
	// PIDKey is a further key of mcp_open: the PID of the server's process, or of what stands for it on a replay.
	PIDKey = "pid"
	// OpenerKey is a further key of exchanges, name_lookup and net_refused: the spawn_id of the process that opened the connection, or
	// asked, or the number of a thread of it that has times of its own.
	OpenerKey = "by"
	// OverKey is a further key of a process_spawn: the global ordinal when the process had ended. Its record may come later.
	OverKey = "until"
)

// OriginOf returns the number of the conversation of the MCP server that made an exchange, opened a WebSocket, ran a program, tried the network or began a
// conversation of its own; 0 where the program did, and for other kinds.
func OriginOf(k Kind) uint64 {
	key := ConversationKey
	switch k.(type) {
	case *LLMCall, *HTTPExchange, *WSOpen, *ProcessSpawn, *NameLookup, *NetRefused:
	case *MCPOpen:
		key = WithinKey
	default:
		return 0
	}
	n, _ := FieldNumber(*Extras(k), key)
	return n
}

// ElsewhereKey is a further key of a ws_message that a replay said to its program: the seq of the recorded one, where that stands on
// another of several sockets that were opened alike, and the program had said the same on both by then.
const ElsewhereKey = "recorded_seq"

// ElsewhereOf returns the seq of the recorded message that one of a replay is, where it stands on another socket; false for none.
func ElsewhereOf(k *WSMessage) (seq uint64, ok bool) { return FieldNumber(k.Extra, ElsewhereKey) }

// EndedKey is a further key of the process_spawn of a recording's program: when it had ended, by monotonic_ms. The record itself stands
// behind what was found out only then.
const EndedKey = "ended_ms"

// EndedField is that key, with ms; none for less than 1.
func EndedField(ms int64) []Field { return NumberField(EndedKey, uint64(max(ms, 0))) }

// EndedMS returns when the program had ended whose process_spawn k is; 0 where that is not known.
func EndedMS(k Kind) int64 {
	p, ok := k.(*ProcessSpawn)
	if !ok {
		return 0
	}
	n, _ := FieldNumber(p.Extra, EndedKey)
	return int64(n) //nolint:gosec // milliseconds of a run
}

// TookMS is how long what a record tells of lasted.
func TookMS(k Kind) int64 {
	switch k := k.(type) {
	case *MCPJSONRPC:
		return k.LatencyMS
	case *ProcessSpawn:
		return k.DurationMS
	case *ClockSleep:
		return k.DurationMS
	}
	if x := ExchangeOf(k); x != nil && len(x.Stream) > 0 {
		return x.Stream[len(x.Stream)-1].TMS
	}
	return 0
}

// Spanned returns when what a record tells of began and ended, in ms after the start of the run. A process's record may come later.
func Spanned(r *Record) (start, end int64) {
	end = r.MonotonicMS
	if ms := EndedMS(r.Kind); ms > 0 {
		end = ms
	}
	return max(end-TookMS(r.Kind), 0), end
}

// PIDOf is the PID of the process of a server; 0 where that is not known.
func PIDOf(o *MCPOpen) int {
	n, _ := FieldNumber(o.Extra, PIDKey)
	return int(n) //nolint:gosec // a PID
}

// SentKey is a further key of an llm_call of a fork: what left in the place of the request that the program sent.
const SentKey = "sent"

// A Sent says what of a request was changed before it left.
type Sent struct {
	Model   string   `json:"model,omitempty"` // that was asked; "" for that of the request
	Changed []string `json:"changed"`         // "model", "system", "tool ID"
}

// SentFields is that key.
func SentFields(s *Sent) []Field {
	b, _ := json.Marshal(s) // strings alone
	return []Field{{Name: SentKey, Value: b}}
}

// SentOf is what a call of a fork changed; nil for nothing.
func SentOf(k *LLMCall) *Sent {
	s := new(Sent)
	if raw := FieldValue(k.Extra, SentKey); raw == nil || json.Unmarshal(raw, s) != nil {
		return nil
	}
	return s
}

// Further keys of a process_spawn, each true where it stands.
const (
	// ForkedKey is that of a process which has executed nothing, or of a thread: it is what its parent is.
	ForkedKey = "forked"
	// LeftKey is that of a process which lived when the program had ended, and was killed then.
	LeftKey = "left"
	// AgainKey is that of a process which lives on as another program, by an execve of its own: its exit is not known.
	AgainKey = "again"
	// OwnTicksKey is that of a process whose monotonic clock is the kernel's on a replay too: of a runtime that reads it all the time. In which
	// order its timers come is chance.
	OwnTicksKey = "own_ticks"
	// ElapsedKey is that of such a process which, if it is one of Go, was given the durations of package time with its wall times.
	ElapsedKey = "elapsed"
)

// CutKeys are those of a process whose stdin, stdout or stderr is not whole on its record: who read it left, its writer was killed, or it was
// too long. How much there is of it is chance.
var CutKeys = [3]string{"stdin_cut", "stdout_cut", "stderr_cut"}

// WokeKey is a further key of a process_spawn: the ordinals at which it, or the thread that it stands for, woke from a sleep beside other threads.
const WokeKey = "woke"

// ThreadKey is a further key of a process_spawn: of a thread that is asked for alone (ForkedKey), which thread of its process it is, of another,
// which thread of its parent started it: how many its maker had made with it, and above those 16 bits the same of its maker. The first thread has none.
const ThreadKey = "thread"

// PlaceKey is the further key that has the recorder's ordinal of when something began: of an http_exchange and an llm_call, its request;
// of a process_spawn, the process.
const PlaceKey = "at"

// ArrivedKey is the further key of an http_exchange and an llm_call that has the recorder's ordinal of when the request arrived, where PlaceKey is
// of when the program connected for it.
const ArrivedKey = "arrived"

// FlagFields are those of names for which it is true.
func FlagFields(names map[string]bool) (out []Field) {
	for _, name := range append([]string{ForkedKey, LeftKey, AgainKey, OwnTicksKey, ElapsedKey}, CutKeys[:]...) {
		if names[name] {
			out = append(out, Field{Name: name, Value: []byte("true")})
		}
	}
	return out
}

// HasFlag reports whether a record has this key, and it is true.
func HasFlag(k Kind, name string) bool {
	extra := Extras(k)
	return extra != nil && string(FieldValue(*extra, name)) == "true"
}
