package foreign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

func imported(t *testing.T, path string, o *Options, io *ImportOptions) (*cassette.Reader, *Imported) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	im, err := Import(context.Background(), open(t, path, o), dir, io)
	if err != nil {
		t.Fatal(err)
	}
	return reader(t, dir), im
}

func reader(t *testing.T, dir string) *cassette.Reader {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestImport(t *testing.T) {
	r, im := imported(t, "testdata/script-io.timing", nil, &ImportOptions{ID: "one"})
	m := r.Manifest()
	if m.ID != "one" || m.Terminal.InitialRows != 30 || m.Terminal.InitialCols != 100 || m.Terminal.Term != "xterm-256color" ||
		m.Provenance.RecordedAt != "2026-11-22T09:34:57Z" || m.Harness.Name != "printf" || m.Timing.ResolutionMS != 1 {
		t.Errorf("manifest %+v", m)
	}
	if want := []string{"sh", "-c", `printf "hi\n"; read x; sleep 0.3; echo $x; exit 4`}; !slices.Equal(m.Command.Argv, want) {
		t.Errorf("argv %q", m.Command.Argv)
	}
	var o Origin
	if err := json.Unmarshal(m.Optional[OptionalImport], &o); err != nil || o.Format != Typescript || len(o.Files) != 2 ||
		o.Files[0].Name != "script-io.timing" || len(o.Files[0].SHA256) != 64 || o.Unknown != nil {
		t.Errorf("origin %+v, %v", o, err)
	}
	if f := r.Final(); f.Exit.Code != 4 || !f.Exit.Exited || f.DurationMS != 909 || im.Duration != 909776*time.Microsecond {
		t.Errorf("final %+v", f)
	}
	var got []string
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput, cassette.StreamOutput}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Chunk != nil:
			got = append(got, e.Time().String()+" "+string(e.Bytes))
		case e.Input.Size != nil:
			got = append(got, e.Time().String()+" resize")
		default:
			got = append(got, e.Time().String()+" in "+string(e.Input.Bytes))
		}
	}
	want := []string{"4ms hi\r\n", "389ms resize", "393ms resize", "594ms in abc\n", "594ms abc\r\n", "899ms abc\r\n"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q", got)
	}
}

// What a file does not say has its default, is told as unknown, and can be given.
func TestImportUnknown(t *testing.T) {
	path := file(t, rec(1_500_000_000, 0, "hi\r\n")+rec(1_500_000_001, 0, "there"))
	r, im := imported(t, path, nil, nil)
	if term := r.Manifest().Terminal; term.InitialRows != 24 || term.InitialCols != 80 || term.Term != DefaultTerm {
		t.Errorf("terminal %+v", term)
	}
	if e := r.Final().Exit; e.Exited || e.Signaled || e.Err != nil || !strings.Contains(string(r.Final().Metadata), "not known") {
		t.Errorf("exit %+v, %s", e, r.Final().Metadata)
	}
	if want := []string{"size", "term", "input", "exit"}; !slices.Equal(im.Origin.Unknown, want) {
		t.Errorf("unknown %q", im.Origin.Unknown)
	}
	code := 2
	r, _ = imported(t, path, nil, &ImportOptions{Rows: 10, Cols: 20, Term: "vt100", Exit: &code})
	if term := r.Manifest().Terminal; term.InitialRows != 10 || term.InitialCols != 20 || term.Term != "vt100" {
		t.Errorf("terminal %+v", term)
	}
	if e := r.Final().Exit; !e.Exited || e.Code != 2 {
		t.Errorf("exit %+v", e)
	}
}

