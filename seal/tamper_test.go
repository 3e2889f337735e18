package seal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// A tampering is one thing that somebody does to a sealed recording, and what must be said of it.
type tampering struct {
	name string
	do   func(t *testing.T, dir string)
	code seal.Code
	path string
	line int64
	leaf int64
	also []seal.Code // of further problems, in any order
}

var firstBlob = "run.tape.cas/" + cas.Sum([]byte("the first blob")).String()

func edit(name string, change func(b []byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := change(bytes.Clone(b))
		if bytes.Equal(changed, b) {
			t.Fatal("nothing was changed")
		}
		write(t, path, changed)
	}
}

func replace(old, text string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(text), 1) }
}

// lines gives a change of a file's lines.
func lines(change func(all []string) []string) func([]byte) []byte {
	return func(b []byte) []byte { return []byte(strings.Join(change(strings.SplitAfter(string(b), "\n")), "")) }
}

func move(from, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func add(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { put(t, dir, map[string]string{name: text}) }
}

func both(a, b func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) { a(t, dir); b(t, dir) }
}

var tamperings = []tampering{
	{"a file that was not sealed", add("notes.txt", "x"), seal.CodeUnlisted, "notes.txt", 0, -1, nil},
	{"an empty file that was not sealed", add("zero", ""), seal.CodeUnlisted, "zero", 0, -1, nil},
	{"a temporary file", add(".tmp-1", ""), seal.CodeUnlisted, ".tmp-1", 0, -1, nil},
	{"a line stream that was not sealed", add("terminal/more.jsonl", "{}\n"), seal.CodeUnlisted, "terminal/more.jsonl", 0, -1, nil},
	{"a blob that was not sealed", add("run.tape.cas/"+cas.Sum([]byte("new")).String(), "new"), seal.CodeUnlisted,
		"run.tape.cas/" + cas.Sum([]byte("new")).String(), 0, -1, nil},
	{"a file among blobs", add("run.tape.cas/README", "x"), seal.CodeUnlisted, "run.tape.cas/README", 0, -1, nil},
	{"another store", add("other.cas/"+cas.Sum([]byte("new")).String(), "new"), seal.CodeUnlisted,
		"other.cas/" + cas.Sum([]byte("new")).String(), 0, -1, nil},
	{"a file among tiles", add("seal.tiles/more", ""), seal.CodeUnlisted, "seal.tiles/more", 0, -1, nil},
	{"a file is gone", remove("tree.json"), seal.CodeMissing, "tree.json", 0, -1, nil},
	{"an empty file is gone", remove("workspace.diff"), seal.CodeMissing, "workspace.diff", 0, -1, nil},
	{"an empty stream is gone", remove("terminal/input.jsonl"), seal.CodeMissing, "terminal/input.jsonl", 0, -1, nil},
	{"the tape is gone", remove("run.tape"), seal.CodeMissing, "run.tape", 0, -1, nil},
	{"a blob is gone", remove(firstBlob), seal.CodeMissing, firstBlob, 0, 1, nil},
	{"all blobs are gone", remove("run.tape.cas"), seal.CodeMissing, "run.tape.cas", 0, -1, nil},
	{"the tiles are gone", remove("seal.tiles"), seal.CodeTiles, "seal.tiles/files.0", 0, -1,
		[]seal.Code{"tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles", "tiles"}},
	{"a blob changed", edit(firstBlob, replace("first", "First")), seal.CodeBlob, firstBlob, 0, -1, nil},
	{"a blob grew", edit(firstBlob, replace("first", "very first")), seal.CodeBlob, firstBlob, 0, -1, nil},
	{"a blob swapped for another", func(t *testing.T, dir string) { swap(t, dir, firstBlob, secondBlob) }, seal.CodeBlob, secondBlob, 0, -1,
		[]seal.Code{seal.CodeBlob}},
	{"a blob under the name that its other bytes have", both(remove(firstBlob), add("run.tape.cas/"+cas.Sum([]byte("new")).String(), "new")),
		seal.CodeMissing, firstBlob, 0, 1, []seal.Code{seal.CodeUnlisted}},
	{"a file changed", edit("recording.json", replace("format", "Format")), seal.CodeChanged, "recording.json", 0, 0, nil},
	{"another recording's manifest", edit("recording.json", replace("20261122", "20261123")), seal.CodeID, "recording.json", 0, -1,
		[]seal.Code{seal.CodeChanged}},
	{"a line changed", edit("run.tape", replace(`"seq":1`, `"seq":7`)), seal.CodeChanged, "run.tape", 3, 2, nil},
	{"two lines changed", both(edit("run.tape", replace("test 1", "test 2")), edit("run.tape", replace(`"seq":1`, `"seq":7`))),
		seal.CodeChanged, "run.tape", 1, 0, []seal.Code{seal.CodeChanged}},
	{"an event changed", edit("session.jsonl", replace("terminal", "Terminal")), seal.CodeChanged, "session.jsonl", 2, 1, nil},
	{"lines reordered", edit("run.tape", lines(func(l []string) []string { l[1], l[3] = l[3], l[1]; return l })),
		seal.CodeReordered, "run.tape", 2, 1, nil},
	{"a line removed", edit("run.tape", lines(func(l []string) []string { return append(l[:1:1], l[2:]...) })), seal.CodeRemoved, "run.tape", 2, 1, nil},
	{"a line put in", edit("run.tape", lines(func(l []string) []string { return append([]string{l[0], "{}\n"}, l[1:]...) })),
		seal.CodeAdded, "run.tape", 2, 1, nil},
	{"an empty line put in", edit("run.tape", lines(func(l []string) []string { return append([]string{l[0], "\n"}, l[1:]...) })),
		seal.CodeAdded, "run.tape", 2, 1, nil},
	{"the tail cut", edit("run.tape", lines(func(l []string) []string { return l[:2] })), seal.CodeCut, "run.tape", 3, 2, nil},
	{"the tail cut within a line", edit("run.tape", func(b []byte) []byte { before, _, _ := bytes.Cut(b, []byte(`"seq":1`)); return before }),
		seal.CodeCut, "run.tape", 3, 2, nil},
	{"the last newline cut", edit("run.tape", func(b []byte) []byte { return b[:len(b)-1] }), seal.CodeChanged, "run.tape", 4, 3, nil},
	{"a line behind the end", edit("run.tape", func(b []byte) []byte { return append(b, "{}\n"...) }), seal.CodeAdded, "run.tape", 5, 4, nil},
	{"a carriage return", edit("session.jsonl", replace("}\n", "}\r\n")), seal.CodeChanged, "session.jsonl", 1, 0, nil},
	{"emptied", edit("session.jsonl", func([]byte) []byte { return nil }), seal.CodeCut, "session.jsonl", 1, 0, nil},
	{"an empty stream filled", edit("terminal/input.jsonl", func([]byte) []byte { return []byte("{}\n") }), seal.CodeAdded, "terminal/input.jsonl", 1, 0, nil},
	{"a chunk changed", edit("terminal/output.raw", replace("world", "World")), seal.CodeChanged, "terminal/output.raw", 0, 1, nil},
	{"output cut", edit("terminal/output.raw", func(b []byte) []byte { return b[:len(b)-1] }), seal.CodeChanged, "terminal/output.raw", 0, -1, nil},
	{"chunks cut elsewhere", edit("terminal/output.jsonl", func([]byte) []byte {
		return []byte(`{"offset":0,"length":6}` + "\n" + `{"offset":6,"length":9}` + "\n")
	}), seal.CodeChanged, "terminal/output.jsonl", 1, 0, []seal.Code{seal.CodeChanged, seal.CodeChanged, seal.CodeChanged}},
	{"a name in another case", both(move("tree.json", "t"), move("t", "Tree.json")), seal.CodeName, "tree.json", 0, -1, []seal.Code{seal.CodeUnlisted}},
	{"a tape's name in another case", both(move("run.tape", "t"), move("t", "Run.tape")), seal.CodeName, "run.tape", 0, -1, []seal.Code{seal.CodeUnlisted}},
	{"a blob's name in capitals", func(t *testing.T, dir string) {
		move(firstBlob, "run.tape.cas/"+strings.ToUpper(filepath.Base(firstBlob)))(t, dir)
	}, seal.CodeUnlisted, "run.tape.cas/" + strings.ToUpper(filepath.Base(firstBlob)), 0, -1, []seal.Code{seal.CodeMissing}},
	{"a tile changed", edit("seal.tiles/run.tape.0", func(b []byte) []byte { b[40] ^= 1; return b }), seal.CodeTiles, "seal.tiles/run.tape.0", 0, -1, nil},
	{"a tile too long", edit("seal.tiles/run.tape.0", func(b []byte) []byte { return append(b, 0) }), seal.CodeTiles, "seal.tiles/run.tape.0", 0, -1, nil},
	{"a tile cut", edit("seal.tiles/run.tape.0", func(b []byte) []byte { return b[:len(b)-1] }), seal.CodeTiles, "seal.tiles/run.tape.0", 0, -1, nil},
	{"a list of blobs changed", edit("seal.tiles/run.tape.cas.names", replace(" 14", " 15")), seal.CodeTiles, "seal.tiles/run.tape.cas.names", 0, -1, nil},
	{"a line and its tile", both(edit("run.tape", replace(`"seq":1`, `"seq":7`)), edit("seal.tiles/run.tape.0", func(b []byte) []byte { b[70] ^= 1; return b })),
		seal.CodeChanged, "run.tape", 0, -1, nil},
}

