package follow

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Filter chooses records: those of which all is true that it asks for. NewFilter makes one that asks for nothing. It is not
// safe for concurrent use.
type Filter struct {
	First, Last  uint64 // seq, both of them too
	Kinds        []string
	Lane         func(string) bool // nil for any; see MatchLane
	Grep         *regexp.Regexp    // in a record's line or payloads; nil for any
	Since, Until int64             // ms after the start; a Since of 0 is none: tapes of others may say less than 0
	Failed       bool              // what Failed reports
	Tail         int               // the last so many of the rest; 0 for all. Timeline looks at it, Wants does not

	buf   []byte
	lanes *fidelity.SocketLanes
	seen  map[string]bool // kinds of the records that were looked at, those of Kinds and maxSeen more
}

// NewFilter returns a filter that chooses every record.
func NewFilter() *Filter { return &Filter{Last: math.MaxUint64, Until: math.MaxInt64} }

// maxSeen bounds how many kinds are told apart: those of tapedeck are fewer than half of it.
const maxSeen = 64

// KindNames are the kinds of records that recordings hold.
var KindNames = []string{
	"llm_call", "http_exchange", "process_spawn", "file_read", "file_write", "file_delete", "net_refused", "tls_refused", "name_lookup",
	"mcp_json_rpc", "mcp_open", "mcp_text", "mcp_close", "ws_open", "ws_message", "ws_close", "clock_read", "clock_sleep", "dir_list", "env_read", "file_stat", "random_read",
	"policy_verdict", screen.KindScreen,
}

// All reports whether f chooses every record: then what is no record may be shown too.
func (f *Filter) All() bool {
	return f.First == 0 && f.Last == math.MaxUint64 && len(f.Kinds) == 0 && f.Lane == nil && f.Grep == nil && !f.Failed &&
		f.Since == 0 && f.Until == math.MaxInt64
}

// Wants reports whether f chooses rec, whose payloads are in store.
func (f *Filter) Wants(rec *tape.Record, store cas.Store) (bool, error) {
	f.see(rec.Kind.Name())
	lane := f.LaneOf(rec.Kind)
	switch {
	case rec.Seq < f.First || rec.Seq > f.Last,
		f.Since > 0 && rec.MonotonicMS < f.Since || rec.MonotonicMS > f.Until,
		len(f.Kinds) > 0 && !slices.Contains(f.Kinds, rec.Kind.Name()),
		f.Lane != nil && !f.Lane(lane),
		f.Failed && !Failed(rec.Kind):
		return false, nil
	case f.Grep == nil:
		return true, nil
	}
	return f.found(rec, store)
}

// LaneOf names the lane of a record that Wants has looked at: that of a WebSocket's message by its opening, which came before.
func (f *Filter) LaneOf(k tape.Kind) string {
	if f.lanes == nil {
		f.lanes = new(fidelity.SocketLanes)
	}
	return f.lanes.Of(k)
}

// WantsScreen reports whether f chooses what a terminal showed or was given. It has no number and never fails.
func (f *Filter) WantsScreen(c *screen.Change) bool {
	switch {
	case f.First > 0 || f.Last < math.MaxUint64 || f.Failed,
		f.Since > 0 && c.TMS < f.Since || c.TMS > f.Until,
		len(f.Kinds) > 0 && !slices.Contains(f.Kinds, screen.KindScreen),
		f.Lane != nil && !f.Lane(screen.LaneTerminal):
		return false
	case f.Grep == nil:
		return true
	}
	return f.Grep.MatchString(c.String()) || f.Grep.MatchString(strings.Join(c.Screen, "\n"))
}

// WantsScreens reports whether f may choose any of those.
func (f *Filter) WantsScreens() bool {
	return f.WantsScreen(&screen.Change{TMS: f.Since}) || f.Grep != nil
}

func (f *Filter) see(kind string) {
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	if len(f.Kinds) > 0 && (len(f.seen) < maxSeen || slices.Contains(f.Kinds, kind)) {
		f.seen[kind] = true
	}
}

// Unknown returns the first of Kinds that neither tapedeck knows nor any record had that was looked at, and what is known; ""
// where there is none.
func (f *Filter) Unknown() (kind string, known []string) {
	for _, k := range f.Kinds {
		if f.seen[k] || slices.Contains(KindNames, k) {
			continue
		}
		known := append(slices.Collect(maps.Keys(f.seen)), KindNames...)
		slices.Sort(known)
		return k, slices.Compact(known)
	}
	return "", nil
}

