package seal_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/seal"
)

var addCorpus = flag.Bool("add-corpus", false, "write the cases of corpus/seals that are not there yet; all of them where the directory is not")

const seals = "../corpus/seals"

func TestCorpus(t *testing.T) {
	if *addCorpus {
		writeCorpus(t)
	}
	cases, err := corpus.Seals()
	if err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			o := &seal.VerifyOptions{Keys: keysOf(t, &c, "key"), Witnesses: keysOf(t, &c, "witness")}
			var got []string
			if c.Get("proof") != "" {
				got = checkProof(c.Body, o)
			} else {
				dir := makeCase(t, &c)
				got = checkCase(t, dir, o)
			}
			if want := valuesOf(&c, "problem"); !slices.Equal(got, want) {
				t.Errorf("%q, expected %q", got, want)
			}
			if holds := len(valuesOf(&c, "problem")) == 0; holds != strings.HasPrefix(c.Name, "good-") {
				t.Errorf("a case of that name does not hold: %v", holds)
			}
		})
	}
}

func valuesOf(c *corpus.Case, key string) (all []string) {
	for _, f := range c.Fields {
		if f.Key == key {
			all = append(all, f.Value)
		}
	}
	return all
}

func keysOf(t *testing.T, c *corpus.Case, field string) (keys []seal.PublicKey) {
	t.Helper()
	for _, text := range valuesOf(c, field) {
		k, err := seal.ParsePublicKey(text)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

// said is a problem as a case has it.
func said(p *seal.Problem) string {
	text := string(p.Code) + " " + p.Path
	if p.Line > 0 {
		text += " " + strconv.FormatInt(p.Line, 10)
	}
	return text
}

func checkCase(t *testing.T, dir string, o *seal.VerifyOptions) (all []string) {
	t.Helper()
	r := verify(t, dir, o)
	for i := range r.Problems {
		all = append(all, said(&r.Problems[i]))
	}
	return all
}

func checkProof(b []byte, o *seal.VerifyOptions) []string {
	_, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: o.Keys, Witnesses: o.Witnesses})
	var p *seal.Problem
	if !errors.As(err, &p) {
		return nil
	}
	return []string{said(p)}
}

