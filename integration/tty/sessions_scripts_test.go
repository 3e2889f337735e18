//go:build tty && linux

package tty

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
)

// script is a scripted family: what a shell prints, and what the screen shows then.
type script struct {
	name, prints string
	rows         []string                     // from the top
	also         func(*terminal.Screen) error // nil for nothing else
}

var scripts = []script{
	{"a sequence in three parts", `printf '\033'; sleep 0.05; printf '[1;31'; sleep 0.05; printf 'mred\033[0m'`, []string{"red"}, nil},
	{"a character in two parts", `printf '\346\274'; sleep 0.05; printf '\242!'`, []string{"漢!"}, nil},
	{"cursor addressing and clears", `printf 'xxxxx\nyyyyy\033[2J\033[3;5Hthere\033[1;1Hfirst\033[3;7H\033[K'`, []string{"first", "", "    th"}, nil},
	{"a title", `printf '\033]0;first\007\033]2;second\033\\'`, []string{""}, func(s *terminal.Screen) error {
		if s.Title != "second" {
			return fmt.Errorf("title %q", s.Title)
		}
		return nil
	}},
	{"a link", `printf '\033]8;;https://example.com/a\033\\here\033]8;;\033\\ not'`, []string{"here not"}, func(s *terminal.Screen) error {
		if s.Cells[0][0].Link != "https://example.com/a" || s.Cells[0][5].Link != "" {
			return fmt.Errorf("links %q, %q", s.Cells[0][0].Link, s.Cells[0][5].Link)
		}
		return nil
	}},
	{"the clipboard", `printf 'a\033]52;c;aGVsbG8=\007b'`, []string{"ab"}, nil},
	{"a bell", `printf 'a\007b'`, []string{"ab"}, nil},
	{"line drawing", `printf '\033(0lqqk\033(B\n\016\033)0x\017x'`, []string{"┌──┐", "│x"}, nil},
	{"wide and combining characters", `printf 'e\314\201 漢字 \360\237\221\251\342\200\215\360\237\222\273|'`, []string{"e\u0301 漢字 👩\u200d💻|"}, nil},
	{"a prompt without a newline", `printf 'done\n> '`, []string{"done", ">"}, nil},
	{"delayed output", `printf 'one'; sleep 0.3; printf 'two'`, []string{"onetwo"}, nil},
	{"one byte at a time", `printf 'a\033[32mb\033[0m\r\nc' | while IFS= read -r -n1 -d '' c; do printf '%s' "$c"; sleep 0.01; done`, []string{"ab", "c"}, nil},
	{"synchronised output", `printf '\033[?2026h'; printf 'half'; sleep 0.1; printf ' whole\033[?2026l'`, []string{"half whole"}, nil},
	{"a rapid redraw", `i=0; while [ $i -lt 500 ]; do printf '\r\033[Kstep %d' $i; i=$((i+1)); done`, []string{"step 499"}, nil},
	{"large buffered output", `seq 20000`, []string{"19978"}, nil},
	{"the end in a redraw", `printf '\033[?1049h\033[2J\033[Hframe\033[2;1H\033[3'`, []string{"frame"}, func(s *terminal.Screen) error {
		if !s.Alt {
			return fmt.Errorf("not on the alternate screen")
		}
		return nil
	}},
}

// TestSessionScripts shows what no program of the machine is sure to show.
func TestSessionScripts(t *testing.T) {
	bash := firstOf(t, "bash")
	for _, test := range scripts {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, nil, bash, "-c", test.prints)
			s := p.until(terminal.Exited())
			for i, want := range test.rows {
				wantRow(t, s, i, want)
			}
			if test.also != nil {
				if err := test.also(s); err != nil {
					t.Errorf("%v\n%v", err, s)
				}
			}
			p.ends(0)
		})
	}
}

