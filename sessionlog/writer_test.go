package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// openLog opens a writer of a log that holds text.
func openLog(t *testing.T, text string, o *WriterOptions) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := OpenWriter(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, path
}

func TestAppend(t *testing.T) {
	for _, o := range []*WriterOptions{nil, {Sync: true}} {
		w, path := openLog(t, "", o)
		ms := int64(0)
		for i, step := range []func() (uint64, error){
			func() (uint64, error) { return w.Append(&PageIn{Common: Common{Turn: 1}, EntryCount: 2}, nil) },
			func() (uint64, error) { return w.Append(&Unknown{EventKind: "tea\nbreak"}, &Stamp{G: 9, TMS: &ms}) },
			func() (uint64, error) {
				return w.AppendRaw([]byte("{\n \"kind\" :\r\n \"x\", \"n\":1e400}"), &Stamp{G: 1<<64 - 1})
			},
		} {
			if seq, err := step(); err != nil || seq != uint64(i) {
				t.Fatalf("seq %d, %v", seq, err)
			}
		}
		want := `{"seq":0,"event":{"kind":"page_in","turn":1,"entry_count":2}}` + "\n" +
			`{"seq":1,"event":{"kind":"tea\nbreak"},"g":9,"t_ms":0}` + "\n" +
			`{"seq":2,"event":{ "kind" : "x", "n":1e400},"g":18446744073709551615}` + "\n"
		if got := string(readFile(t, path)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("mode %v, %v", st.Mode(), err)
		}
	}
}

func TestAppendGoesOnBehindWhatStandsThere(t *testing.T) {
	for text, want := range map[string]uint64{
		"\n\n": 0, `{"kind":"a"}`: 1, `{"kind":"a"}` + "\n" + `{"kind":"b"}` + "\r\n": 2,
		`{"seq":0,"event":{"kind":"a"}}` + "\n" + `{"seq":1,"record_type":"r"}` + "\n": 2,
		`{"seq":7,"event":{"kind":"a"}}` + "\n" + `{"seq":3,"event":{"kind":"a"}}`:     8,
		"  ": 0, `{"kind":"a"}` + "\n" + `{"seq":0,"event":{"kind":"a"}}`: 1,
	} {
		w, path := openLog(t, text, nil)
		if seq, err := w.Append(&PageIn{}, nil); err != nil || seq != want {
			t.Errorf("%q goes on with %d, want %d: %v", text, seq, want, err)
		}
		got := string(readFile(t, path))
		if !strings.HasPrefix(got, text) || strings.Count(got, "\n{\"seq\":")+strings.Count(got, "\r\n") < 0 {
			t.Errorf("%q became %q", text, got)
		}
		l, err := LoadFile(path, nil)
		if err != nil || l.Entries[len(l.Entries)-1].Seq != want {
			t.Errorf("%q became %q: %v", text, got, err)
		}
		if len(w.Repairs()) != 0 {
			t.Errorf("%q was repaired: %v", text, w.Repairs())
		}
	}
}

