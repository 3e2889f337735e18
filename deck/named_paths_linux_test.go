package deck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["named paths"] = playNamedPaths }

// playNamedPaths prints the files that its flag and its variables name.
func playNamedPaths(args []string) int {
	for _, path := range []string{args[1], os.Getenv("API_TOKEN_FILE"), os.Getenv("TLS_KEY"), os.Getenv("CREDENTIALS_DIRECTORY") + "/rows.txt"} {
		b, err := os.ReadFile(path)
		fmt.Printf("%s %v\n", b, err)
	}
	return 0
}

// TestPathsUnderNamesOfSecrets: a path in a variable or a flag whose name is that of a secret is none. The files stay in the
// recording, and a replay opens them, also where they are gone from the disk.
func TestPathsUnderNamesOfSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, text := range map[string]string{"certs/server.pem": "a certificate", "run/token": "abc", "rows.txt": "rows"} {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bare := b.env
	b.env = append(b.env, "API_TOKEN_FILE=run/token", "TLS_KEY=certs/server.pem", "CREDENTIALS_DIRECTORY="+b.dir)
	res, out := b.record("named paths", "--key", "certs/server.pem")
	want := "a certificate <nil>\nabc <nil>\na certificate <nil>\nrows <nil>\n"
	if res.Exit.Code != 0 || out != want {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	for _, env := range [][]string{b.env, bare} {
		v, again := b.replay(res.Recording, &deck.ReplayOptions{Env: env})
		b.green(v)
		if again != want {
			t.Errorf("the program saw %q", again)
		}
		if err := os.RemoveAll(filepath.Join(b.dir, "certs")); err != nil {
			t.Fatal(err)
		}
	}
}
