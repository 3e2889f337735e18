package foreign

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// drain returns the events of the file as text, one a line, and its notes.
func drain(t *testing.T, s Source) (string, []string) {
	t.Helper()
	var b strings.Builder
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), s.Notes()
		}
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
			return b.String(), s.Notes()
		}
		switch e.Kind {
		case Resize:
			fmt.Fprintf(&b, "%v r %dx%d\n", e.At, e.Cols, e.Rows)
		case Exit:
			fmt.Fprintf(&b, "%v x %d\n", e.At, e.Code)
		default:
			fmt.Fprintf(&b, "%v %c %q\n", e.At, e.Kind, e.Data)
		}
	}
}

func open(t *testing.T, path string, o *Options) Source {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const v3 = `{"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color", "version": "VTE(7802)",
`

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"v1", `{"version":1,"width":80,"height":24,"duration":1.5,"command":"/bin/zsh","title":"","env":{"TERM":"xterm"},
			"stdout":[[0.248848,"\u001b[1mHi\n"],[1.001376,"there"]]}`,
			"248.848ms o \"\\x1b[1mHi\\n\"\n1.250224s o \"there\"\n"},
		{"v1 header behind the events", `{"stdout":[[0,"a"],[0.5,"b"]],"version":1,"width":10,"height":5}`,
			"0s o \"a\"\n500ms o \"b\"\n"},
		{"v2", "{\"version\":2,\"width\":80,\"height\":24}\n[0.5,\"o\",\"ä\"]\n[1.25,\"i\",\"k\"]\n[2,\"r\",\"100x50\"]\n[2.5,\"m\",\"here\"]\n" +
			"[3,\"z\",{\"a\":1}]\n[4,\"o\",\"end\"]\n",
			"500ms o \"ä\"\n1.25s i \"k\"\n2s r 100x50\n2.5s m \"here\"\n4s o \"end\"\n"},
		{"v3", "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n# a comment\n[0.248,\"o\",\"Hello\"]\n\n[1.001,\"m\",\"\"]\n[0.887,\"x\",\"3\"]\n",
			"248ms o \"Hello\"\n1.249s m \"\"\n2.136s x 3\n"},
		{"time of an event that is skipped counts", "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n[1,\"z\",\"\"]\n[1,\"o\",\"b\"]\n", "2s o \"b\"\n"},
		{"clock that was turned back", "{\"version\":2,\"width\":8,\"height\":2}\n[2,\"o\",\"a\"]\n[1,\"o\",\"b\"]\n[3,\"o\",\"c\"]\n",
			"2s o \"a\"\n2s o \"b\"\n3s o \"c\"\n"},
		{"CRLF", "{\"version\":2,\"width\":8,\"height\":2}\r\n[2,\"o\",\"a\"]\r\n", "2s o \"a\"\n"},
		{"torn end", "{\"version\":2,\"width\":8,\"height\":2}\n[2,\"o\",\"a\"]\n[3,\"o\",\"b", "2s o \"a\"\n"},
		{"no event", "{\"version\":2,\"width\":8,\"height\":2}\n", ""},
		{"byte order mark", "\ufeff{\"version\":2,\"width\":8,\"height\":2}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := drain(t, open(t, file(t, c.content), nil)); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	const v2 = "{\"version\":2,\"width\":8,\"height\":2}\n"
	for _, c := range []struct{ name, content, want string }{
		{"text", "hello\n", "neither an asciicast"},
		{"empty", "", "neither an asciicast"},
		{"zeros", string(make([]byte, 4096)), "neither an asciicast"},
		{"png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00", "neither an asciicast"},
		{"version", "{\"version\":4,\"width\":8,\"height\":2}\n", "line 1: asciicast version 4: want 1, 2 or 3"},
		{"size", "{\"version\":2,\"width\":8000,\"height\":2}\n", "line 1: a terminal of 2 rows and 8000 columns"},
		{"no term", "{\"version\":3}\n", "line 1: the header has no term"},
		{"no event", v2 + "[1,\"o\",\"a\"]\nfoo\n[2,\"o\",\"b\"]\n", "line 3: want [time, code, data], not \"foo\""},
		{"two parts", v2 + "[1,\"o\"]\n", "line 2: want [time, code, data]"},
		{"time", v2 + "[\"1\",\"o\",\"a\"]\n", "line 2: the time"},
		{"time too large", v2 + "[1e300,\"o\",\"a\"]\n", "line 2: a time is out of range"},
		{"resize", v2 + "[1,\"r\",\"axb\"]\n", "line 2: the size \"axb\": want COLSxROWS"},
		{"exit", "{\"version\":3,\"term\":{\"cols\":8,\"rows\":2}}\n[1,\"x\",\"none\"]\n", "line 2: the exit status \"none\""},
		{"data", v2 + "[1,\"o\",5]\n", "line 2: the data \"5\": want a string"},
		{"long line", v2 + "[1,\"o\",\"" + strings.Repeat("a", MaxData) + "\"]\n", "line 2: a line of more than 16 MiB"},
		{"v1 long value", "{\"version\":1,\"width\":8,\"height\":2,\"stdout\":[[1,\"" + strings.Repeat("a", MaxData+100) + "\"]]}", "a value of more than 16 MiB"},
		{"v1 no object", "{\"version\":1,\"width\":8,\"height\":2,\"stdout\":5}", "offset 43: want '['"},
		{"v1 three parts", "{\"version\":1,\"width\":8,\"height\":2,\"stdout\":[[1,2,3]]}", "offset 51: an event of 3 parts: want [delay, data]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.content)
			s, err := Open(path, nil)
			got := fmt.Sprint(err)
			if err == nil {
				defer s.Close()
				got, _ = drain(t, s)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// rec is one record of a ttyrec.
func rec(sec, usec uint32, data string) string {
	b := binary.LittleEndian.AppendUint32(nil, sec)
	b = binary.LittleEndian.AppendUint32(b, usec)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return string(b) + data
}

func TestTtyrec(t *testing.T) {
	const base = 1_500_000_000
	long := rec(base, 0, "a")[:8] + "\xff\xff\xff\x7f"
	for _, c := range []struct{ name, content, want string }{
		{"two", rec(base, 5, "\x1b[8;30;100ta") + rec(base+1, 10, "b\xff"), "0s o \"\\x1b[8;30;100ta\"\n1.000005s o \"b\\xff\"\n"},
		{"an empty record", rec(base, 0, "") + rec(base, 0, "a"), "0s o \"\"\n0s o \"a\"\n"},
		{"cut data", rec(base, 0, "a") + rec(base+1, 0, "bcd")[:14], "0s o \"a\"\n"},
		{"cut head", rec(base, 0, "a") + rec(base+1, 0, "bcd")[:5], "0s o \"a\"\n"},
		{"clock turned back", rec(base, 0, "a") + rec(base-5, 0, "b") + rec(base+1, 0, "c"), "0s o \"a\"\n0s o \"b\"\n1s o \"c\"\n"},
		{"length", rec(base, 0, "a") + rec(base, 0, "b") + long, "error: %s, offset 26: a record of 2147483647 bytes: want at most 16777216\n"},
		{"microseconds", rec(base, 0, "a") + rec(base, 0, "b") + rec(base, 1e6, "c"), "error: %s, offset 26: a record with 1000000 microseconds"},
		{"time", rec(base, 0, "a") + rec(base, 0, "b") + rec(base+50e6, 0, "c"), "error: %s, offset 26: a time is out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.content)
			want := c.want
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, path)
			}
			got, notes := drain(t, open(t, path, nil))
			if !strings.Contains(got, want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if strings.Contains(c.name, "cut") && (len(notes) != 1 || !strings.Contains(notes[0], "the record at offset 13 is cut off")) {
				t.Errorf("notes %q", notes)
			}
		})
	}
	h := open(t, file(t, rec(base, 5, "\x1b[8;30;100ta")), nil).Header()
	if h.Rows != 30 || h.Cols != 100 || h.Started.Unix() != base {
		t.Errorf("header %+v", h)
	}
}

func TestPacked(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, rec(5, 0, "a")+rec(6, 0, "b"))
	z.Close()
	if got, _ := drain(t, open(t, file(t, b.String()), nil)); got != "0s o \"a\"\n1s o \"b\"\n" {
		t.Error(got)
	}
	_, err := Open(file(t, "\x1f\x8bnonsense"), nil)
	if err == nil {
		t.Error("a broken gzip opens")
	}
}

// The files of testdata were made by script 2.38.1 and asciinema 2.2.0.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		o    *Options
		want string
		head Header
	}{
		{"asciinema-2.2.cast", nil,
			"10.343ms o \"\\x1b[1;31mhi\\x1b[0m wörld 🎉\\r\\n\"\n1.138398s i \"abc\\n\"\n1.138856s o \"abc\\r\\n\"\n1.138969s o \"got abc \ufffd\\r\\n\"\n",
			Header{Format: AsciicastV2, Term: "xterm-256color", Title: "a demo", IdleLimit: 2 * time.Second}},
		{"script-classic.log", &Options{Timing: "testdata/script-classic.timing"},
			"10.186ms o \"hi\\r\\n\"\n304.636ms o \"wörld\\r\\n\"\n304.636ms x 3\n",
			Header{Format: Typescript, Command: `printf "hi\n"; sleep 0.3; printf "wörld\n"; exit 3`}},
		{"script-classic.timing", &Options{LogOut: "testdata/script-classic.log"},
			"10.186ms o \"hi\\r\\n\"\n304.636ms o \"wörld\\r\\n\"\n304.636ms x 3\n",
			Header{Format: Typescript, Command: `printf "hi\n"; sleep 0.3; printf "wörld\n"; exit 3`}},
		{"script-two.timing", nil,
			"1.586ms o \"hi\\r\\n\"\n500.354ms i \"abc\\n\"\n500.7ms o \"abc\\r\\nwörld\\r\\n\"\n500.7ms x 3\n",
			Header{Format: Typescript, Command: `printf "hi\n"; read x; printf "wörld\n"; exit 3`, Duration: 511120 * time.Microsecond}},
		{"script-two.out", &Options{Timing: "testdata/script-two.timing", LogIn: "testdata/script-two.in"},
			"1.586ms o \"hi\\r\\n\"\n500.354ms i \"abc\\n\"\n500.7ms o \"abc\\r\\nwörld\\r\\n\"\n500.7ms x 3\n",
			Header{Format: Typescript, Command: `printf "hi\n"; read x; printf "wörld\n"; exit 3`, Duration: 511120 * time.Microsecond}},
		{"script-io.timing", nil,
			"4.483ms o \"hi\\r\\n\"\n389.866ms r 50x20\n393.891ms r 50x20\n594.156ms i \"abc\\n\"\n594.261ms o \"abc\\r\\n\"\n899.602ms o \"abc\\r\\n\"\n899.602ms x 4\n",
			Header{Format: Typescript, Rows: 30, Cols: 100, Term: "xterm-256color", Command: `printf "hi\n"; read x; sleep 0.3; echo $x; exit 4`, Duration: 909776 * time.Microsecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, filepath.Join("testdata", c.name), c.o)
			got, notes := drain(t, s)
			if got != c.want || len(notes) > 0 {
				t.Errorf("got\n%swant\n%snotes %q", got, c.want, notes)
			}
			h := *s.Header()
			h.Started, h.Env = time.Time{}, nil
			if fmt.Sprint(h) != fmt.Sprint(c.head) {
				t.Errorf("header %+v, want %+v", h, c.head)
			}
			if s.Header().Started.Year() != 2026 {
				t.Errorf("started %v", s.Header().Started)
			}
		})
	}
}

