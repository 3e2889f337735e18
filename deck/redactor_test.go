package deck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestCredentialFilesTeach: what a .env of the work tree names as a secret is known before the program starts, and on a replay
// while the file is what it was.
func TestCredentialFilesTeach(t *testing.T) {
	const secret, vendored = "Zx9QvT2mKw7Lp4RnBc3D", "Bq7Wm2Xc9Vn4Kd8Lt5Hs"
	root := t.TempDir()
	for name, text := range map[string]string{
		"app/.env": "API_TOKEN=" + secret + "\n", "node_modules/x/.env": "API_TOKEN=" + vendored + "\n", "main.env.go": "API_TOKEN=" + vendored,
		"a.rec/run.tape.cas/.env": "API_TOKEN=" + vendored + "\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := t.TempDir()
	guarded := func() *redactor {
		g, err := newRedactor(config, root, nil, nil, nil, &recording.Roots{Tree: root}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := guarded()
	plain := g.id
	digest := g.scrub.KeyedDigest([]byte("API_TOKEN=" + secret + "\n"))
	for _, tt := range []struct {
		what string
		tree *files.Tree
		want bool
	}{
		{"recording", nil, true},
		{"a replay of it", &files.Tree{Entries: []files.Entry{{Path: "app/.env", Secret: digest}}}, true},
		{"a replay where it is ignored", &files.Tree{}, true},
		{"a replay of another", &files.Tree{Entries: []files.Entry{{Path: "app/.env", Secret: "other"}}}, false},
	} {
		g := guarded()
		g.learnSettings(root, tt.tree)
		if got := g.scrub.String("it is " + secret); strings.Contains(got, secret) == tt.want {
			t.Errorf("%s: %q", tt.what, got)
		}
		if got := g.scrub.String(vendored); got != vendored {
			t.Errorf("%s: %q of a package, or of a recording, is taken", tt.what, got)
		}
		if (g.id != plain) != tt.want || g.scrub.Since(g.begun) != nil {
			t.Errorf("%s: what is looked for is named %q, and late is %v", tt.what, g.id, g.scrub.Since(g.begun))
		}
	}
}
