package recordlog_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// key is a signer and its verifier.
type key struct {
	note.Signer
	note.Verifier
}

func newKey(t testing.TB, name string) key {
	t.Helper()
	sk, vk, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := note.NewSigner(sk)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(vk)
	if err != nil {
		t.Fatal(err)
	}
	return key{s, v}
}

func entry(i int) *recordlog.Entry {
	return &recordlog.Entry{
		Checkpoint: fmt.Sprintf("%064x", i), ID: fmt.Sprintf("20261122-090000-%012x", i), Key: "k", Path: fmt.Sprintf("../%d.rec", i),
		Root: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i)}, 32)), Time: "2026-11-22T09:00:00Z",
	}
}

func entries(from, to int) (out []*recordlog.Entry) {
	for i := from; i < to; i++ {
		out = append(out, entry(i))
	}
	return out
}

func add(t testing.TB, dir string, k key, list ...*recordlog.Entry) []recordlog.Added {
	t.Helper()
	out, err := recordlog.Add(t.Context(), dir, k.Signer, k.Verifier, nil, list...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func verify(t testing.TB, dir string, k key, since []byte) *recordlog.Verification {
	t.Helper()
	v, err := recordlog.Verify(t.Context(), dir, &recordlog.VerifyOptions{Keys: []note.Verifier{k.Verifier}, Since: since})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func holds(t testing.TB, dir string, k key, size int) {
	t.Helper()
	if v := verify(t, dir, k, nil); len(v.Problems) > 0 || v.Size != int64(size) {
		t.Fatalf("size %d of %d, %v", v.Size, size, v.Problems)
	}
}

func checkpoint(t testing.TB, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRoots: whatever the steps by which a log grows, its root is that of RFC 6962 as package tlog computes it, every entry can be
// proved, and so can every older checkpoint.
func TestRoots(t *testing.T) {
	k := newKey(t, "tester")
	growths := [][]int{{1, 1, 1, 1, 1}, {255, 1, 1}, {256}, {257, 254, 2, 600}}
	if os.Getenv("TAPEDECK_LONG") != "" {
		growths = append(growths, []int{65536 - 3, 5}, []int{65536 - 3, 1, 1, 1, 1, 300})
	}
	for _, steps := range growths {
		dir := filepath.Join(t.TempDir(), "log")
		var stored []tlog.Hash
		reader := tlog.HashReaderFunc(func(list []int64) (out []tlog.Hash, err error) {
			for _, i := range list {
				out = append(out, stored[i])
			}
			return out, nil
		})
		n := 0
		var olds [][]byte
		for _, step := range steps {
			for i := n; i < n+step; i++ {
				b, _ := recordlog.Encode(entry(i))
				h, err := tlog.StoredHashes(int64(i), b, reader)
				if err != nil {
					t.Fatal(err)
				}
				stored = append(stored, h...)
			}
			add(t, dir, k, entries(n, n+step)...)
			n += step
			want, err := tlog.TreeHash(int64(n), reader)
			if err != nil {
				t.Fatal(err)
			}
			log, err := recordlog.Open(dir, k.Verifier)
			if err != nil || log.Head.Tree.N != int64(n) || log.Head.Tree.Hash != want {
				t.Fatalf("size %d: %+v, %v, want %v", n, log, err, want)
			}
			for _, old := range olds {
				if v := verify(t, dir, k, old); len(v.Problems) > 0 {
					t.Fatal(v.Problems)
				}
				proveSince(t, log, old, k)
			}
			olds = append(olds, checkpoint(t, dir))
			for _, i := range []int64{0, int64(n) / 2, int64(n) - 1} {
				prove(t, log, i, k)
			}
		}
		holds(t, dir, k, n)
	}
}

func prove(t *testing.T, log *recordlog.Log, i int64, k key) {
	t.Helper()
	proof, err := log.Prove(i)
	if err != nil {
		t.Fatal(err)
	}
	p, err := recordlog.VerifyProof(proof, nil, k.Verifier)
	if err != nil || p.Entry.ID != entry(int(i)).ID || p.Index != i {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := recordlog.VerifyProof(proof, nil, newKey(t, "tester").Verifier); !errors.Is(err, recordlog.ErrCheckpoint) {
		t.Errorf("another key of that name: %v", err)
	}
}

func proveSince(t *testing.T, log *recordlog.Log, old []byte, k key) {
	t.Helper()
	c, err := recordlog.ParseCheckpoint(old, k.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := log.ProveSince(c)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := recordlog.VerifyProof(proof, old, k.Verifier); err != nil || p.Old != c.Tree.N {
		t.Fatalf("%+v, %v\n%s", p, err, proof)
	}
}

func TestAnEntryStandsOnce(t *testing.T) {
	k, dir := newKey(t, "tester"), filepath.Join(t.TempDir(), "log")
	add(t, dir, k, entries(0, 300)...)
	again := entry(7)
	again.Time, again.Path = "2027-01-01T00:00:00Z", "elsewhere"
	other := entry(8)
	other.Checkpoint = entry(9).Checkpoint
	got := add(t, dir, k, again, other, other, entry(300))
	want := []recordlog.Added{{Number: 7, Already: true}, {Number: 300}, {Number: 300, Already: true}, {Number: 301}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	holds(t, dir, k, 302)
	log, err := recordlog.Open(dir, k.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	if n, e, err := log.Find(other.ID); n != 300 || err != nil || e.Checkpoint != other.Checkpoint {
		t.Errorf("%d, %v, %v", n, e, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "index")); err != nil {
		t.Fatal(err)
	}
	if n, _, err := log.Find(other.ID); n != 300 || err != nil {
		t.Errorf("without the index: %d, %v", n, err)
	}
	if got := add(t, dir, k, other); !got[0].Already {
		t.Error("the index was not made again")
	}
}

// TestMany adds from several sides at once: each entry is there once.
func TestMany(t *testing.T) {
	k, dir := newKey(t, "tester"), filepath.Join(t.TempDir(), "log")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				if _, err := recordlog.Add(context.Background(), dir, k.Signer, k.Verifier, nil, entry(100*i+j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	holds(t, dir, k, 80)
}

// sampled is of how many bytes of each file one bit is changed.
var sampled = func() int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return 200
	}
	return 12
}()

// TestTampering changes each byte of each file of a log in turn: no change stays unseen but those of the index.
func TestTampering(t *testing.T) {
	k, dir := newKey(t, "tester"), filepath.Join(t.TempDir(), "log")
	add(t, dir, k, entries(0, 255)...)
	add(t, dir, k, entries(255, 258)...)
	holds(t, dir, k, 258)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/index/") || e.Name() == ".lock" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		step := max(1, len(b)/sampled)
		for i := 0; i < len(b); i += step {
			b[i] ^= 1
			if err := os.WriteFile(path, b, 0o644); err != nil {
				return err
			}
			if v := verify(t, dir, k, nil); len(v.Problems) == 0 {
				t.Errorf("%s: byte %d was changed and nothing was found", path, i)
			}
			b[i] ^= 1
		}
		for _, cut := range [][]byte{b[:len(b)-1], append(bytes.Clone(b), 0)} {
			if err := os.WriteFile(path, cut, 0o644); err != nil {
				return err
			}
			if v := verify(t, dir, k, nil); len(v.Problems) == 0 {
				t.Errorf("%s: %d bytes of %d and nothing was found", path, len(cut), len(b))
			}
		}
		return os.WriteFile(path, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, k, 258)
	if err := os.WriteFile(filepath.Join(dir, "tile", "more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, dir, k, nil); len(v.Problems) != 1 || v.Problems[0].Code != recordlog.CodeUnlisted {
		t.Errorf("%v", v.Problems)
	}
}

func TestAddRefusesAChangedLog(t *testing.T) {
	k := newKey(t, "tester")
	for _, name := range []string{"tile/0/001.p/4", "tile/entries/001.p/4", "tile/1/000.p/1", "checkpoint"} {
		dir := filepath.Join(t.TempDir(), "log")
		add(t, dir, k, entries(0, 260)...)
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-4] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = recordlog.Add(t.Context(), dir, k.Signer, k.Verifier, nil, entry(1000))
		if !errors.Is(err, recordlog.ErrChanged) && !errors.Is(err, recordlog.ErrCheckpoint) {
			t.Errorf("%s: %v", name, err)
		}
		os.Remove(filepath.Join(dir, "checkpoint"))
		if _, err = recordlog.Add(t.Context(), dir, k.Signer, k.Verifier, nil, entry(1000)); !errors.Is(err, recordlog.ErrChanged) {
			t.Errorf("without a checkpoint: %v", err)
		}
	}
}

// TestSince: a log that was cut, forked or taken away does not pass for the one of an older checkpoint.
func TestSince(t *testing.T) {
	k := newKey(t, "tester")
	dir := filepath.Join(t.TempDir(), "log")
	add(t, dir, k, entries(0, 10)...)
	early := checkpoint(t, dir)
	add(t, dir, k, entries(10, 300)...)
	kept := checkpoint(t, dir)
	for name, c := range map[string]struct {
		list []*recordlog.Entry
		want string
	}{
		"truncated": {entries(0, 299), recordlog.CodeTruncated},
		"forked":    {append(entries(0, 200), entries(1000, 1200)...), recordlog.CodeForked},
		"same size": {append(entries(0, 299), entry(4000)), recordlog.CodeForked},
		"gone":      {nil, recordlog.CodeTruncated},
	} {
		other := filepath.Join(t.TempDir(), "log")
		if c.list != nil {
			add(t, other, k, c.list...)
			holds(t, other, k, len(c.list))
		}
		v := verify(t, other, k, kept)
		if len(v.Problems) != 1 || v.Problems[0].Code != c.want {
			t.Errorf("%s: %v", name, v.Problems)
		}
	}
	if v := verify(t, dir, newKey(t, "other"), early); len(v.Problems) == 0 {
		t.Error("another's log was taken")
	}
	// An old checkpoint that is put back verifies by itself, and is noted; against a kept one it does not.
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), early, 0o644); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, dir, k, nil); len(v.Problems) > 0 || len(v.Notes) != 1 {
		t.Errorf("%v %v", v.Problems, v.Notes)
	}
	if v := verify(t, dir, k, kept); len(v.Problems) != 1 || v.Problems[0].Code != recordlog.CodeTruncated {
		t.Errorf("%v", v.Problems)
	}
	// What is added then is a fork, and one that holds by itself.
	add(t, dir, k, entry(5000))
	holds(t, dir, k, 11)
}

// TestProofsBitByBit: no bit of a proof can be changed unseen, but for signatures of others.
func TestProofsBitByBit(t *testing.T) {
	k, dir := newKey(t, "tester"), filepath.Join(t.TempDir(), "log")
	add(t, dir, k, entries(0, 5)...)
	old := checkpoint(t, dir)
	add(t, dir, k, entries(5, 300)...)
	log, err := recordlog.Open(dir, k.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	one, err := log.Prove(3)
	if err != nil {
		t.Fatal(err)
	}
	c, err := recordlog.ParseCheckpoint(old, k.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	since, err := log.ProveSince(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, proof := range [][]byte{one, since} {
		step := 1
		if sampled < 200 {
			step = 7 // another bit of each byte
		}
		for i := 0; i < len(proof)*8; i += step {
			b := bytes.Clone(proof)
			b[i/8] ^= 1 << (i % 8)
			if _, err := recordlog.VerifyProof(b, old, k.Verifier); err == nil {
				t.Fatalf("bit %d of byte %d was changed, and it holds:\n%s", i%8, i/8, b)
			}
		}
	}
}

func TestEntriesAreCanonical(t *testing.T) {
	b, err := recordlog.Encode(entry(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		strings.Replace(string(b), `"id"`, `"extra":1,"id"`, 1), strings.Replace(string(b), `"id"`, `"id":"x","id"`, 1),
		string(b) + " ", strings.ToUpper(string(b)), "{}", "",
	} {
		if e, err := recordlog.ParseEntry([]byte(bad)); err == nil {
			t.Errorf("%s was taken: %+v", bad, e)
		}
	}
}
