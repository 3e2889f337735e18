package cassette_test

import (
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

const loads = "loads"

// made1 are the cassettes of the corpus. One that is there already is not written again.
func made1() []made {
	none := func(map[string]string) {}
	return []made{
		{name: "good-first-producer", shows: "as the format's first producer writes: sizes, cursor, exit and cells by Go's field names", strict: loads, change: none},
		{name: "good-lower-case", shows: "keys of inner shapes in lower case", strict: loads, change: with(
			"input.jsonl", `{"seq":2,"t_ms":0,"kind":"resize","size":{"rows":3,"cols":9}}`+"\n",
			"frames.jsonl", `{"seq":3,"t_ms":0,"size":{"rows":2,"cols":8},"text":["hello",""],"cells":[[{"char":"h","mode":0,"fg":"red","bg":null}]],"cursor":{"row":1,"col":0,"visible":true},"raw_start":0,"raw_end":7,"parser_offset":7}`+"\n",
			"final.json", `{"seq":6,"t_ms":300,"exit":{"code":3,"signal":"","exited":true,"signaled":false,"err":""},"duration_ms":312}`+"\n")},
		{name: "good-upper-case", shows: "outer keys in another case", strict: loads, change: with(
			"input.jsonl", `{"Seq":2,"T_MS":0,"Kind":"input","Bytes":"aGkN","Key":"enter"}`+"\n")},
		{name: "good-absent", shows: "every key absent that a producer leaves out when it is empty", strict: loads, change: func(f map[string]string) {
			replace("manifest.json", `{"name": "codex", "capability": {"quota": true}}`, `{"name": "codex"}`)(f)
			replace("manifest.json", `{"argv": ["codex", "--no-alt-screen"], "workdir_policy": "temp"}`, `{"workdir_policy": "unspecified"}`)(f)
			replace("manifest.json", `"term": "xterm-256color", "pty_mode": {"raw": true}, `, ``)(f)
			with("output.jsonl", `{"seq":1,"t_ms":0,"offset":0,"length":7}`+"\n"+`{"seq":4,"t_ms":100,"offset":7,"length":13}`+"\n",
				"frames.jsonl", `{"seq":3,"t_ms":0,"size":{"Rows":2,"Cols":8},"text":["hello",""],"cursor":{"Row":1,"Col":0,"Visible":true},"raw_start":0,"raw_end":7,"parser_offset":7}`+"\n",
				"final.json", `{"seq":6,"t_ms":300,"duration_ms":0}`)(f)
		}},
		{name: "good-no-size", shows: "no size in the manifest: 24 rows of 80", strict: loads, change: replace("manifest.json", `"initial_rows": 2, "initial_cols": 8, `, ``)},
		{name: "good-exit-anything", shows: "signal and error as a producer's types make JSON of themselves", strict: loads, change: with(
			"final.json", `{"seq":6,"t_ms":300,"exit":{"Code":-1,"Signal":9,"Exited":false,"Signaled":true,"Err":{"Op":"wait","Err":[10]}},"duration_ms":312}`)},
		{name: "good-characters", shows: "characters of cells as numbers, strings, null, 0 and beyond Unicode", strict: loads, change: with(
			"frames.jsonl", `{"seq":3,"t_ms":0,"size":{"Rows":2,"Cols":8},"text":["hello",""],"cells":[[{"Char":28450},{"Char":"漢"},{"Char":null},{"Char":0},{"Char":-1},{"Char":1114112},{"Char":"e\u0301","Mode":"bold","FG":"#ff0000","BG":{"r":1}}]],"cursor":{"Row":1,"Col":0,"Visible":true},"raw_start":0,"raw_end":7,"parser_offset":7}`+"\n")},
		{name: "good-unknown", shows: "keys and a file that a reader does not know", strict: loads, change: func(f map[string]string) {
			replace("manifest.json", `"version": 1,`, `"version": 1, "flavour": {"of": ["another", 1e400]},`)(f)
			replace("output.jsonl", `"t_ms":0`, `"t_ms":0,"flags":["eof"]`)(f)
			replace("input.jsonl", `"kind":"input"`, `"kind":"input","who":"person"`)(f)
			with("notes.txt", "of another program\n", "quota.json", `{"source":"docs","status":"ok","windows":[{"name":"5h","used":0.5}],"more":1}`)(f)
		}},
		{name: "good-capabilities", shows: "quota and discovery", strict: loads, change: with(
			"quota.json", `{"source":"pty","status":"ok","captured_at":"2026-05-01T00:00:00Z","freshness_window":"15m","staleness_behavior":"refuse","account_class":"pro","windows":[{"limit_id":"5h"}],"metadata":{"a":1}}`+"\n",
			"discovery.json", `{"source":"pty","status":"ok","models":["a","b"],"reasoning_levels":["low","high"]}`+"\n")},
		{name: "good-empty-frames", shows: "no frames, no input, no events", strict: loads, change: with(
			"frames.jsonl", "", "input.jsonl", "", "service-events.jsonl", "",
			"output.jsonl", chunk(1, 0, 0, "hello\r\n")+chunk(2, 100, 7, "\x1b[1mworld\x1b[0m"), "final.json", `{"seq":3,"t_ms":300,"duration_ms":1}`)},
		{name: "good-no-output", shows: "a program that printed nothing", strict: loads, change: func(f map[string]string) {
			with("output.raw", "", "output.jsonl", "", "frames.jsonl", "", "input.jsonl", "", "service-events.jsonl", "", "final.json", `{"seq":1,"t_ms":0,"duration_ms":0}`, "manifest.json", manifest(""))(f)
		}},
		{name: "good-empty-chunk", shows: "a chunk of no bytes", strict: loads, change: func(f map[string]string) {
			f["output.jsonl"] += chunk(6, 200, 20, "")
			replace("final.json", `"seq":6`, `"seq":7`)(f)
		}},
		{name: "good-no-last-newline", shows: "a last line that is whole and has no newline, and blank lines", strict: loads, change: func(f map[string]string) {
			f["output.jsonl"] = "\n" + f["output.jsonl"][:len(f["output.jsonl"])-1]
			f["input.jsonl"] += "\r\n \n"
		}},
		{name: "good-ordinal", shows: "the recorder's global ordinal on every line", strict: loads, change: func(f map[string]string) {
			replace("output.jsonl", `"t_ms":0`, `"t_ms":0,"g":7`)(f)
			replace("input.jsonl", `"t_ms":0`, `"t_ms":0,"g":9`)(f)
			replace("frames.jsonl", `"t_ms":0`, `"t_ms":0,"g":10`)(f)
		}},
		{name: "good-killed-sealing", shows: "a manifest is there, and what the recorder removes last is there too", strict: loads, change: with("unfinished.json", "{")},

		{name: "bad-version", shows: "a newer version", strict: "version", change: replace("manifest.json", `"version": 1`, `"version": 2`)},
		{name: "bad-version-before-all", shows: "a newer version, whatever else it lacks", strict: "version", change: with("manifest.json", `{"version":9}`)},
		{name: "bad-no-version", shows: "no version", strict: "version", change: replace("manifest.json", `"version": 1,`, ``)},
		{name: "bad-no-id", shows: "no id", strict: "no-id", change: replace("manifest.json", `"id": "base",`, ``)},
		{name: "bad-no-digest", shows: "no digest", strict: "no-digest", change: replace("manifest.json", `"sha256"`, `"md5"`)},
		{name: "bad-digest", shows: "another digest than that of the output", strict: "digest", change: with("manifest.json", manifest("other"))},
		{name: "bad-digest-no-hex", shows: "a digest that is no hexadecimal", strict: "digest", change: replace("manifest.json", `"sha256": "`, `"sha256": "x`)},
		{name: "bad-chunk-digest", shows: "a chunk whose digest is another one", strict: "chunk-digest", change: func(f map[string]string) {
			f["output.jsonl"] = chunk(1, 0, 0, "hello\r\n") + chunk(4, 100, 7, "\x1b[1mWorld\x1b[0m")
		}},
		{name: "bad-output-changed", shows: "a byte of the output is another one", strict: "chunk-digest", change: replace("output.raw", "world", "w0rld")},
		{name: "bad-chunk-gap", shows: "a byte that no chunk has", strict: "chunk-range", change: replace("output.jsonl", `"offset":7,"length":13`, `"offset":8,"length":12`)},
		{name: "bad-chunk-overlap", shows: "a byte that two chunks have", strict: "chunk-range", change: replace("output.jsonl", `"offset":7,"length":13`, `"offset":6,"length":14`)},
		{name: "bad-chunk-behind-end", shows: "a chunk that ends behind the output", strict: "chunk-range", change: replace("output.jsonl", `"length":13`, `"length":14`)},
		{name: "bad-chunk-negative", shows: "a negative length", strict: "chunk-range", change: replace("output.jsonl", `"length":13`, `"length":-13`)},
		{name: "bad-chunk-huge", shows: "offset and length whose sum overflows", strict: "too-long", change: replace("output.jsonl", `"length":13`, `"length":9223372036854775807`)},
		{name: "bad-chunk-missing", shows: "output behind the last chunk", strict: "chunk-range", change: func(f map[string]string) {
			f["output.jsonl"] = chunk(1, 0, 0, "hello\r\n")
			replace("service-events.jsonl", `"seq":5`, `"seq":4`)(f)
			replace("final.json", `"seq":6`, `"seq":5`)(f)
		}},
		{name: "bad-output-cut", shows: "output that is shorter than its chunks", strict: "chunk-range", change: replace("output.raw", "\x1b[0m", "")},
		{name: "bad-no-input", shows: "no input.jsonl", strict: "missing-file", change: without("input.jsonl")},
		{name: "bad-no-output", shows: "no output.raw", strict: "missing-file", change: without("output.raw")},
		{name: "bad-no-chunks", shows: "no output.jsonl", strict: "missing-file", change: without("output.jsonl")},
		{name: "bad-no-frames", shows: "no frames.jsonl", strict: "missing-file", change: without("frames.jsonl")},
		{name: "bad-no-service", shows: "no service-events.jsonl", strict: "missing-file", change: without("service-events.jsonl")},
		{name: "bad-no-final", shows: "no final.json", strict: "missing-file", change: without("final.json")},
		{name: "bad-no-report", shows: "no scrub-report.json", strict: "missing-file", change: without("scrub-report.json")},
		{name: "bad-unfinished", shows: "no manifest: the recorder was killed", strict: "unfinished", change: without("manifest.json")},
		{name: "bad-killed", shows: "what a killed recorder left: streams alone, a torn line, a chunk whose bytes are not all there", strict: "unfinished", change: func(f map[string]string) {
			for _, name := range []string{"manifest.json", "final.json", "scrub-report.json"} {
				delete(f, name)
			}
			f["output.raw"] = f["output.raw"][:12]
			f["service-events.jsonl"] = f["service-events.jsonl"][:20]
		}},
		{name: "bad-seq-gap", shows: "a seq that no line has", strict: "sequence", change: replace("service-events.jsonl", `"seq":5`, `"seq":7`)},
		{name: "bad-seq-double", shows: "a seq that two files have", strict: "sequence", change: replace("service-events.jsonl", `"seq":5`, `"seq":4`)},
		{name: "bad-seq-back", shows: "a seq that goes back within a file", strict: "sequence", change: func(f map[string]string) {
			f["output.jsonl"] = chunk(4, 0, 0, "hello\r\n") + chunk(1, 100, 7, "\x1b[1mworld\x1b[0m")
		}},
		{name: "bad-seq-from-0", shows: "a seq that begins at 0", strict: "sequence", change: replace("output.jsonl", `"seq":1`, `"seq":0`)},
		{name: "bad-seq-absent", shows: "a line without seq", strict: "sequence", change: replace("input.jsonl", `"seq":2,`, ``)},
		{name: "bad-behind-final", shows: "an event behind the final record", strict: "sequence", change: func(f map[string]string) {
			replace("final.json", `"seq":6`, `"seq":5`)(f)
			replace("final.json", `"t_ms":300`, `"t_ms":100`)(f)
			replace("service-events.jsonl", `"seq":5`, `"seq":6`)(f)
		}},
		{name: "bad-time-back", shows: "a t_ms that goes back from one file to another", strict: "time", change: replace("service-events.jsonl", `"t_ms":200`, `"t_ms":0`)},
		{name: "bad-time-negative", shows: "a t_ms below 0", strict: "time", change: replace("output.jsonl", `"t_ms":0`, `"t_ms":-1`)},
		{name: "bad-feature", shows: "a required feature that is not known", strict: "feature", change: replace("manifest.json", `"timing"`, `"required_features": ["holograms"], "timing"`)},
		{name: "bad-no-emulator", shows: "no emulator", strict: "no-emulator", change: replace("manifest.json", `, "emulator": {"name": "vt10x", "version": "v0.0.0"}`, ``)},
		{name: "bad-no-emulator-name", shows: "an emulator of a version, without a name", strict: "no-emulator", change: replace("manifest.json", `"name": "vt10x", `, ``)},
		{name: "bad-json-duration", shows: "a program that ran for less than no time", strict: "bad-json", change: replace("final.json", `"duration_ms":312`, `"duration_ms":-5`)},
		{name: "bad-json-err", shows: "an error of the end that is a number", strict: "bad-json", change: replace("final.json", `"Err":null`, `"Err":5`)},
		{name: "good-err-string", shows: "an error of the end that is a string, as older cassettes have it", strict: loads, change: replace("final.json", `"Err":null`, `"Err":"not known"`)},
		{name: "bad-resolution", shows: "a resolution of 0", strict: "resolution", change: replace("manifest.json", `"resolution_ms": 100`, `"resolution_ms": 0`)},
		{name: "bad-resolution-negative", shows: "a resolution below 0", strict: "resolution", change: replace("manifest.json", `"resolution_ms": 100`, `"resolution_ms": -1`)},
		{name: "bad-json-manifest", shows: "a manifest that is cut", strict: "bad-json", change: with("manifest.json", `{"version": 1, "id"`)},
		{name: "bad-json-list", shows: "a manifest that is a list", strict: "bad-json", change: with("manifest.json", `[1]`)},
		{name: "bad-json-line", shows: "a line that is no JSON", strict: "bad-json", change: replace("input.jsonl", `"kind"`, `kind`)},
		{name: "bad-json-type", shows: "a number that is a string", strict: "bad-json", change: replace("output.jsonl", `"offset":7`, `"offset":"7"`)},
		{name: "bad-json-base64", shows: "bytes that are no base64", strict: "bad-json", change: replace("input.jsonl", `aGkN`, `a`)},
		{name: "bad-torn-line", shows: "a last line that is cut", strict: "bad-json", change: func(f map[string]string) {
			f["service-events.jsonl"] = f["service-events.jsonl"][:30]
		}},
		{name: "bad-other-id", shows: "a test is bound to another id", strict: "not-bound", change: none, expect: &cassette.Binding{ID: "other"}},
		{name: "bad-other-content", shows: "a test is bound to another content", strict: "not-bound", change: none, expect: &cassette.Binding{ID: "base", SHA256: "00"}},
		{name: "bad-emulator", shows: "another emulator is required", strict: "emulator", change: none, emulator: &cassette.Emulator{Name: "tapedeck-vt", Version: "1"}},
		{name: "good-ours", shows: "as tapedeck writes", strict: loads, change: ours},
	}
}

// ours replaces all files by what our recorder writes.
func ours(f map[string]string) {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var ms, g int
	r, err := cassette.Create(filepath.Join(dir, "c"), &cassette.CreateOptions{ID: "ours", ResolutionMS: 1, FrameEvery: -1,
		Terminal: cassette.Terminal{InitialRows: 3, InitialCols: 10}, Command: cassette.Command{Argv: []string{"sh"}},
		Provenance: cassette.Provenance{OS: "linux", Arch: "amd64", RecordedAt: "2026-11-22T00:00:00Z", RecorderVersion: "tapedeck 0.2.0"},
		Clock:      func() time.Duration { ms += 3; return time.Duration(ms) * time.Millisecond },
		G:          func() uint64 { g += 2; return uint64(g) }})
	if err != nil {
		panic(err)
	}
	r.Output([]byte("$ "))
	r.Input([]byte("ls\r"), "")
	r.Output([]byte("ls\r\n\x1b]0;a title\a漢字 \x1b[1mb\x1b[0m\r\n$ "))
	r.Resize(cassette.Size{Rows: 4, Cols: 12})
	r.Signal("SIGHUP")
	r.ServiceEvent([]byte(`{"of": "the layer above"}`))
	if _, err := r.Finish(&cassette.Final{Exit: &cassette.Exit{Code: -1, Signal: "SIGHUP", Signaled: true}, DurationMS: 30}); err != nil {
		panic(err)
	}
	clear(f)
	entries, _ := os.ReadDir(filepath.Join(dir, "c"))
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(dir, "c", e.Name()))
		f[e.Name()] = string(b)
	}
}
