//go:build linux || darwin

package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
)

// opened opens a finished cassette and wants the last frame derived from its bytes to be the last one that was recorded.
func opened(t *testing.T, dir string) *cassette.Reader {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	var last *cassette.Frame
	for f, err := range r.Derive(nil) {
		if err != nil {
			t.Fatal(err)
		}
		last = f
	}
	recorded, err := r.LastFrame()
	if err != nil {
		t.Fatal(err)
	}
	if last == nil || !slices.Equal(last.Text, recorded.Text) || last.Cursor != recorded.Cursor || last.Title != recorded.Title {
		t.Errorf("derived %+v\nrecorded %+v", last, recorded)
	}
	return r
}

// inputs is what was done to the program, one line each.
func inputs(t *testing.T, r *cassette.Reader) string {
	t.Helper()
	var out []string
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch in := e.Input; in.Kind {
		case cassette.KindInput:
			out = append(out, fmt.Sprintf("%q %s", in.Bytes, in.Key))
		case cassette.KindResize:
			out = append(out, fmt.Sprintf("%dx%d", in.Size.Rows, in.Size.Cols))
		case cassette.KindSignal:
			out = append(out, in.Signal)
		}
	}
	return strings.Join(out, "\n")
}

// TestCassette records a session: its output, input, sizes, signals and end.
func TestCassette(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	rec, err := cassette.Create(dir, &cassette.CreateOptions{Harness: cassette.Harness{Name: "sh"}})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, &terminal.SessionOptions{Keeper: terminal.Cassette(rec)},
		`stty raw -echo; printf 'where \033[6n'; dd bs=1 count=6 >/dev/null 2>&1; stty sane; echo ready; read x; stty size; echo on; read y; exit 9`)
	until(t, s, terminal.Text("ready"))
	s.Key("up", "enter")
	s.Resize(terminal.Size{Rows: 30, Cols: 90})
	s.Type("y\n")
	until(t, s, terminal.Text("on"))
	s.Key("enter")
	until(t, s, terminal.Exited())
	manifest, err := rec.Finish(ends(t, s, 9).Final())
	if err != nil || manifest.ID == "" {
		t.Fatal(err)
	}
	r := opened(t, dir)
	if f := r.Final(); f.Exit.Code != 9 || !f.Exit.Exited {
		t.Errorf("%+v", f.Exit)
	}
	for _, want := range []string{`"\x1b[1;7R" reply`, `"\x1b[A" up`, `"\r" enter`, "30x90", `"y\r" `} {
		if got := inputs(t, r); !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("%q is not among\n%s", want, got)
		}
	}
}

// TestCassetteOfAPassword types one that looks like a word into a program that turned echo off for it: it is masked, also where
// the program prints it, and what is typed before and after is not.
func TestCassetteOfAPassword(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	rec, err := cassette.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, &terminal.SessionOptions{Keeper: terminal.Cassette(rec)},
		`echo name; read n; stty -echo; echo word; read p; stty echo; echo "it was $p"; read x`)
	for _, step := range [][2]string{{"name", "somebody\n"}, {"word", "correcthorse\n"}, {"it was", "anything\n"}} {
		until(t, s, terminal.Text(step[0]))
		s.Type(step[1])
	}
	until(t, s, terminal.Exited())
	if _, err := rec.Finish(ends(t, s, 0).Final()); err != nil {
		t.Fatal(err)
	}
	r := opened(t, dir)
	out, err := r.RawOutput()
	if got := inputs(t, r); err != nil || got != "\"somebody\\r\" \n\"************\\r\" \n\"anything\\r\" " || strings.Contains(string(out), "horse") {
		t.Errorf("%v\n%s\n%q", err, got, out)
	}
	if n := r.ScrubReport().HitCounts["typed"]; n == 0 {
		t.Errorf("%+v", r.ScrubReport())
	}
}

