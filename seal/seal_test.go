package seal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// put writes files below dir, by path.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// small is a recording that has a stream of each kind.
func small(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	blobs := []string{"the first blob", "another one, that no record names", strings.Repeat("long ", 20)}
	var tape strings.Builder
	tape.WriteString(`{"type":"header","version":1,"harn_version":"test 1"}` + "\n")
	for i, b := range blobs {
		d := cas.Sum([]byte(b))
		put(t, dir, map[string]string{"run.tape.cas/" + d.String(): b})
		fmt.Fprintf(&tape, `{"type":"record","seq":%d,"kind":{"kind":"random_read","payload":{"content_hash":"%s","len_bytes":%d}}}`+"\n", i, d, len(b))
	}
	put(t, dir, map[string]string{
		"recording.json":         `{"id":"20261122-test","format":1}`,
		"tree.json":              `{}`,
		"workspace.diff":         "",
		"run.tape":               tape.String(),
		"session.jsonl":          `{"seq":0,"event":{"kind":"run_started"}}` + "\n" + `{"seq":1,"event":{"kind":"run_terminal"}}` + "\n",
		"terminal/output.raw":    "hello\x1b[1mworld\xff",
		"terminal/output.jsonl":  `{"seq":1,"t_ms":0,"offset":0,"length":5}` + "\n" + `{"seq":3,"t_ms":2,"offset":5,"length":10}` + "\n",
		"terminal/frames.jsonl":  `{"seq":2,"t_ms":1,"text":["hello"]}` + "\n",
		"terminal/input.jsonl":   "",
		"terminal/manifest.json": `{"version":1}`,
	})
	return dir
}

func newKey(t testing.TB) *seal.Key {
	t.Helper()
	k, err := seal.NewKey("")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sealed seals a recording by a new key.
func sealed(t testing.TB, dir string) *seal.Key {
	t.Helper()
	k := newKey(t)
	if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k}); err != nil {
		t.Fatal(err)
	}
	return k
}

func verify(t testing.TB, dir string, o *seal.VerifyOptions) *seal.Result {
	t.Helper()
	r, err := seal.Verify(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASealHolds(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	r := verify(t, dir, &seal.VerifyOptions{Keys: []seal.PublicKey{k.Public()}, ID: "20261122-test"})
	if !r.OK() || !r.SignerKnown || r.Signer != k.Public() {
		t.Fatalf("%+v", r)
	}
	if r = verify(t, dir, nil); !r.OK() || r.SignerKnown {
		t.Fatalf("without a key: %+v", r)
	}
	p, err := seal.Prove(context.Background(), dir, &seal.ProveOptions{Seq: 1, Payloads: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := seal.VerifyProof(p.Encode(), &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}})
	if err != nil {
		t.Fatal(err)
	}
	if !got.SignerKnown || got.Leaf != 2 || len(got.Payloads) != 1 || string(got.Payloads[0].Bytes) != "another one, that no record names" {
		t.Errorf("%+v", got)
	}
}