// MatchLane returns what fits lanes that begin with s or, where it has a * or ?, that it describes from end to end; * stands
// for slashes too, which a lane has as part of paths.
func MatchLane(s string) func(string) bool {
	if !strings.ContainsAny(s, "*?") {
		return func(lane string) bool { return strings.HasPrefix(lane, s) }
	}
	expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(s))
	return regexp.MustCompile("(?s)^" + expr + "$").MatchString // what was quoted always compiles
}

func (f *Filter) found(rec *tape.Record, store cas.Store) (bool, error) {
	if f.buf = tape.AppendRecord(f.buf[:0], rec); f.Grep.Match(f.buf) {
		return true, nil
	}
	for _, p := range PayloadsOf(rec.Kind) {
		ok, err := f.inPayload(rec.Kind, &p, store)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// grepWhole is the longest payload, in bytes, that is searched in memory, and grepDecoded the longest that a compressed
// one may become there. What is longer is searched as it streams, as it stands.
const grepWhole, grepDecoded = 16 << 20, 64 << 20

func (f *Filter) inPayload(k tape.Kind, p *NamedPayload, store cas.Store) (bool, error) {
	if p.Len > grepWhole {
		r, err := p.Open(store)
		if err != nil {
			return false, err
		}
		defer r.Close()
		return f.Grep.MatchReader(bufio.NewReaderSize(r, 1<<16)), nil
	}
	b, err := p.Bytes(store)
	if err != nil {
		return false, err
	}
	if plain, err := exchange.Decode(encodingOf(k, p.Name), b, grepDecoded); err == nil {
		b = plain
	}
	return f.Grep.Match(b), nil
}

// A Last keeps the last Size, which is not 0, of what it gets.
type Last[T any] struct {
	Size int

	all  []T
	next int
}

// Add keeps v.
func (l *Last[T]) Add(v T) {
	if len(l.all) < l.Size {
		l.all = append(l.all, v)
		return
	}
	l.all[l.next] = v
	l.next = (l.next + 1) % l.Size
}

// All returns them in the order in which they came.
func (l *Last[T]) All() []T { return append(l.all[l.next:len(l.all):len(l.all)], l.all[:l.next]...) }

// An Item is one thing of a timeline: a record of the tape or, where that is nil, what the terminal showed or was given.
type Item struct {
	Record *tape.Record
	Screen *screen.Change
}

// Timeline yields those of records, whose payloads are in store, that f chooses, with what a terminal showed and was given in its place among
// them. With Tail it holds so many, else one. Behind the last record that First and Last name it reads no further where they name one.
func (f *Filter) Timeline(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error]) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last := Last[Item]{Size: f.Tail}
		put := func(it Item) error {
			if last.Size > 0 {
				last.Add(it)
			} else if !yield(it, nil) {
				return errEnough
			}
			return nil
		}
		switch err := f.merged(records, store, changes, put); {
		case errors.Is(err, errEnough):
			return
		case err != nil:
			yield(Item{}, err)
			return
		}
		for _, it := range last.All() {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// errEnough ends a timeline that nobody reads any more.
var errEnough = errors.New("enough")

// merged puts what f chooses, in order. The error is that of records, of changes, or put's.
func (f *Filter) merged(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error], put func(Item) error) error {
	s := &screenQueue{f: f, more: func() (*screen.Change, error, bool) { return nil, nil, false }}
	if changes != nil && f.WantsScreens() {
		more, stop := iter.Pull2(changes)
		defer stop()
		s.more = more
	}
	for rec, err := range records {
		var want bool
		if err == nil {
			want, err = f.Wants(rec, store)
		}
		if err == nil && want && rec.G > 0 {
			err = s.until(rec.G, put)
		}
		if err == nil && want {
			err = put(Item{Record: rec})
		}
		if err != nil {
			return err
		}
		if f.First == f.Last && rec.Seq == f.Last {
			break
		}
	}
	return s.until(math.MaxUint64, put)
}

// A screenQueue gives changes of screens up to an ordinal.
type screenQueue struct {
	f    *Filter
	more func() (*screen.Change, error, bool)
	next *screen.Change
}

func (q *screenQueue) until(g uint64, put func(Item) error) error {
	for {
		if q.next == nil {
			c, err, ok := q.more()
			if !ok || err != nil {
				return err
			}
			q.next = c
		}
		c := q.next
		if c.G > g {
			return nil
		}
		q.next = nil
		if !q.f.WantsScreen(c) {
			continue
		}
		q.f.see(screen.KindScreen)
		if err := put(Item{Screen: c}); err != nil {
			return err
		}
	}
}

// A NamedPayload is a payload and what of its record it is, as in "request" or "stdout".
type NamedPayload struct {
	Name string
	*tape.Payload
}

// PayloadsOf lists the payloads of a record that are there.
func PayloadsOf(k tape.Kind) []NamedPayload {
	var all []NamedPayload
	switch k := k.(type) {
	case *tape.LLMCall:
		all = []NamedPayload{{"request", k.RequestPayload}, {"response", k.Response}}
	case *tape.HTTPExchange:
		all = []NamedPayload{{"request", k.RequestPayload}, {"response", k.Response}}
	case *tape.ProcessSpawn:
		all = []NamedPayload{{"stdin", k.Stdin}, {"stdout", k.Stdout}, {"stderr", k.Stderr}}
	case *tape.FileRead:
		all = []NamedPayload{{"content", k.Content}}
	case *tape.FileWrite:
		all = []NamedPayload{{"before", k.Before}, {"content", k.Content}}
	case *tape.FileDelete:
		all = []NamedPayload{{"before", k.Before}}
	case *tape.MCPJSONRPC:
		all = []NamedPayload{{"request", k.Request}, {"response", k.Response}}
	case *tape.MCPText:
		all = []NamedPayload{{"text", k.Payload}}
	case *tape.DirList:
		all = []NamedPayload{{"names", k.Names}}
	case *tape.EnvRead:
		all = []NamedPayload{{"value", k.Value}}
	case *tape.WSMessage:
		all = []NamedPayload{{"message", k.Payload}}
	default:
		for i, p := range tape.Payloads(k) {
			all = append(all, NamedPayload{fmt.Sprintf("payload %d", i+1), p})
		}
	}
	return slices.DeleteFunc(all, func(p NamedPayload) bool { return p.Payload == nil })
}

// encodingOf is the Content-Encoding of the payload name of k.
func encodingOf(k tape.Kind, name string) string {
	x := tape.ExchangeOf(k)
	if x == nil {
		return ""
	}
	headers := x.ResponseHeaders
	if name == "request" {
		headers = x.RequestHeaders
	}
	var all []string
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Content-Encoding") {
			all = append(all, h.Value)
		}
	}
	return strings.Join(all, ", ")
}

