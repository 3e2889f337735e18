//go:build tty && linux

package tty

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// TestSessionVim edits a file: insert mode, a change of size, the alternate screen left at the end.
func TestSessionVim(t *testing.T) {
	vim := firstOf(t, "vim.tiny", "vim")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "notes.txt"), "one\ntwo\n")
	p := play(t, &terminal.SessionOptions{Dir: dir}, vim, "-u", "NONE", "-N", "-c", "set showmode ruler", "notes.txt")
	s := p.sees(`"notes.txt" 2L`)
	if !s.Alt || s.Cursor.Row != 0 || s.Cursor.Col != 0 {
		t.Errorf("at the start: %v", s)
	}
	wantRow(t, s, 0, "one")
	wantRow(t, s, 2, "~")
	p.types("o")
	p.until(terminal.Text("-- INSERT --"))
	p.types("wide 漢字 é")
	p.keys("esc")
	p.until(terminal.Gone("INSERT"))
	s = p.rests()
	wantRow(t, s, 1, "wide 漢字 é")
	p.must(p.Resize(terminal.Size{Rows: 12, Cols: 50}))
	s = p.rests()
	wantRow(t, s, 10, "~")
	p.keys("down")
	p.types("dd:wq\n")
	r := p.ends(0)
	if got := file(filepath.Join(dir, "notes.txt")); got != "one\nwide 漢字 é\n" {
		t.Errorf("saved %q", got)
	}
	if p.Screen().Alt {
		t.Error("the alternate screen is left on")
	}
	wantFrame(t, r, "-- INSERT --", "~")
}

// TestSessionLess pages, searches (what is found is in reverse) and is asked for help.
func TestSessionLess(t *testing.T) {
	less := firstOf(t, "less")
	dir := t.TempDir()
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "line %d of many\n", i)
	}
	write(t, filepath.Join(dir, "long.txt"), text.String())
	p := play(t, &terminal.SessionOptions{Dir: dir, Size: terminal.Size{Rows: 10, Cols: 40}}, less, "long.txt")
	s := p.sees("line 8 of many")
	wantRow(t, s, 9, "long.txt")
	p.keys("pagedown")
	wantRow(t, p.sees("line 17 of many"), 0, "line 9 of many")
	p.types("/line 123\n")
	s = p.sees("line 123 of")
	row, col, _ := s.Find("line 123")
	if s.Cells[row][col].Style.Attr&vt.Reverse == 0 {
		t.Errorf("what was found is not marked: %v", s)
	}
	p.types("G")
	p.sees("line 299 of")
	p.keys("up")
	wantRow(t, p.sees("line 290 of"), 8, "line 298 of many")
	p.types("q")
	wantFrame(t, p.ends(0), "line 123 of many")
}

// TestSessionHtop shows processes, the help page, and sorts.
func TestSessionHtop(t *testing.T) {
	htop := firstOf(t, "htop")
	p := play(t, &terminal.SessionOptions{Size: terminal.Size{Rows: 30, Cols: 100}}, htop)
	s := p.until(terminal.Text("F10Quit"))
	if !s.Alt || !s.Contains("PID") || !s.Contains("Mem[") {
		t.Error(s)
	}
	p.rests()
	p.keys("F1")
	p.sees("htop 3")
	p.keys("esc")
	p.until(terminal.Text("F10Quit"))
	p.types("q")
	r := p.ends(0)
	wantFrame(t, r, "F10Quit", "Mem[")
	wantFrame(t, r, "htop 3")
}

// TestSessionTmux splits a window: a status line, a border of line drawing, two shells.
func TestSessionTmux(t *testing.T) {
	tmux := firstOf(t, "tmux")
	dir := t.TempDir()
	t.Cleanup(func() { exec.Command(tmux, "-S", filepath.Join(dir, "s"), "kill-server").Run() })
	p := play(t, &terminal.SessionOptions{Dir: dir, Env: []string{"PS1=$ "}}, tmux, "-u", "-S", filepath.Join(dir, "s"), "-f", "/dev/null", "new", "-s", "work", "sh")
	s := p.sees("[work] 0:sh*")
	if s.Cursor.Row != 0 {
		t.Error(s)
	}
	p.types("echo le''ft\n")
	p.sees("left")
	p.keys("ctrl-b")
	p.rests() // what comes at once is a paste to tmux
	p.keys("%")
	p.until(terminal.When("the prompt of the right shell", func(s *terminal.Screen) bool { return s.Cursor.Row == 0 && s.Cursor.Col == 43 }))
	p.types("echo ri''ght\n")
	s = p.sees("right")
	if row, col, _ := s.Find("right"); row != 1 || col != 41 {
		t.Errorf("right at %d, %d: %v", row, col, s)
	}
	p.must(p.Resize(terminal.Size{Rows: 20, Cols: 100}))
	p.until(terminal.When("the border in the middle", func(s *terminal.Screen) bool {
		_, col, found := s.Find("│")
		return found && col == 50 && strings.Contains(s.Row(19), "[work]")
	}))
	p.types("exit\n")
	p.until(terminal.Gone("│"))
	p.types("exit\n")
	wantFrame(t, p.ends(0), "[exited]")
}

