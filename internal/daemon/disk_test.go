package daemon_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func TestTracesAreFilesAndOutliveTheDaemon(t *testing.T) {
	data := t.TempDir()
	o := &daemon.Options{Data: data}
	r := start(t, o)
	p := r.as("coder")
	p.answers("t", `{"ok":1}`)
	done := p.startRun(rpcapi.RunsStartParams{Intent: "one"}).RunID
	p.call("t", `{"n":1}`)
	file := filepath.Join(data, "runs", "coder", done+".jsonl")
	onDisk, err := os.ReadFile(file) // the reply was there: so is the turn
	if err != nil {
		t.Fatal(err)
	}
	tr := p.trace(done)
	var lines []string
	for _, rec := range tr.Records {
		lines = append(lines, string(rec))
	}
	if got := strings.Split(strings.TrimSuffix(string(onDisk), "\n"), "\n"); strings.Join(got, "|") != strings.Join(lines, "|") {
		t.Fatalf("the file:\n%s\nthe trace:\n%s", onDisk, lines)
	}
	p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+done+`","outcome":{"status":"success"}}`), nil)
	open := p.startRun(rpcapi.RunsStartParams{Intent: "two"}).RunID
	p.record(open, 3)
	modes(t, data)
	if err := r.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}

	r = start(t, o)
	p = r.as("coder")
	if got := p.trace(done); len(got.Records) != 3 {
		t.Fatalf("%+v", got)
	}
	got := p.trace(open)
	if last := string(got.Records[len(got.Records)-1]); len(got.Records) != 5 || !strings.Contains(last, `"status":"incomplete"`) {
		t.Fatalf("%s", got.Records)
	}
	var list rpcapi.RunsListResult
	p.must(rpcapi.RunsList, nil, &list)
	if len(list.Runs) != 2 || list.Runs[0].Status != "incomplete" || list.Runs[1].Status != "completed" || list.Runs[1].TurnCount != 1 {
		t.Fatalf("%+v", list.Runs)
	}
	var verdicts rpcapi.RunsVerdictsResult
	p.must(rpcapi.RunsVerdicts, rpcapi.RunParams{RunID: done}, &verdicts)
	if len(verdicts.Verdicts) != 1 || verdicts.Verdicts[0].Verdict.Kind != "allow" || verdicts.Verdicts[0].Tool != "t" {
		t.Fatalf("%+v", verdicts)
	}
}

// modes holds every file and directory of the runs to 0600 and 0700.
func modes(t *testing.T, data string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(data, "runs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNothingIsBuiltFromIdsThatAreNoNames(t *testing.T) {
	data := t.TempDir()
	r := start(t, &daemon.Options{Data: data})
	p := r.as("")
	before := tree(t, data)
	for _, id := range evil() {
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: id})
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: "a", IdempotencyKey: id})
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsGetTrace, rpcapi.RunParams{RunID: id})
	}
	if after := tree(t, data); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all.WriteString(path + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
