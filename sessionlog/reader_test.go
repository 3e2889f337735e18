package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// saved is the log that comes of loading text and saving it.
func saved(t interface{ Fatalf(string, ...any) }, text string, o *ReaderOptions) string {
	l, err := Load(strings.NewReader(text), "a.jsonl", o)
	if err != nil {
		t.Fatalf("%.200q: %v", text, err)
	}
	var whole, streamed bytes.Buffer
	if n, err := l.WriteTo(&whole); err != nil || n != int64(whole.Len()) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := Copy(&streamed, NewReader(iotest.HalfReader(strings.NewReader(text)), "a.jsonl", o)); err != nil {
		t.Fatalf("%v", err)
	}
	if whole.String() != streamed.String() {
		t.Fatalf("saved it is %q, copied %q", whole.String(), streamed.String())
	}
	return whole.String()
}

// logs are logs of every form.
var logs = []string{
	"", "\n", " \r\n\n", "[]", " [ ] \n",
	`{"kind":"page_in","turn":1}`,
	`{"seq":0,"event":{"kind":"page_in","turn":1}}` + "\n",
	"\n\r\n  " + `{"seq":0,"event":{"kind":"page_in"}}` + " \r\n" + `{"kind":"x"}` + "\n\n" + `{"seq":1,"record_type":"kernel_genesis","genesis":{"event":1}}` + "\n \n",
	`[{"kind":"a"},{"seq":0,"event":{"kind":"b"}},{"seq":1,"record_type":"r"}]`,
	"\n[\n  {\n    \"kind\": \"a\",\n    \"turn\": 2\n  } ,\n\n {\"event\" : {\"kind\":\"b\"} }\n]\n\n",
	`{"seq":0,"event":{"kind":"a","x":1e400,"y":9007199254740993,"z":"\u0000","d":1,"d":2},"g":3,"t_ms":-1,"more":[]}` + "\r\n",
}

func TestSavedAsItStood(t *testing.T) {
	for _, text := range logs {
		if got := saved(t, text, nil); got != text {
			t.Errorf("%q is saved as %q", text, got)
		}
	}
	needSamples(t)
	for _, name := range []string{"events_ask_user.json", "events_ask_user.older.json"} {
		text := string(readFile(t, filepath.Join(samples, name)))
		if got := saved(t, text, nil); got != text {
			t.Errorf("%s is saved as %q", name, got)
		}
	}
}

func TestSavedAsItStoodWhateverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genLog(t)
		if got := saved(t, text, nil); got != text {
			t.Fatalf("%q is saved as %q", text, got)
		}
	})
}

// genLog makes a log of any form.
func genLog(t *rapid.T) string {
	spaces := rapid.StringMatching(`[ \t\r]{0,2}`)
	var entries []string
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		event := string(genEvent(t))
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			entries = append(entries, event)
		case 1:
			entries = append(entries, fmt.Sprintf(`{"seq":%d,"event":%s}`, rapid.Uint64().Draw(t, "seq"), event))
		case 2:
			entries = append(entries, fmt.Sprintf(`{"event" : %s , "g":%d, "t_ms":%d, "other":null}`, event, rapid.Uint64().Draw(t, "g"), rapid.Int64().Draw(t, "t_ms")))
		default:
			entries = append(entries, `{"record_type":"kernel_transaction","transaction":{}}`)
		}
	}
	var b strings.Builder
	list := rapid.Bool().Draw(t, "list")
	if list {
		b.WriteString(spaces.Draw(t, "before") + "[")
	}
	for i, e := range entries {
		if list && i > 0 {
			b.WriteString(spaces.Draw(t, "space") + ",\n")
		}
		b.WriteString(spaces.Draw(t, "space") + e + spaces.Draw(t, "space"))
		if !list && (i < len(entries)-1 || rapid.Bool().Draw(t, "newline")) {
			b.WriteString(strings.Repeat("\n", rapid.IntRange(1, 3).Draw(t, "newlines")))
		}
	}
	if list {
		b.WriteString("]" + spaces.Draw(t, "after"))
	}
	return b.String()
}