// TestRecordSession records what a person does on a terminal, with a lock that another then does not get.
func TestRecordSession(t *testing.T) {
	t.Setenv("SEEN", "x")
	t.Setenv("TERM", "xterm")
	o := newPerson(t, terminal.Size{Rows: 13, Cols: 66})
	before := modes(t, o.p)
	top := t.TempDir()
	ro := &terminal.RecordOptions{
		Session: terminal.SessionOptions{Argv: []string{"sh", "-c", `stty size; echo "$SEEN $TERM"; read x; printf '\033[?1049h'; kill -KILL $$`}},
		Dir:     filepath.Join(top, "c"), Account: "me", LockRoot: top,
		Std: [3]any{o.p.Slave, o.p.Slave, o.p.Slave},
	}
	type result struct {
		out *terminal.Recorded
		err error
	}
	done := make(chan result)
	go func() {
		out, err := terminal.RecordSession(t.Context(), ro)
		done <- result{out, err}
	}()
	o.sees("13 66\r\nx xterm\r\n")
	again := *ro
	again.Dir = filepath.Join(top, "d")
	var locked *cassette.LockedError
	if _, err := terminal.RecordSession(t.Context(), &again); !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() {
		t.Errorf("recorded twice at once: %v", err)
	}
	if _, err := os.Stat(again.Dir); err == nil {
		t.Error("a recording that never began is there")
	}
	o.types("y\r")
	got := <-done
	if got.err != nil || got.out.Exit.Signal != "SIGKILL" || got.out.Exit.Code != 137 || got.out.TimedOut {
		t.Fatalf("%+v, %v", got.out, got.err)
	}
	o.sees("\x1b[?1049l") // which the program could not
	if after := modes(t, o.p); after != before {
		t.Errorf("left as %s, was %s", after, before)
	}
	r := opened(t, ro.Dir)
	m := r.Manifest()
	if m.Terminal.InitialRows != 13 || m.Terminal.InitialCols != 66 || m.Terminal.Term != "xterm" || m.Harness.Name != "sh" ||
		!slices.Equal(m.Command.EnvAllowlist, []string{"*"}) || r.Final().Exit.Signal != "SIGKILL" || !r.Final().Exit.Signaled {
		t.Errorf("%+v, %+v", m, r.Final())
	}
	if got := inputs(t, r); got != `"y\r" ` {
		t.Errorf("typed %q", got)
	}
	if raw, err := r.RawOutput(); !bytes.HasPrefix(raw, []byte("13 66\r\nx xterm\r\ny\r\n\x1b[?1049h")) || bytes.Contains(raw, []byte("1049l")) {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestRecordSessionWithoutTerminal types a pipe; another recording is ended by its time limit, however soon that is.
func TestRecordSessionWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	got, err := terminal.RecordSession(t.Context(), &terminal.RecordOptions{
		Session: terminal.SessionOptions{Argv: []string{"sh", "-c", "stty -echo; stty size; cat"}},
		Dir:     filepath.Join(t.TempDir(), "c"), Std: [3]any{strings.NewReader("piped\n"), &out, nil},
	})
	if err != nil || got.TimedOut || got.Exit.Code != 0 || !strings.HasSuffix(out.String(), "24 80\r\npiped\r\n") {
		t.Errorf("%+v, %v, %q", got, err, out.String())
	}
	dir := filepath.Join(t.TempDir(), "t")
	got, err = terminal.RecordSession(t.Context(), &terminal.RecordOptions{
		Session: terminal.SessionOptions{Argv: []string{"sleep", "60"}, Grace: time.Millisecond},
		Dir:     dir, Std: [3]any{strings.NewReader(""), &out, nil}, Timeout: 20 * time.Millisecond,
	})
	if err != nil || !got.TimedOut || got.Exit.Signal == "" {
		t.Errorf("%+v, %v", got, err)
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f := r.Final(); !strings.Contains(string(f.Metadata), `"timed_out": true`) || f.Exit.Err != nil || r.Manifest().Command.TimeoutMS != 20 {
		t.Errorf("%s, %s", f.Metadata, f.Exit.Err)
	}
	dir = filepath.Join(t.TempDir(), "d")
	if _, err := terminal.RecordSession(t.Context(), &terminal.RecordOptions{
		Session: terminal.SessionOptions{Argv: []string{"/no/such/program"}}, Dir: dir,
	}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a recording of no program is there")
	}
}

// TestRecordSessionOfASize gives the program another size than that of the caller's terminal.
func TestRecordSessionOfASize(t *testing.T) {
	o := newPerson(t, terminal.Size{Rows: 13, Cols: 66})
	done := make(chan error)
	dir := filepath.Join(t.TempDir(), "c")
	go func() {
		_, err := terminal.RecordSession(t.Context(), &terminal.RecordOptions{
			Session: terminal.SessionOptions{Argv: []string{"sh", "-c", "echo on; read x; stty size"}, Size: terminal.Size{Rows: 5, Cols: 30}},
			Dir:     dir, Std: [3]any{o.p.Slave, o.p.Slave, o.p.Slave},
		})
		done <- err
	}()
	o.sees("on\r\n")
	change(t, o.p, terminal.Size{Rows: 14, Cols: 67})
	o.types("\r")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	o.sees("5 30\r\n")
	if got := inputs(t, opened(t, dir)); got != `"\r" enter` {
		t.Errorf("input %q", got)
	}
}

// TestResizeInOutput changes the size again and again while a program prints, one byte at a time in the middle of its
// sequences: the screen that the session had is the one that the cassette derives.
func TestResizeInOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	rec, err := cassette.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, &terminal.SessionOptions{Keeper: terminal.Cassette(rec)},
		`i=0; printf begin; read g; while [ $i -lt 400 ]; do printf '\033'; printf '[3'; printf '1mword%d \033[' $i; printf '0m\n'; i=$((i+1)); done; printf 'end\033[1'; read x; printf 'mbold'`)
	until(t, s, terminal.Text("begin"))
	s.Key("enter")
	for i := range 40 {
		if err := s.Resize(terminal.Size{Rows: 10 + i%7, Cols: 30 + i%11}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // some of the output comes between
	}
	until(t, s, terminal.Text("end"))
	if err := s.Resize(terminal.Size{Rows: 20, Cols: 60}); err != nil { // inside the sequence
		t.Fatal(err)
	}
	s.Key("enter")
	screen := until(t, s, terminal.Exited())
	row, col, found := screen.Find("bold")
	if !found || screen.Cells[row][col].Style.Attr == 0 {
		t.Errorf("the sequence was cut: %v", screen)
	}
	if _, err := rec.Finish(ends(t, s, 0).Final()); err != nil {
		t.Fatal(err)
	}
	r := opened(t, dir)
	last, err := r.LastFrame()
	if err != nil || !slices.Equal(last.Text, screen.Rows) {
		t.Errorf("the cassette shows %q, %v\nthe session %q", last.Text, err, screen.Rows)
	}
}

// TestKeysThatSignal: what the terminal makes of Ctrl-C is recorded beside it, and of a key that makes none nothing.
func TestKeysThatSignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	rec, err := cassette.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, &terminal.SessionOptions{Keeper: terminal.Cassette(rec)},
		`trap 'stty -isig; echo raw; read x; exit 3' INT; echo ready; while :; do sleep 0.1; done`)
	until(t, s, terminal.Text("ready"))
	s.Key("ctrl-c")
	until(t, s, terminal.Text("raw"))
	s.Key("ctrl-c", "enter")
	if _, err := rec.Finish(ends(t, s, 3).Final()); err != nil {
		t.Fatal(err)
	}
	if got, want := inputs(t, opened(t, dir)), "\"\\x03\" ctrl-c\nSIGINT\n\"\\x03\" ctrl-c\n\"\\r\" enter"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
