package check_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// asserting checks assertions, each a line of YAML, on the cassette in dir.
func asserting(t *testing.T, dir string, lines ...string) *check.Result {
	t.Helper()
	text := head(t, dir)
	for _, l := range lines {
		text += "  - " + strings.ReplaceAll(l, "\n", "\n    ") + "\n"
	}
	s, err := check.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	r, err := s.Check(context.Background(), &check.Options{Cassette: dir})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What passes on the session, and what fails on it: one pair a line, so that neither can be green by chance.
var pairs = []struct{ name, passes, fails string }{
	{"contains at", `frame: {contains: "Hello, Ada!", at: 1.5s}`, `frame: {contains: "Hello, Ada!", at: 1499}`},
	{"contains eventually", `frame: {contains: "busy 2", eventually: {from: 1.6s, to: 1.8s}}`, `frame: {contains: "busy 2", eventually: {from: 1.9s}}`},
	{"contains for", `frame: {contains: "busy 3", eventually: true, for: 2s}`, `frame: {contains: "busy 2", eventually: true, for: 300ms}`},
	{"contains two rows", `frame: {contains: "greeter\nYour name: A", eventually: true}`, `frame: {contains: "greeter\nyour name", eventually: true}`},
	{"contains over a wrap", `frame: {contains: "run 5f0c7a4e-3b8e-4c62-9f7e-2f4f8f3f6a11 took", at: end}`, `frame: {contains: "run 5f0c7a4e-3b8e-4c62-9f7e-2f4f8f3f6a11 tock", at: end}`},
	{"never", `frame: {contains: "panic", never: true}`, `frame: {contains: "busy 2", never: true}`},
	{"never in a window", `frame: {contains: "busy 2", never: {from: 1.9s}}`, `frame: {contains: "busy 2", never: {from: 1.8s}}`},
	{"always", `frame: {contains: "Hello", always: {from: 1.5s, to: 3.9s}}`, `frame: {contains: "Hello", always: {from: 1.4s, to: 3.9s}}`},
	{"matches", `frame: {matches: "busy [0-9]", at: 1800}`, `frame: {matches: "^busy [5-9]$", eventually: true}`},
	{"matches a line", `frame: {matches: "^busy [0-9]$", at: 1800}`, `frame: {matches: "^usy", eventually: true}`},
	{"contains a block", "frame:\n  contains: |\n    Bye.\n  at: end", "frame:\n  contains: |\n    bye\n  at: end"},
	{"row", `frame: {equals: "busy 1", row: 2, at: 1600}`, `frame: {equals: "busy 1", row: 3, at: 1600}`},
	{"last row", `frame: {equals: "", row: -1, at: 1600}`, `frame: {contains: "busy", row: -1, at: 1600}`},
	{"region", `frame: {equals: ["lo,", ""], region: {row: 0, col: 3, rows: 2, cols: 3}, at: 1600}`, `frame: {equals: ["lo,", "x"], region: {row: 0, col: 3, rows: 2, cols: 3}, at: 1600}`},
	{"whole screen", `frame: {equals: ["Hello, Ada!", "", "busy 1"], at: 1600}`, `frame: {equals: ["Hello, Ada!", "", "busy 2"], at: 1600}`},
	{"stable", `frame: {stable: 2s, eventually: {from: 1.9s}}`, `frame: {stable: 2.2s, eventually: {from: 1.9s}}`},
	{"stable at", `frame: {stable: 150ms, at: 1.7s}`, `frame: {stable: 250ms, at: 1.7s}`},
	{"stable never", `frame: {stable: 3s, never: true}`, `frame: {stable: 2s, never: true}`},
	{"stable region", `frame: {stable: 2.4s, region: {row: 0, col: 0, rows: 1, cols: 20}, at: 1.5s}`, `frame: {stable: 2.4s, at: 1.5s}`},
	{"normalised", `frame: {contains: "run <uuid> took", normalise: true, at: end}`, `frame: {contains: "run <uuid> took", at: end}`},
	{"cursor", `state: {cursor: {row: 2, col: 6, visible: true}, at: 1.7s}`, `state: {cursor: {row: 2, col: 7}, at: 1.7s}`},
	{"size", `state: {size: {rows: 8, cols: 40}, at: 2s}`, `state: {size: {rows: 8, cols: 40}, always: true}`},
	{"alternate screen", `state: {alternate_screen: true, always: {from: 1.5s, to: 3.9s}}`, `state: {alternate_screen: true, at: end}`},
	{"title", `state: {title: greeter, at: end}`, `state: {title: "greeter ", at: end}`},
	{"title matches", `state: {title: {matches: "^gr"}, eventually: true}`, `state: {title: {matches: "^r"}, eventually: true}`},
	{"modes", `state: {modes: {bracketed_paste: true, "2004": true, mouse: false}, at: 1s}`, `state: {modes: {bracketed_paste: true}, at: end}`},
	{"style of a cell", `state: {style: {row: 0, col: 0, bold: true, fg: green, bg: default}, at: 1s}`, `state: {style: {row: 0, col: 8, bold: true}, at: 1s}`},
	{"style of a text", `state: {style: {text: Ada, underline: curly, underline_color: red, bold: false}, at: 1.6s}`, `state: {style: {text: "Ada!", underline: curly}, at: 1.6s}`},
	{"order", `timing: {order: ["Welcome to", "Your name", "Hello, Ada", "Bye"]}`, `timing: {order: ["Your name", "Welcome"]}`},
	{"order in one chunk", `timing: {order: ["took", "Bye"]}`, `timing: {order: ["Bye", "took"]}`},
	{"gap", `timing: {max_gap: 2.1s}`, `timing: {max_gap: 2s}`},
	{"gap in a window", `timing: {max_gap: 300ms, between: {from: 1.3s, to: 2s}}`, `timing: {max_gap: 100ms, between: {from: 1.3s, to: 2s}}`},
	{"delay", `timing: {delay: {from: {key: enter}, to: {text: "Hello"}, min: 300ms, max: 300ms}}`, `timing: {delay: {from: {key: enter}, to: {text: "Hello"}, max: 299ms}}`},
	{"delay of a service event", `timing: {delay: {from: {service: {path: $.n, equals: 1}}, to: {service: {path: $.n, equals: 2}}, min: 700, max: 700}}`, `timing: {delay: {from: {service: {path: $.n, equals: 2}}, to: {service: {path: $.n, equals: 1}}, min: 1}}`},
	{"delay to the end", `timing: {delay: {from: {resize: {rows: 8, cols: 40}}, to: {at: end}, min: 2.2s, max: 2.2s}}`, `timing: {delay: {from: {input: "da"}, to: {at: end}, max: 3s}}`},
	{"total", `timing: {total: {min: 4.2s, max: 4.2s}}`, `timing: {total: {max: 4.1s}}`},
	{"input in a window", `input: {equals: "Ada\r", between: {to: 2s}}`, `input: {equals: "Eda\r", between: {to: 2s}}`},
	{"input", `input: {equals: "Ada\r\x1b[200~two\nlines\x1b[201~\x1b[A\x03"}`, `input: {equals: "Ada\r"}`},
	{"input in base64", `input: {equals_base64: "QWRhDQ==", between: {to: 2s}}`, `input: {equals_base64: "QWRhDQ=="}`},
	{"input contains", `input: {contains: "Ada\r"}`, `input: {contains: "ada"}`},
	{"keys", `input: {keys: [A, enter, paste, up, ctrl-c]}`, `input: {keys: [up, enter]}`},
	{"paste", `input: {paste: ["two\nlines"]}`, `input: {paste: ["two"]}`},
	{"no paste", `input: {paste: ["two\nlines"], between: {from: 2s}}`, `input: {paste: ["two\nlines", "more"]}`},
	{"resizes", `input: {resizes: [{rows: 8, cols: 40}]}`, `input: {resizes: []}`},
	{"signals", `input: {signals: [SIGINT]}`, `input: {signals: [SIGTERM]}`},
	{"service equals", `service: {path: $.who.name, equals: Ada}`, `service: {path: $.who.name, equals: ada}`},
	{"service where", `service: {where: {$.type: turn, $.n: 2.0}, path: $.who, exists: false}`, `service: {where: {$.type: turn, $.n: 1}, path: $.who, exists: false}`},
	{"service count", `service: {where: {$.type: turn}, count: 2}`, `service: {where: {$.type: turn}, count: {max: 1}}`},
	{"service matches", `service: {path: "$.tags[*]", matches: "^b$"}`, `service: {path: "$.tags[0]", matches: "^b$"}`},
	{"service deep", `service: {path: "$..name", equals: Ada}`, `service: {path: "$..name", count: {min: 2}}`},
	{"service window", `service: {path: $.n, equals: 2, between: {from: 2s}}`, `service: {path: $.n, equals: 1, between: {from: 2s}}`},
	{"process", `process: {exit_code: 0, signal: none, timed_out: false}`, `process: {exit_code: 1}`},
	{"process signal", `process: {signal: none}`, `process: {signal: SIGKILL}`},
}

func TestFamilies(t *testing.T) {
	dir := session(t)
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			if r := asserting(t, dir, p.passes); !r.Passed {
				t.Errorf("expected it to pass:\n%s", r.Assertions[0].Text("x"))
			}
			r := asserting(t, dir, p.fails)
			if o := r.Assertions[0]; o.Status != check.Failed || r.Passed {
				t.Errorf("expected it to fail:\n%s", o.Text("x"))
			}
			if o := r.Assertions[0]; o.Wanted == "" || o.Came == "" || o.Evidence == nil {
				t.Errorf("a failure says what was wanted, what came and what was near, got %+v", o)
			}
		})
	}
}
