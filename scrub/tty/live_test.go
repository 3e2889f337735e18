package tty_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

const key = "sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7"

// TestScreenBehindPlainText has the model pass over plain text: what it shows is what a screen shows that was given all of it.
func TestScreenBehindPlainText(t *testing.T) {
	t.Parallel()
	for seed := range uint64(pick(3, 8)) {
		rng := rand.New(rand.NewPCG(seed, 21))
		l := tty.NewLive(fixed)
		all := vt.New(&vt.Options{Rows: rows, Cols: cols, Scrollback: -1})
		for i := range 40 {
			p := plainText(rng)
			if rng.IntN(12) == 0 {
				p = append(p, "\x1b[3;5H\x1b[2Kback\x1b[24;1H\r\n"...)
			}
			l.Write(p, 0)
			_, _ = all.Write(p)
			l.Take(0)
			if i%7 == 0 && rng.IntN(2) == 0 {
				same(t, l.Screen(), all)
			}
		}
		same(t, l.Screen(), all)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func plainText(rng *rand.Rand) (p []byte) {
	for range rng.IntN(2000) {
		switch rng.IntN(30) {
		case 0:
			p = fmt.Appendf(p, "\x1b[%d;4%dm", 30+rng.IntN(8), rng.IntN(8))
		case 1:
			p = append(p, "\x1b[m"...)
		case 2:
			p = append(p, "\x1b]0;title\x07\x1b]8;;http://x.example/\x1b\\"...)
		case 3:
			p = append(p, "\tあé\x1b[1m"...)
		case 4:
			p = append(p, "\x1b[?25l\x1b[?25h\x1b(B"...)
		default:
			p = append(p, strings.Repeat("log ", rng.IntN(40))...)
			p = append(p, "\r\n"...)
		}
	}
	return append(p, "$ "[:rng.IntN(3)]...)
}

func same(t *testing.T, got, want *vt.Screen) {
	t.Helper()
	if got.Cursor() != want.Cursor() || got.Title() != want.Title() {
		t.Errorf("cursor %v, want %v", got.Cursor(), want.Cursor())
	}
	for y := range rows {
		for x := range cols {
			if got.Cell(y, x) != want.Cell(y, x) {
				t.Fatalf("cell %d, %d is %v, want %v", y, x, got.Cell(y, x), want.Cell(y, x))
			}
		}
	}
}

// TestFoundAfterPlainText has a redrawn secret behind much plain text: its place in the stream is right.
func TestFoundAfterPlainText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 22))
	l := tty.NewLive(options())
	var stream, file []byte
	for range 50 {
		p := plainText(rng)
		p = append(p, "\x1b[5;1H\x1b[K"+key[20:]+"\r\x1b[4C"...)
		p = append(p, "\x1b[1;1H\x1b[2J\x1b[2;21H"+key[20:]+"\x1b[2;1H"+key[:20]+"\x1b[24;1H\r\n\r\n\r\n"...)
		stream = append(stream, p...)
		l.Write(p, 0)
		file = append(file, l.Take(0)...)
		_ = tty.MaskAt(memory(file), l.Late())
	}
	file = append(file, l.Flush()...)
	_ = tty.MaskAt(memory(file), l.Late())
	if n := strings.Count(string(file), strings.Repeat("*", len(key)-20)); n != 149 || // the second half is known from the first time on
		bytes.Contains(file, []byte(key[:20])) {
		t.Errorf("masked %d of 149 parts", n)
	}
	if n := l.Report().Hits["anthropic"]; n != 50 {
		t.Errorf("counts %d", n)
	}
	if len(file) != len(stream) {
		t.Errorf("%d bytes of %d", len(file), len(stream))
	}
}