// Failed reports whether a record says that something went wrong.
func Failed(k tape.Kind) bool {
	if x := tape.ExchangeOf(k); x != nil {
		return x.Error != "" || x.Status >= 400 || x.Status == 0 && x.Method != "" || // without a method: another producer's
			grpcstatus.Of(k).Failed()
	}
	switch k := k.(type) {
	case *tape.NetRefused, *tape.TLSRefused:
		return true
	case *tape.ProcessSpawn:
		return k.ExitCode != 0 || k.Signal != ""
	case *tape.MCPJSONRPC:
		return mcpFailed(k)
	case *tape.MCPClose:
		return k.Error != "" || serverFailed(k)
	case *tape.WSOpen:
		return k.Status >= 400
	case *tape.WSClose:
		return k.Code > 1001 && k.Code != 1005 // RFC 6455, 7.4.1: normal, going away, none given
	}
	return false
}

// serverFailed reports whether a server ended by itself and not well. Clients end theirs by SIGTERM and SIGKILL.
func serverFailed(k *tape.MCPClose) bool {
	switch k.Signal {
	case "":
		return k.ExitCode != nil && *k.ExitCode != 0
	case "SIGTERM", "SIGKILL", "SIGINT", "SIGHUP", "SIGPIPE":
		return false
	}
	return true
}

// mcpFailed reports whether a request got no answer, or one that says that something failed: an error of JSON-RPC, or of a tool.
func mcpFailed(k *tape.MCPJSONRPC) bool {
	if k.Error != "" {
		return true
	}
	return k.Response != nil && k.Response.Inline && mcptext.Answer(k.Method, []byte(k.Response.Text), 1).Failed
}