var secondBlob = "run.tape.cas/" + cas.Sum([]byte("another one, that no record names")).String()

func swap(t *testing.T, dir, a, b string) {
	move(a, "swap")(t, dir)
	move(b, a)(t, dir)
	move("swap", b)(t, dir)
}

func TestTampering(t *testing.T) {
	for _, c := range tamperings {
		t.Run(c.name, func(t *testing.T) {
			dir := small(t)
			k := sealed(t, dir)
			c.do(t, dir)
			r := verify(t, dir, &seal.VerifyOptions{Keys: []seal.PublicKey{k.Public()}})
			c.check(t, r.Problems)
		})
	}
}

func (c *tampering) check(t *testing.T, problems []seal.Problem) {
	t.Helper()
	for _, p := range problems {
		t.Logf("%-12s %s", p.Code, p.Error())
	}
	if len(problems) == 0 {
		t.Fatal("nothing was found")
	}
	p := problems[0]
	if p.Code != c.code || p.Path != c.path || p.Line != c.line || p.Leaf != c.leaf || p.Message == "" {
		t.Errorf("%+v", p)
	}
	if len(problems) != 1+len(c.also) {
		t.Fatalf("%d problems, expected %d", len(problems), 1+len(c.also))
	}
	for i, code := range c.also {
		if problems[1+i].Code != code {
			t.Errorf("problem %d is %s, expected %s", 1+i, problems[1+i].Code, code)
		}
	}
}

