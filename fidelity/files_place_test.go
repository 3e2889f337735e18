package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestPlaceOf(t *testing.T) {
	for p, want := range map[string]place{
		"a":                              workTree,
		".gitmodules":                    workTree,
		"sub/.gitignore":                 workTree,
		".git":                           workTree, // of a worktree: a file
		".git/config":                    workTree,
		".git/config.worktree":           workTree,
		".git/hooks/pre-commit":          workTree,
		".git/hooks/refs/x":              workTree,
		".git/info/exclude":              workTree,
		".git/info/attributes":           workTree,
		"sub/.git/hooks/pre-commit":      workTree,
		".git/modules/a/b/config":        workTree,
		".git/modules/a/hooks/update":    workTree,
		".git/HEAD":                      gitOwn,
		".git/ORIG_HEAD":                 gitOwn,
		".git/FETCH_HEAD":                gitOwn,
		".git/COMMIT_EDITMSG":            gitOwn,
		".git/packed-refs":               gitOwn,
		".git/index":                     gitOwn,
		".git/index.lock":                gitOwn,
		".git/config.lock":               gitOwn,
		".git/logs/refs/heads/hooks":     gitOwn,
		".git/refs/heads/config":         gitOwn,
		".git/objects/info/commit-graph": gitOwn,
		".git/info/refs":                 gitOwn,
		"sub/.git/index":                 gitOwn,
		".git/modules/a/refs/heads/info": gitOwn,
		".git/worktrees/w/index":         gitOwn,
		"~/.git/hooks/x":                 outside,
		"~/clone/.git/index":             gitOwn,
		"$TMP/clone/.git/hooks/x":        outside,
		"$TMP/hsperfdata_root/100":       javaOwn,
		"/tmp/hsperfdata_u/100":          javaOwn,
		"$TMP/hsperfdata_root":           outside,
		"$TMP/x":                         outside,
		"/etc/x":                         outside,
		"/repo/.git/config":              outside,
		"~":                              outside,
		"~/seen/below":                   workTree, // watched
		".git/HEAD2":                     gitOwn,
	} {
		if got := placeOf(p, []string{"~/seen/"}); got != want {
			t.Errorf("%s: %d, want %d", p, got, want)
		}
	}
}

func TestNotesNameWhereFilesDiffer(t *testing.T) {
	a := []tape.Kind{wrote(".git/index", "1"), wrote("~/log", "1"), wrote(".git/refs/heads/main", "1")}
	b := []tape.Kind{wrote(".git/index", "2"), wrote("~/log", "2"), wrote(".git/refs/heads/main", "1")}
	got := compareLanes(t, Semantic, a, b, nil)
	if !got.Faithful() || len(got.Notes) != 2 {
		t.Fatalf("%v %q", got, got.Notes)
	}
	for i, want := range []string{".git/index", "~/log"} {
		other := []string{"~/log", ".git/index"}[i]
		if note := got.Notes[i]; !strings.Contains(note, want) || strings.Contains(note, other) || strings.Contains(note, "refs") {
			t.Errorf("note %q, want one about %s", note, want)
		}
	}
}

// TestCompiledModules: what Python compiles holds the time and the path of its source, which are others in another checkout; what Node does, bytes of
// its memory.
func TestCompiledModules(t *testing.T) {
	for path, watch := range map[string]string{
		"lib/__pycache__/llm.cpython-311.pyc":                              "lib/*/*",
		"$TMP/node-compile-cache/v22.23.3-x64-9de703df-0/0097c7bb":         "$TMP/node-compile-cache",
		".cache/v26.0.0-nightly20260401a1b2-arm64-9de703df-65534/ff00aa11": ".cache/*/*",
		"lib/__pycache__/result.json":                                      "",
		"v22.23.3-x64-9de703df-0/notes.txt":                                "",
	} {
		a, b := []tape.Kind{wrote(path, "1")}, []tape.Kind{wrote(path, "2")}
		for _, o := range []*LaneOptions{nil, {Exact: true}} {
			got := compareLanes(t, Semantic, a, b, o)
			if noted := got.Faithful() && len(got.Notes) == 1 && strings.Contains(got.Notes[0], path); noted != (watch != "") {
				t.Errorf("%s: %v %q", path, got, got.Notes)
			}
		}
		if got := compareLanes(t, Semantic, a, b, &LaneOptions{Watch: []string{watch}}); got.Faithful() {
			t.Errorf("watched: %q", got.Notes)
		}
	}
}

// TestLogsOfAgents: what an agent logs of itself is noted where all else outside the work tree gates, unless it is watched.
func TestLogsOfAgents(t *testing.T) {
	a := []tape.Kind{wrote("~/.agent/logs/1.log", "1"), wrote("~/.agent/settings.json", "1")}
	b := []tape.Kind{wrote("~/.agent/logs/1.log", "2"), wrote("~/.agent/settings.json", "1")}
	logs := []string{"~/.agent/logs"}
	got := compareLanes(t, Semantic, a, b, &LaneOptions{Exact: true, AgentFiles: logs})
	if !got.Faithful() || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "files that an agent logs to differ (1)") {
		t.Errorf("%v %q", got, got.Notes)
	}
	for name, o := range map[string]*LaneOptions{"watched": {Exact: true, AgentFiles: logs, Watch: []string{"~/.agent/logs/*"}}, "no agent's": {Exact: true}} {
		if got := compareLanes(t, Semantic, a, b, o); got.Total() != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHooksOfGitGate(t *testing.T) {
	a := []tape.Kind{wrote(".git/hooks/pre-commit", "1")}
	b := []tape.Kind{wrote(".git/hooks/pre-commit", "2")}
	for _, mode := range []Mode{Semantic, ByteIdentical, Outcome, PhaseAware} {
		if got := compareLanes(t, mode, a, b, nil); got.Total() != 1 || len(got.Notes) != 0 {
			t.Errorf("%s: %v %q", mode, got, got.Notes)
		}
	}
}