func TestEntriesAreKnown(t *testing.T) {
	text := logs[7] + `{"seq":2,"event":{"turn":3,"kind":"page\u005fin","event":{"kind":"no"}},"g":7,"t_ms":12}` + "\n" +
		`{"kind":"own","event":{"kind":"inner"},"seq":"mine","g":null}` + "\n" + `{"kind":"t","turn":"x"}`
	l, err := Load(strings.NewReader(text), "a.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range l.Entries {
		ms := "none"
		if e.TMS != nil {
			ms = fmt.Sprint(*e.TMS)
		}
		got = append(got, fmt.Sprintf("%d %v %v %d %s %v %d %d %s", e.Line, e.Form, e.HasSeq, e.Seq, e.Kind, e.HasTurn, e.Turn, e.G, ms))
		if at := text[e.Offset:]; !strings.HasPrefix(strings.TrimLeft(at, space), string(e.Raw())) {
			t.Errorf("line %d begins at %q", e.Line, at)
		}
	}
	want := []string{
		"3 envelope true 0 page_in false 0 0 none", "4 bare false 0 x false 0 0 none", "6 record true 1  false 0 0 none",
		"8 envelope true 2 page_in true 3 7 12", "9 bare false 0 own false 0 0 none", "10 bare false 0 t false 0 0 none",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e := l.Entries[3]; string(e.EventRaw()) != `{"turn":3,"kind":"page\u005fin","event":{"kind":"no"}}` {
		t.Errorf("the event is %s", e.EventRaw())
	}
	if e, err := l.Entries[2].Event(); e != nil || err != nil {
		t.Errorf("a record has the event %v, %v", e, err)
	}
}

func TestEventsPassOverRecords(t *testing.T) {
	r := NewReader(strings.NewReader(logs[7]+`{"kind":"page_in","turn":"x"}`+"\n"), "a.jsonl", nil)
	var got []string
	for e, event := range r.Events() {
		got = append(got, fmt.Sprint(e.Line, " ", KindOf(event)))
	}
	if fmt.Sprint(got) != "[3 page_in 4 x]" {
		t.Errorf("got %v", got)
	}
	var load *LoadError
	var event *EventError
	if err := r.Err(); !errors.As(err, &load) || load.Line != 8 || !errors.As(err, &event) || event.EventKind != KindPageIn {
		t.Errorf("the end is %v", err)
	}
}

// A log that is cut anywhere loads up to the cut, and says so.
func TestTornEnd(t *testing.T) {
	for _, text := range logs[5:] {
		for cut := range len(text) {
			part := text[:cut]
			r := NewReader(strings.NewReader(part), "a.jsonl", nil)
			n := 0
			for range r.Entries() {
				n++
			}
			torn := errors.Is(r.Err(), ErrTorn)
			if r.Err() != nil && !torn {
				t.Fatalf("%q: %v", part, r.Err())
			}
			tolerant, err := Load(strings.NewReader(part), "a.jsonl", &ReaderOptions{Tolerant: true})
			if err != nil {
				t.Fatalf("%q: %v", part, err)
			}
			if torn != (tolerant.Torn != nil) || torn && len(tolerant.Entries) != n-1 {
				t.Errorf("%q: torn %v and %v, entries %d and %d", part, torn, tolerant.Torn, n, len(tolerant.Entries))
			}
			var kept bytes.Buffer
			if _, err := tolerant.WriteTo(&kept); err != nil {
				t.Fatal(err)
			}
			if again, err := Load(&kept, "a.jsonl", nil); err != nil || len(again.Entries) != len(tolerant.Entries) {
				t.Errorf("%q: what is kept of it does not load: %v", part, err)
			}
			if torn && strings.TrimSpace(part[tolerant.Torn.Offset:]) == "" && !strings.HasPrefix(strings.TrimSpace(part), "[") {
				t.Errorf("%q is torn at byte %d", part, tolerant.Torn.Offset)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	good := `{"kind":"a"}` + "\n"
	for text, want := range map[string]error{
		good + "{\n" + good: ErrNotJSON, good + "x\n": ErrNotJSON, good + "\x00\n": ErrNotJSON, good + "{\"kind\":\"\xff\"}\n": ErrNotJSON,
		good + "\ufeff" + good: ErrNotJSON, good + `{"kind":"a","x":` + deep + "}\n": ErrNotJSON, good + "[1]\n": ErrMalformed,
		good + "1\n": ErrMalformed, good + `{"kind":"a"}{"kind":"b"}` + "\n": ErrNotJSON,
		good + "{}\n": ErrMalformed, good + `{"event":1}` + "\n": ErrMalformed, good + `{"event":{}}` + "\n": ErrMalformed,
		good + `{"seq":0,"event":{"kind":null}}` + "\n": ErrMalformed, good + `{"kind":7}` + "\n": ErrMalformed,
		good + `{"seq":-1,"event":{"kind":"a"}}` + "\n": ErrMalformed, good + `{"seq":1.5,"event":{"kind":"a"}}` + "\n": ErrMalformed,
		good + `{"seq":18446744073709551616,"event":{"kind":"a"}}` + "\n":   ErrMalformed,
		good + `{"seq":1,"seq":2,"event":{"kind":"a"}}` + "\n":              ErrMalformed,
		good + `{"seq":1,"event":{"kind":"a"},"event":{"kind":"a"}}` + "\n": ErrMalformed,
		good + `{"seq":1,"event":{"kind":"a","kind":"b"}}` + "\n":           ErrMalformed,
		good + `{"kind":"a","\u006bind":"b"}` + "\n":                        ErrMalformed,
		"[" + good + "," + deep + "]":                                       ErrNotJSON, "[" + good + ",\n1]": ErrMalformed, "[" + good + "]\n]": ErrNotJSON, "[" + good + "\n" + good + "]": ErrNotJSON,
	} {
		for _, o := range []*ReaderOptions{nil, {Tolerant: true}} {
			_, err := Load(strings.NewReader(text), "a.jsonl", o)
			var load *LoadError
			if !errors.As(err, &load) || !errors.Is(err, want) || load.Path != "a.jsonl" || load.Line < 2 {
				t.Errorf("%.80q: %v, want %v", text, err, want)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := Load(io.MultiReader(strings.NewReader(good+"{"), iotest.ErrReader(broken)), "a.jsonl", &ReaderOptions{Tolerant: true}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A line of 2 MB, or, where TAPEDECK_LONG is set, 100 MB, is kept exactly; one over the limit is refused with its line.
func TestLongEntries(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it moves a gigabyte")
	}
	size, befores := 2_000_000, []string{"{\"kind\":\"a\"}\n"}
	if os.Getenv("TAPEDECK_LONG") != "" {
		size, befores = 100_000_000, append(befores, "[{\"kind\":\"a\"},\n")
	}
	text := `{"seq":0,"event":{"kind":"llm_completed","turn":1,"message":{"content":"` + strings.Repeat("long \\\" words ", size/14) + `"}}}` + "\n"
	for _, text := range []string{text, "[" + strings.TrimSpace(text) + "]"} {
		r := NewReader(strings.NewReader(text), "a.jsonl", nil)
		out := &comparer{want: text}
		if err := Copy(out, r); err != nil || out.n != len(text) || out.differs {
			t.Errorf("%d bytes of %d, differs %v: %v", out.n, len(text), out.differs, err)
		}
	}
	for _, before := range befores {
		huge := io.MultiReader(strings.NewReader(before+`{"kind":"`), io.LimitReader(endless('x'), MaxEntry), strings.NewReader("\"}\n"))
		_, err := Load(huge, "a.jsonl", nil)
		var load *LoadError
		if !errors.Is(err, ErrLineTooLong) || !errors.As(err, &load) || load.Line != 2 {
			t.Error(err)
		}
	}
}

type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

// A comparer compares what is written with a text.
type comparer struct {
	want    string
	n       int
	differs bool
}

func (c *comparer) Write(b []byte) (int, error) {
	c.differs = c.differs || !strings.HasPrefix(c.want[min(c.n, len(c.want)):], string(b))
	c.n += len(b)
	return len(b), nil
}

// A list of 500,000 elements is read in bounded memory, and a log of as many lines; where TAPEDECK_LONG is set, of 5,000,000.
func TestManyEntriesInBoundedMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it reads a million entries")
	}
	n := 500_000
	if os.Getenv("TAPEDECK_LONG") != "" {
		n = 5_000_000
	}
	for _, list := range []bool{false, true} {
		src := &repeated{list: list, left: n}
		r := NewReader(src, "a.jsonl", nil)
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		count, most := 0, uint64(0)
		for _, err := range r.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if count++; count%(n/10) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
		if list {
			count--
		}
		if count != n || most > before.HeapAlloc+4<<20 {
			t.Errorf("list %v: %d entries, %d bytes of heap more", list, count, most-before.HeapAlloc)
		}
	}
}

// repeated is a log of equal events.
type repeated struct {
	list  bool
	left  int
	begun bool
	ended bool
	rest  string
}

func (r *repeated) more() string {
	k := min(r.left, 1000)
	r.left -= k
	sep, first, last := "\n", "", ""
	if r.list {
		sep, first, last = ",", "[", `{"kind":"last"}]`
	}
	text := strings.Repeat(`{"kind":"page_in","turn":1,"entry_count":3}`+sep, k)
	if !r.begun {
		text = first + text
	}
	if r.begun = true; r.left == 0 {
		r.ended = true
		text += last
	}
	return text
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.rest == "" && !r.ended {
		r.rest = r.more()
	}
	if r.rest == "" {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestOrderIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"":        "0 of 0, 0 gaps, 0 back, due 0, <nil>",
		"0 1 2":   "3 of 3, 0 gaps, 0 back, due 3, <nil>",
		"0 2 1 2": "4 of 4, 1 gaps, 2 back, due 3, line 2: seq is 2, want 1",
		"1":       "1 of 1, 1 gaps, 0 back, due 2, line 1: seq is 1, want 0",
		"0 0":     "2 of 2, 0 gaps, 1 back, due 1, line 2: seq is 0, want 1",
		"- - 0":   "1 of 3, 0 gaps, 0 back, due 1, <nil>",
		"- -":     "0 of 2, 0 gaps, 0 back, due 2, <nil>",
		"0 -":     "1 of 2, 0 gaps, 0 back, due 1, <nil>",
	} {
		var b strings.Builder
		for _, seq := range strings.Fields(text) {
			fmt.Fprintf(&b, `{"seq":%s,"event":{"kind":"a"}}`+"\n", strings.ReplaceAll(seq, "-", "null"))
		}
		l, err := Load(strings.NewReader(b.String()), "a.jsonl", nil)
		if err != nil {
			t.Fatal(err)
		}
		o := l.Order
		if got := fmt.Sprintf("%d of %d, %d gaps, %d back, due %d, %v", o.Numbered, o.Entries, o.Gaps, o.Back, o.due, o.First); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A clone is the caller's to keep, and reading goes on where it was left.
func TestCloneIsKept(t *testing.T) {
	r := NewReader(iotest.OneByteReader(strings.NewReader(logs[7])), "a.jsonl", nil)
	var kept []*Entry
	for len(kept) < 3 {
		for e, err := range r.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, e.Clone())
			for _, b := range [][]byte{e.before, e.raw, e.after} { // whoever reads on may overwrite it
				clear(b)
			}
			break
		}
	}
	var all []byte
	for _, e := range kept {
		all = e.AppendTo(all)
	}
	if got := string(append(all, logs[7][len(all):]...)); got != logs[7] || string(kept[0].EventRaw()) != `{"kind":"page_in"}` || kept[2].EventRaw() != nil {
		t.Errorf("kept %q", got)
	}
}

func TestOpenReadsNoPipe(t *testing.T) {
	if _, err := Open(t.TempDir(), nil); err == nil {
		t.Error("a directory is a log")
	}
	path := filepath.Join(t.TempDir(), "session.jsonl")
	if err := os.WriteFile(path, []byte(logs[7]), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := LoadFile(path, nil)
	if err != nil || len(l.Entries) != 3 {
		t.Errorf("%v, %v", l, err)
	}
}

func FuzzReader(f *testing.F) {
	for _, text := range logs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Load(strings.NewReader(text), "a.jsonl", nil)
		if err != nil {
			return
		}
		var b strings.Builder
		if _, err := l.WriteTo(&b); err != nil || b.String() != text {
			t.Fatalf("%q is saved as %q: %v", text, b.String(), err)
		}
		for _, e := range l.Entries {
			if _, err := e.Event(); err != nil {
				var event *EventError
				if !errors.As(err, &event) {
					t.Fatal(err)
				}
			}
		}
	})
}