func TestTypescript(t *testing.T) {
	const log = "Script started on 2026-11-22 09:24:23+00:00 [COMMAND=\"a\nb\" TERM=\"vt100\" TTY=\"/dev/pts/1\" COLUMNS=\"100\" LINES=\"30\"]\nhello\n\nScript done on 2026-11-22 09:24:23+00:00 [COMMAND_EXIT_CODE=\"7\"]\n"
	for _, c := range []struct{ name, log, timing, want, note string }{
		{"command of two lines", log, "0.5 6\n", "500ms o \"hello\\n\"\n500ms x 7\n", ""},
		{"no end", strings.Split(log, "\n\nScript done")[0], "0.5 5\n", "500ms o \"hello\"\n", ""},
		{"no lines of script", "hello\n", "0.5 3\n0.25 3\n", "500ms o \"hel\"\n750ms o \"lo\\n\"\n", ""},
		{"the log is short", "hello\n", "0.5 3\n0.25 30\n", "500ms o \"hel\"\n750ms o \"lo\\n\"\n", "the log ends 27 bytes before the timing does"},
		{"the log is long", "hello\n", "0.5 3\n", "500ms o \"hel\"\n", "3 bytes of log are in no line of the timing"},
		{"torn timing", "hello\n", "0.5 3\n0.2", "500ms o \"hel\"\n", "line 2 of the timing is cut off"},
		{"no input log", "hello\n", "O 0.5 6\nI 0.5 1\n", "500ms o \"hello\\n\"\n", "1 inputs are in no log"},
		{"signal", "hello\n", "O 0.5 6\nS 0.5 SIGTERM\nH 0.0 EXIT_CODE 0\n", "500ms o \"hello\\n\"\n1s s \"SIGTERM\"\n1s x 0\n", ""},
		{"fact of two lines", "hello\n", "H 0.0 COMMAND a\nb\nO 0.5 6\n", "500ms o \"hello\\n\"\n", ""},
		{"nonsense", "hello\n", "0.5 3\nfoo\n0.5 3\n", "line 2: want a delay and a number of bytes", ""},
		{"winch", "hello\n", "O 0.5 6\nS 0.1 SIGWINCH\n", "line 2: a terminal of 0 rows and 0 columns", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range map[string]string{"log": c.log, "timing": c.timing} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, notes := drain(t, open(t, filepath.Join(dir, "log"), &Options{Timing: filepath.Join(dir, "timing")}))
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			if all := strings.Join(notes, "; "); (c.note == "") != (all == "") || !strings.Contains(all, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
	if _, err := Open("testdata/script-classic.log", nil); err == nil || !strings.Contains(err.Error(), "--timing FILE") {
		t.Errorf("without its timing: %v", err)
	}
	if _, err := Open("testdata/script-classic.timing", nil); err == nil || !strings.Contains(err.Error(), "--log-out FILE") {
		t.Errorf("without its log: %v", err)
	}
}

// What a file names leads to no place but its own directory.
func TestLogsBesideAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", "..", "/", "sub/.."} {
		if got := beside(filepath.Join(dir, "timing"), name); got != "" {
			t.Errorf("%s leads to %s", name, got)
		}
	}
}

// all is what x makes of the chunks.
func all(x *text, chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.Write(x.add([]byte(c)))
	}
	b.Write(x.end())
	return b.String()
}

