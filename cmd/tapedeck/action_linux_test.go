package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// TestAction runs the steps of action.yml and the hook of pre-commit as their runners do, in a fresh clone of a repository with a
// recording: green, and red once the source has changed.
func TestAction(t *testing.T) {
	if err := deck.Available(); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	origin, clone, config := t.TempDir(), filepath.Join(t.TempDir(), "clone"), t.TempDir()
	env := append(os.Environ(), "HOME="+t.TempDir(), "GITHUB_ACTIONS=", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e")
	sh := func(dir, script string, more ...string) (string, error) {
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
		cmd.Dir, cmd.Env = dir, slices.Concat(env, more)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(dir, script string, more ...string) string {
		t.Helper()
		out, err := sh(dir, script, more...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return out
	}
	must(origin, "git init -q && echo hello >in.txt && git add -A && git commit -qm x")
	must(origin, `tapedeck record -o recs/a.rec -- sh -c 'cat in.txt; echo $RANDOM' && git add -A && git commit -qm y`, "XDG_CONFIG_HOME="+config)
	must(origin, "git clone -q . "+clone)
	if err := os.RemoveAll(origin); err != nil { // as on another machine
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(config, "tapedeck", "scrub.key"))
	if err != nil {
		t.Fatal(err)
	}
	summary, junit := filepath.Join(t.TempDir(), "summary.md"), filepath.Join(t.TempDir(), "report.xml") // a new file in the checkout would be a change
	action := func() (out string, err error) {
		for _, s := range steps(t, filepath.Join(top, "action.yml")) {
			var one string
			if one, err = sh(clone, s, "RUNNER_TEMP="+t.TempDir(), "GITHUB_STEP_SUMMARY="+summary, "KEY="+strings.TrimSpace(string(key)), "PATHS=recs",
				"TREE=now", "SINCE=", "STRICT=false", "JUNIT="+junit); err != nil {
				return out + one, err
			}
			out += one
		}
		return out, nil
	}
	if out, err := action(); err != nil || !strings.Contains(out, "1 tried: 1 faithful") {
		t.Fatalf("the fresh clone: %v\n%s", err, out)
	}
	hook, err := os.ReadFile(filepath.Join(top, ".pre-commit-hooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := plainyaml.Parse(hook, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	line := hooks.Items[0].Field("entry").Text
	for _, arg := range hooks.Items[0].Field("args").Items {
		line += " " + arg.Text
	}
	if out := must(clone, line, "XDG_CONFIG_HOME="+config); !strings.Contains(out, "skipped") {
		t.Errorf("%s, where nothing changed: %s", line, out)
	}
	must(clone, "echo bye >in.txt")
	if out, err := action(); err == nil || !strings.Contains(out, "::error file=recs/a.rec,") {
		t.Errorf("changed: %v\n%s", err, out)
	}
	for file, want := range map[string]string{summary: "❌ diverged", junit: "<failure"} {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: no %s: %v\n%s", file, want, err, b)
		}
	}
	if out, err := sh(clone, "tapedeck replay recs/a.rec --tree \"$PWD\" -- ls recs/a.rec", "XDG_CONFIG_HOME="+config); strings.Contains(out, "run.tape") {
		t.Errorf("the program sees its recording: %v %s", err, out)
	}
	if out, err := sh(clone, line, "XDG_CONFIG_HOME="+config); err == nil || !strings.Contains(out, "DIVERGED") {
		t.Errorf("%s: %v %s", line, err, out)
	}
}

// steps are the scripts of an action, but for that which installs.
func steps(t *testing.T, file string) (out []string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := plainyaml.Parse(b, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range n.Field("runs").Field("steps").Items {
		if run := s.Field("run"); run != nil && s.Field("name").Text != "install" {
			out = append(out, run.Text)
		}
	}
	return out
}
