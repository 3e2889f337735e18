package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// fuzzed imports anything: it becomes a whole tape, or an error and nothing.
func fuzzed(f *testing.F, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	im, _ := ByName(name)
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		path, out := filepath.Join(dir, "in"), filepath.Join(dir, "out", "x.tape")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		im.looks(text)
		report, err := im.Import(t.Context(), path, out, nil)
		if err != nil {
			if left, _ := os.ReadDir(filepath.Dir(out)); len(left) > 0 {
				t.Fatalf("%v, and it left %v", err, left)
			}
			return
		}
		tp, err := tape.Open(out, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tp.Close()
		n := 0
		for rec, err := range tp.Records() {
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tape.Payloads(rec.Kind) {
				if _, err := p.Bytes(tp.Store); err != nil {
					t.Fatal(err)
				}
			}
			n++
		}
		if n != report.Exchanges {
			t.Fatalf("%d records, %d are said", n, report.Exchanges)
		}
	})
}

func FuzzHAR(f *testing.F) {
	fuzzed(f, "har", harOf(), harOf(harGet("/", `{"status":200,"headers":[{"name":"a","value":"b\nc"}],"content":{"size":3,"encoding":"base64","text":"AAEC"}}`),
		harPOST("/", `{"mimeType":"multipart/form-data; boundary=x","params":[{"name":"f","value":"text","fileName":"x.txt"}]}`),
		harGet("/?key=a", `{"status":0,"headers":[],"content":{"size":0},"_error":"net::ERR_ABORTED"}`)))
}

func FuzzGoVCR(f *testing.F) { fuzzed(f, "go-vcr", goVCR1, goVCR2) }

func FuzzVCR(f *testing.F) {
	fuzzed(f, "vcr", rubyVCR, `{"version":1,"interactions":[{"request":{"method":"GET","uri":"http://a/"},"response":{"status":{"code":200},"body":{"string":"x"}}}]}`,
		"interactions:\n- request: {method: GET, uri: 'http://a/'}\n  response: {status: 200, body: {string: !!binary aGk=}}\nversion: 1\n")
}

// FuzzYAML parses anything: what comes is as small as what came.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{"a: b\n", "- x\n- y: z\n", "a: |2+\n  x\n", "? a\n: b\n", "a: \"\\u00e9\\\n  b\"\n", "{a: [b, 'c']}", "a: &x b\nc: *x\n", "a: !!binary aGk=\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := yamlNode(text)
		if err != nil || strings.Contains(text, "*") {
			return
		}
		if got := n.size(); got > 64*(2*len(text)+2)+8*len(text) {
			t.Errorf("%d bytes of %d", got, len(text))
		}
	})
}
