package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// bundle stands for the built page.
var bundle = page.Bundle{Script: "document.title = 'page'", Style: "body { margin: 0 }"}

// made is a recording of what fill puts on its tape, in a library of its own.
func made(t testing.TB, id string, fill func(tt *Tape)) *recording.Recording {
	t.Helper()
	tt := NewTape(t)
	fill(tt)
	tt.Close()
	dir := filepath.Join(t.TempDir(), ".tapedeck", "a.rec")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{tt.Path: recording.TapeName, tt.Path + tape.StoreSuffix: recording.TapeName + tape.StoreSuffix} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	m := &recording.Manifest{
		ID: id, Format: recording.ManifestFormat, State: recording.StateFinished, Argv: []string{"agent"}, Program: recording.Program{Path: "/bin/agent"}, Cwd: "/w", Axes: map[string]recording.Axis{"llm": {On: true}},
		StartedAt: time.Unix(1_800_000_000, 0).UTC(), Exit: &recording.Exit{}, Roots: recording.Roots{Tree: "/w"},
	}
	if err := m.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// agent is a conversation of so many turns, each of which reads a file and is given so many bytes.
func agent(tt *Tape, turns, size int) {
	history := []string{User("look at everything")}
	for n := range turns {
		id := fmt.Sprintf("toolu_%d", n)
		k := &tape.FileWrite{}
		tt.Call("llm:a", Asks("be kind", ReadTool, history...),
			fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"write","input":{"path":"src/f%d.txt"}}],"stop_reason":"tool_use"}`, id, n))
		k.Path, k.Content, k.Mode = fmt.Sprintf("src/f%d.txt", n), tt.Payload(fmt.Sprint("content ", n)), "100644"
		k.ContentHash, k.LenBytes = k.Content.Hash, k.Content.Len
		tt.Record(k)
		history = append(history,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"write","input":{"path":"src/f%d.txt"}}]}`, id, n),
			Gives(id, Text(n, size)))
	}
	tt.Record(&tape.ProcessSpawn{Program: "agent", SpawnID: 1, DurationMS: 1000})
}

