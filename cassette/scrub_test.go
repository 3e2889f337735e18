package cassette_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// token is made up, in the shape of one of GitHub's.
var token = "ghp_" + strings.Repeat("a1B2c3D4e5", 4)[:36]

// leaky is a cassette of another producer with a secret wherever one can be, and keys that nobody knows.
func leaky(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "leaky")
	a, b := "key "+token[:10], "\x1b[1m"+token[10:]+"\x1b[0m\r\n\x1b]0;"+token+"\a$ "
	raw := a + b
	files := map[string]string{
		"output.raw":           raw,
		"output.jsonl":         chunk(1, 0, 0, a) + strings.Replace(chunk(3, 100, len(a), b), `"t_ms"`, `"flags":[1e400],"t_ms"`, 1),
		"input.jsonl":          `{"seq":2,"t_ms":0,"kind":"input","bytes":"` + base64.StdEncoding.EncodeToString([]byte("export T="+token+"\r")) + `","key":"paste","who":"a person"}` + "\n",
		"frames.jsonl":         `{"seq":4,"t_ms":100,"size":{"Rows":3,"Cols":60},"text":["key ` + token + `","$",""],"cells":[[{"Char":107}]],"cursor":{"Row":1,"Col":2,"Visible":true},"title":"` + token + `","raw_start":0,"raw_end":` + fmt.Sprint(len(raw)) + `,"parser_offset":0,"mood":"good"}` + "\n",
		"service-events.jsonl": `{"seq":5,"t_ms":200,"payload":{"n": 12345678901234567890, "line": "with ` + token + `\n"}}` + "\n",
		"final.json":           `{"seq":6,"t_ms":300,"duration_ms":312,"final_text":"` + token + `"}` + "\n",
		"scrub-report.json":    `{"status":"redacted","rules":["older"],"hit_counts":{"older":2}}` + "\n",
		"manifest.json":        strings.Replace(strings.Replace(manifest(raw), `"initial_rows": 2, "initial_cols": 8`, `"initial_rows": 3, "initial_cols": 60`, 1), `"--no-alt-screen"`, `"--key=`+token+`"`, 1),
		"notes.txt":            "of another program\n",
	}
	files["manifest.json"] = strings.Replace(files["manifest.json"], `"id"`, `"flavour": 1e400, "id"`, 1)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestScrub(t *testing.T) {
	for _, to := range []string{"", filepath.Join(t.TempDir(), "clean")} {
		dir := leaky(t)
		before, err := os.Stat(filepath.Join(dir, cassette.OutputFile))
		if err != nil {
			t.Fatal(err)
		}
		report, err := cassette.Scrub(dir, &cassette.ScrubOptions{To: to, Preserve: []string{"the prompt"}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Status != cassette.Redacted || report.HitCounts["older"] != 2 || !slices.Contains(report.Rules, "older") ||
			!slices.Contains(report.Rules, "groq") || len(report.IntentionallyPreserved) != 1 {
			t.Errorf("%+v", report)
		}
		if to != "" {
			dir = to
		}
		isClean(t, dir, before.Size())
	}
}

// isClean sees that nothing of the token is left, and that nothing else is lost.
func isClean(t *testing.T, dir string, size int64) {
	t.Helper()
	var all []byte
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(token[10:])) || bytes.Contains(b, []byte(token[:10])) {
			t.Errorf("%s has the secret: %s", e.Name(), b)
		}
		all = append(all, b...)
	}
	for _, kept := range []string{`"flavour": 1e400`, `"flags":[1e400]`, `"who":"a person"`, `"mood":"good"`, `12345678901234567890`} {
		if !bytes.Contains(all, []byte(kept)) {
			t.Errorf("%s is gone", kept)
		}
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if typed := input(t, r); strings.Contains(typed, token) || !strings.HasPrefix(typed, "export T=*") || len(typed) != len("export T=\r")+len(token) {
		t.Errorf("typed %q", typed)
	}
	f, err := r.LastFrame()
	if err != nil || r.Size() != size || !strings.HasPrefix(f.Text[0], "key *") || f.Text[1] != "$" || len(f.Cells) != 0 {
		t.Errorf("%d bytes, frame %+v, %v", r.Size(), f, err)
	}
	if v, err := cassette.Verify(dir); err != nil || len(v.Findings) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// input returns all that was typed, and sees that no key names a part of the token.
func input(t *testing.T, r *cassette.Reader) (typed string) {
	t.Helper()
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput}}) {
		if err != nil {
			t.Fatal(err)
		}
		typed += string(e.Input.Bytes)
		if key := e.Input.Key; key != "" && key != "enter" {
			t.Errorf("key %q", key)
		}
	}
	return typed
}

