package recordlog_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"golang.org/x/mod/sumdb/note"
)

// cosign is what a witness (C2SP tlog-cosignature, type 0x04) gives back for a checkpoint, and its key.
func cosign(t *testing.T, checkpoint []byte, at uint64) (line string, key seal.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw := append([]byte{4}, public...)
	id := sha256.Sum256(append([]byte("witness.example\n"), raw...))
	if key, err = seal.ParsePublicKey(fmt.Sprintf("witness.example+%08x+%s", binary.BigEndian.Uint32(id[:]), base64.StdEncoding.EncodeToString(raw))); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(checkpoint), "\n\n")
	sig := ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", at, text))
	b := append(binary.BigEndian.AppendUint64(id[:4:4], at), sig...)
	return "— witness.example " + base64.StdEncoding.EncodeToString(b) + "\n", key
}

// TestWitness: a cosignature may be appended to a log's checkpoint, breaks nothing, and is checked where it is asked for.
func TestWitness(t *testing.T) {
	k, dir := newKey(t, "tester"), filepath.Join(t.TempDir(), "log")
	add(t, dir, k, entries(0, 3)...)
	line, witness := cosign(t, checkpoint(t, dir), 1700000000)
	ask := func() *recordlog.Verification {
		t.Helper()
		v, err := recordlog.Verify(t.Context(), dir, &recordlog.VerifyOptions{Keys: []note.Verifier{k.Verifier}, Witnesses: []note.Verifier{witness}})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := ask(); len(v.Problems) != 1 || v.Problems[0].Code != recordlog.CodeWitness {
		t.Errorf("not cosigned: %v", v.Problems)
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), append(checkpoint(t, dir), line...), 0o644); err != nil {
		t.Fatal(err)
	}
	if v := ask(); len(v.Problems) > 0 || len(v.Witnesses) != 1 {
		t.Errorf("cosigned: %+v", v)
	}
	holds(t, dir, k, 3)
	cosigned := checkpoint(t, dir)
	if v := verify(t, dir, k, cosigned); len(v.Problems) > 0 {
		t.Errorf("since a cosigned one: %v", v.Problems)
	}
	log, err := recordlog.Open(dir, k.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	prove(t, log, 1, k)
	add(t, dir, k, entries(3, 4)...)
	if v := ask(); len(v.Problems) != 1 {
		t.Errorf("the cosignature of a shorter log was taken: %v", v.Problems)
	}
}
