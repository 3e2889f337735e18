package seal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// canonical checks that what was taken is in the one form, and is written as it was read.
func canonical(t *testing.T, b, again []byte) {
	t.Helper()
	if !bytes.Equal(again, b) {
		t.Errorf("it is written as\n%s\nand was read from\n%s", again, b)
	}
	if c, err := canonjson.Canonical(b); err != nil || !bytes.Equal(c, b) {
		t.Errorf("it is not canonical: %v", err)
	}
}

func typed(t *testing.T, err error) {
	t.Helper()
	var p *seal.Problem
	if err != nil && (!errors.As(err, &p) || p.Code == "" || p.Message == "") {
		t.Errorf("%T, %v", err, err)
	}
}

func FuzzDocument(f *testing.F) {
	dir := small(f)
	sealed(f, dir)
	b, err := os.ReadFile(filepath.Join(dir, "seal.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"checkpoint":"x","files":[],"format":1}`))
	f.Add([]byte(`{"checkpoint":"\ud800","files":[{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := seal.ParseDocument(b)
		typed(t, err)
		if err == nil {
			canonical(t, b, d.Encode())
		}
	})
}

func FuzzProof(f *testing.F) {
	dir := small(f)
	sealed(f, dir)
	for _, c := range everyProof {
		p, err := seal.Prove(context.Background(), dir, &c.o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := seal.ParseProof(b)
		typed(t, err)
		if err == nil {
			canonical(t, b, p.Encode())
		}
		_, err = seal.VerifyProof(b, nil)
		typed(t, err)
	})
}

// FuzzCheckpoint gives a checkpoint of a proof in which all else holds.
func FuzzCheckpoint(f *testing.F) {
	dir := small(f)
	k := sealed(f, dir)
	p, err := seal.Prove(context.Background(), dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	w := newWitness(f, "witness.example/w1")
	f.Add(p.Checkpoint)
	f.Add(p.Checkpoint + w.cosign(p.Checkpoint, 7))
	f.Add("a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— a jWbPPw==\n")
	whole := p.Checkpoint
	f.Fuzz(func(t *testing.T, text string) {
		q := *p
		q.Checkpoint = text
		_, err := seal.VerifyProof(q.Encode(), &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}})
		typed(t, err)
		if err == nil && (len(text) < len(whole) || !bytes.Contains([]byte(text), []byte(whole[:bytes.Index([]byte(whole), []byte("\n\n"))]))) {
			t.Errorf("taken: %q", text)
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	f.Add(newKey(f).Public().String())
	f.Add(newWitness(f, "w").public(f).String())
	f.Add("a+00000000+AQ==")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := seal.ParsePublicKey(text)
		if err == nil && k.String() != text {
			t.Errorf("%q is written as %q", text, k)
		}
		if err != nil && !errors.Is(err, seal.ErrKeyText) {
			t.Error(err)
		}
	})
}

// FuzzKeyFiles reads both files of a key as something else left them.
func FuzzKeyFiles(f *testing.F) {
	dir := f.TempDir()
	if _, err := seal.LoadKey(dir); err != nil {
		f.Fatal(err)
	}
	private, err := os.ReadFile(filepath.Join(dir, "seal.key"))
	if err != nil {
		f.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(dir, "seal.pub"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(private, public)
	f.Add([]byte("PRIVATE+KEY+a+00000000+AQ=="), []byte("# nothing\n"))
	f.Add([]byte("PRIVATE+KEY+++"), []byte("\n"))
	f.Fuzz(func(t *testing.T, private, public []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "seal.key"), private)
		write(t, filepath.Join(dir, "seal.pub"), public)
		k, err := seal.LoadKey(dir)
		if err != nil && !errors.Is(err, seal.ErrKeyFile) && !errors.Is(err, seal.ErrKeyMismatch) {
			t.Error(err)
		}
		if err == nil && k.Made() {
			t.Error("a new key was made")
		}
		if b, err := os.ReadFile(filepath.Join(dir, "seal.key")); err != nil || !bytes.Equal(b, private) {
			t.Errorf("seal.key was changed: %v", err)
		}
	})
}

// FuzzTape seals a tape of any bytes, changes one and asks where.
func FuzzTape(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), uint(3), byte(1))
	f.Add([]byte("\n\n\n"), uint(1), byte(0x20))
	f.Add([]byte("\x00\xff\r\n"), uint(0), byte(0x80))
	k := newKey(f)
	f.Fuzz(func(t *testing.T, tape []byte, at uint, flip byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "run.tape")
		write(t, path, tape)
		if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, ID: "x"}); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir, nil); !r.OK() {
			t.Fatal(r.Problems)
		}
		if len(tape) == 0 || flip == 0 {
			return
		}
		tape[at%uint(len(tape))] ^= flip
		write(t, path, tape)
		r := verify(t, dir, nil)
		if r.OK() || r.Problems[0].Path != "run.tape" || r.Problems[0].Leaf < 0 {
			t.Errorf("%+v", r.Problems)
		}
	})
}