// TestTypedSecret types a secret key by key, and one that comes at once.
func TestTypedSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	r, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range token {
		r.Input([]byte(string(c)), string(c))
		r.Output([]byte("*"))
	}
	r.Input([]byte("\r"), "enter")
	r.NoEcho(true)
	r.Input([]byte("plain word\r"), "")
	r.NoEcho(false)
	r.Input([]byte("login "+token+"\r"), "")
	if _, err := r.Finish(&cassette.Final{}); err != nil {
		t.Fatal(err)
	}
	rd, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	stars := strings.Repeat("*", len(token))
	if typed := input(t, rd); typed != stars+"\r**********\rlogin "+stars+"\r" {
		t.Errorf("%q", typed)
	}
	if rep := rd.ScrubReport(); rep.Status != cassette.Redacted {
		t.Errorf("%+v", rep)
	}
}

// TestPasswordOfOneRecording types one without echo: its own recording knows it, another of the same process does not.
func TestPasswordOfOneRecording(t *testing.T) {
	const password = "correcthorse"
	for i, want := range []string{"************\r\n", password + "\r\n"} {
		dir := filepath.Join(t.TempDir(), "c")
		r, err := cassette.Create(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			r.NoEcho(true)
			r.Input([]byte(password+"\r"), "")
			r.NoEcho(false)
		}
		r.Output([]byte(password + "\r\n"))
		if _, err := r.Finish(&cassette.Final{}); err != nil {
			t.Fatal(err)
		}
		rd, err := cassette.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		if out, err := rd.RawOutput(); err != nil || string(out) != want {
			t.Errorf("recording %d: %q, want %q: %v", i, out, want, err)
		}
	}
}

