package deck_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() { programs["tui"] = playTUI }

// playTUI draws on the alternate screen, asks args[0] what to say for each line that it reads, and ends with the line "quit". With
// "spin" as args[1] something turns in its first row all the while, at another pace in every run, with another text it says that.
func playTUI(args []string) int {
	var mu sync.Mutex
	draw := func(row int, text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("\x1b7\x1b[%d;1H\x1b[K%s\x1b8", row, text)
	}
	fmt.Print("\x1b[?1049h\x1b[2J\x1b]0;a tui\x07\x1b[10;1H> ")
	if args[1] == "spin" {
		go func() {
			for i := os.Getpid(); ; i++ {
				draw(1, fmt.Sprintf("%c working (%d)", `-\|/`[i%4], i))
				time.Sleep(20*time.Millisecond + time.Duration(os.Getpid()%7)*time.Millisecond)
			}
		}()
	} else {
		draw(1, args[1])
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "quit" {
		b, err := get(args[0])
		if err != nil {
			return fail(err)
		}
		draw(3, "you: "+lines.Text())
		draw(4, "it: "+string(b))
		mu.Lock()
		fmt.Print("\x1b[10;1H\x1b[K> ")
		mu.Unlock()
	}
	mu.Lock()
	fmt.Print("\x1b[?1049lbye\r\n")
	return 0
}

// A typed is a person: it waits for a text on the screen and for the screen to rest, then types.
type typed struct {
	mu    sync.Mutex
	shown []byte
	more  chan struct{}
}

func (p *typed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, b...)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

// until waits for text.
func (p *typed) until(text string) {
	for {
		p.mu.Lock()
		found, more := bytes.Contains(p.shown, []byte(text)), p.more
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-time.After(20 * time.Second):
			return // the test sees what is missing
		}
	}
}

// keys types each second of pairs when the first has been shown, and rested for longer than a screen needs to count as settled.
func (p *typed) keys(pairs ...string) io.Reader {
	r, w := io.Pipe()
	go func() {
		for i := 0; i+1 < len(pairs); i += 2 {
			p.until(pairs[i])
			time.Sleep(400 * time.Millisecond) // what turns by itself must be seen to
			io.WriteString(w, pairs[i+1])
		}
		p.until("bye")
		w.Close()
	}()
	return r
}

// recordTUI records playTUI with a terminal.
func (b *bench) recordTUI(first string, o *deck.RecordOptions) *recording.Recording {
	b.t.Helper()
	p := &typed{more: make(chan struct{})}
	o.Argv, o.Env = b.self("tui", "http://api.example.com", first)
	o.Dir, o.Tree, o.ConfigDir, o.Upstreams, o.Terminal = b.dir, b.dir, b.config, b.hosts, terminal.On
	o.Streams = deck.Streams{Stdin: p.keys("> ", "hello\r", "it: fine", "quit\r"), Stdout: p}
	o.NoSeal = o.NoSeal || b.unsealed
	res, err := deck.Record(context.Background(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.holds(res.Recording.Dir)
	return res.Recording
}

func sayFine(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }

// shownBy reads terminal/ of a recording.
func shownBy(t *testing.T, dir string) (out []cassette.Event, c *cassette.Reader) {
	t.Helper()
	c, err := cassette.Open(filepath.Join(dir, "terminal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for e, err := range c.Events(nil) {
		if err != nil {
			t.Fatal(err)
		}
		ev := *e
		ev.Bytes = slices.Clone(e.Bytes)
		out = append(out, ev)
	}
	return out, c
}

// TestTerminalIsRecorded looks at what stands in terminal/ beside the tape: everything, once, in one order with the tape.
func TestTerminalIsRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", sayFine)
	rec := b.recordTUI("hello", new(deck.RecordOptions))
	all, c := shownBy(t, rec.Dir)
	var raw, keys []byte
	seen := make(map[uint64]bool)
	var last uint64
	for _, e := range all {
		if e.G <= last || seen[e.G] {
			t.Errorf("ordinal %d behind %d", e.G, last)
		}
		last, seen[e.G] = e.G, true
		raw = append(raw, e.Bytes...)
		if e.Input != nil {
			keys = append(keys, e.Input.Bytes...)
		}
	}
	f := c.Final()
	if f == nil || f.Exit == nil || !f.Exit.Exited || f.Exit.Code != 0 || f.DurationMS == 0 {
		t.Errorf("final: %+v", f)
	}
	if m := c.Manifest(); m.Timing.ResolutionMS != 1 || m.ID != rec.Manifest.ID || m.Terminal.InitialRows != 24 {
		t.Errorf("%+v", m)
	}
	tp, err := rec.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	for r, err := range tp.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.G] {
			t.Errorf("ordinal %d stands on the tape and in terminal/", r.G)
		}
		if sp, ok := r.Kind.(*tape.ProcessSpawn); ok {
			out, _ := sp.Stdout.Bytes(tp.Store)
			in, _ := sp.Stdin.Bytes(tp.Store)
			if !bytes.Equal(out, raw) || !bytes.Equal(in, keys) {
				t.Errorf("the tape has %q and %q, terminal/ %q and %q", out, in, raw, keys)
			}
		}
	}
	if slices.Contains(rec.Manifest.NotCovered(), "the screen") {
		t.Error("the screen is said not to be covered")
	}
}