// TestSessionQuestions has a program ask its terminal: who it is, a mode, a setting, where the cursor is, a colour. The screen answers.
func TestSessionQuestions(t *testing.T) {
	bash := firstOf(t, "bash")
	p := play(t, nil, bash, "-c", `stty raw -echo
ask() { printf "$1"; IFS= read -r -d "$2" -t 5 answer; printf '%q\r\n' "$answer$2"; }
ask '\033[c' c; ask '\033[>c' c; printf '\033[?2004h'; ask '\033[?2004$p' y; ask '\033[5;7H\033[6n\033[1;1H' R; ask '\033]11;?\033\\' '\'; ask '\033P$qm\033\\' '\'`)
	p.until(terminal.Exited())
	r := p.ends(0)
	var answers []string
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Input.Key != "reply" {
			t.Errorf("input %+v", e.Input)
		}
		answers = append(answers, string(e.Input.Bytes))
	}
	if len(answers) != 6 || !strings.HasPrefix(answers[0], "\x1b[?6") || answers[2] != "\x1b[?2004;1$y" || answers[3] != "\x1b[5;7R" ||
		!strings.HasPrefix(answers[4], "\x1b]11;rgb:") || !strings.HasPrefix(answers[5], "\x1bP1$r") {
		t.Errorf("answers %q", answers)
	}
}

// recorderVar tells a process of this test to be the recorder of a flood.
const recorderVar = "TAPEDECK_TTY_FLOOD"

// TestSessionFlood records a program that prints 200 MB, or 5 GB in the long form. The recorder keeps below 64 MB.
func TestSessionFlood(t *testing.T) {
	size := int64(200 << 20)
	if os.Getenv("TAPEDECK_LONG") != "" {
		size = 5 << 30
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	var text strings.Builder
	for i := 0; text.Len() < 10<<20; i++ {
		fmt.Fprintf(&text, "2026-01-02T03:04:05.%06dZ INFO request %d took %d ms, \x1b[32mstatus 200\x1b[0m\n", i%1000000, i, i%977)
	}
	write(t, log, text.String())
	times := size/int64(text.Len()) + 1
	cmd := exec.Command(os.Args[0], "-test.run", "^TestFloodRecorder$", "-test.timeout", "30m")
	cmd.Env = append(os.Environ(), recorderVar+"="+dir, "FLOOD_TIMES="+strconv.FormatInt(times, 10))
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kB, _ := strconv.Atoi(file(filepath.Join(dir, "peak")))
	r, err := cassette.Open(filepath.Join(dir, "c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Logf("%d MB in %v, the recorder took %d kB", r.Size()>>20, time.Since(begun), kB)
	want := times * int64(text.Len()+strings.Count(text.String(), "\n"))
	if r.Size() != want {
		t.Errorf("%d bytes, want %d", r.Size(), want)
	}
	if kB == 0 || kB > 64<<10 {
		t.Errorf("the recorder took %d kB", kB)
	}
}

// TestFloodRecorder is no test: it is the recorder of TestSessionFlood, in a process of its own.
func TestFloodRecorder(t *testing.T) {
	dir := os.Getenv(recorderVar)
	if dir == "" {
		t.Skip("not asked to record")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := terminal.RecordSession(t.Context(), &terminal.RecordOptions{
		Session: terminal.SessionOptions{Argv: []string{"sh", "-c", `i=0; while [ $i -lt "$FLOOD_TIMES" ]; do cat "$` + recorderVar + `/log"; i=$((i+1)); done`}},
		Dir:     filepath.Join(dir, "c"), Std: [3]any{nil, null, nil},
	})
	if err != nil || got.Exit.Code != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	write(t, filepath.Join(dir, "peak"), strconv.Itoa(highWater(os.Getpid())))
}

// TestSessionHeld leaves a job that holds the terminal: the session ends, and the cassette with it.
func TestSessionHeld(t *testing.T) {
	p := play(t, nil, "sh", "-c", `trap '' HUP; sleep 60 & echo $!; echo ended`)
	s := p.until(terminal.Exited())
	exit, err := p.Wait(t.Context())
	if err != nil || !exit.Held {
		t.Errorf("%+v, %v", exit, err)
	}
	p.ends(0)
	if pid, err := strconv.Atoi(s.Row(0)); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
