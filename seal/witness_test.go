package seal_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
	"golang.org/x/mod/sumdb/note"
)

// A witness cosigns as C2SP tlog-cosignature says, by code of its own.
type witness struct {
	name string
	key  ed25519.PrivateKey
}

func newWitness(t testing.TB, name string) *witness {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &witness{name, key}
}

func (w *witness) id() []byte {
	sum := sha256.Sum256(append([]byte(w.name+"\n\x04"), w.key.Public().(ed25519.PublicKey)...))
	return sum[:4]
}

func (w *witness) public(t testing.TB) seal.PublicKey {
	t.Helper()
	b := append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
	k, err := seal.ParsePublicKey(fmt.Sprintf("%s+%x+%s", w.name, w.id(), base64.StdEncoding.EncodeToString(b)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// cosign returns the signature line for a checkpoint.
func (w *witness) cosign(checkpoint string, at uint64) string {
	text := checkpoint[:strings.LastIndex(checkpoint, "\n\n")+1]
	sig := ed25519.Sign(w.key, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", at, text)))
	b := append(binary.BigEndian.AppendUint64(w.id(), at), sig...)
	return "— " + w.name + " " + base64.StdEncoding.EncodeToString(b) + "\n"
}

// cosigned seals a recording and adds a witness's line to the checkpoint.
func cosigned(t *testing.T, dir string, line func(checkpoint string) string) (*seal.Key, *seal.Document) {
	t.Helper()
	k := sealed(t, dir)
	d, err := seal.ReadDocument(dir)
	if err != nil {
		t.Fatal(err)
	}
	d.Checkpoint += line(d.Checkpoint)
	write(t, filepath.Join(dir, "seal.json"), d.Encode())
	return k, d
}

func TestWitnesses(t *testing.T) {
	dir := small(t)
	w, other := newWitness(t, "witness.example/w1"), newWitness(t, "witness.example/w2")
	k, d := cosigned(t, dir, func(c string) string { return w.cosign(c, 1_795_000_000) })
	keys := []seal.PublicKey{k.Public()}

	r := verify(t, dir, &seal.VerifyOptions{Keys: keys, Witnesses: []seal.PublicKey{w.public(t)}})
	if !r.OK() || len(r.Cosignatures) != 1 || r.Cosignatures[0].Time.Unix() != 1_795_000_000 || len(r.Unknown) != 0 {
		t.Errorf("%+v", r)
	}
	r = verify(t, dir, &seal.VerifyOptions{Keys: keys})
	if !r.OK() || len(r.Unknown) != 1 || r.Unknown[0] != fmt.Sprintf("%s+%x", w.name, w.id()) {
		t.Errorf("%+v", r)
	}
	r = verify(t, dir, &seal.VerifyOptions{Keys: keys, Witnesses: []seal.PublicKey{w.public(t), other.public(t)}})
	(&tampering{code: seal.CodeWitness, path: "seal.json", leaf: -1}).check(t, r.Problems)
	r = verify(t, dir, &seal.VerifyOptions{Keys: keys, Witnesses: keys})
	(&tampering{code: seal.CodeWitness, path: "seal.json", leaf: -1}).check(t, r.Problems)

	b := prove(t, dir, &seal.ProveOptions{})
	p, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: keys, Witnesses: []seal.PublicKey{w.public(t)}})
	if err != nil || len(p.Cosignatures) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	v, err := note.NewVerifier(k.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := note.Open([]byte(d.Checkpoint), note.VerifierList(v, w.public(t))); err != nil || len(n.Sigs) != 2 {
		t.Errorf("the library of signed notes: %v, %v", n, err)
	}
}

// TestEveryBitOfACosignature is about who asks for the witness: to others its line says nothing.
func TestEveryBitOfACosignature(t *testing.T) {
	dir := small(t)
	w := newWitness(t, "witness.example/w1")
	k, d := cosigned(t, dir, func(c string) string { return w.cosign(c, 1_795_000_000) })
	o := &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}, Witnesses: []seal.PublicKey{w.public(t)}}
	p, err := seal.Prove(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := []byte(d.Checkpoint)
	for i := range whole {
		for bit := range 8 {
			whole[i] ^= 1 << bit
			p.Checkpoint = string(whole)
			if _, err := seal.VerifyProof(p.Encode(), o); err == nil {
				t.Errorf("bit %d of byte %d, %q", bit, i, whole[max(0, i-10):i+1])
			}
			whole[i] ^= 1 << bit
		}
	}
}

func TestBadCosignatures(t *testing.T) {
	w := newWitness(t, "witness.example/w1")
	for name, line := range map[string]func(c string) string{
		"of another checkpoint": func(c string) string { return w.cosign("x"+c, 1) },
		"a time beyond":         func(c string) string { return w.cosign(c, 1<<63) },
		"too short": func(string) string {
			return "— " + w.name + " " + base64.StdEncoding.EncodeToString(append(w.id(), 1)) + "\n"
		},
	} {
		dir := small(t)
		cosigned(t, dir, line)
		r := verify(t, dir, &seal.VerifyOptions{Witnesses: []seal.PublicKey{w.public(t)}})
		t.Log(name)
		(&tampering{code: seal.CodeWitness, path: "seal.json", leaf: -1}).check(t, r.Problems)
	}
}
