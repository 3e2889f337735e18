package foreign

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestFixtures imports what the real programs recorded (integration/sdk/cassettes/make.sh) of one server, and asks the tape what the
// server was asked.
func TestFixtures(t *testing.T) {
	packed := strings.Repeat("packed ", 40)
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	type question struct{ method, path, body, kind, want string }
	questions := []question{
		{"GET", "/json?api_key=whatever", "", "", `{"hello": "wörld", "list": [1, 2]}`},
		{"GET", "/zipped", "", "", packed},
		{"GET", "/binary", "", "", string(binary)},
		{"GET", "/lines", "", "", "one\n  two: 'x'\n\n\nthree \r\n"},
		{"GET", "/empty", "", "", ""},
		{"GET", "/nowhere", "", "", "no"},
		{"POST", "/echo", `{"name":"café"}`, "application/json", `got {"name":"café"}`},
		{"POST", "/echo", "\xff\xfe\x00", "application/octet-stream", "got \xff\xfe\x00"},
		{"POST", "/echo", "a=1+2&b=x", "application/x-www-form-urlencoded", "got a=1+2&b=x"},
	}
	for _, c := range []struct {
		file, format, version string
		kept                  bool   // a compressed body stands there as it came
		without               string // the body that the file does not have: it is asked for as nothing
		further, silent       int    // exchanges that are not asked for, and those of them that nothing answered
	}{
		{file: "vcrpy.yaml", format: "vcr", version: "vcrpy cassette version 1", kept: true},
		{file: "vcr-ruby.yml", format: "vcr", version: "VCR 5.0.0", kept: true},
		{file: "vcr-ruby-exact.json", format: "vcr", version: "VCR 5.0.0", kept: true},
		{file: "mitmproxy.har", format: "har", version: "HAR 1.2, mitmproxy har_dump 0.1"},
		{file: "playwright.har", format: "har", version: "HAR 1.2, Playwright 1.65.1, chromium 156.0.8078.79", without: "\xff\xfe\x00", further: 2, silent: 1},
	} {
		t.Run(c.file, func(t *testing.T) {
			r := importedFile(t, filepath.Join("testdata", c.file))
			if r.report.Format != c.format || r.report.Version != c.version || r.report.Exchanges != len(questions)+c.further || len(r.report.Skipped) > 0 {
				t.Errorf("%+v", r.report)
			}
			r.hides("verysecret", "Zq8kP2mV5xW1", "Lk4nB7vC2xZ9aa")
			tr := r.open()
			for _, q := range questions {
				body, want := q.body, q.want
				if body != "" && body == c.without {
					body = ""
				}
				if q.path == "/zipped" && c.kept {
					want = string(zipped(t, packed))
				}
				if strings.HasPrefix(c.file, "vcrpy") && q.kind == "application/json" {
					body, want = `{"name": "caf\u00e9"}`, `got {"name": "caf\u00e9"}`
				}
				_, got := r.ask(tr, q.method, "http://127.0.0.1:8765"+q.path, body, "Content-Type", q.kind, "Accept-Encoding", "gzip")
				if q.path == "/zipped" && c.kept && got != want && len(got) > 2 && got[:2] == "\x1f\x8b" {
					continue // another zlib
				}
				if got != want {
					t.Errorf("%s %s: %q, want %q", q.method, q.path, got, want)
				}
			}
			if n := len(tr.Report().Unasked); n != c.further-c.silent {
				t.Errorf("%d were not asked for, want %d", n, c.further-c.silent)
			}
			_ = tr.Close() // says the same
		})
	}
}

// TestPlaywrightWithoutContent imports a HAR file that has no bodies: nothing is answered with an empty one.
func TestPlaywrightWithoutContent(t *testing.T) {
	r := importedFile(t, filepath.Join("testdata", "playwright-omit.har"))
	r.noted("save it with content")
	r.noted("body of the request")
	lost := 0
	for _, rec := range r.records() {
		if line := string(tape.AppendRecord(nil, rec)); strings.Contains(line, `"response_lost"`) {
			lost++
		}
	}
	if want := 9; lost != want {
		t.Errorf("%d answers are said to be lost, want %d", lost, want)
	}
	if !slices.ContainsFunc(r.report.Notes, func(n string) bool { return strings.Contains(n, "HAR file does not hold") }) {
		t.Errorf("%q", r.report.Notes)
	}
}
