package check_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// goldenText holds got against a file, which -update writes.
func goldenText(t *testing.T, path, got string) {
	t.Helper()
	if check.UpdateFlag().Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(b); got != want {
		t.Errorf("not as in %s:\n%s", path, udiff.Unified(path, "now", want, got))
	}
}

// TestFailureTexts has every family's failure as a person reads it.
func TestFailureTexts(t *testing.T) {
	dir := session(t)
	var b strings.Builder
	for _, p := range pairs {
		b.WriteString("## " + p.name + "\n" + asserting(t, dir, p.fails).Assertions[0].Text("greeter.yaml"))
	}
	goldenText(t, "testdata/failures.txt", b.String())
}

func several(t *testing.T) *check.Result {
	return asserting(t, session(t), "name: the greeting\nframe: {contains: \"Hello, Ida!\", eventually: 2s}", `process: {exit_code: 0}`,
		`frame: {contains: "Bye", at: 9s}`)
}

func TestResultText(t *testing.T) {
	var plain, colour, all bytes.Buffer
	r := several(t)
	for _, w := range []struct {
		b *bytes.Buffer
		o *check.TextOptions
	}{{&plain, nil}, {&colour, &check.TextOptions{Color: true}}, {&all, &check.TextOptions{Verbose: true}}} {
		if err := r.WriteText(w.b, w.o); err != nil {
			t.Fatal(err)
		}
	}
	goldenText(t, "testdata/result.txt", plain.String())
	goldenText(t, "testdata/result-colour.txt", strings.ReplaceAll(colour.String(), "\x1b", "ESC"))
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(all.String(), "ok    scenario.yaml:6:5") {
		t.Errorf("expected no colours, and with Verbose the one that passed:\n%s", all.String())
	}
}

func TestResultJSON(t *testing.T) {
	var b bytes.Buffer
	if err := several(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var r check.Result
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Version != 1 || r.Passed || r.Counts != (check.Counts{Passed: 1, Failed: 1, Unchecked: 1}) {
		t.Errorf("expected version 1 and one of each, got %+v", r)
	}
	o := r.Assertions[0]
	if o.Name != "the greeting" || o.Line != 4 || o.Column != 5 || o.Family != "frame" || o.Status != check.Failed {
		t.Errorf("got %+v", o)
	}
	if s := o.Evidence.Screen; s == nil || s.TMS != 2000 || s.Seq != 11 || len(s.Lines) == 0 || s.Lines[0].Marks[0] != [2]int{7, 8} {
		t.Errorf("expected the screen of 2 s with column 7 marked, got %+v", s)
	}
	if len(o.Evidence.Frames) != 3 || len(o.Evidence.Context) == 0 {
		t.Errorf("expected frames around it and what came before, got %+v", o.Evidence)
	}
}

func TestResultJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := several(t).WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Tests, Failures, Errors int `xml:",attr"`
		Cases                   []struct {
			Name    string  `xml:"name,attr"`
			Failure *string `xml:"failure"`
			Error   *string `xml:"error"`
		} `xml:"testcase"`
	}
	text := strings.NewReplacer(`tests=`, `Tests=`, `failures=`, `Failures=`, `errors=`, `Errors=`).Replace(b.String())
	if err := xml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || len(s.Cases) != 3 || s.Cases[0].Failure == nil || s.Cases[1].Failure != nil ||
		s.Cases[2].Error == nil || !strings.Contains(*s.Cases[0].Failure, "Hello, Ada!") {
		t.Errorf("got %s", b.String())
	}
}

// TestWideAndWrappedMarks: what is marked stands below the cells that differ.
func TestWideAndWrappedMarks(t *testing.T) {
	dir := making(t, 4, 12).out(10, "日本語 ok\r\nabcdefghijklmnop").end(20, exited)
	r := asserting(t, dir, `frame: {contains: "日本誤 ok", at: end}`, `frame: {contains: "ijklmXop", at: end}`)
	for i, want := range []string{"|日本語 ok\n           |    ^^\n", "|abcdefghijklmnop\n           |             ^\n"} {
		if text := r.Assertions[i].Text("x"); !strings.Contains(text, want) {
			t.Errorf("expected\n%s in\n%s", want, text)
		}
	}
}

// TestScreenTextIsShownSafely: what a program wrote cannot steer the terminal of who reads a failure.
func TestScreenTextIsShownSafely(t *testing.T) {
	dir := making(t, 2, 20).in(1, "\x1b]2;x\x07", "").out(10, "\x1b]2;t\x1b[31m\x07a\u202eb").service(12, `{"a":"`+"\u202e"+`"}`).end(20, exited)
	r := asserting(t, dir, `frame: {contains: "zzz", at: end}`, `state: {title: "x", at: end}`, `input: {equals: "y"}`)
	for _, o := range r.Assertions {
		if text := o.Text("x"); strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("got %q", text)
		}
	}
}

// TestFailureSteersNoTerminal has a cassette of others say what a terminal would obey.
func TestFailureSteersNoTerminal(t *testing.T) {
	m := making(t, 4, 20).out(100, "hello")
	m.must(m.r.Signal("SIG\x1b[2J"))
	m.service(200, "{\"type\":\"\u009b2J\u202e\"}")
	dir := m.end(300, &cassette.Exit{Exited: true, Code: 1, Err: json.RawMessage(`{"a":"\u001b]0;owned\u0007"}`)})
	r := asserting(t, dir, `process: {exit_code: 0}`, `input: {signals: []}`, `service: {path: $.type, equals: turn}`)
	for i := range r.Assertions {
		if text := r.Assertions[i].Text("a.yaml"); r.Assertions[i].Status != check.Failed || strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
			t.Errorf("%s: %q", r.Assertions[i].Status, text)
		}
	}
}

// TestNearestRow has a row that was nearly as wanted for a while: that screen is shown, not the last one.
func TestNearestRow(t *testing.T) {
	dir := making(t, 3, 20).out(100, "one\r\ntwo").out(200, "\x1b[2J\x1b[Hbye").end(300, exited)
	r := asserting(t, dir, `frame: {row: 1, equals: "twoo", eventually: true}`)
	o := r.Assertions[0]
	if x := o.Evidence.Screen; x == nil || x.TMS != 100 || !strings.Contains(o.Text("a.yaml"), "|two\n") {
		t.Error(o.Text("a.yaml"))
	}
}
