package terminal_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// TestKeyBytes compares with what xterm sends, as infocmp xterm-256color and ctlseqs say.
func TestKeyBytes(t *testing.T) {
	for _, test := range []struct{ name, want, application string }{
		{"x", "x", ""}, {"X", "X", ""}, {"é", "é", ""}, {"-", "-", ""}, {"enter", "\r", ""}, {"Return", "\r", ""}, {"tab", "\t", ""},
		{"shift-tab", "\x1b[Z", ""}, {"backtab", "\x1b[Z", ""}, {"esc", "\x1b", ""}, {"space", " ", ""}, {"backspace", "\x7f", ""},
		{"ctrl-backspace", "\b", ""}, {"alt-backspace", "\x1b\x7f", ""},
		{"ctrl-a", "\x01", ""}, {"Ctrl-C", "\x03", ""}, {"ctrl-z", "\x1a", ""}, {"ctrl-space", "\x00", ""}, {"ctrl-@", "\x00", ""},
		{"ctrl-[", "\x1b", ""}, {"ctrl-\\", "\x1c", ""}, {"ctrl-]", "\x1d", ""}, {"ctrl-^", "\x1e", ""}, {"ctrl-_", "\x1f", ""},
		{"ctrl-/", "\x1f", ""}, {"ctrl--", "\x1f", ""}, {"ctrl-?", "\x7f", ""},
		{"alt-x", "\x1bx", ""}, {"alt-X", "\x1bX", ""}, {"alt-shift-x", "\x1bX", ""}, {"meta-é", "\x1bé", ""}, {"alt-enter", "\x1b\r", ""},
		{"ctrl-alt-x", "\x1b\x18", ""}, {"alt--", "\x1b-", ""},
		{"up", "\x1b[A", "\x1bOA"}, {"down", "\x1b[B", "\x1bOB"}, {"right", "\x1b[C", "\x1bOC"}, {"left", "\x1b[D", "\x1bOD"},
		{"home", "\x1b[H", "\x1bOH"}, {"end", "\x1b[F", "\x1bOF"},
		{"shift-up", "\x1b[1;2A", ""}, {"alt-left", "\x1b[1;3D", ""}, {"ctrl-right", "\x1b[1;5C", ""}, {"ctrl-shift-end", "\x1b[1;6F", ""},
		{"insert", "\x1b[2~", ""}, {"delete", "\x1b[3~", ""}, {"pgup", "\x1b[5~", ""}, {"PageDown", "\x1b[6~", ""}, {"shift-delete", "\x1b[3;2~", ""},
		{"f1", "\x1bOP", ""}, {"F4", "\x1bOS", ""}, {"f5", "\x1b[15~", ""}, {"f12", "\x1b[24~", ""}, {"f20", "\x1b[34~", ""},
		{"ctrl-f2", "\x1b[1;5Q", ""}, {"alt-f5", "\x1b[15;3~", ""},
	} {
		if test.application == "" {
			test.application = test.want
		}
		if name := terminal.KeyName([]byte(test.want)); name != "" {
			if again, err := terminal.KeyBytes(name, false); string(again) != test.want {
				t.Errorf("%q is %s, which is %q, %v", test.want, name, again, err)
			}
		}
		for application, want := range map[bool]string{false: test.want, true: test.application} {
			if got, err := terminal.KeyBytes(test.name, application); string(got) != want || err != nil {
				t.Errorf("%s (application %v): %q, %v, want %q", test.name, application, got, err, want)
			}
		}
	}
	for _, bad := range []string{"", "f21", "hyper-x", "ctrl-é", "ctrl-1", "enterr", "ctrl-", "-x"} {
		if got, err := terminal.KeyBytes(bad, false); err == nil {
			t.Errorf("%q is %q", bad, got)
		}
	}
}

// TestKeyName names keys, and not text.
func TestKeyName(t *testing.T) {
	for p, want := range map[string]string{
		"\r": "enter", "\t": "tab", "\x03": "ctrl-c", "\x1b": "escape", "\x7f": "backspace", "\x1bOA": "up", "\x1b[A": "up", "\x1b[1;5C": "ctrl-right",
		"\x1b[15~": "f5", "a": "", "é": "", "ab": "", "": "", "\x03\x03": "", "\x1b[1;1R": "", "\x1b[1;2R": "", "\x1b[200~a\x1b[201~": "",
	} {
		if got := terminal.KeyName([]byte(p)); got != want {
			t.Errorf("%q is %q, want %q", p, got, want)
		}
	}
}