// makeCase copies the recording that a case is about, and does to it what the case says.
func makeCase(t *testing.T, c *corpus.Case) string {
	t.Helper()
	dir := t.TempDir()
	files, err := corpus.SealFiles()
	if err != nil {
		t.Fatal(err)
	}
	from, err := fs.Sub(files, c.Get("directory"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, from); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Fields {
		name, rest, _ := strings.Cut(f.Value, " ")
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch f.Key {
		case "remove":
			err = os.Remove(path)
		case "put":
			var b []byte
			if b, err = base64.StdEncoding.DecodeString(rest); err == nil {
				_ = os.Remove(path) // it may be read-only
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
			}
		case "symlink":
			if err = os.Symlink(rest, path); err != nil {
				t.Skip(err)
			}
		case "fifo":
			makeFIFO(t, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeCorpus makes the recording that all cases are about, where it is not there, and with it the cases that its private key
// must make.
func writeCorpus(t *testing.T) {
	good := filepath.Join(seals, "sealed")
	if _, err := os.Stat(good); err == nil {
		t.Fatal("corpus/seals is there, and a case is added, never changed: write another function for new ones")
	}
	dir := small(t)
	k := sealed(t, dir)
	if err := os.CopyFS(good, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	w := &corpusWriter{t: t, good: dir, key: k.Public()}
	w.write("good-whole", "A recording with a stream of each kind.", dir, nil, nil)
	for _, c := range tamperings {
		changed := w.copy()
		c.do(t, changed)
		w.write("bad-"+strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), "'", ""), strings.ToUpper(c.name[:1])+c.name[1:]+".", changed, nil, nil)
	}
	w.others()
	w.proofs()
}

type corpusWriter struct {
	t    *testing.T
	good string
	key  seal.PublicKey
}

func (w *corpusWriter) copy() string {
	dir := w.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(w.good)); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// others are the cases that no table has.
func (w *corpusWriter) others() {
	t := w.t
	edited := func(name, shows string, witness *witness, change func([]byte) []byte) {
		dir := w.copy()
		edit("seal.json", change)(t, dir)
		var witnesses []seal.PublicKey
		if witness != nil {
			witnesses = append(witnesses, witness.public(t))
		}
		w.write(name, shows, dir, witnesses, nil)
	}
	edited("bad-seal-key-twice", "A key stands twice.", nil, replace(`"format":1,`, `"format":1,"format":1,`))
	edited("bad-seal-white-space", "The same seal with a space in it.", nil, replace(`"format":1`, `"format": 1`))
	edited("bad-seal-newline", "The same seal with a newline behind it.", nil, func(b []byte) []byte { return append(b, '\n') })
	edited("bad-seal-escape", "A path with an escape that RFC 8785 does not write.", nil, replace(`"run.tape"`, `"run\u002etape"`))
	edited("bad-seal-version", "A later format.", nil, replace(`"format":1`, `"format":2`))
	edited("bad-seal-unknown-key", "A key that the format does not have.", nil, replace(`"format":1`, `"format":1,"hint":"x"`))
	edited("bad-seal-id", "Another id than the checkpoint's.", nil, replace(`"id":"20261122-test"`, `"id":"20261122-tesu"`))
	edited("bad-seal-path-up", "A path that leads out of the recording.", nil, replace(`"path":"recording.json"`, `"path":"../recording.json"`))
	edited("bad-seal-extension-line", "A checkpoint with a fourth line.", nil, replace(`=\n\n—`, `=\nmore\n\n—`))
	edited("bad-seal-spare-bits", "A signature whose last letter has spare bits that are not zero.", nil, func(b []byte) []byte {
		i := bytes.Index(b, []byte(`=\n","files"`)) - 1
		b[i]++
		return b
	})
	edited("bad-seal-not-utf-8", "A byte that is no UTF-8.", nil, func(b []byte) []byte { b[3] = 0xff; return b })
	edited("bad-seal-nested", "A thousand thousand brackets would do, too.", nil, func([]byte) []byte { return []byte(strings.Repeat("[", 20_000)) })
	wit, other := newWitness(t, "witness.example/w1"), newWitness(t, "witness.example/w2")
	cosign := func(b []byte) []byte {
		d, err := seal.ParseDocument(b)
		if err != nil {
			t.Fatal(err)
		}
		d.Checkpoint += wit.cosign(d.Checkpoint, 1_795_000_000)
		return d.Encode()
	}
	edited("good-witness", "A cosignature of a witness, who is asked for.", wit, cosign)
	edited("good-unknown-witness", "A cosignature of a witness whom nobody knows.", nil, cosign)
	edited("bad-witness", "Another witness is asked for than the one who cosigned.", other, cosign)
	dir := w.copy()
	put(t, dir, map[string]string{"run.tape.annotations.jsonl": "a note\n"})
	w.write("good-annotations", "People's notes stand outside the seal.", dir, nil, nil)
	dir = w.copy()
	edit("run.tape", lines(func(l []string) []string { return l[:2] }))(t, dir)
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: newKey(t), Replace: true}); err != nil {
		t.Fatal(err)
	}
	w.write("bad-sealed-by-another", "The end of the tape cut off, and sealed by somebody else.", dir, nil, nil)
	for _, name := range []string{"tree.json", firstBlob, "seal.json"} {
		dir = w.copy()
		both(remove(name), func(t *testing.T, dir string) {
			if err := os.Symlink("/dev/null", filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		})(t, dir)
		kind := map[string]string{"tree.json": "file", firstBlob: "blob", "seal.json": "seal"}[name]
		w.write("bad-symlink-for-"+kind, "A symlink in a "+kind+"'s place.", dir, nil, nil)
		dir = w.copy()
		remove(name)(t, dir)
		makeFIFO(t, filepath.Join(dir, filepath.FromSlash(name)))
		w.write("bad-fifo-for-"+kind, "A FIFO in a "+kind+"'s place: nothing may wait for its other end.", dir, nil, nil)
	}
}

func (w *corpusWriter) proofs() {
	for _, c := range everyProof {
		b := prove(w.t, w.good, &c.o)
		w.write("good-proof-of-"+strings.ReplaceAll(c.name, " ", "-"), "Proves "+c.name+".", "", nil, b)
	}
	whole := string(prove(w.t, w.good, &seal.ProveOptions{Seq: 1, Payloads: true}))
	for name, c := range map[string][3]string{
		"leaf":          {"Another number of the leaf.", `"at":2`, `"at":1`},
		"leaf-beyond":   {"A leaf beyond the stream's end.", `"at":2`, `"at":9007199254740991`},
		"record":        {"Another record.", `\"seq\":1`, `\"seq\":2`},
		"payload":       {"Another payload.", `"text":"another`, `"text":"Another`},
		"recording":     {"Another recording.", `"id":"20261122`, `"id":"20261123`},
		"key-twice":     {"A key stands twice.", `"format":1`, `"format":1,"format":1`},
		"white-space":   {"The same proof with a space in it.", `"format":1`, `"format": 1`},
		"version":       {"A later format.", `"format":1`, `"format":2`},
		"leaves":        {"Another number of leaves.", `"leaves":4`, `"leaves":5`},
		"checkpoint":    {"Another number of streams.", `test\n8\n`, `test\n9\n`},
		"long-path":     {"A longer path.", `"streamPath":[`, `"streamPath":["` + strings.Repeat("0", 64) + `",`},
		"short-payload": {"A payload that the leaf does not name.", `"payloads":[`, `"payloads":[{"blake3":"` + strings.TrimPrefix(firstBlob, "run.tape.cas/") + `","text":"the first blob"},`},
	} {
		if strings.Count(whole, c[1]) == 0 {
			w.t.Fatal(name)
		}
		w.write("bad-proof-"+name, c[0], "", nil, []byte(strings.Replace(whole, c[1], c[2], 1)))
	}
}

// write writes the case of a changed copy of the recording, or of a proof.
func (w *corpusWriter) write(name, shows, dir string, witnesses []seal.PublicKey, proof []byte) {
	w.t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "shows: %s\nkey: %s\n", shows, w.key)
	for _, k := range witnesses {
		fmt.Fprintf(&out, "witness: %s\n", k)
	}
	o := &seal.VerifyOptions{Keys: []seal.PublicKey{w.key}, Witnesses: witnesses}
	var problems []string
	if proof != nil {
		out.WriteString("proof: yes\n")
		problems = checkProof(proof, o)
	} else {
		out.WriteString("directory: sealed\n" + w.changes(dir))
		problems = checkCase(w.t, dir, o)
	}
	for _, p := range problems {
		fmt.Fprintf(&out, "problem: %s\n", p)
	}
	out.WriteString("\n")
	out.Write(proof)
	write(w.t, filepath.Join(seals, name+".case"), []byte(out.String()))
}

// changes says what was done to a copy.
func (w *corpusWriter) changes(dir string) string {
	w.t.Helper()
	before, after := w.entries(w.good), w.entries(dir)
	var out strings.Builder
	for _, name := range sortedKeys(before) {
		if after[name] != before[name] {
			fmt.Fprintf(&out, "remove: %s\n", name)
		}
	}
	for _, name := range sortedKeys(after) {
		if after[name] != before[name] {
			out.WriteString(after[name] + "\n")
		}
	}
	return out.String()
}

func sortedKeys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// entries are the lines that make each file of a directory again.
func (w *corpusWriter) entries(dir string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[rel] = "symlink: " + rel + " " + target
			return err
		case d.Type()&fs.ModeNamedPipe != 0:
			all[rel] = "fifo: " + rel
			return nil
		}
		b, err := os.ReadFile(path)
		all[rel] = "put: " + rel + " " + base64.StdEncoding.EncodeToString(b)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}