// TestReplayComparesScreens: a program that draws by the clock prints other bytes and shows the same.
func TestReplayComparesScreens(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", sayFine)
	for _, first := range []string{"hello", "spin"} {
		rec := b.recordTUI(first, new(deck.RecordOptions))
		out := filepath.Join(t.TempDir(), "replayed.rec")
		v, _ := b.replay(rec, &deck.ReplayOptions{Screens: true, Out: out})
		b.green(v)
		if moved := v.Masked[fidelity.AnimationMask] > 0; moved != (first == "spin") {
			t.Errorf("%s: masked %v, %q", first, v.Masked, v.Notes)
		}
		if all, _ := shownBy(t, out); len(all) < 5 {
			t.Errorf("%s: the replay's own terminal/ has %d events", first, len(all))
		}
		if first == "spin" {
			continue
		}
		r, err := deck.Compare(rec.Dir, out, &deck.CompareOptions{Screens: true})
		if err != nil || !r.Faithful() {
			t.Errorf("%v, %+v", err, r)
		}
	}
}

// TestReplayFindsAnotherScreen replays with a program that shows something else, and wants to be told where and since when.
func TestReplayFindsAnotherScreen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", sayFine)
	rec := b.recordTUI("one", new(deck.RecordOptions))
	argv, _ := b.self("tui", "http://api.example.com", "two")
	v, _ := b.replay(rec, &deck.ReplayOptions{Screens: true, Argv: argv, Patience: shortly})
	if len(v.Divergences) != 1 || v.Divergences[0].Category != fidelity.ScreenRows || v.Divergences[0].Lane != "terminal" {
		t.Fatalf("%+v", v.Divergences)
	}
	if c := v.Divergences[0].Changes; len(c) != 1 || c[0].Was != "one" || c[0].Now != "two" || c[0].Marks != "^^^" {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(v.Divergences[0].Message, `before "hello ENTER" was typed`) {
		t.Error(v.Divergences[0].Message)
	}
	v, _ = b.replay(rec, &deck.ReplayOptions{Argv: argv})
	if len(v.Divergences) != 1 || v.Divergences[0].Category != fidelity.ProcessStdoutHash || v.Divergences[0].Hint != "" {
		t.Errorf("without screens: %+v", v.Divergences)
	}
}

// TestScreensThatCannotBeCompared are refused before anything runs.
func TestScreensThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unsealed = true
	b.upstream("api.example.com", sayFine)
	refused := func(rec *recording.Recording, o *deck.ReplayOptions, want string) {
		t.Helper()
		o.Screens, o.ConfigDir = true, b.config
		if v, err := deck.Replay(context.Background(), rec, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", v, err, want)
		}
	}
	plain, _ := b.record("tui", "http://api.example.com", "plain")
	refused(plain.Recording, new(deck.ReplayOptions), "no terminal")
	rec := b.recordTUI("one", new(deck.RecordOptions))
	refused(rec, &deck.ReplayOptions{Mode: fidelity.Outcome}, "outcome")
	if err := os.RemoveAll(filepath.Join(rec.Dir, "terminal")); err != nil {
		t.Fatal(err)
	}
	refused(rec, new(deck.ReplayOptions), "older tapedeck")
	v, _ := b.replay(rec, nil) // as before
	b.green(v)
	if got, err := verified(rec.Dir); err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "is missing") {
		t.Errorf("%+v, %v", got, err)
	}
	rec.Manifest.Axes["terminal"] = recording.Axis{On: true, NotCovered: []string{"the screen"}} // as older ones say
	writeManifest(t, rec)
	b.holds(rec.Dir)
}