// TestRecordedSecret records a secret in every stream, split over chunks, and one that only what comes later gives away.
func TestRecordedSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	r, err := cassette.Create(dir, &cassette.CreateOptions{Command: cassette.Command{Argv: []string{"x", "--key=" + token}}, ResolutionMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range token {
		r.Output([]byte(token[i : i+1]))
	}
	r.Output([]byte("\r\n\x1b[31m" + token[:9] + "\x1b[32m" + token[9:] + "\x1b[0m\r\n"))
	r.Output([]byte("\x1b]0;" + token + "\a\x1b[2J\x1b[5;5H" + token[20:] + "\x1b[4;65H" + token[:20] + "\r\n"))
	r.ServiceEvent([]byte(`{"token":"` + token + `"}`))
	if err := r.Quota(&cassette.Capability{Source: token}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(&cassette.Final{FinalText: token}); err != nil {
		t.Fatal(err)
	}
	if v, err := cassette.Verify(dir); err != nil || len(v.Findings) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || bytes.Contains(b, []byte(token)) || bytes.Contains(b, []byte(token[9:])) {
			t.Errorf("%s: %s, %v", e.Name(), b, err)
		}
	}
	sameFrames(t, dir)
}

// sameFrames sees that every recorded frame is what the output gives.
func sameFrames(t *testing.T, dir string) {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	derived := map[int64]*cassette.Frame{}
	for f, err := range r.Derive(nil) {
		if err != nil {
			t.Fatal(err)
		}
		derived[f.RawEnd] = f
	}
	n := 0
	for f, err := range r.Frames() {
		if err != nil {
			t.Fatal(err)
		}
		d := derived[f.RawEnd]
		if d == nil || fmt.Sprint(d.Text, d.Cursor, d.Title) != fmt.Sprint(f.Text, f.Cursor, f.Title) {
			t.Errorf("recorded\n%+v\nderived\n%+v", f, d)
		}
		n++
	}
	if n == 0 {
		t.Error("no frames")
	}
}

// TestVerify finds in every cassette of the corpus what Open refuses first.
func TestVerify(t *testing.T) {
	t.Parallel()
	files, err := corpus.CassetteFiles()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		dir := filepath.Join(t.TempDir(), e.Name())
		sub, err := fs.Sub(files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, sub); err != nil {
			t.Fatal(err)
		}
		want := readOutcome(t, dir)
		v, err := cassette.Verify(dir)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		found := want.Strict == "loads" && len(v.Findings) == 0 || want.Expect != nil || want.Emulator != nil
		for _, f := range v.Findings {
			found = found || f.Code == want.Strict && f.File == want.File
		}
		if !found {
			t.Errorf("%s: expected %s, found %+v", e.Name(), want.Strict, v.Findings)
		}
	}
}

// TestKnownTooLate has a value become known as a secret when it stands on the disk already: it is masked there.
func TestKnownTooLate(t *testing.T) {
	secret := "correct horse battery staple 7781"
	s := scrub.New(scrub.Key{1}, nil)
	dir := filepath.Join(t.TempDir(), "c")
	r, err := cassette.Create(dir, &cassette.CreateOptions{Scrub: s, ResolutionMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.Output([]byte("it is " + secret + "\r\n"))
	r.Output(bytes.Repeat([]byte("more that pushes it out\r\n"), 10000))
	r.Output([]byte("\x1b[2J\x1b[Hagain: " + secret))
	for r.Err() == nil { // until it is on the disk
		if b, err := os.ReadFile(filepath.Join(dir, cassette.OutputFile)); err != nil || bytes.Contains(b, []byte(secret)) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.AddSecret("password", secret)
	if _, err := r.Finish(&cassette.Final{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{cassette.OutputFile, cassette.FramesFile} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the secret, %v", name, err)
		}
	}
	rd, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if rep := rd.ScrubReport(); rep.Status != cassette.Redacted || rep.LateHits < 1 {
		t.Errorf("%+v", rep)
	}
	sameFrames(t, dir)
}

// TestTextsAreMasked has a secret in every text that who records hands in, and one that only its key gives away.
func TestTextsAreMasked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	named := "zx81-Qm4xT9vLr2Wp"
	object := json.RawMessage(`{"t": "` + token + `", "api_key": "` + named + `"}`)
	argv := []string{"run", "--key=" + token}
	r, err := cassette.Create(dir, &cassette.CreateOptions{
		Harness:  cassette.Harness{Name: "of " + token, Capability: object},
		Command:  cassette.Command{Argv: argv, EnvAllowlist: []string{"A=" + token}, PermissionMode: token},
		Terminal: cassette.Terminal{Locale: token, PTYMode: object},
		Optional: map[string]json.RawMessage{"note": object}})
	if err != nil {
		t.Fatal(err)
	}
	r.ServiceEvent(object)
	if _, err := r.Finish(&cassette.Final{FinalText: token, Metadata: object}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"manifest.json", "service-events.jsonl", "final.json", "scrub-report.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || bytes.Contains(b, []byte(token)) || bytes.Contains(b, []byte(named)) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if argv[1] != "--key="+token {
		t.Errorf("the caller's arguments are %q", argv)
	}
	if v, err := cassette.Verify(dir); err != nil || len(v.Findings) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
