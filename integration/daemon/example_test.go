//go:build daemon

package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The script of the guide runs as it stands there, and prints its trace, which is the run's file.
func TestExampleOfTheGuide(t *testing.T) {
	s := serve(t)
	cmd := script(t, "../../docs/examples/agent.py")
	cmd.Env = append(cmd.Env, "TAPEDECK_DAEMON="+s.URL, "XDG_RUNTIME_DIR="+filepath.Join(s.home, "run"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	files, err := filepath.Glob(filepath.Join(s.Data, "runs", "counter", "*.jsonl"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("got run files %q", files)
	}
	file, err := os.ReadFile(files[0])
	must(t, err)
	if got, want := compact(t, said), compact(t, file); got != want {
		t.Errorf("it printed\n%s\nand the file has\n%s", got, want)
	}
	if want := `"tool":"count","parameters":{"path":"/etc/hosts"},"output":{"lines":`; !strings.Contains(compact(t, said), want) {
		t.Errorf("got\n%s\nwant %s in it", said, want)
	}
}

func compact(t *testing.T, lines []byte) string {
	t.Helper()
	var b bytes.Buffer
	for line := range bytes.Lines(lines) {
		must(t, json.Compact(&b, line))
		b.WriteByte('\n')
	}
	return b.String()
}