// TestControlStrings has secrets where no text is.
func TestControlStrings(t *testing.T) {
	in64 := base64.StdEncoding.EncodeToString([]byte("take " + key + "."))
	for name, sequence := range map[string]string{
		"title":        "\x1b]0;run " + key + "\x07",
		"title, ST":    "\x1b]2;" + key + "\x1b\\",
		"link":         "\x1b]8;;https://ann:Vt6Qm1Zx8Lp3Rk@host.example/\x1b\\link\x1b]8;;\x1b\\",
		"clipboard":    "\x1b]52;c;" + in64 + "\x07",
		"clipboard ST": "\x1b]52;;" + strings.TrimRight(in64, "=") + "\x1b\\",
		"DCS":          "\x1bPtmux;" + key + "\x1b\\",
		"APC":          "\x1b_G" + key + "\x1b\\",
		"C1":           "\xc2\x9d0;" + key + "\xc2\x9c",
		"unfinished":   "\x1b]0;" + key,
	} {
		t.Run(name, func(t *testing.T) {
			stream := "$ \x1b[1m" + sequence + "done\r\n"
			for seed := range uint64(5) {
				rng := rand.New(rand.NewPCG(seed, 1))
				file, report := record(options(), []byte(stream), rng, time.Duration(seed)*time.Second)
				text := string(file)
				for _, part := range strings.Split(text, ";") {
					b, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(part, "=\x07\x1b\\dones\r\n"))
					text += string(b)
				}
				if len(file) != len(stream) || strings.Contains(text, key[6:]) || strings.Contains(text, "Vt6Qm1") || len(report.Hits) != 1 {
					t.Errorf("%q, %v", file, report)
				}
				if left, _ := tty.Scan(memory(file), int64(len(file)), nil, options()); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			}
		})
	}
}

// TestHoldIsBounded cuts a secret by the hold limit: it is a late hit.
func TestHoldIsBounded(t *testing.T) {
	o := options()
	o.Hold = 256
	l := tty.NewLive(o)
	var file memory
	take := func(p string) {
		l.Write([]byte(p), 0)
		file = append(file, l.Take(0)...)
		if held := len(p) + int(l.Taken()); len(file) != int(l.Taken()) || held < len(file) {
			t.Fatalf("took %d, has %d", l.Taken(), len(file))
		}
	}
	take("\x1b[H" + key[:17])
	take("\x1b]0;" + strings.Repeat("a title ", 200) + "\x07")
	if !strings.Contains(string(file), key[:17]) {
		t.Fatal("held more than the limit")
	}
	take(key[17:])
	take("\x1b[2J")
	file = append(file, l.Flush()...)
	late := l.Late()
	if len(late) == 0 || l.Report().Late != 1 {
		t.Fatalf("late %v, %v", late, l.Report())
	}
	for _, h := range late {
		if !h.Late || h.Rule != "anthropic" {
			t.Errorf("%+v", h)
		}
	}
	_ = tty.MaskAt(file, late)
	if at := leaks(file, []string{key[7:]}); at != "" {
		t.Error(at)
	}
}

// TestHoldIsTimed holds a drawn screen for Options.Age, and plain lines not at all.
func TestHoldIsTimed(t *testing.T) {
	l := tty.NewLive(nil)
	l.Write([]byte("one\r\ntwo\r\n$ "), 0)
	if got := string(l.Take(0)); got != "one\r\ntwo\r\n" {
		t.Errorf("took %q", got)
	}
	l.Write([]byte("\x1b[H\x1b[2Jthree"), time.Second)
	if got := string(l.Take(tty.DefaultAge)); got != "$ " {
		t.Errorf("took %q", got)
	}
	if got := string(l.Take(time.Second + tty.DefaultAge)); got != "\x1b[H\x1b[2Jthree" {
		t.Errorf("took %q", got)
	}
	l.Write([]byte("four "+key), 4*time.Second)
	if got := string(l.Take(time.Minute)); got != "four "+strings.Repeat("*", len(key)) {
		t.Errorf("took %q: at rest a secret at the end is whole", got)
	}
}

// TestHurry passes what is drawn without drawing it, and finds the secrets of the screens when there is time.
func TestHurry(t *testing.T) {
	var stream []byte
	for i := range 400 {
		stream = fmt.Appendf(stream, "\x1b[2J\x1b[%d;21H%s\x1b[%d;1H%s\x1b[9;9Hframe %d", i%20+1, key[20:], i%20+1, key[:20], i)
	}
	o := options()
	o.Hold = 4 << 10
	l := tty.NewLive(o)
	l.Hurry(true)
	var file memory
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1000)
		l.Write(rest[:n], 0)
		rest = rest[n:]
		file = append(file, l.Take(0)...)
		if len(rest) == len(stream)/2/1000*1000 {
			l.Resize(30, 100)
		}
	}
	l.Hurry(false)
	file = append(file, l.Flush()...)
	if _, behind := l.Behind(); !behind {
		t.Fatal("is not behind")
	}
	rounds := 0
	for from, behind := l.Behind(); behind; from, behind = l.Behind() {
		hits, err := l.CatchUp(file, 5000)
		if err != nil {
			t.Fatal(err)
		}
		_ = tty.MaskAt(file, hits)
		if now, still := l.Behind(); still && now != from+5000 {
			t.Fatalf("from %d to %d", from, now)
		}
		rounds++
	}
	if rounds < 3 || l.Report().Hits["anthropic"] != 400 || l.Report().Hits["rest"] < 300 || l.Report().Late < 300 {
		t.Errorf("%d rounds, %v", rounds, l.Report())
	}
	if bytes.Contains(file, []byte(key[:20])) || bytes.Contains(file, []byte(key[20:])) {
		t.Error("the file has the key")
	}
	if all, err := tty.Scan(file, int64(len(file)), []tty.Resize{{Offset: int64(len(file) / 2), Rows: 30, Cols: 100}}, options()); len(all) > 0 || err != nil {
		t.Error(all, err)
	}
}

