package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck"
)

// onTerminal runs a command whose stdout and stderr are one terminal, and returns what that was sent.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	p, err := terminal.Open(terminal.Size{Rows: 24, Cols: 300})
	if err != nil {
		t.Skip(err)
	}
	shown := make(chan string)
	go func() { // ends with the slave
		b, _ := io.ReadAll(p.Master)
		p.Master.Close()
		shown <- string(b)
	}()
	if status := run(context.Background(), args, streams{strings.NewReader(""), p.Slave, p.Slave}); status != 0 {
		t.Errorf("%q ended with %d", args, status)
	}
	p.Slave.Close()
	return <-shown
}

// TestLinesOnATerminal: what a program wrote on a terminal of its own has its line ends there as they came, and ours begin on
// a line of their own.
func TestLinesOnATerminal(t *testing.T) {
	if d := deck.Diagnose(); !d.Works {
		t.Skipf("no jail here: %+v", d.Checks)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("NO_COLOR", "1")
	t.Chdir(t.TempDir())
	for _, tty := range []string{"auto", "off"} {
		for name, program := range map[string]string{"open": "echo one; printf two", "ended": "echo one; echo two"} {
			recorded := onTerminal(t, "record", "--tty", tty, "--", "sh", "-c", program)
			replayed := onTerminal(t, "replay", "last")
			if !strings.Contains(recorded, "one\r\ntwo\r\ntapedeck: recorded") || !strings.Contains(replayed, "one\r\ntwo\r\nFAITHFUL") {
				t.Errorf("%s, --tty %s:\nrecorded %q\nreplayed %q", name, tty, recorded, replayed)
			}
			if strings.Contains(recorded+replayed, "\r\r") || strings.Contains(recorded+replayed, "two\r\n\r\n") {
				t.Errorf("%s, --tty %s: one end too many:\n%q\n%q", name, tty, recorded, replayed)
			}
		}
	}
}
