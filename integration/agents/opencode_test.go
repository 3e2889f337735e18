//go:build agents

package agents

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// TestOpencodeDownloads is opencode where it reaches npm's registry and its list of models, and gets more than it waits for. Its end
// cuts that, which does not gate, on none of $TAPEDECK_AGENTS_REPLAYS replays, one by default.
func TestOpencodeDownloads(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	r := &Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == "opencode" })]
	program := r.program(t, modules)
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		b.Setenv("OPENCODE_DISABLE_MODELS_FETCH", "")
		model := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Key: r.Value}))
		defer model.Close()
		npm, models := endless(t), endless(t)
		upstreams := map[string]string{r.Host: model.URL, "registry.npmjs.org": npm.URL, "models.opencode.ai": models.URL}
		if res := b.Record(upstreams, r.Command(program, prompt)...); res.Status != 0 || npm.begun.Load() == 0 || models.begun.Load() == 0 {
			t.Fatalf("%d downloads of packages, %d of models: %v", npm.begun.Load(), models.begun.Load(), res)
		}
		if err := os.Remove(filepath.Join(b.Work, "hello.txt")); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*httptest.Server{model, npm.Server, models.Server} {
			s.CloseClientConnections()
			s.Close()
		}
		for range count("TAPEDECK_AGENTS_REPLAYS", 1) {
			_, notes, _ := strings.Cut(replayGreen(t, b).Stdout, `"lane http:registry.npmjs.org: `)
			if note, _, _ := strings.Cut(notes, "\n"); !strings.Contains(note, "cut by the end of the run") {
				t.Errorf("the report notes no download that was cut: %q", note)
			}
		}
	})
}

// A downloads answers each request with JSON that does not end.
type downloads struct {
	*httptest.Server
	begun atomic.Int64
}

func endless(t *testing.T) *downloads {
	d := new(downloads)
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.begun.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"name":"`)
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, strings.Repeat("more and ", 2000))
			time.Sleep(20 * time.Millisecond)
		}
	}))
	t.Cleanup(d.Close)
	return d
}