// TestSessionMC looks at a directory in two panels, views a file and goes, with its menu bar and boxes.
func TestSessionMC(t *testing.T) {
	mc := firstOf(t, "mc")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "afile.txt"), "text of the file\n")
	p := play(t, &terminal.SessionOptions{Dir: dir, Env: []string{"HOME=" + t.TempDir()}}, mc, "--nosubshell", "--nomouse", dir, dir)
	s := p.sees("10Quit")
	if !s.Contains("afile.txt") || !s.Contains("┌") || !s.Contains("│") {
		t.Error(s)
	}
	p.keys("down", "F3")
	p.sees("text of the file")
	p.keys("F10")
	p.until(terminal.Gone("text of the file"))
	p.rests()
	p.keys("F10")
	if came, _, err := p.WaitFor(t.Context(), terminal.Text("Do you really want"), terminal.Exited()); err != nil {
		t.Fatal(err)
	} else if came == 0 {
		p.rests()
		p.keys("enter")
	}
	wantFrame(t, p.ends(0), "afile.txt", "10Quit")
}

// TestSessionDialog chooses No in a box.
func TestSessionDialog(t *testing.T) {
	dialog := firstOf(t, "dialog")
	p := play(t, nil, dialog, "--title", "A question", "--yesno", "Shall it be done?", "8", "40")
	s := p.sees("Shall it be done?")
	if !s.Contains("A question") || !s.Contains("┌") || !s.Contains("< Yes >") {
		t.Error(s)
	}
	p.keys("tab")
	p.rests()
	p.keys("enter")
	wantFrame(t, p.ends(1), "Shall it be done?", "< No  >")
}

// TestSessionFzf filters a list and takes what is left.
func TestSessionFzf(t *testing.T) {
	fzf := firstOf(t, "fzf")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "list"), "apple\nbanana\ncherry\n")
	p := play(t, &terminal.SessionOptions{Dir: dir}, "sh", "-c", fzf+" <list; echo status $?")
	p.until(terminal.Text("3/3"))
	p.types("nan")
	s := p.sees("1/3")
	if !s.Contains("banana") || s.Contains("apple") {
		t.Error(s)
	}
	p.keys("enter")
	r := p.ends(0)
	if s := p.Screen(); s.Text() != "banana\nstatus 0" {
		t.Error(s)
	}
	wantFrame(t, r, "> nan", "1/3")
}

// TestSessionGitAddPatch takes one hunk of two.
func TestSessionGitAddPatch(t *testing.T) {
	git := firstOf(t, "git")
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	write(t, filepath.Join(dir, "f"), lines.String())
	run("init", "-q")
	run("add", "f")
	run("commit", "-qm", "first")
	write(t, filepath.Join(dir, "f"), strings.NewReplacer("line 2\n", "changed 2\n", "line 25\n", "changed 25\n").Replace(lines.String()))
	p := play(t, &terminal.SessionOptions{Dir: dir, Size: terminal.Size{Rows: 40, Cols: 80}}, git, "-c", "color.ui=always", "add", "-p")
	s := p.sees("(1/2) Stage this hunk")
	row, col, found := s.Find("+changed 2")
	if !found || s.Cells[row][col].Style.FG != vt.ColorIndexed|2 {
		t.Errorf("what is new is not green: %v", s)
	}
	p.types("y\n")
	p.sees("(2/2) Stage this hunk")
	p.types("n\n")
	p.ends(0)
	if got := run("diff", "--cached", "-U0"); !strings.Contains(got, "+changed 2\n") || strings.Contains(got, "changed 25") {
		t.Errorf("staged: %s", got)
	}
}

