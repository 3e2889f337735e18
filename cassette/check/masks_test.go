package check_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// TestVolatile has a pair of screens that differ in nothing but a volatile fact: normalised, what was on the one is found on the other.
func TestVolatile(t *testing.T) {
	for _, c := range []struct{ one, other, reads string }{
		{"socket /tmp/codex-8123.sock up", "socket /tmp/codex-99.sock up", "socket <socket> up"},
		{"at /run/user/1000/vscode-ipc-1f.sock", "at /run/user/0/vscode-ipc-ab12.sock", "at <socket>"},
		{"SSH /tmp/ssh-XyZ/agent.421", "SSH /tmp/ssh-AbC/agent.9", "SSH <socket>"},
		{"file out-tmp-123 done", "file out-tmp-45678 done", "file out-tmp<temp-name> done"},
		{"frame=12 tick=33", "frame=7 tick=1044", "frame=<animation> tick=<animation>"},
		{"done in 4s", "done in 17s", "done in <duration>"},
		{"Working (4s • esc)", "Working (2m30s • esc)", "Working (<duration> • esc)"},
		{"took 2m30s, 4s left", "took 1h02m03s, 59s left", "took <duration>, <duration> left"},
		{"up 3d 4h 5m", "up 12d 1h 59m", "up <duration>"},
		{"waited 1.5s", "waited 0.25s", "waited <duration>"},
		{"run 5f0c7a4e-3b8e-4c62-9f7e-2f4f8f3f6a11", "run 6f0c7a4e-3b8e-4c62-9f7e-2f4f8f3f6a12", "run <uuid>"},
	} {
		dir := making(t, 3, 60).out(10, c.other).end(20, exited)
		for _, want := range []string{c.one, c.reads} {
			r := asserting(t, dir, `frame: {equals: "`+want+`", row: 0, normalise: true, at: end}`)
			if r.Assertions[0].Status != check.Passed {
				t.Errorf("%q, expected on %q:\n%s", want, c.other, r.Assertions[0].Text("a.yaml"))
			}
		}
		if r := asserting(t, dir, `frame: {equals: "`+c.one+`", row: 0, at: end}`); r.Assertions[0].Status == check.Passed {
			t.Errorf("%q is equal to %q without masks", c.one, c.other)
		}
	}
	for _, same := range []string{"version 2.4 of 12 files", "frames 12", "4 sec", "tmp-dir", "10ms2"} {
		dir := making(t, 3, 60).out(10, strings.Replace(same, "2", "3", 1)).end(20, exited)
		r := asserting(t, dir, `frame: {equals: "`+same+`", row: 0, normalise: true, at: end}`)
		if strings.Contains(same, "2") && r.Assertions[0].Status == check.Passed {
			t.Errorf("%q is masked", same)
		}
	}
}

// TestVolatileStays: a mask that is switched off masks nothing, by the name of one that screens alone have too.
func TestVolatileStays(t *testing.T) {
	dir := making(t, 3, 60).out(10, "4s /tmp/a.sock").end(20, exited)
	for disabled, passes := range map[string]bool{"": true, "disable: [port]": true, "disable: [socket]": false, "disable: [duration]": false} {
		text := strings.Replace(head(t, dir), "assertions:", "normalise: {"+disabled+"}\nassertions:", 1) + "  - frame: {equals: \"5s /tmp/b.sock\", row: 0, at: end}\n"
		s, err := check.Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		r, err := s.Check(t.Context(), &check.Options{Cassette: dir})
		if err != nil || (r.Assertions[0].Status == check.Passed) != passes {
			t.Errorf("%q: %v, %v", disabled, r, err)
		}
	}
}
