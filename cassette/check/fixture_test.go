package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// A tapeClock is a clock that a test sets.
type tapeClock struct{ now time.Duration }

// A made is a cassette while a test makes it.
type made struct {
	t   *testing.T
	dir string
	r   *cassette.Recorder
	at  *tapeClock
}

func making(t *testing.T, rows, cols int) *made {
	t.Helper()
	clock := new(tapeClock)
	dir := filepath.Join(t.TempDir(), "session")
	r, err := cassette.Create(dir, &cassette.CreateOptions{ID: "fixture", ResolutionMS: 1, Clock: func() time.Duration { return clock.now },
		Terminal: cassette.Terminal{InitialRows: rows, InitialCols: cols}, Harness: cassette.Harness{Name: "fixture"}, KeepEmail: true})
	if err != nil {
		t.Fatal(err)
	}
	return &made{t, dir, r, clock}
}

func (m *made) must(err error) *made {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	return m
}

func (m *made) wait(ms int) *made {
	m.at.now = time.Duration(ms) * time.Millisecond
	return m
}

func (m *made) out(ms int, s string) *made {
	m.t.Helper()
	m.wait(ms)
	return m.must(m.r.Output([]byte(s)))
}

func (m *made) in(ms int, s, key string) *made {
	m.t.Helper()
	m.wait(ms)
	return m.must(m.r.Input([]byte(s), key))
}

func (m *made) resize(ms, rows, cols int) *made {
	m.t.Helper()
	m.wait(ms)
	return m.must(m.r.Resize(cassette.Size{Rows: rows, Cols: cols}))
}

func (m *made) service(ms int, payload string) *made {
	m.t.Helper()
	m.wait(ms)
	return m.must(m.r.ServiceEvent(json.RawMessage(payload)))
}

// end finishes the cassette and returns its directory.
func (m *made) end(ms int, exit *cassette.Exit) string {
	m.t.Helper()
	m.wait(ms)
	_, err := m.r.Finish(&cassette.Final{Exit: exit, DurationMS: int64(ms)})
	m.must(err)
	return m.dir
}

var exited = &cassette.Exit{Exited: true}

// session is the cassette that most tests here look at: a small program that asks a name, and greets.
func session(t *testing.T) string {
	m := making(t, 6, 30)
	m.out(100, "\x1b]2;greeter\x07\x1b[1;32mWelcome\x1b[0m to the greeter\r\n")
	m.out(200, "\x1b[?2004hYour name: ")
	m.in(1000, "A", "").in(1100, "da", "").in(1200, "\r", "enter")
	m.out(1300, "Ada\r\n")
	m.service(1400, `{"type":"turn","n":1,"tags":["a","b"],"who":{"name":"Ada"}}`)
	m.out(1500, "\x1b[?1049h\x1b[H\x1b[2JHello, \x1b[4:3;58;5;1mAda\x1b[0m!\x1b[3;1Hbusy 1")
	m.out(1700, "\x1b[3;6H2").out(1900, "\x1b[3;6H3")
	m.resize(2000, 8, 40)
	m.service(2100, `{"type":"turn","n":2}`)
	m.in(2200, "\x1b[200~two\nlines\x1b[201~", "").in(2300, "\x1b[A\x03", "")
	m.must(m.r.Signal("SIGINT"))
	m.out(4000, "\x1b[?1049l\x1b[?2004lrun 5f0c7a4e-3b8e-4c62-9f7e-2f4f8f3f6a11 took 12.5s\r\nBye.\r\n")
	return m.end(4200, exited)
}

func head(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m cassette.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return "version: 1\ncassette: {id: " + m.ID + ", sha256: " + m.ContentDigest.SHA256 + "}\nassertions:\n"
}

// frameAssertions says in YAML what a frame shows at its time.
func frameAssertions(f *cassette.Frame) string {
	rows, _ := json.Marshal(f.Text) // texts, which marshal
	title, _ := json.Marshal(f.Title)
	text := fmt.Sprintf("  - frame: {equals: %s, at: %d}\n", rows, f.TMS)
	text += fmt.Sprintf("  - frame: {equals: %s, eventually: {from: %d, to: %d}}\n", rows, f.TMS, f.TMS)
	text += fmt.Sprintf("  - state: {size: {rows: %d, cols: %d}, cursor: {row: %d, col: %d, visible: %v}, title: %s, at: %d}\n",
		f.Size.Rows, f.Size.Cols, f.Cursor.Row, f.Cursor.Col, f.Cursor.Visible, title, f.TMS)
	for i, row := range f.Text {
		line, _ := json.Marshal(row)
		text += fmt.Sprintf("  - frame: {equals: %s, row: %d, at: %d}\n", line, i, f.TMS)
		if strings.TrimSpace(row) != "" {
			text += fmt.Sprintf("  - frame: {contains: %s, at: %d}\n", line, f.TMS)
		}
	}
	return text
}