// A log that is cut anywhere is repaired when it is opened: what stood behind the cut is kept aside, said, and nothing else
// changes.
func TestTornEndIsPutAside(t *testing.T) {
	text := `{"seq":0,"event":{"kind":"a"}}` + "\r\n\n" + `{"seq":1,"event":{"kind":"b","x":"é\n"}}` + "\n"
	for cut := range len(text) + 1 {
		w, path := openLog(t, text[:cut], nil)
		repairs := w.Repairs()
		seq, err := w.Append(&PageIn{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := LoadFile(path, nil)
		if err != nil || !l.Order.Sound() || uint64(len(l.Entries)) != seq+1 {
			t.Errorf("cut at %d: %d entries, seq %d, %v", cut, len(l.Entries), seq, err)
		}
		kept := text[:cut]
		for _, r := range repairs {
			side := string(readFile(t, r.Side))
			if kept = text[:r.Offset]; kept+side != text[:cut] || r.Length != int64(len(side)) || r.Line != 1+strings.Count(kept, "\n") {
				t.Errorf("cut at %d: %q was put aside, %+v", cut, side, r)
			}
		}
		if got := string(readFile(t, path)); !strings.HasPrefix(got, kept) {
			t.Errorf("cut at %d: %q", cut, got)
		}
		whole := strings.TrimSpace(kept) == strings.TrimSpace(text[:cut])
		if whole != (len(repairs) == 0) || len(repairs) > 1 {
			t.Errorf("cut at %d: repairs %v", cut, repairs)
		}
	}
}

func TestTwoTornEndsAtOnePlace(t *testing.T) {
	w, path := openLog(t, "{", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var sides []string
	for _, torn := range []string{"{", `{"k`} { // as if the repair was killed before it cut, and another end
		if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWriter(path, &WriterOptions{Sync: true})
		if err != nil {
			t.Fatal(err)
		}
		r := w.Repairs()
		if len(r) != 1 || string(readFile(t, r[0].Side)) != torn {
			t.Fatalf("repairs %v", r)
		}
		sides = append(sides, filepath.Base(r[0].Side))
		w.Close()
	}
	if fmt.Sprint(sides) != "[session.jsonl.torn-0 session.jsonl.torn-0-2]" {
		t.Errorf("the ends lie in %v", sides)
	}
}

func TestOpenWriterRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"[]": ErrList, "\t[{\"kind\":\"a\"}]": ErrList, `[{"kind":`: ErrList, "{\"kind\":\"a\"}\nx\n": ErrNotJSON, "1\n": ErrMalformed,
	} {
		path := filepath.Join(t.TempDir(), "session.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenWriter(path, nil)
		var load *LoadError
		if !errors.Is(err, want) || !errors.As(err, &load) || load.Line != 1+strings.Count(strings.TrimSuffix(text, "\n"), "\n") {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
		if got := string(readFile(t, path)); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if _, err := OpenWriter(filepath.Join(t.TempDir(), "no", "session.jsonl"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What others wrote since is read before the next line: a line of theirs that is none is named by its number in the log.
func TestLinesOfOthersAreCounted(t *testing.T) {
	w, path := openLog(t, "\n"+`{"kind":"a"}`, nil) // no newline ends line 2
	for _, text := range []string{"", "", "\n" + `{"kind":"b"}` + "\n\n", `{"kind":"torn`, "", `{"kind":"c"}`, "", "{}\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		want := 1 + strings.Count(strings.TrimSuffix(string(readFile(t, path)), "\n"), "\n")
		_, err = w.Append(&PageIn{}, nil)
		var load *LoadError
		if text != "{}\n" && err != nil || text == "{}\n" && (!errors.As(err, &load) || load.Line != want) {
			t.Errorf("behind %q: %v, want line %d", text, err, want)
		}
	}
	if r := w.Repairs(); len(r) != 1 || string(readFile(t, r[0].Side)) != `{"kind":"torn` || r[0].Line != 1+strings.Count(string(readFile(t, path))[:r[0].Offset], "\n") {
		t.Errorf("repairs %+v", r)
	}
}

func TestAppendRefuses(t *testing.T) {
	w, path := openLog(t, `{"seq":18446744073709551614,"event":{"kind":"a"}}`+"\n", nil)
	before := readFile(t, path)
	for _, bad := range []string{`{}`, `{"kind":1}`, `1`, ``, `{"kind":"a"`, `{"kind":"a","kind":"a"}`, "{\"kind\":\"\xff\"}"} {
		var event *EventError
		if _, err := w.AppendRaw([]byte(bad), nil); !errors.As(err, &event) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := w.Append(&LLMCompleted{ProviderReplay: []byte("{")}, nil); err == nil {
		t.Error("JSON that is none was written")
	}
	if got := readFile(t, path); !bytes.Equal(got, before) {
		t.Errorf("the log became %q", got)
	}
	if seq, err := w.Append(&PageIn{}, nil); err != nil || seq != 1<<64-1 {
		t.Errorf("seq %d, %v", seq, err)
	}
	if _, err := w.Append(&PageIn{}, nil); !errors.Is(err, ErrSeq) {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(&PageIn{}, nil); !errors.Is(err, ErrShrunk) {
		t.Error(err)
	}
	w.Close()
	if _, err := w.Append(&PageIn{}, nil); err == nil {
		t.Error("a closed writer appends")
	}
}

func TestAppendRefusesALineThatNoReaderTakes(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it makes a line of 128 MiB")
	}
	w, path := openLog(t, "", nil)
	if _, err := w.Append(&Unknown{EventKind: Kind(strings.Repeat("x", MaxEntry))}, nil); !errors.Is(err, ErrLineTooLong) {
		t.Error(err)
	}
	if seq, err := w.Append(&PageIn{}, nil); err != nil || seq != 0 {
		t.Errorf("seq %d, %v", seq, err)
	}
	if l, err := LoadFile(path, nil); err != nil || len(l.Entries) != 1 {
		t.Error(err)
	}
}

// A failing file fails what is asked of it.
type failing struct {
	logFile
	half     bool // writes write a half
	truncate error
	sync     error
	syncs    int
}

var errDisk = errors.New("no space left")

func (f *failing) Write(b []byte) (int, error) {
	if !f.half {
		return f.logFile.Write(b)
	}
	n, err := f.logFile.Write(b[:len(b)/2])
	return n, errors.Join(err, errDisk)
}

func (f *failing) Truncate(n int64) error {
	if f.truncate != nil {
		return f.truncate
	}
	return f.logFile.Truncate(n)
}

func (f *failing) Sync() error {
	f.syncs++
	return errors.Join(f.sync, f.logFile.Sync())
}

func TestHalfAWriteIsTakenBack(t *testing.T) {
	w, path := openLog(t, "", nil)
	disk := &failing{logFile: w.f}
	w.f = disk
	for i := range 3 {
		disk.half = true
		if _, err := w.Append(&PageIn{EntryCount: 1000}, nil); !errors.Is(err, errDisk) {
			t.Fatal(err)
		}
		disk.half = false
		if seq, err := w.Append(&PageIn{}, nil); err != nil || seq != uint64(i) {
			t.Fatalf("seq %d, %v", seq, err)
		}
	}
	if l, err := LoadFile(path, nil); err != nil || len(l.Entries) != 3 || !l.Order.Sound() {
		t.Errorf("%v, %v", l, err)
	}
	if r := w.Repairs(); len(r) != 0 {
		t.Errorf("put aside: %v", r)
	}
	disk.half, disk.truncate = true, errDisk
	if _, err := w.Append(&PageIn{EntryCount: 1000}, nil); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	disk.half = false
	if _, err := w.Append(&PageIn{}, nil); !errors.Is(err, errDisk) {
		t.Errorf("behind half a line: %v", err)
	}
	other, err := OpenWriter(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if seq, err := other.Append(&PageIn{}, nil); err != nil || seq != 3 || len(other.Repairs()) != 1 {
		t.Errorf("seq %d, repairs %v, %v", seq, other.Repairs(), err)
	}
}

func TestSync(t *testing.T) {
	w, _ := openLog(t, "", &WriterOptions{Sync: true})
	disk := &failing{logFile: w.f}
	w.f = disk
	if _, err := w.Append(&PageIn{}, nil); err != nil || disk.syncs != 1 {
		t.Errorf("%d syncs, %v", disk.syncs, err)
	}
	disk.sync = errDisk
	for range 2 { // what was lost is not known: it fails from here on
		if _, err := w.Append(&PageIn{}, nil); !errors.Is(err, errDisk) {
			t.Error(err)
		}
	}
	w, _ = openLog(t, "", nil)
	disk = &failing{logFile: w.f}
	w.f = disk
	if _, err := w.Append(&PageIn{}, nil); err != nil || disk.syncs != 0 {
		t.Errorf("%d syncs, %v", disk.syncs, err)
	}
}

// Goroutines of two writers append: seq runs without a gap, no line is torn, and what each one wrote stands in its order.
func TestManyAppend(t *testing.T) {
	for _, o := range []*WriterOptions{nil, {Sync: true}} {
		first, path := openLog(t, "", o)
		second, err := OpenWriter(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		const producers, each = 8, 50
		var wg sync.WaitGroup
		for p := range producers {
			w := first
			if p%2 == 1 {
				w = second
			}
			wg.Go(func() {
				for i := range each {
					e := &Unknown{EventKind: Kind(strings.Repeat(fmt.Sprintf("%d ", p), 1+i*p)), Common: Common{Turn: i + 1}}
					seq, err := w.Append(e, &Stamp{G: uint64(p + 1)})
					if err != nil {
						t.Errorf("%d: %v", seq, err)
					}
				}
			})
		}
		wg.Wait()
		checkProducers(t, path, producers, each)
	}
}

// checkProducers checks a log that producers wrote, each its turns in order and its number as g.
func checkProducers(t *testing.T, path string, producers, each int) {
	t.Helper()
	l, err := LoadFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != producers*each || !l.Order.Sound() {
		t.Errorf("%d entries, %v", len(l.Entries), l.Order.First)
	}
	turns := map[uint64]int{}
	for _, e := range l.Entries {
		if turns[e.G]++; turns[e.G] != e.Turn {
			t.Errorf("line %d: producer %d wrote its turn %d, want %d", e.Line, e.G, e.Turn, turns[e.G])
		}
	}
}