func shelf(t testing.TB, recs ...*recording.Recording) *page.Shelf {
	t.Helper()
	s, err := page.NewShelf(t.Context(), recs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func document[T any](t testing.TB, s *page.Shelf, path string) *T {
	t.Helper()
	b, err := s.Document(t.Context(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func TestTurns(t *testing.T) {
	s := shelf(t, made(t, "one", func(tt *Tape) { agent(tt, 3, 10) }))
	d := document[page.Detail](t, s, "run/one/run.json")
	if len(d.Conversations) != 1 || len(d.Conversations[0].Turns) != 3 || d.Files != 3 || d.Records != 7 {
		t.Fatalf("%+v", d)
	}
	first := document[page.Turn](t, s, "run/one/turn/0.json")
	if first.Previous != nil || *first.System != "be kind" || len(first.Declared) != 1 || len(first.Messages) != 1 || first.Said.Parts[0].Name != "write" {
		t.Errorf("%+v", first)
	}
	third := document[page.Turn](t, s, "run/one/turn/4.json")
	if *third.Previous != 2 || third.Keep != 4 || third.System != nil || !third.Same || len(third.Messages) != 1 || third.Messages[0].Parts[0].Name != "write" {
		t.Errorf("%+v", third)
	}
	for _, path := range []string{"run/one/turn/1.json", "run/one/turn/99.json", "run/one/records/7.json", "run/two/run.json", "run/one/payload/../../recording.json"} {
		if b, err := s.Document(t.Context(), path); err == nil {
			t.Errorf("%s is there: %s", path, b)
		}
	}
}

// TestImages: a turn has those that a page shows, if they are small; the others are named.
func TestImages(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n"
	image := func(mime, data string) string {
		return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, mime, base64.StdEncoding.EncodeToString([]byte(data)))
	}
	s := shelf(t, made(t, "one", func(tt *Tape) {
		tt.Call("llm:a", Asks("", "", `{"role":"user","content":[`+strings.Join([]string{
			image("image/webp", png), image("image/svg+xml", "<svg/>"), image("image/png", png+strings.Repeat("x", 100_000)),
		}, ",")+`]}`), Says("hi"))
	}))
	parts := document[page.Turn](t, s, "run/one/turn/0.json").Messages[0].Parts
	if len(parts) != 3 || parts[0].Text == "" || parts[0].Mime != "image/png" || parts[0].More != 0 {
		t.Fatalf("%+v", parts)
	}
	for _, p := range parts[1:] {
		if p.Type != "image" || p.Text != "" || p.More == 0 || p.ID == "" {
			t.Errorf("%+v", p)
		}
	}
}

// TestCauses: what the tape says of who changed a file, and what time and names do.
func TestCauses(t *testing.T) {
	s := shelf(t, made(t, "one", func(tt *Tape) {
		agent(tt, 2, 10)
		late := &tape.FileWrite{}
		late.Path, late.Content, late.Mode, late.SpawnID = "src/f0.txt", tt.Payload("again"), "100644", 7
		late.ContentHash = late.Content.Hash
		tt.Record(late)
		tt.Record(&tape.MCPOpen{Server: "files", Conversation: 3})
		served := &tape.FileDelete{}
		served.Path, served.Extra = "src/f1.txt", tape.NumberField(tape.ConversationKey, 3)
		tt.Record(served)
		tt.Record(&tape.ProcessSpawn{Program: "/bin/sh", Args: []string{"-c", "x"}, SpawnID: 7})
	}))
	files := document[page.FileBlock](t, s, "run/one/files/0.json").Files
	if len(files) != 2 || len(files[0].States) != 2 || len(files[1].States) != 2 {
		t.Fatalf("%+v", files)
	}
	if c := files[1].States[0].Causes; len(c) != 1 || c[0].Recorded || c[0].Seq != 2 || !strings.Contains(c[0].Why, "names f1.txt") {
		t.Errorf("by name: %+v", c)
	}
	if c := files[0].States[1].Causes; len(c) != 2 || !c[0].Recorded || c[0].What != "spawn" || c[0].Title != "/bin/sh -c x" || c[1].Seq != 0 {
		t.Errorf("by a process: %+v", c)
	}
	if c := files[1].States[1].Causes; len(c) != 2 || c[0].What != "server" || c[0].Title != "files" || !c[0].Recorded || !files[1].States[1].Gone {
		t.Errorf("by a server: %+v", c)
	}
}

// A file is a page that was written, taken apart.
type file struct {
	html  []byte
	table map[string][]int
	block map[int][]byte
}

var element = regexp.MustCompile(`(?s)<script type="application/x-tapedeck" id="td-(\w+)">([^<]*)</script>`)

func written(t testing.TB, s *page.Shelf, o *page.FileOptions) (*file, *page.Written) {
	t.Helper()
	var b bytes.Buffer
	o.Bundle = bundle
	w, err := s.WriteFile(t.Context(), &b, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &file{html: b.Bytes(), block: make(map[int][]byte)}
	for _, m := range element.FindAllSubmatch(b.Bytes(), -1) {
		z, err := base64.StdEncoding.DecodeString(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(z))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(string(m[1])); err == nil {
			f.block[n] = plain
		} else if err := json.Unmarshal(plain, &f.table); err != nil {
			t.Fatal(err)
		}
	}
	return f, w
}

func (f *file) document(path string) (b []byte) {
	at := f.table[path]
	for i := 0; i < len(at); i += 3 {
		b = append(b, f.block[at[i]][at[i+1]:at[i+1]+at[i+2]]...)
	}
	return b
}

// TestFile: a page holds all documents, and of payloads that repeat each other what is new.
func TestFile(t *testing.T) {
	s := shelf(t, made(t, "one", func(tt *Tape) { agent(tt, 20, 5000) }))
	f, w := written(t, s, &page.FileOptions{})
	if len(w.Absent) > 0 || w.Documents != len(f.table) || w.Documents < 40 {
		t.Errorf("%d documents, %v", w.Documents, w.Absent)
	}
	payloads := 0
	for path := range f.table {
		want, err := s.Document(t.Context(), path)
		if got := f.document(path); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s differs, %v", path, err)
		}
		if strings.Contains(path, "/payload/") {
			payloads++
		}
	}
	if payloads < 15 || w.Bytes > 150_000 { // the payloads are a megabyte, and 100 kB of words that no one repeats
		t.Errorf("%d payloads, %d bytes", payloads, w.Bytes)
	}
	if n := bytes.Count(f.html, []byte("<script>")); n != 1 || !bytes.Contains(f.html, []byte("default-src 'none'; script-src 'sha256-")) {
		t.Errorf("%d scripts: %.600s", n, f.html)
	}
}

// TestFileOfFewBytes: what a file may not hold is named in it; turns are there.
func TestFileOfFewBytes(t *testing.T) {
	s := shelf(t, made(t, "one", func(tt *Tape) { agent(tt, 20, 5000) }))
	f, w := written(t, s, &page.FileOptions{Payloads: 20_000})
	var lib page.Library
	if err := json.Unmarshal(f.document("library.json"), &lib); err != nil || len(lib.Absent) != len(w.Absent) || len(w.Absent) == 0 {
		t.Fatalf("%v: %+v", err, lib)
	}
	if f.table["run/one/turn/0.json"] == nil || f.table["run/one/index.json"] == nil || f.table[w.Absent[0].Path] != nil || w.Absent[0].Size == 0 {
		t.Errorf("%+v", w.Absent)
	}
}

// TestWhatAFileNeeds: what stood in a changed file, short or not, and what came in gzip by both names that it goes by.
func TestWhatAFileNeeds(t *testing.T) {
	long, plain := Text(1, 9000), Says(Text(2, 9000))
	s := shelf(t, made(t, "one", func(tt *Tape) {
		for name, before := range map[string]string{"short": "one", "long": long} {
			k := &tape.FileWrite{}
			k.Path, k.Mode, k.Before, k.Content = name, "100644", tt.Payload(before), tt.Payload("two")
			k.ContentHash, k.LenBytes = k.Content.Hash, k.Content.Len
			tt.Record(k)
		}
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		io.WriteString(w, plain)
		w.Close()
		d, err := tt.Store.Put(z.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		x := &tape.HTTPExchange{}
		x.Lane, x.Method, x.URL, x.Status = "http:a", "GET", "https://a/", 200
		x.ResponseHeaders = []tape.HeaderField{{Name: "Content-Encoding", Value: "gzip"}}
		x.Response = &tape.Payload{Hash: d, Len: int64(z.Len())}
		tt.Record(x)
	}))
	f, w := written(t, s, &page.FileOptions{})
	for _, file := range document[page.FileBlock](t, s, "run/one/files/0.json").Files {
		switch before := file.Before.Bytes; {
		case file.Path == "short" && (before.Text == nil || *before.Text != "one"):
			t.Errorf("short: %+v", before)
		case file.Path == "long" && string(f.document("run/one/payload/"+before.Digest)) != long:
			t.Errorf("long: %+v", before)
		}
	}
	zipped := 0
	for path := range f.table {
		if digest, ok := strings.CutSuffix(path, ".gzip"); ok {
			zipped++
			if string(f.document(path)) != plain || string(f.document(digest)) != plain {
				t.Error(path)
			}
		}
	}
	if zipped != 1 || len(w.Absent) > 0 || w.Documents != len(f.table)-1 {
		t.Errorf("%d in gzip, %+v", zipped, w)
	}
	_, w = written(t, s, &page.FileOptions{Payloads: -1})
	if len(w.Absent) != 2 || w.TooLarge != 2 || w.Absent[0].Size == 0 || !strings.Contains(w.Absent[1].Why, "--payloads") {
		t.Errorf("without payloads: %+v", w)
	}
}

// hostile is what nobody should take for anything but text.
const hostile = `</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>` + "\u202e\x00\x1b[2J\u2028&amp;"

func hostileTape(tt *Tape) {
	k := tt.Call(hostile, Asks(hostile, `{"name":"a","description":`+strconv.Quote("</script>")+`}`, User("</script>"), `{"role":"user","content":[{"type":"image","source":{"media_type":"text/html","data":"</script>"}}]}`),
		Says("</script>"))
	k.Model = hostile
	for _, kind := range []tape.Kind{
		&tape.MCPOpen{Server: hostile, Program: hostile, Conversation: 1}, &tape.ProcessSpawn{Program: hostile, Args: []string{hostile}, SpawnID: 2},
		&tape.WSOpen{URL: hostile}, &tape.NetRefused{Addr: hostile, Reason: hostile}, &tape.EnvRead{VarName: hostile, Value: tt.Payload(hostile)},
		&tape.MCPJSONRPC{Server: hostile, Method: hostile, Request: tt.Payload(strings.Repeat(hostile, 1000))},
	} {
		tt.Record(kind)
	}
	w := &tape.FileWrite{}
	w.Path, w.Content, w.Mode = strings.Repeat(hostile, 600), tt.Payload("\xff\xfe"+hostile), hostile
	tt.Record(w)
}

// TestHostileText: text of recordings is data in JSON, and in a file in base64 alone.
func TestHostileText(t *testing.T) {
	rec := made(t, "one", hostileTape)
	rec.Manifest.Argv, rec.Manifest.Cwd, rec.Manifest.ID = []string{hostile}, hostile, "../"+hostile
	s := shelf(t, rec)
	f, w := written(t, s, &page.FileOptions{})
	if n := bytes.Count(f.html, []byte("</script")); n != len(f.block)+2 {
		t.Errorf("%d ends of scripts, want %d", n, len(f.block)+2)
	}
	if bytes.Contains(f.html, []byte("alert")) || bytes.Contains(f.html, []byte("<!--")) || len(w.Absent) > 0 {
		t.Errorf("%.2000s", f.html)
	}
	for path := range f.table {
		if b := f.document(path); strings.HasSuffix(path, ".json") && !json.Valid(b) {
			t.Errorf("%s: %.300s", path, b)
		}
		if strings.ContainsAny(path, "<>\x00") || strings.Contains(path, "..") {
			t.Errorf("a path %q", path)
		}
	}
}

// TestADamagedRecording shows what stands before the damage, and says so.
func TestADamagedRecording(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 3, 10) })
	b, err := os.ReadFile(rec.TapePath())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	for what, damaged := range map[string][]byte{
		"torn":    append(bytes.Join(lines[:4], nil), lines[4][:20]...),
		"damaged": append(append(bytes.Join(lines[:4], nil), "{nothing}\n"...), lines[5]...),
	} {
		if err := os.WriteFile(rec.TapePath(), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s := shelf(t, rec)
		d := document[page.Detail](t, s, "run/one/run.json")
		if _, w := written(t, s, &page.FileOptions{}); len(w.Problems) != 1 || w.Problems[0].Path != "a.rec/"+recording.TapeName {
			t.Errorf("%s: a file says %+v", what, w.Problems)
		}
		if d.Records != 3 || len(d.Problems) != 1 || d.Problems[0].Path != recording.TapeName {
			t.Errorf("%s: %d records, %+v", what, d.Records, d.Problems)
		}
		if r := document[page.Records](t, s, "run/one/records/0.json"); len(r.Records) != 3 {
			t.Errorf("%s: %d records in a block", what, len(r.Records))
		}
	}
	if err := os.Remove(rec.TapePath()); err != nil {
		t.Fatal(err)
	}
	f, _ := written(t, shelf(t, rec), &page.FileOptions{})
	if b := f.document("run/one/run.json"); !bytes.Contains(b, []byte("no such file")) || bytes.Contains(b, []byte(rec.Dir)) {
		t.Errorf("without a tape: %s", f.document("run/one/run.json"))
	}
}

// TestSummaryGoesByPrices: costs are those of the table that is asked for, whatever the kept ones go by.
func TestSummaryGoesByPrices(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) {
		tt.Call("llm:a", Asks("be kind", ReadTool, User("hello")), `{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":10}}`)
	})
	page.Prepare(rec)
	price := 1000.0 // USD for a million tokens
	own, err := llm.DefaultPrices().With(map[string]llm.Rates{"m": {Input: &price, Output: &price}})
	if err != nil {
		t.Fatal(err)
	}
	for _, prices := range []*llm.Prices{nil, own, own, nil} {
		s, err := page.NewShelf(t.Context(), []*recording.Recording{rec}, prices)
		if err != nil {
			t.Fatal(err)
		}
		cost := document[page.Detail](t, s, "run/one/run.json").Conversations[0].Turns[0].Cost
		if prices == nil && cost != nil || prices != nil && (cost == nil) {
			t.Errorf("by %s the cost of a call of a model of the project is %v", prices.ID(), cost)
		}
	}
}

// TestSummary is kept beside a recording, and made again for another tape or what is no summary.
func TestSummary(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { agent(tt, 3, 10) })
	page.Prepare(rec)
	path := strings.TrimSuffix(rec.Dir, ".rec") + ".index"
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"as it is": kept, "cut": kept[:len(kept)/2], "empty": nil, "no summary": []byte("{}\n{}\n")} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if x := document[page.Index](t, shelf(t, rec), "run/one/index.json"); x.Rows != 7 || len(x.Title) != 7 {
			t.Errorf("%s: %+v", what, x)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, kept) {
			t.Errorf("%s: it is not made again: %v", what, err)
		}
	}
	f, err := os.OpenFile(rec.TapePath(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, `{"type":"record","seq":7,"phase":"user_script","virtual_time_ms":0,"monotonic_ms":5,"kind":{"kind":"clock_sleep","duration_ms":5}}`)
	f.Close()
	if x := document[page.Index](t, shelf(t, rec), "run/one/index.json"); x.Rows != 8 {
		t.Errorf("of a longer tape: %d rows", x.Rows)
	}
	b, err := os.ReadFile(rec.TapePath())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rec.TapePath(), bytes.Replace(b, []byte("clock_sleep"), []byte("clock_sleeq"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if x := document[page.Index](t, shelf(t, rec), "run/one/index.json"); slices.Contains(x.Kinds, "clock_sleep") {
		t.Errorf("of another tape as long: %v", x.Kinds)
	}
}

func TestSearch(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) {
		tt.Call("llm:a", Asks("", "", User(`say "Hello", and
bye`)), Says("hi there"))
		tt.Record(&tape.EnvRead{VarName: "X", Value: tt.Payload(Text(3, 9000) + "the needle 😀 here, Äpfel")})
		tt.Record(&tape.NameLookup{Host: "example.com", Type: "A", Result: "refused"})
	})
	src, err := page.Open(rec, nil)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`say "hello", and`: "request", "HI THERE": "response", "and\nbye": "request", "needle 😀 h": "value", "Example.COM": "record", "nowhere in it": "",
		"HERE, Äpfel": "value", "here, äpfel": "",
	} {
		found, err := src.Search(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, h := range found.Hits {
			got = h.Where
		}
		if len(found.Hits) > 1 || got != want {
			t.Errorf("%q: %+v, want %s", query, found, want)
		}
	}
}

// TestSearchStays: what is no file, or leads out of the recording, is not looked into.
func TestSearchStays(t *testing.T) {
	rec := made(t, "one", func(tt *Tape) { tt.Record(&tape.EnvRead{VarName: "X", Value: tt.Payload(Text(3, 9000))}) })
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte(strings.Repeat("needle ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(rec.TapePath() + tape.StoreSuffix + "/*")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := errors.Join(os.Remove(names[0]), os.Symlink(outside, names[0]), mkfifo(filepath.Join(filepath.Dir(names[0]), strings.Repeat("a", 64)))); err != nil {
		t.Skip("no symbolic links or FIFOs here: ", err)
	}
	src, err := page.Open(rec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := src.Search(t.Context(), "needle"); err != nil || len(found.Hits) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func mkfifo(path string) error { return exec.Command("mkfifo", path).Run() }
