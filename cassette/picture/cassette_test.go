package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image/gif"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// recorded makes a cassette: what is typed comes letter by letter, and the window changes.
func recorded(t *testing.T) *cassette.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	var now time.Duration
	rec, err := cassette.Create(dir, &cassette.CreateOptions{
		Command: cassette.Command{Argv: []string{"cat", "-"}}, ResolutionMS: 1, Clock: func() time.Duration { return now },
		Terminal: cassette.Terminal{InitialRows: 4, InitialCols: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		now += 100 * time.Millisecond
	}
	step(rec.Output([]byte("hello\r\n")))
	for _, c := range "echo" {
		step(rec.Input([]byte(string(c)), ""))
		step(rec.Output([]byte(string(c))))
	}
	now += 1500 * time.Millisecond
	step(rec.Input([]byte("hun"), ""))
	now += 1500 * time.Millisecond
	step(rec.Input([]byte("ter2\r"), ""))
	now += 3 * time.Second
	step(rec.Resize(cassette.Size{Rows: 6, Cols: 30}))
	step(rec.ServiceEvent(json.RawMessage(`{"n":1,"name":"turn"}`)))
	step(rec.Output([]byte("\r\nlast")))
	if _, err := rec.Finish(&cassette.Final{DurationMS: now.Milliseconds()}); err != nil {
		t.Fatal(err)
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestEveryPictureOfACassette(t *testing.T) {
	r := recorded(t)
	var b bytes.Buffer
	var done, total time.Duration
	if err := GIF(&b, r, &Options{Progress: func(d, all time.Duration) { done, total = d, all }}); err != nil {
		t.Fatal(err)
	}
	g, err := gif.DecodeAll(&b)
	if err != nil {
		t.Fatal(err)
	}
	if g.Config.Width != 12+30*8 || g.Config.Height != 12+6*16 {
		t.Errorf("the GIF is %d by %d, expected room for the largest screen", g.Config.Width, g.Config.Height)
	}
	if done == 0 || total == 0 || done > total {
		t.Errorf("progress was %v of %v", done, total)
	}
	for name, o := range map[string]*Options{"moving": nil, "still": {Still: true}} {
		b.Reset()
		if err := SVG(&b, r, o); err != nil {
			t.Fatal(err)
		}
		if text := wellFormed(t, b.Bytes()); !strings.Contains(text, "last") || !strings.Contains(text, "cat -") {
			t.Errorf("the %s SVG has not the last screen, or no title: %q", name, text)
		}
	}
	for want, o := range map[string]*Options{"hello\necho\nlast\n": nil, "hello\nech\n": {Still: true, At: 650 * time.Millisecond}} {
		b.Reset()
		if err := Text(&b, r, o); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("the text is %q, expected %q", &b, want)
		}
	}
}

func TestMarksOfACassette(t *testing.T) {
	r := recorded(t)
	for want, o := range map[string]*Options{
		`100 "input" "echo"; 2400 "input" "3 letters"; 4000 "input" "4 letters"; 5800 "resize" "30×6"; 5900 "service" "turn"`: nil,
		`100 "input" "echo"; 2400 "input" "hun"; 4000 "input" "ter2\\r"; 5800 "resize" "30×6"; 5900 "service" "turn"`:         {Keys: true},
	} {
		var b bytes.Buffer
		if err := HTML(&b, r, o); err != nil {
			t.Fatal(err)
		}
		var marks []string
		for _, rec := range records(t, b.String()) {
			if string(rec[0]) == "4" {
				marks = append(marks, string(bytes.Join([][]byte{rec[1], rec[2], rec[3]}, []byte(" "))))
			}
		}
		if got := strings.Join(marks, "; "); got != want {
			t.Errorf("the marks are %s, expected %s", got, want)
		}
		if !strings.Contains(b.String(), "<title>cat -</title>") {
			t.Error("the page is not named after the command")
		}
	}
}

// full is a disk without room.
type full struct{ room int }

var errFull = errors.New("no room")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWhatCannotBeWrittenIsNotDrawn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	var now time.Duration
	rec, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1, Clock: func() time.Duration { return now }})
	for i := 0; err == nil && i < 400; i++ {
		now += 50 * time.Millisecond
		err = rec.Output([]byte(fmt.Sprintf("%x\r\n", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))))
	}
	if err == nil {
		_, err = rec.Finish(&cassette.Final{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, draw := range map[string]func(io.Writer, *cassette.Reader, *Options) error{"GIF": GIF, "SVG": SVG, "HTML": HTML, "Text": Text} {
		seen := 0
		err := draw(&full{100}, r, &Options{Progress: func(time.Duration, time.Duration) { seen++ }})
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v, expected the writer's error", name, err)
		}
		if name == "GIF" && seen > 200 {
			t.Errorf("%s: %d of 400 writes were drawn for nobody", name, seen)
		}
	}
}
