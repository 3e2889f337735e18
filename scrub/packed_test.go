package scrub_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

func deflated(text string) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

func TestPacked(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	for name, b := range map[string][]byte{
		"gzip": gzipped("the key is Zx9QvT2mKw7Lp4Rn."), "zlib": deflated("blob 29\x00the key is Zx9QvT2mKw7Lp4Rn."),
		"two members":     append(gzipped("first "), gzipped("Zx9QvT2mKw7Lp4Rn")...),
		"cut":             gzipped(strings.Repeat("Zx9QvT2mKw7Lp4Rn ", 100) + noise(5000))[:3000],
		"base64 in gzip":  gzipped(encodings["base64 at 1"]("Zx9QvT2mKw7Lp4Rn")),
		"a shape in gzip": gzipped("token glpat-0123456789abcdefABCD."),
	} {
		out, found := s.Bytes(b)
		if !found || !strings.HasPrefix(string(out), "td_packed_") || strings.Contains(string(out), "Zx9QvT2m") {
			t.Errorf("%s became %q", name, out)
		}
	}
	for name, b := range map[string][]byte{
		"nothing in it": gzipped("harmless"), "no gzip": []byte("\x1f\x8b\x08 is how gzip begins"), "x^2": []byte("x^2 + y^2 = z^2"),
		"zlib": deflated("harmless"), "not a pack": []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x09 of nothing"),
	} {
		if out, found := s.Bytes(b); found || !bytes.Equal(out, b) {
			t.Errorf("%s became %q", name, out)
		}
	}
}

// noise is text that does not compress well.
func noise(n int) string {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}

// TestGitObjects: a secret that was committed is found in the loose object and, packed by Git, in the pack.
func TestGitObjects(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
			"HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	for i, text := range []string{noise(4000), noise(2000) + "\nZx9QvT2mKw7Lp4Rn\n" + noise(4000)[2000:]} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "file")
		git("commit", "-q", "-m", strings.Repeat("x", i+1))
	}
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	if n := secretFiles(t, s, filepath.Join(dir, ".git", "objects")); n != 1 {
		t.Errorf("%d loose objects hold the secret, want 1", n)
	}
	git("gc", "-q", "--aggressive", "--prune=now")
	if n := secretFiles(t, s, filepath.Join(dir, ".git", "objects")); n != 1 {
		t.Errorf("%d packs hold the secret, want 1", n)
	}
}

func secretFiles(t *testing.T, s *scrub.Scrubber, dir string) (n int) {
	for _, b := range sources(t, dir) {
		if out, found := s.Bytes(b); found {
			n++
			if strings.Contains(string(out), "Zx9QvT2m") {
				t.Errorf("left in %q", out)
			}
		}
	}
	return n
}

func FuzzPacked(f *testing.F) {
	f.Add(gzipped("the key is Zx9QvT2mKw7Lp4Rn."))
	f.Add(deflated("Zx9QvT2mKw7Lp4Rn"))
	f.Add(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x3e"), deflated("Zx9QvT2mKw7Lp4Rn")...))
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, _ := s.Bytes(b); bytes.Contains(out, []byte("Zx9QvT2mKw7Lp4Rn")) {
			t.Fatalf("%q became %q", b, out)
		}
	})
}
