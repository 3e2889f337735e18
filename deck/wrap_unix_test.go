//go:build unix

package deck_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

// shServer is an MCP server in a shell: it tells its name, then answers each line by what it was asked, and ends with 5.
const shServer = `read a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"sh","version":"1"}}}'
echo "to stderr $KEY_FOR_TEST" >&2
n=2; while read a; do printf '{"jsonrpc":"2.0","id":%d,"result":{"said":%s}}\n' $n "$a"; n=$((n+1)); done; exit 5`

// TestWrapKeepsNoSecret wraps a server: its bytes are its own, and neither a secret of its environment nor one that a message named after
// it had passed is on the disk.
func TestWrapKeepsNoSecret(t *testing.T) {
	const known, late = "CANARY-0123456789abcdef", "zzz-late-canary-0123456789"
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + late + `"}}}
{"jsonrpc":"2.0","id":2,"method":"x","params":{"plain":"` + late + `","key":"` + known + `"}}
{"jsonrpc":"2.0","id":3,"method":"x","params":{"token":"` + late + `"}}
`
	dir := t.TempDir()
	var out, errs bytes.Buffer
	env := append(os.Environ(), "KEY_FOR_TEST="+known, "TEST_API_KEY="+known)
	res, err := deck.WrapMCP(t.Context(), &deck.RecordOptions{
		Argv: []string{"sh", "-c", shServer}, Dir: dir, Env: env, ConfigDir: t.TempDir(), Output: filepath.Join(dir, "talk.rec"),
		Streams: deck.Streams{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Code != 5 || errs.String() != "to stderr "+known+"\n" || strings.Count(out.String(), late) != 2 || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("exit %+v, stderr %q, stdout:\n%s", res.Exit, errs.String(), out.String())
	}
	err = filepath.WalkDir(res.Recording.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, secret := range []string{known, late} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Verify(t.Context(), res.Recording.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Problems) > 0 && !strings.Contains(v.Problems[0].Message, "sealed by somebody else") { // the key is this test's
		t.Errorf("verify: %v", v.Problems)
	}
	if _, err := deck.Replay(t.Context(), res.Recording, nil); err == nil || !strings.Contains(err.Error(), "mcp serve") {
		t.Errorf("a replay of a talk: %v", err)
	}
}

// TestWrapEndsWithItsServer wraps a server that ends while its client still holds its stdin open, and while what it has started holds its
// stdout.
func TestWrapEndsWithItsServer(t *testing.T) {
	stdin, client, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	res, err := deck.WrapMCP(t.Context(), &deck.RecordOptions{
		Argv: []string{"sh", "-c", "kill -USR1 $$"}, Dir: t.TempDir(), ConfigDir: t.TempDir(), NoSeal: true,
		Streams: deck.Streams{Stdin: stdin, Stdout: io.Discard},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Signal != "SIGUSR1" || len(res.MCP.Servers) != 0 {
		t.Errorf("exit %+v, servers %v", res.Exit, res.MCP.Servers)
	}
}
