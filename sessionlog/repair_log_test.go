package sessionlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// genDamaged draws a log of events in one of the forms, with records and blank lines of older producers between, and a torn end.
func genDamaged(t *rapid.T) []byte {
	var b bytes.Buffer
	form := rapid.SampledFrom([]string{"envelopes", "bare", "list of events", "list of envelopes"}).Draw(t, "form")
	list, seq := strings.HasPrefix(form, "list"), 0
	n := rapid.IntRange(0, 25).Draw(t, "n")
	for i := range n {
		entry := string(genConversation(t))
		if strings.HasSuffix(form, "envelopes") {
			entry = fmt.Sprintf(`{"seq": %d,"event":%s, "g":7,"t_ms":-1}`, seq, entry)
			seq++
			if rapid.IntRange(0, 9).Draw(t, "record") == 0 {
				entry += map[bool]string{true: ",", false: "\n"}[list] + fmt.Sprintf(`{"seq":%d,"record_type":"x","n":1e400}`, seq)
				seq++
			}
		}
		switch {
		case list && i == 0:
			b.WriteString(" [ ")
		case list:
			b.WriteString(" ,\n ")
		case rapid.IntRange(0, 9).Draw(t, "blank") == 0:
			b.WriteString("\n \n")
		}
		b.WriteString(entry)
		if !list && i < n-1 {
			b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", " \n"}).Draw(t, "end"))
		}
	}
	switch {
	case list && n == 0:
		b.WriteString("[]")
	case list && rapid.Bool().Draw(t, "closed"):
		b.WriteString("\n]\n\n")
	case !list && rapid.Bool().Draw(t, "ended"):
		b.WriteString("\n")
	case !list && n > 0:
		b.WriteString("\n{\"seq\":9,\"ev")
	}
	return b.Bytes()
}

func tolerant(log []byte) *Reader {
	return NewReader(bytes.NewReader(log), "log", &ReaderOptions{Tolerant: true})
}

func copyOf(t interface{ Fatalf(string, ...any) }, log []byte) (*Findings, []byte) {
	f, err := Examine(tolerant(log))
	if err != nil {
		t.Fatalf("%v in\n%s", err, log)
	}
	var out bytes.Buffer
	if err := f.WriteCopy(&out, tolerant(log)); err != nil {
		t.Fatalf("%v in\n%s", err, log)
	}
	return f, out.Bytes()
}

// TestRepairedLog is TestRepairedIsWhole for logs of any form: nothing is found in the copy, its numbers have no gap, it is of the
// same form, a log without a finding is copied to the byte, and events and records that were whole stand in it as they stood.
func TestRepairedLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := genDamaged(t)
		f, out := copyOf(t, log)
		if len(f.List) == 0 && !bytes.Equal(out, log) {
			t.Fatalf("nothing was found, and the copy is\n%q\nof\n%q", out, log)
		}
		again := tolerant(out)
		g, err := Examine(again)
		if order := again.Order(); err != nil || len(g.List) > 0 || order.First != nil {
			t.Fatalf("%v %+v %v in the copy\n%s\nof\n%s", err, g, order.First, out, log)
		}
		n, rest := 0, out
		for e := range tolerant(log).Entries() {
			whole := e.event
			if whole == nil {
				whole = []byte(`,"record_type":"x","n":1e400}`)
			}
			if f.drops[n] == nil {
				at := bytes.Index(rest, whole)
				if at < 0 {
					t.Fatalf("%s is not in its place in the copy\n%s\nof\n%s", e.Raw(), out, log)
				}
				rest = rest[at+len(whole):]
			}
			n++
		}
		if list := bytes.HasPrefix(bytes.TrimSpace(log), []byte("[")); list != bytes.HasPrefix(bytes.TrimSpace(out), []byte("[")) {
			t.Fatalf("another form:\n%s\nof\n%s", out, log)
		}
	})
}

// TestRepairNumbers: what is added and left out moves the numbers behind it, and nothing else of an envelope.
func TestRepairNumbers(t *testing.T) {
	const log = `{"seq":0,"event":{"kind":"tool_requested","turn":1,"calls":[{"id":"a"}]},"g":15}
{"event":{"kind":"llm_completed","turn":2},"x":"y", "seq": 1 }
{"seq":2,"event":{"kind":"tool_completed","turn":2,"results":[{"call_id":"z"},{"call_id":"z"}]},"t_ms":5}
{"seq":3,"event":{"kind":"tool_completed","turn":2,"results":[{"call_id":"z"}]}}
{"seq":4,"record_type":"old"}
{"seq":5,"event":{"kind":"page`
	const want = `{"seq":0,"event":{"kind":"tool_requested","turn":1,"calls":[{"id":"a"}]},"g":15}
{"seq":1,"event":{"kind":"tool_completed","turn":1,"results":[{"call_id":"a","output":"` + noResult + `","is_error":true}],"repaired":"call_without_result"}}
{"event":{"kind":"llm_completed","turn":2},"x":"y", "seq": 2 }
{"seq":3,"event":{"kind":"tool_requested","turn":2,"calls":[{"id":"z","name":"","arguments":{}}],"repaired":"result_without_call"}}
{"seq":4,"event":{"kind":"tool_completed","turn":2,"results":[{"call_id":"z"}]},"t_ms":5}
{"seq":5,"record_type":"old"}
`
	if f, out := copyOf(t, []byte(log)); string(out) != want || len(f.List) != 5 || f.List[4].Code != TornLine || f.List[4].Line != 6 {
		t.Errorf("got\n%s\nwant\n%s\nfound %+v", out, want, f.List)
	}
}

// TestRepairLeavesTheLog: the log that is examined and copied is neither written to nor touched.
func TestRepairLeavesTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.jsonl")
	log := []byte(`{"kind":"run_started"}` + "\n" + `{"kind":"tool_requested","calls":[{"id":"a"}]}` + "\n{\"kin")
	if err := os.WriteFile(path, log, 0o400); err != nil {
		t.Fatal(err)
	}
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	open := func() *File {
		f, err := Open(path, &ReaderOptions{Tolerant: true})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer first.Close()
	defer second.Close()
	f, err := Examine(first.Reader)
	if err != nil || len(f.List) != 4 {
		t.Fatalf("%v, %+v", err, f)
	}
	if err := f.WriteCopy(new(bytes.Buffer), second.Reader); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || !st.ModTime().Equal(then) || !bytes.Equal(readFile(t, path), log) {
		t.Errorf("%v: the log is of %v now, and\n%s", err, st.ModTime(), readFile(t, path))
	}
	// Another log than the one that was examined is no ground for a copy.
	if err := f.WriteCopy(new(bytes.Buffer), tolerant([]byte(`{"kind":"run_started"}`+"\n"))); err == nil {
		t.Error("a copy of another log was made")
	}
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte(`{"kind":"run_started"}` + "\n" + `{"kind":"tool_completed","results":[{"call_id":"a"},{"call_id":"a"}]}` + "\n{"))
	f.Add([]byte(`[{"seq":0,"event":{"kind":"llm_completed","turn":1,"message":{"tool_calls":[{"id":"a"}]}}}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		found, err := Examine(tolerant(log))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := found.WriteCopy(&out, tolerant(log)); err != nil {
			t.Fatalf("%v", err)
		}
		if again, err := Examine(tolerant(out.Bytes())); err != nil || len(again.List) > 0 {
			t.Fatalf("%v %+v in %q", err, again, out.Bytes())
		}
	})
}