func TestText(t *testing.T) {
	whole := "aä€🎉z"
	for cut := range len(whole) + 1 {
		var x text
		got := all(&x, whole[:cut], whole[cut:])
		if got != whole || x.replaced != 0 {
			t.Errorf("cut at %d: %q, %d replaced", cut, got, x.replaced)
		}
	}
	var x text
	got := all(&x, "a\xff\xe2\x82", "b\xf0\x9f")
	if got != "a\ufffd\ufffd\ufffdb\ufffd" && got != "a\ufffd\ufffdb\ufffd" {
		t.Errorf("%q", got)
	}
	if n := strings.Count(got, "\ufffd"); n != x.replaced {
		t.Errorf("%d replaced of %q", x.replaced, got)
	}
}

// Writing version 3 carries what rounding takes: the sum of the intervals is never more than half a millisecond off.
func TestRoundingIsCarried(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, 3, &Header{Rows: 2, Cols: 8})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Duration(0)
	for range 1000 {
		at += 1400 * time.Microsecond
		if err := w.Write(&Event{At: at, Kind: Output, Data: []byte("a")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, file(t, b.String()), nil)
	var last time.Duration
	for {
		e, err := s.Next()
		if err != nil {
			break
		}
		last = e.At
	}
	if last != at {
		t.Errorf("the last event is at %v, want %v", last, at)
	}
}

func TestWrite(t *testing.T) {
	h := &Header{Rows: 24, Cols: 80, Term: "xterm", Title: "a <title>", Started: time.Unix(1504467315, 0), Env: map[string]string{"SHELL": "/bin/sh"}}
	events := []Event{
		{At: 0, Kind: Output, Data: []byte("\x1b[1mä\xe2")}, {At: 1500 * time.Microsecond, Kind: Output, Data: []byte("\x82")},
		{At: 2 * time.Millisecond, Kind: Resize, Rows: 30, Cols: 90}, {At: time.Second, Kind: Output, Data: []byte("\xac\"\\\x7f\u0085\xff")},
		{At: time.Second, Kind: Marker, Data: []byte("m\n")}, {At: time.Second, Kind: Signal, Data: []byte("SIGTERM")},
		{At: time.Second, Kind: Output, Data: []byte("\xf0\x9f")}, {At: 2 * time.Second, Kind: Exit, Code: 3},
	}
	for version, want := range map[int]string{
		2: `{"version":2,"width":80,"height":24,"timestamp":1504467315,"title":"a <title>","env":{"SHELL":"/bin/sh","TERM":"xterm"}}
[0.000000, "o", "\u001b[1mä"]
[0.002000, "r", "90x30"]
[1.000000, "o", "€\"\\\u007f\u0085` + "\ufffd" + `"]
[1.000000, "m", "m\n"]
[2.000000, "o", "` + "\ufffd" + `"]
`,
		3: `{"version":3,"term":{"cols":80,"rows":24,"type":"xterm"},"timestamp":1504467315,"title":"a <title>","env":{"SHELL":"/bin/sh"}}
[0.000, "o", "\u001b[1mä"]
[0.002, "r", "90x30"]
[0.998, "o", "€\"\\\u007f\u0085` + "\ufffd" + `"]
[0.000, "m", "m\n"]
[1.000, "o", "` + "\ufffd" + `"]
[0.000, "x", "3"]
`,
	} {
		var b bytes.Buffer
		w, err := NewWriter(&b, version, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if err := w.Write(&e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("version %d: got\n%swant\n%s", version, b.String(), want)
		}
		if w.Replaced() != 2 || w.LeftOut() != 4-version {
			t.Errorf("version %d: %d replaced, %d left out", version, w.Replaced(), w.LeftOut())
		}
	}
}