// TestVerifySeesTheTerminal: what was edited in terminal/ does not hold, also where it agrees with itself.
func TestVerifySeesTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unsealed = true
	b.upstream("api.example.com", sayFine)
	rec := b.recordTUI("one", new(deck.RecordOptions))
	packedFile := filepath.Join(t.TempDir(), "a.rec.tar.zst")
	if _, err := library.Pack(context.Background(), rec, packedFile, nil); err != nil {
		t.Fatal(err)
	}
	b.holds(packedFile)
	back, err := library.Of(b.dir).Unpack(context.Background(), packedFile, &library.UnpackOptions{Output: filepath.Join(t.TempDir(), "b.rec")})
	if err != nil {
		t.Fatal(err)
	}
	was, _ := shownBy(t, rec.Dir)
	if now, _ := shownBy(t, back.Dir); len(now) != len(was) {
		t.Errorf("%d events of %d were packed", len(now), len(was))
	}
	raw := filepath.Join(rec.Dir, "terminal", cassette.OutputFile)
	text, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(raw, bytes.Replace(text, []byte("one"), []byte("two"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := verified(rec.Dir); err != nil || len(v.Problems) == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	other := b.recordTUI("two", new(deck.RecordOptions)) // sound, and of another run
	if err := os.RemoveAll(filepath.Join(back.Dir, "terminal")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(back.Dir, "terminal"), os.DirFS(filepath.Join(other.Dir, "terminal"))); err != nil {
		t.Fatal(err)
	}
	if v, err := verified(back.Dir); err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Message, "differs") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTerminalWithoutAJail records through the proxy.
func TestTerminalWithoutAJail(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.example.com", sayFine)
	rec := b.recordTUI("one", &deck.RecordOptions{Proxy: true})
	if all, _ := shownBy(t, rec.Dir); len(all) < 5 {
		t.Errorf("%d events", len(all))
	}
	v, _ := b.replay(rec, &deck.ReplayOptions{Screens: true, Proxy: true})
	b.green(v)
}

// TestTimelineOfATerminal interleaves what was shown and typed with the records.
func TestTimelineOfATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", sayFine)
	rec := b.recordTUI("spin", new(deck.RecordOptions))
	tp, err := rec.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	var got []string
	spins := 0
	for it, err := range follow.NewFilter().Timeline(tp.Records(), tp.Store, screen.Changes(rec, true)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case it.Record != nil:
			got = append(got, it.Record.Kind.Name())
		default: // of rows that changed together one alone is told in words
			if strings.Contains(it.Screen.String(), "working") {
				spins++
			}
			got = append(got, it.Screen.String()+"\n"+strings.Join(it.Screen.Screen, "\n"))
		}
	}
	line := strings.Join(got, "\n")
	at := -1
	for _, want := range []string{"typed: hello ENTER", "http_exchange", "you: hello", "typed: quit ENTER", "the primary screen", "process_spawn"} {
		next := strings.Index(line, want)
		if next <= at {
			t.Errorf("%q is not in its place:\n%s", want, line)
		}
		at = next
	}
	if spins > 10 {
		t.Errorf("what turns by itself is told %d times", spins)
	}
}

// TestTerminalSecrets has a program show and be told secrets, known from the beginning and only later.
func TestTerminalSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const early, late = "cnry4Hq8TzWm2LpXv6Nd", "cnry7Q2x9ZpLm4Vt8KrW3nHd"
	b.env = append(b.env, "CANARY_API_KEY="+early)
	var asked atomic.Int32
	b.upstream("api.example.com", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Set-Cookie", "session="+late) // which makes it known
		io.WriteString(w, "fine")
	})
	rec := b.recordTUI("keys: "+early+" and "+late, new(deck.RecordOptions))
	if asked.Load() == 0 {
		t.Fatal("nobody asked")
	}
	lookFor(t, filepath.Join(rec.Dir, "terminal"), early)
	lookFor(t, filepath.Join(rec.Dir, "terminal"), late)
	lookFor(t, rec.Dir, early)
	v, _ := b.replay(rec, &deck.ReplayOptions{Screens: true})
	b.green(v)
}

// writeManifest puts rec.Manifest on the disk.
func writeManifest(t *testing.T, rec *recording.Recording) {
	t.Helper()
	b, err := json.Marshal(rec.Manifest)
	if err == nil {
		err = os.WriteFile(filepath.Join(rec.Dir, "recording.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