// TestResize finds what only a narrower screen wraps together.
func TestResize(t *testing.T) {
	stream := []byte("\x1b[H\x1b[2J\x1b[2;1H" + key[:10] + "\b \b" + key[9:20] + "\x1b[3;1H" + "\x1b[1;1H")
	at := int64(len(stream))
	stream = append(stream, "\x1b[2;1H"+key[:20]+key[20:]+"\x1b[1;1H"...)
	for _, sizes := range [][]tty.Resize{nil, {{Offset: at, Rows: 10, Cols: 20}}, {{Offset: 0, Rows: 5, Cols: 8}, {Offset: at + 9, Rows: 50, Cols: 13}, {Offset: at + 9, Rows: 24, Cols: 11}}} {
		file := memory(bytes.Clone(stream))
		if hits, err := tty.Clean(file, int64(len(file)), sizes, options()); err != nil || len(hits) == 0 {
			t.Errorf("%v %v", hits, err)
		}
		if bytes.Contains(file, []byte(key[7:20])) {
			t.Errorf("%q", file)
		}
	}
}

// TestText masks what is no stream.
func TestText(t *testing.T) {
	got, hits := tty.Text("curl -H 'Authorization: Bearer q7Xv0Zt3Lm8Rk2Wp5Nd1Hs6' ann@mail.example.net é", options())
	if want := "curl -H 'Authorization: Bearer ***********************' ******************** é"; got != want || len(hits) != 2 {
		t.Errorf("%q, %v", got, hits)
	}
	if got, hits = tty.Text("nothing", nil); got != "nothing" || hits != nil {
		t.Errorf("%q, %v", got, hits)
	}
}

// TestKeepEmail leaves addresses, and takes what is no address for none.
func TestKeepEmail(t *testing.T) {
	const text = "mail ann.lee@mail.example.net"
	if got, _ := tty.Text(text, &tty.Options{KeepEmail: true}); got != text {
		t.Errorf("%q", got)
	}
	for _, none := range []string{"git@github.com:a/b", "icon@2x.png", "getty@tty1.service", "lodash@4.17.21", "@types/node", "a @ b.c",
		"https://ann@host.example/x", "user@localhost", "x@y.1", "pkg@1.2.3-rc.1"} {
		if got, hits := tty.Text(none, nil); got != none {
			t.Errorf("%q became %q, %v", none, got, hits)
		}
	}
}

// TestMemory writes for long and has no more at the end than at the beginning.
func TestMemory(t *testing.T) {
	o := options()
	l := tty.NewLive(o)
	now := time.Duration(0)
	size := 1 << 18
	if os.Getenv("TAPEDECK_LONG") != "" {
		size = 1 << 20
	}
	round := func(p []byte) {
		for range size / len(p) {
			now += time.Millisecond
			l.Write(p, now)
			l.Take(now)
		}
	}
	line := []byte(strings.Repeat("a plain line of text, as logs have them\r\n", 800))
	for name, p := range map[string][]byte{
		"lines":          line,
		"one line":       bytes.ReplaceAll(line, []byte("\r\n"), []byte(" ")),
		"coloured":       bytes.ReplaceAll(line, []byte(" "), []byte("\x1b[1;32m \x1b[m")),
		"one string":     append([]byte("\x1b]0;"), bytes.ReplaceAll(line, []byte("\r\n"), []byte(" "))...),
		"drawn":          bytes.ReplaceAll(line, []byte("\r\n"), []byte("\x1b[K\x1b[5;5H")),
		"plain and odd":  append([]byte("\x1b[5;1Hx\x1b[24;1H\r\n"), line...),
		"secrets, drawn": []byte(strings.Repeat("\x1b[3;1H"+key+"\x1b[K", 500)),
	} {
		round(p)
		before := inUse()
		round(p)
		if after := inUse(); after > before+1<<19 {
			t.Errorf("%s: %d KiB, then %d KiB", name, before>>10, after>>10)
		}
	}
	runtime.KeepAlive(l)
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
