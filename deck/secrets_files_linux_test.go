package deck_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

func init() { programs["credentials"] = playCredentials }

// credentialFiles are files of a work tree that hold credentials by their place or name, each with a secret of no known
// shape that nothing else names.
var credentialFiles = map[string]string{
	".env":                      "DB=Env1kQ7w\n",
	".netrc":                    "machine h login ann password Netrc2mZ8x\n",
	".npmrc":                    "//r/:_password=Npmrc3pL5v\n",
	"auth.json":                 `{"refresh":"Auth4tR6n"}`,
	"home/.aws/credentials":     "[default]\naws_secret_access_key = Aws5hG3jW\n",
	"home/.ssh/id_ed25519":      "Ssh6cF4dB\n",
	"home/.docker/config.json":  `{"auths":{"r":{"auth":"Dock7yT2e"}}}`,
	"home/service-account.json": `{"private_key_id":"Svc8uJ1kM"}`,
}

// holders are files that hold a known secret: plain, compressed, and as Git keeps them.
func holders(secret string) map[string][]byte {
	return map[string][]byte{
		"notes.txt":                    []byte("the key is " + secret + "\n"),
		"dump.sql.gz":                  packedAs("gzip", "INSERT '"+secret+"';\n"),
		"objects/ab/cdef0123456789":    packedAs("deflate", "blob 40\x00the key is "+secret),
		"objects/pack/pack-0123.pack":  gitPack("first", "the key is "+secret),
		"twice.tar.gz":                 packedAs("gzip", "./a\x00\x00"+secret+"\x00\x00./b\x00"+secret),
		"encoded.gz":                   packedAs("gzip", disguises[10].of(secret)),
		"node_modules/p/fixtures/k.js": []byte("const k = '" + secret + "'\n"),
	}
}

// gitPack is a pack of Git with a blob for each of texts.
func gitPack(texts ...string) []byte {
	b := []byte{'P', 'A', 'C', 'K', 0, 0, 0, 2, 0, 0, 0, byte(len(texts))}
	for _, text := range texts {
		const blob = 3
		b = append(b, 0x80|blob<<4|byte(len(text)&15), byte(len(text)>>4))
		b = append(b, packedAs("deflate", text)...)
	}
	return append(b, make([]byte, 20)...)
}

// playCredentials reads the files that its arguments name, and writes to some.
func playCredentials(args []string) int {
	for _, name := range args {
		b, err := os.ReadFile(name)
		fmt.Println(name, len(b), err)
	}
	secret := os.Getenv("CANARY_API_KEY")
	for name, b := range holders(secret) {
		if err := os.WriteFile("new-"+filepath.Base(name), b, 0o600); err != nil {
			return fail(err)
		}
	}
	return errorCode(errors.Join(
		os.WriteFile(".env", []byte("DB=Env1kQ7w\nNEW=Env9xB2nC\n"), 0o600),
		os.WriteFile(".git-credentials", []byte("https://ann:Cred0vH6s@h\n"), 0o600)))
}

func errorCode(err error) int {
	if err != nil {
		return fail(err)
	}
	return 0
}

// TestCredentialFiles: a file that holds credentials is in the recording as a keyed digest; its bytes are those of the
// disk while they are the recorded ones. A file that holds a known secret inside, compressed or not, is one of them.
func TestCredentialFiles(t *testing.T) {
	t.Parallel()
	const secret = "cnry7Q2x9ZpLm4Vt8KrW3nHd"
	b := newBench(t)
	b.env = append(b.env, "CANARY_API_KEY="+secret)
	var names []string
	put := func(name string, content []byte) {
		names = append(names, name)
		path := filepath.Join(b.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range credentialFiles {
		put(name, []byte(content))
	}
	for name, content := range holders(secret) {
		put(name, content)
	}
	secrets := len(names)
	put("harmless.gz", packedAs("gzip", "nothing in it"))
	put("readme.md", []byte("plain"))
	slices.Sort(names)
	res, out := b.record("credentials", names...)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	for _, value := range []string{secret, "Env1kQ7w", "Netrc2mZ8x", "Npmrc3pL5v", "Auth4tR6n", "Aws5hG3jW", "Ssh6cF4dB", "Dock7yT2e", "Svc8uJ1kM",
		"Env9xB2nC", "Cred0vH6s"} {
		lookFor(t, res.Recording.Dir, value)
	}
	put(".env", []byte(credentialFiles[".env"])) // which the program has written
	checkMarks(t, res.Recording, b, names[:len(names)-1], secrets)
	v, again := b.replay(res.Recording, &deck.ReplayOptions{Env: b.env})
	b.green(v)
	if again != out {
		t.Errorf("the program saw %q, recorded was %q", again, out)
	}
	checkChangedOnDisk(t, b, res.Recording)
	checkNamed(t, b, res.Recording)
}

// checkMarks: each secret file is marked with the keyed digest of its bytes, and no other file is.
func checkMarks(t *testing.T, rec *recording.Recording, b *bench, names []string, secrets int) {
	t.Helper()
	key, err := scrub.LoadKey(filepath.Join(b.config, "scrub.key"))
	if err != nil {
		t.Fatal(err)
	}
	s := scrub.New(key, nil)
	tree, err := rec.Tree()
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, name := range names {
		e, ok := tree.Lookup(name)
		if !ok {
			t.Errorf("%s is not in the tree", name)
			continue
		}
		if e.Secret == "" {
			if name != "harmless.gz" && name != "readme.md" {
				t.Errorf("%s is not marked", name)
			}
			continue
		}
		marked++
		real, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil || s.KeyedDigest(real) != e.Secret {
			t.Errorf("%s is marked %s", name, e.Secret)
		}
	}
	if marked != secrets {
		t.Errorf("%d files are marked, want %d", marked, secrets)
	}
	diff, err := os.ReadFile(filepath.Join(rec.Dir, "workspace.diff"))
	if err != nil || len(diff) > 0 {
		t.Errorf("workspace.diff has %d bytes, %v: every file that was written holds a secret", len(diff), err)
	}
}

// checkChangedOnDisk: a secret file that is no longer the recorded one is shown scrubbed, and a note names it.
func checkChangedOnDisk(t *testing.T, b *bench, rec *recording.Recording) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, ".netrc"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, out := b.replay(rec, &deck.ReplayOptions{Env: b.env})
	if !strings.Contains(strings.Join(v.Notes, "\n"), ".netrc") {
		t.Errorf("no note names .netrc: %q", v.Notes)
	}
	if strings.Contains(out, fmt.Sprintln(".netrc", len("changed"), nil)) {
		t.Error("the program got bytes that are neither recorded nor scrubbed")
	}
}

// checkNamed: restore leaves secret files out, and apply refuses them, both by name.
func checkNamed(t *testing.T, b *bench, rec *recording.Recording) {
	t.Helper()
	left, err := derive.Restore(rec, filepath.Join(t.TempDir(), "restored"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", ".netrc", "dump.sql.gz", "objects/pack/pack-0123.pack"} {
		if !slices.Contains(left, name) {
			t.Errorf("restore does not say that it left out %s: %q", name, left)
		}
	}
	_, _, err = derive.Apply(rec, true)
	conflict, ok := errors.AsType[*files.ConflictError](err)
	if !ok {
		t.Fatalf("apply: %v", err)
	}
	if text := conflict.Error(); !strings.Contains(text, ".env") || !strings.Contains(text, ".git-credentials") {
		t.Errorf("apply does not name what it refuses: %s", text)
	}
}
