// Package pager shows long text on a terminal a page at a time, by the program that its user has for that.
//
// A Pager holds what is written until it is longer than the terminal, and only then starts the program: a short text is written as it
// is. Goals: who quits early ends the writing and nothing else; Ctrl-C is the pager's; no pager that can be started means none, and never
// no text. Not goals: what is escaped, colours, terminals of which nothing is known.
package pager

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Default is the pager of who names none.
const Default = "less -R"

// ErrQuit is the error of Write once the reader has quit the pager.
var ErrQuit = errors.New("the pager was quit")

// Command is the pager that an environment names: TAPEDECK_PAGER, else PAGER, else Default; "" where it names none ("" or cat).
func Command(lookup func(string) (string, bool)) string {
	command := Default
	for _, name := range []string{"TAPEDECK_PAGER", "PAGER"} {
		if named, ok := lookup(name); ok {
			command = strings.TrimSpace(named)
			break
		}
	}
	if command == "cat" {
		return ""
	}
	return command
}

// A Pager is a writer to a terminal. One goroutine uses it.
type Pager struct {
	terminal   *os.File
	command    string
	rows, cols int

	held bytes.Buffer // what has been written so far, until it is longer than the terminal
	used int          // rows that held takes
	col  int          // columns of its last row
	to   io.Writer    // where it goes since then; nil before
	pipe io.WriteCloser
	cmd  *exec.Cmd
	ints chan os.Signal
}

// New returns a Pager to a terminal of so many rows and columns, by command.
func New(terminal *os.File, command string, rows, cols int) *Pager {
	return &Pager{terminal: terminal, command: command, rows: rows, cols: cols}
}

// Terminal is where what is written comes to stand in the end.
func (p *Pager) Terminal() *os.File { return p.terminal }

// Write implements io.Writer. The error is ErrQuit once the pager has been quit.
func (p *Pager) Write(b []byte) (int, error) {
	text := b
	if p.to == nil {
		p.held.Write(b)
		if p.measure(b); p.used < p.rows {
			return len(b), nil
		}
		p.start()
		text = p.held.Bytes()
	}
	if err := p.put(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *Pager) put(b []byte) error {
	_, err := p.to.Write(b)
	if err != nil && p.cmd != nil {
		return ErrQuit
	}
	return err
}

// measure adds the rows that b takes; a sequence of control takes no room.
func (p *Pager) measure(b []byte) {
	for len(b) > 0 {
		if b[0] == '\x1b' {
			end := bytes.IndexByte(b, 'm')
			if end < 0 {
				return
			}
			b = b[end+1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if b = b[n:]; r == '\n' || p.col == p.cols {
			p.used, p.col = p.used+1, 0
		}
		if r != '\n' {
			p.col++
		}
	}
}

// start starts the pager. Where it does not start, the terminal gets the text.
func (p *Pager) start() {
	p.to = p.terminal
	cmd := command(p.command)
	if cmd == nil {
		return
	}
	cmd.Stdout, cmd.Stderr = p.terminal, os.Stderr
	if _, ok := os.LookupEnv("LESS"); !ok {
		cmd.Env = append(os.Environ(), "LESS=R")
	}
	pipe, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	// The terminal sends Ctrl-C to both: the pager stops searching, and we must not leave it alone with the terminal.
	p.ints = make(chan os.Signal, 1)
	signal.Notify(p.ints, os.Interrupt)
	p.to, p.pipe, p.cmd = pipe, pipe, cmd
}

// command is what starts a pager; nil where its program is not there.
func command(line string) *exec.Cmd {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	if strings.ContainsAny(line, `"'$&|;<>()\*?~=`+"`") && runtime.GOOS != "windows" {
		return exec.Command("sh", "-c", line)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	return exec.Command(words[0], words[1:]...)
}

// Close writes what was held, and waits until the reader has quit the pager.
func (p *Pager) Close() error {
	if p.to == nil {
		_, err := p.terminal.Write(p.held.Bytes())
		return err
	}
	if p.cmd == nil {
		return nil
	}
	p.pipe.Close()
	p.cmd.Wait() // how a pager ends says nothing about what it showed
	signal.Stop(p.ints)
	return nil
}
