package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
	"golang.org/x/mod/sumdb/note"
)

func loadKey(t *testing.T, dir string) *seal.Key {
	t.Helper()
	k, err := seal.LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAKeyIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "tapedeck")
	keys := make([]*seal.Key, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = seal.LoadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := 0
	for _, k := range keys {
		if k == nil || k.Public() != keys[0].Public() {
			t.Fatalf("keys differ: %v", keys)
		}
		if k.Made() {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d were made", made)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "seal.key": 0o600, "seal.pub": 0o644} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
	}
	public, err := seal.ReadPublicKeys(filepath.Join(dir, "seal.pub"))
	if err != nil || len(public) != 1 || public[0] != keys[0].Public() {
		t.Errorf("%v, %v", public, err)
	}
}

// TestAKeyIsANoteKey reads both halves with the library of signed notes.
func TestAKeyIsANoteKey(t *testing.T) {
	dir := t.TempDir()
	k := loadKey(t, dir)
	private, err := os.ReadFile(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(strings.TrimSuffix(string(private), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(k.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	if signer.Name() != k.Name() || signer.KeyHash() != k.KeyHash() || verifier.KeyHash() != k.Public().KeyHash() {
		t.Error("they are read as another key")
	}
	b, err := note.Sign(&note.Note{Text: "a\n"}, k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(b, note.VerifierList(verifier)); err != nil {
		t.Error(err)
	}
}

func TestAKeyIsNeverReplacedSilently(t *testing.T) {
	change := func(name string, b []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), b) }
	}
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		want error
		says string
	}{
		"private half lost":      {remove("seal.key"), seal.ErrKeyLost, "backup"},
		"both gone but half":     {both(remove("seal.key"), change("seal.pub", []byte("x\n"))), seal.ErrKeyLost, "seal.pub"},
		"private half malformed": {change("seal.key", []byte("x\n")), seal.ErrKeyFile, "backup"},
		"private half empty":     {change("seal.key", nil), seal.ErrKeyFile, "backup"},
		"private half damaged":   {edit("seal.key", func(b []byte) []byte { b[len(b)-6] ^= 1; return b }), seal.ErrKeyFile, "backup"},
		"private half huge":      {change("seal.key", make([]byte, 2<<20)), seal.ErrKeyFile, "larger"},
		"public half malformed":  {change("seal.pub", []byte("x\n")), seal.ErrKeyFile, "move it away"},
		"public half of another": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "seal.pub"), []byte(newKey(t).Public().String()+"\n"))
		},
			seal.ErrKeyMismatch, "put back the pair"},
		"mode": {func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "seal.key"), 0o640); err != nil {
				t.Fatal(err)
			}
		}, seal.ErrKeyFile, "chmod 600"},
		"a directory": {both(remove("seal.key"), add("seal.key/x", "")), seal.ErrKeyFile, "regular"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "mode" && runtime.GOOS == "windows" {
				t.Skip("there are no such modes")
			}
			dir := t.TempDir()
			loadKey(t, dir)
			private, _ := os.ReadFile(filepath.Join(dir, "seal.key"))
			c.do(t, dir)
			before := tree(t, dir)
			k, err := seal.LoadKey(dir)
			if k != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v", k, err)
			}
			secret := string(private[len(private)-20 : len(private)-2])
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells the key: %v", err)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("it wrote: %s, before %s", after, before)
			}
		})
	}
}

// tree is every file below dir with what is in it.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	for _, path := range filesOf(t, dir) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(path + ": " + string(b) + "\n")
	}
	return out.String()
}

func TestThePublicHalfIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	k := loadKey(t, dir)
	remove("seal.pub")(t, dir)
	if again := loadKey(t, dir); again.Public() != k.Public() || again.Made() {
		t.Error("it is another key")
	}
	public, err := seal.ReadPublicKeys(filepath.Join(dir, "seal.pub"))
	if err != nil || public[0] != k.Public() {
		t.Errorf("%v, %v", public, err)
	}
}

func TestPublicKeys(t *testing.T) {
	a, b := newKey(t).Public(), newKey(t).Public()
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, []byte("# ours\n"+a.String()+"\r\n\n"+b.String()))
	keys, err := seal.ReadPublicKeys(path)
	if err != nil || len(keys) != 2 || keys[0] != a || keys[1] != b {
		t.Errorf("%v, %v", keys, err)
	}
	text := a.String()
	for _, bad := range []string{"", "x", text + "=", text + "\n", " " + text, strings.Replace(text, "+A", "+B", 1), text[:len(text)-1],
		strings.Replace(text, "+", "++", 1), strings.Replace(text, "tapedeck", "tape deck", 1), strings.ToUpper(text)} {
		if k, err := seal.ParsePublicKey(bad); !errors.Is(err, seal.ErrKeyText) {
			t.Errorf("%q: %v, %v", bad, k, err)
		}
	}
	// The last letter of 33 bytes in base64 has no spare bits, but every bit of the text counts.
	for i := range len(text) {
		for bit := range 8 {
			changed := []byte(text)
			changed[i] ^= 1 << bit
			if k, err := seal.ParsePublicKey(string(changed)); err == nil {
				t.Errorf("bit %d of byte %d: %v", bit, i, k)
			}
		}
	}
	for _, none := range []string{"", "# nothing\n\n"} {
		write(t, path, []byte(none))
		if _, err := seal.ReadPublicKeys(path); !errors.Is(err, seal.ErrKeyFile) {
			t.Errorf("%q: %v", none, err)
		}
	}
}