// TestNoFile puts other things in the place of files.
func TestNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs links and FIFOs")
	}
	link := func(name string) func(*testing.T, string) {
		return both(move(name, "../aside"), func(t *testing.T, dir string) {
			if err := os.Symlink(filepath.Join(dir, "../aside"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	fifo := func(name string) func(*testing.T, string) {
		return both(remove(name), func(t *testing.T, dir string) {
			makeFIFO(t, filepath.Join(dir, name))
		})
	}
	directory := func(name string) func(*testing.T, string) { return both(remove(name), add(name+"/x", "")) }
	for _, name := range []string{"tree.json", "run.tape", firstBlob, "terminal", "seal.json", "seal.tiles/run.tape.0", "seal.tiles"} {
		for kind, do := range map[string]func(string) func(*testing.T, string){"link": link, "fifo": fifo} {
			t.Run(kind+" "+filepath.Base(name), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "rec")
				if err := os.Rename(small(t), dir); err != nil {
					t.Fatal(err)
				}
				k := sealed(t, dir)
				do(name)(t, dir)
				r := verify(t, dir, &seal.VerifyOptions{Keys: []seal.PublicKey{k.Public()}})
				found := false
				for _, p := range r.Problems {
					t.Logf("%-12s %s", p.Code, p.Error())
					found = found || p.Code == seal.CodeNotRegular && p.Path == name
				}
				if !found {
					t.Errorf("%v", r.Problems)
				}
			})
		}
	}
	for _, name := range []string{"tree.json", "run.tape", firstBlob, "seal.tiles/run.tape.0"} {
		t.Run("directory "+filepath.Base(name), func(t *testing.T) {
			dir := small(t)
			sealed(t, dir)
			directory(name)(t, dir)
			r := verify(t, dir, nil)
			for _, p := range r.Problems {
				t.Logf("%-12s %s", p.Code, p.Error())
			}
			if len(r.Problems) < 2 || !names(r.Problems, name) {
				t.Errorf("%v", r.Problems)
			}
		})
	}
}

// TestASealOfAnother cuts a tape and seals what is left, with another key.
func TestASealOfAnother(t *testing.T) {
	dir := small(t)
	mine := sealed(t, dir)
	edit("run.tape", lines(func(l []string) []string { return l[:2] }))(t, dir)
	theirs, err := seal.NewKey(mine.Public().Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: theirs}); !errors.Is(err, seal.ErrSealed) {
		t.Fatal(err)
	}
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: theirs, Replace: true}); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, nil); !r.OK() || r.SignerKnown {
		t.Errorf("without a key it is a seal like any other: %+v", r)
	}
	r := verify(t, dir, &seal.VerifyOptions{Keys: []seal.PublicKey{mine.Public()}})
	(&tampering{code: seal.CodeSigner, path: "seal.json", leaf: -1}).check(t, r.Problems)
	if r.SignerKnown || r.Signer != theirs.Public() {
		t.Errorf("%+v", r)
	}
}

