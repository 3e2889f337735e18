//go:build programs

package programs

import (
	"bytes"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

const remote = base + "/repo.git"

func TestGit(t *testing.T) {
	git := run.Tool(t, "git")
	server := gitServer(t, git)
	tests := []struct {
		name string
		args []string
		file string // below the work directory, that must be there after the recording
	}{
		{"ls-remote", []string{"ls-remote", remote}, ""},
		{"clone", []string{"clone", "--quiet", remote, "copy"}, "copy/README"},
		{"clone bare", []string{"clone", "--quiet", "--bare", remote, "copy.git"}, "copy.git/HEAD"},
		{"shallow clone by protocol 0", []string{"-c", "protocol.version=0", "clone", "--quiet", "--depth=1", remote, "copy"},
			"copy/README"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run.Each(t, func(t *testing.T, b *run.Box) {
				res := record(t, b, server, append([]string{git}, tt.args...)...)
				if res.Status != 0 {
					t.Fatalf("record: %v", res)
				}
				if _, err := os.Stat(filepath.Join(b.Work, tt.file)); err != nil {
					t.Fatal(err)
				}
				wantGreen(t, b)
			})
		})
	}
}

// gitServer serves a repository with a few commits over git's smart protocol.
func gitServer(t *testing.T, git string) http.Handler {
	t.Helper()
	root := t.TempDir()
	work := filepath.Join(root, "work")
	command(t, git, root, "init", "--quiet", "--initial-branch=main", work)
	for _, content := range []string{"one\n", "one\ntwo\n", strings.Repeat("a longer line of text\n", 5000)} {
		if err := os.WriteFile(filepath.Join(work, "README"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		command(t, git, work, "add", "README")
		command(t, git, work, "commit", "--quiet", "--message", "change README")
	}
	command(t, git, root, "clone", "--quiet", "--bare", work, "repo.git")
	backend := strings.TrimSpace(command(t, git, root, "--exec-path")) + "/git-http-backend"
	if _, err := os.Stat(backend); err != nil {
		t.Skipf("git has no HTTP backend: %v", err)
	}
	return &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
}

// command runs git outside the jail, away from the caller's configuration, and returns what it printed.
func command(t *testing.T, git, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(git, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.test", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.test",
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}