// An import that fails leaves nothing, and one never goes over what is there.
func TestImportWholeOrNotAtAll(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "c")
	path := file(t, "{\"version\":2,\"width\":8,\"height\":2}\n[1,\"o\",\"a\"]\nfoo\n[1,\"o\",\"a\"]\n")
	var e *Error
	if _, err := Import(context.Background(), open(t, path, nil), dir, nil); !errors.As(err, &e) || e.Line != 3 {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(parent); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	if err := os.MkdirAll(filepath.Join(dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(context.Background(), open(t, "testdata/asciinema-2.2.cast", nil), dir, nil); !errors.Is(err, cassette.ErrExists) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Import(ctx, open(t, "testdata/asciinema-2.2.cast", nil), filepath.Join(parent, "d"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// screens is every row that stood on a screen after a chunk, and the bytes of all chunks.
func screens(t *testing.T, r *cassette.Reader) (frames []string, raw string) {
	t.Helper()
	for f, err := range r.Derive(nil) {
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, strings.Join(f.Text, "\n"))
	}
	b, err := r.RawOutput()
	if err != nil {
		t.Fatal(err)
	}
	return frames, string(b)
}

func exported(t *testing.T, r *cassette.Reader, o *ExportOptions) (string, *Exported) {
	t.Helper()
	var b bytes.Buffer
	x, err := Export(context.Background(), r, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), x
}

// record makes a cassette of what add records; at moves its clock.
func record(t *testing.T, add func(r *cassette.Recorder, at func(ms int))) *cassette.Reader {
	t.Helper()
	dir := t.TempDir()
	var now clock
	r, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1, Clock: now.now,
		Command: cassette.Command{Argv: []string{"printf", "a b"}}, Terminal: cassette.Terminal{InitialRows: 5, InitialCols: 20, Term: "xterm"}})
	if err != nil {
		t.Fatal(err)
	}
	add(r, func(ms int) { now.ms.Store(int64(ms)) })
	if _, err := r.Finish(&cassette.Final{Exit: &cassette.Exit{Code: 3, Exited: true}}); err != nil {
		t.Fatal(err)
	}
	return reader(t, dir)
}

func TestRoundTrip(t *testing.T) {
	r := record(t, func(r *cassette.Recorder, at func(int)) {
		at(10)
		r.Output([]byte("\x1b[1;31mwör\xe2"))
		at(20)
		r.Output([]byte("\x82\xacld\r\n"))
		at(1000)
		r.Resize(cassette.Size{Rows: 6, Cols: 10})
		r.Output([]byte("a line that wraps 🎉\r\n"))
		r.ServiceEvent(json.RawMessage(`{"type":"marker","label":"there"}`))
		r.ServiceEvent(json.RawMessage(`{"tool": 1}`))
		at(1500)
		r.Input([]byte("k\r"), "")
		r.Output([]byte("done\x1b]2;title\x07"))
		at(2000)
	})
	_, raw := screens(t, r)
	for _, version := range []int{2, 3} {
		cast, x := exported(t, r, &ExportOptions{Version: version, Input: true})
		if x.Replaced != 0 || x.LeftOut != 0 {
			t.Errorf("version %d: %+v", version, x)
		}
		for _, want := range []string{`"there"`, `"{\"tool\":1}"`, `"k\r"`, `"10x6"`} {
			if !strings.Contains(cast, want) {
				t.Errorf("version %d has no %s:\n%s", version, want, cast)
			}
		}
		back, _ := imported(t, file(t, cast), nil, nil)
		frames, gotRaw := screens(t, back)
		if gotRaw != raw {
			t.Errorf("version %d: bytes %q, want %q", version, gotRaw, raw)
		}
		if orig, _ := screens(t, r); frames[len(frames)-1] != orig[len(orig)-1] {
			t.Errorf("version %d: the last screen\n%s\nwant\n%s", version, frames[len(frames)-1], orig[len(orig)-1])
		}
		again, _ := exported(t, back, &ExportOptions{Version: version, Input: true})
		if _, a, _ := strings.Cut(again, "\n"); a != cast[strings.Index(cast, "\n")+1:] {
			t.Errorf("version %d: exported again\n%swant\n%s", version, again, cast)
		}
		if version == 3 && back.Final().Exit.Code != 3 {
			t.Errorf("exit %+v", back.Final().Exit)
		}
	}
}

func TestExportCut(t *testing.T) {
	r := record(t, func(r *cassette.Recorder, at func(int)) {
		for i, s := range []string{"a", "b", "c", "d", "e"} {
			at(i * 1000)
			r.Output([]byte(s))
		}
		at(4500)
		r.Input([]byte("secret"), "")
	})
	for _, c := range []struct {
		o    ExportOptions
		want string
	}{
		{ExportOptions{}, `[0.000000, "o", "a"]|[1.000000, "o", "b"]|[2.000000, "o", "c"]|[3.000000, "o", "d"]|[4.000000, "o", "e"]|`},
		{ExportOptions{From: 1500 * time.Millisecond, To: 3 * time.Second}, `[0.000000, "o", "a"]|[0.000000, "o", "b"]|[0.500000, "o", "c"]|[1.500000, "o", "d"]|`},
		{ExportOptions{Speed: 4, To: time.Second}, `[0.000000, "o", "a"]|[0.250000, "o", "b"]|`},
		{ExportOptions{MaxIdle: 100 * time.Millisecond, To: 2 * time.Second}, `[0.000000, "o", "a"]|[0.100000, "o", "b"]|[0.200000, "o", "c"]|`},
	} {
		got, x := exported(t, r, &c.o)
		_, got, _ = strings.Cut(strings.ReplaceAll(got, "\n", "|"), "|")
		if got != c.want {
			t.Errorf("%+v: got %s", c.o, got)
		}
		if c.o.To == 0 && x.LeftOut != 1 {
			t.Errorf("left out %d, want the input", x.LeftOut)
		}
	}
}

// What the header of an asciicast says stands in the header of the next one, and of a cassette.
func TestHeaderIsCarried(t *testing.T) {
	const palette = "#000000:#111111:#222222:#333333:#444444:#555555:#666666:#777777"
	head := `{"version":3,"term":{"cols":80,"rows":24,"type":"vt100","version":"VTE(7802)","theme":{"fg":"#d0d0d0","bg":"#212121","palette":"` +
		palette + `"}},"timestamp":1504467315,"idle_time_limit":1.5,"command":"vim a","title":"Demo","env":{"SHELL":"/bin/zsh"},"tags":["a","b"]}` + "\n"
	r, _ := imported(t, file(t, head+"[0.5, \"o\", \"a\"]\n"), nil, nil)
	got, _ := exported(t, r, &ExportOptions{Version: 3})
	if line, _, _ := strings.Cut(got, "\n"); line+"\n" != head {
		t.Errorf("got\n%s\nwant\n%s", line, head)
	}
}

// TestExitCode has the number of a signal where it is known, and nothing made up where it is not.
func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		exit  *cassette.Exit
		code  int
		known bool
	}{
		{nil, 0, false},
		{&cassette.Exit{Exited: true, Code: 3}, 3, true},
		{&cassette.Exit{Signaled: true, Signal: "SIGKILL"}, 137, true},
		{&cassette.Exit{Signaled: true, Signal: "usr1"}, 138, true},
		{&cassette.Exit{Signaled: true, Signal: "killed"}, 0, false},
		{&cassette.Exit{Err: json.RawMessage(`"?"`)}, 0, false},
	} {
		if code, known := exitCodeOf(c.exit); known != c.known || known && code != c.code {
			t.Errorf("%+v: %d, %v", c.exit, code, known)
		}
	}
}
