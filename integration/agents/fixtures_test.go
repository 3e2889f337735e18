//go:build agents

package agents

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// The fixtures of sessionlog/foreign are what real agents wrote when a scene was played to them. This makes them again:
//
//	TAPEDECK_FIXTURES=1 TAPEDECK_AGENTS=DIR/node_modules go test -tags agents -run TestFixtures ./integration/agents
//
// The goldens beside them are rewritten with go test ./sessionlog/foreign -update.
func fixtures(t *testing.T, name string, cues map[string][]step, play func(t *testing.T, st *stage)) {
	t.Helper()
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" || os.Getenv("TAPEDECK_FIXTURES") == "" {
		t.Skip("TAPEDECK_FIXTURES is not set, or TAPEDECK_AGENTS names no node_modules folder")
	}
	run.Tool(t, "node")
	recipes := append(slices.Clone(Recipes), ClaudeCode)
	r := &recipes[slices.IndexFunc(recipes, func(r Recipe) bool { return r.Name == name })]
	program := r.program(t, modules)
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		scene := newScene(r.Value, cues)
		server := httptest.NewServer(scene)
		defer server.Close()
		defer server.CloseClientConnections()
		play(t, &stage{Box: b, recipe: r, program: program, scene: scene, url: server.URL, modules: modules})
	})
}

// patience is how long something that an agent does at once may take.
const patience = time.Minute

// A stage is a box in which an agent plays a scene.
type stage struct {
	*run.Box
	recipe  *Recipe
	program []string
	scene   *scene
	url     string
	modules string
}

// run runs the agent in the jail with arguments of its own, and wants it to end well.
func (st *stage) run(t *testing.T, args ...string) run.Result {
	t.Helper()
	res := st.Record(map[string]string{st.recipe.Host: st.url}, append(slices.Clone(st.program), args...)...)
	if err := os.RemoveAll(st.Recording()); err != nil {
		t.Fatal(err)
	}
	return res
}

// interrupt runs the agent, and interrupts it when the model's answer to the cue has begun.
func (st *stage) interrupt(t *testing.T, cue string, args ...string) {
	t.Helper()
	argv := append([]string{"record", "-o", st.Recording(), "--upstream", st.recipe.Host + "=" + st.url, "--"}, st.program...)
	cmd := st.Command(append(argv, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	st.wait(t, cue)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // an interrupted program fails
	ended.Stop()
	t.Logf("interrupted: %v\n%s", cmd.ProcessState, out.String())
	if err := os.RemoveAll(st.Recording()); err != nil {
		t.Fatal(err)
	}
}

// wait waits until the model's answer to the cue has begun.
func (st *stage) wait(t *testing.T, cue string) {
	t.Helper()
	select {
	case got := <-st.scene.held:
		if got != cue {
			t.Fatalf("the model was asked for %s, want %s", got, cue)
		}
	case <-time.After(patience):
		t.Fatal("the model was not asked")
	}
}

// save writes a fixture, without the paths of the box.
func (st *stage) save(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join("..", "..", "sessionlog", "foreign", "testdata", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, st.plain(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plain puts other names for the paths of the box.
func (st *stage) plain(b []byte) []byte {
	flat := func(path string) string { return strings.ReplaceAll(path, "/", "-") }
	for _, pair := range [][2]string{
		{st.Work, "/work"}, {flat(st.Work), "-work"}, {st.Home, "/home/me"}, {flat(st.Home), "-home-me"},
		{filepath.Dir(st.Work), "/box"}, {filepath.Dir(st.modules), "/agents"},
		{st.Work[1:], "work"}, {st.Home[1:], "home/me"},
	} {
		b = bytes.ReplaceAll(b, []byte(pair[0]), []byte(pair[1]))
	}
	return b
}

// one returns the content of the newest file that matches a pattern below HOME.
func (st *stage) one(t *testing.T, pattern string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(st.Home, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	slices.Sort(found)
	b, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// holding returns the content of a file that matches a pattern below HOME and holds a text.
func (st *stage) holding(t *testing.T, pattern, text string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(st.Home, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			return b
		}
	}
	t.Fatalf("no %s that holds %q", pattern, text)
	return nil
}