// TestTheSealItself changes seal.json.
func TestTheSealItself(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		code   seal.Code
	}{
		{"a key twice", replace(`"format":1,`, `"format":1,"format":1,`), seal.CodeDuplicateKey},
		{"a key twice in a file", replace(`"path":"recording.json"`, `"path":"x","path":"recording.json"`), seal.CodeDuplicateKey},
		{"a key twice, escaped", replace(`"format":1,`, `"format":1,"f\u006frmat":1,`), seal.CodeDuplicateKey},
		{"a space", replace(`"format":1`, `"format": 1`), seal.CodeNotCanonical},
		{"a newline behind it", func(b []byte) []byte { return append(b, '\n') }, seal.CodeNotCanonical},
		{"keys in another order", replace(`"format":1,"id":"20261122-test"`, `"id":"20261122-test","format":1`), seal.CodeNotCanonical},
		{"an escape", replace(`"run.tape"`, `"run\u002etape"`), seal.CodeNotCanonical},
		{"a slash escaped", replace(`terminal/`, `terminal\/`), seal.CodeNotCanonical},
		{"a number as a fraction", replace(`"format":1`, `"format":1.0`), seal.CodeNotCanonical},
		{"a later format", replace(`"format":1`, `"format":2`), seal.CodeVersion},
		{"format 0", replace(`"format":1`, `"format":0`), seal.CodeVersion},
		{"a key that is not known", replace(`"format":1`, `"format":1,"hint":"x"`), seal.CodeMalformed},
		{"a key that is missing", replace(`"format":1,`, ``), seal.CodeMalformed},
		{"a hash in capitals", replace(`"root":"`, `"root":"A`), seal.CodeMalformed},
		{"another id", replace(`"id":"20261122-test"`, `"id":"20261122-tesu"`), seal.CodeCheckpoint},
		{"an id that cannot be", replace(`"id":"20261122-test"`, `"id":"a b"`), seal.CodeMalformed},
		{"a path upwards", replace(`"path":"recording.json"`, `"path":"../recording.json"`), seal.CodeMalformed},
		{"another size", replace(`"size":0`, `"size":1`), seal.CodeCheckpoint},
		{"a stream less", func(b []byte) []byte { i := bytes.LastIndex(b, []byte(`,{"bytes"`)); return append(b[:i:i], "]}"...) }, seal.CodeCheckpoint},
		{"a file less", func(b []byte) []byte {
			i, j := bytes.Index(b, []byte(`{"blake3"`)), bytes.Index(b, []byte(`,{"blake3"`))
			return append(b[:i:i], b[j+1:]...)
		}, seal.CodeCheckpoint},
		{"a number of streams", replace(`test\n8\n`, `test\n7\n`), seal.CodeCheckpoint},
		{"an extension line", replace(`=\n\n—`, `=\nmore\n\n—`), seal.CodeCheckpoint},
		{"no signature", func(b []byte) []byte {
			i := bytes.Index(b, []byte("— "))
			j := bytes.Index(b, []byte(`","files"`))
			return append(b[:i:i], b[j:]...)
		}, seal.CodeCheckpoint},
		{"the signature twice", func(b []byte) []byte {
			i := bytes.Index(b, []byte("— "))
			j := bytes.Index(b, []byte(`","files"`))
			return append(append(b[:j:j], b[i:j]...), b[j:]...)
		}, seal.CodeCheckpoint},
		{"another signer's name", replace(`\n\n— tapedeck/`, `\n\n— tapedecK/`), seal.CodeSignature},
		{"not UTF-8", func(b []byte) []byte { b[3] = 0xff; return b }, seal.CodeNotJSON},
		{"empty", func([]byte) []byte { return nil }, seal.CodeNotJSON},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, seal.CodeNotJSON},
		{"a NUL", func(b []byte) []byte { return append(b, 0) }, seal.CodeNotJSON},
		{"a million brackets", func([]byte) []byte { return []byte(deep) }, seal.CodeNotJSON},
		{"a million objects", func([]byte) []byte { return []byte(strings.Repeat(`{"a":`, 1_000_000)) }, seal.CodeNotJSON},
		{"a list", func([]byte) []byte { return []byte("[]") }, seal.CodeMalformed},
		{"too large", func([]byte) []byte { return make([]byte, seal.MaxSeal+1) }, seal.CodeTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := small(t)
			k := sealed(t, dir)
			edit("seal.json", c.change)(t, dir)
			for _, o := range []*seal.VerifyOptions{{Keys: []seal.PublicKey{k.Public()}}, nil} {
				r := verify(t, dir, o)
				(&tampering{code: c.code, path: "seal.json", leaf: -1}).check(t, r.Problems)
			}
		})
	}
}

func TestNoSeal(t *testing.T) {
	dir := small(t)
	if _, err := seal.Verify(context.Background(), dir, nil); !errors.Is(err, seal.ErrNoSeal) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := seal.Verify(context.Background(), filepath.Join(dir, "none"), nil); errors.Is(err, seal.ErrNoSeal) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestOutsideTheSeal changes what nobody sealed.
func TestOutsideTheSeal(t *testing.T) {
	dir := small(t)
	sealed(t, dir)
	put(t, dir, map[string]string{"run.tape.annotations.jsonl": "a note\n"})
	if err := os.MkdirAll(filepath.Join(dir, "empty", "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, nil); !r.OK() {
		t.Errorf("%v", r.Problems)
	}
}

// TestManyProblems adds more files than anybody wants to be told of.
func TestManyProblems(t *testing.T) {
	dir := small(t)
	sealed(t, dir)
	more := map[string]string{}
	for i := range 1200 {
		more[fmt.Sprintf("more/%d", i)] = ""
	}
	put(t, dir, more)
	if r := verify(t, dir, nil); len(r.Problems) != 1000 || r.Omitted != 200 || r.OK() {
		t.Errorf("%d problems, %d omitted", len(r.Problems), r.Omitted)
	}
}