// TestSessionNpm answers npm's questions.
func TestSessionNpm(t *testing.T) {
	npm := firstOf(t, "npm")
	dir := filepath.Join(t.TempDir(), "thing")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := play(t, &terminal.SessionOptions{Dir: dir, Env: []string{"npm_config_update_notifier=false"}}, npm, "init")
	p.sees("package name: (thing)")
	p.types("other\n")
	for _, question := range []string{"version:", "description:", "entry point:", "test command:", "git repository:", "keywords:", "author:", "license:"} {
		p.sees(question)
		p.keys("enter")
	}
	came, _, err := p.WaitFor(t.Context(), terminal.Text("Is this OK?"), terminal.Text("type:"))
	if err != nil {
		t.Fatal(err)
	}
	if came == 1 { // newer versions ask for it
		p.rests()
		p.keys("enter")
	}
	p.sees("Is this OK?")
	p.keys("enter")
	p.ends(0)
	if got := file(filepath.Join(dir, "package.json")); !strings.Contains(got, `"name": "other"`) {
		t.Errorf("package.json: %s", got)
	}
}

// TestSessionApt simulates an installation of what may be there or not.
func TestSessionApt(t *testing.T) {
	apt := firstOf(t, "apt-get")
	p := play(t, &terminal.SessionOptions{Size: terminal.Size{Rows: 60, Cols: 80}}, apt, "-s", "install", "--reinstall", "bash")
	p.until(terminal.Exited())
	s := p.Screen()
	if !s.Contains("Reading package lists... Done") {
		t.Errorf("%v", s)
	}
	exit, _ := p.Wait(t.Context())
	p.ends(exit.Code) // 100 where no list of packages is here
}

// TestSessionBash edits a command line: completion, history search, kill and yank, a bracketed paste, Ctrl-C.
func TestSessionBash(t *testing.T) {
	bash := firstOf(t, "bash")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "the-only-file"), "content\n")
	write(t, filepath.Join(dir, ".inputrc"), "set enable-bracketed-paste on\nset bell-style none\n")
	p := play(t, &terminal.SessionOptions{Dir: dir, Env: []string{"PS1=> "}}, bash, "--norc", "--noprofile", "-i")
	p.sees(">")
	p.types("cat the-o")
	p.keys("tab")
	p.until(terminal.Text("cat the-only-file"))
	p.keys("enter")
	p.sees("content\n>")
	p.types("two words")
	p.keys("ctrl-a", "alt-f", "ctrl-k", "ctrl-a")
	p.types("echo ")
	p.keys("enter")
	p.sees("\ntwo\n>")
	p.keys("ctrl-r")
	p.types("only")
	p.until(terminal.Text("(reverse-i-search)`only'"))
	p.keys("ctrl-g")
	p.rests()
	if on, _ := p.Mode(2004); !on {
		t.Error("bash did not ask for bracketed pastes")
	}
	p.must(p.Paste("echo one\necho two"))
	p.rests()
	if s := p.Screen(); strings.Contains(s.Text(), "\none") {
		t.Errorf("a paste ran before Enter: %v", s)
	}
	p.keys("enter")
	p.sees("\none\ntwo\n>")
	p.types("sh -c 'echo be''gun; sleep 60'\n")
	p.sees("begun")
	p.keys("ctrl-c")
	p.sees("begun\n^C\n>")
	p.types("exit 5\n")
	p.ends(5)
}

// TestSessionPython computes in Python's own command line.
func TestSessionPython(t *testing.T) {
	python := firstOf(t, "python3")
	p := play(t, &terminal.SessionOptions{Env: []string{"PYTHON_BASIC_REPL=1"}}, python, "-q", "-I")
	p.sees(">>>")
	p.types("6*7\n")
	p.sees("42\n>>>")
	p.types("for i in range(2):\n    print('n', i)\n\n")
	p.sees("n 0\nn 1\n>>>")
	p.keys("up", "up", "up")
	p.rests()
	p.keys("ctrl-c")
	p.sees("KeyboardInterrupt\n>>>")
	p.keys("ctrl-d")
	p.ends(0)
}

// TestSessionCancelled closes an editor, which leaves its screen.
func TestSessionCancelled(t *testing.T) {
	vim := firstOf(t, "vim.tiny", "vim")
	p := play(t, &terminal.SessionOptions{Grace: 5 * time.Second}, vim, "-u", "NONE", "-N", "new.txt")
	p.sees(`"new.txt" [New]`)
	p.Close()
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Killed || exit.Code == 0 {
		t.Errorf("%+v, %v", exit, err)
	}
	p.ends(exit.Code)
	if p.Screen().Alt {
		t.Error("vim was not given the time to leave its screen")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
