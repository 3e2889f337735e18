package wasi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

const agentScript = `
def main(args):
    messages = [{"role": "user", "content": "What changed?"}]
    for turn in range(5):
        answer = llm.complete(messages, system = "Be brief.", model = "some-model")
        if not answer["tool_calls"]:
            break
        out = process.run("git", ["status", "--short"])["stdout"]
        messages += [{"role": "assistant", "content": answer["text"]}, {"role": "user", "content": out}]
    clock.sleep(24 * 60 * 60 * 1000)
    fs.write("report.md", "# Done\n")
    return fs.diff()
`

// TestTheSameAsAScript: the agent of testdata/prog and a script of the same logic are one in the mode outcome, whose model calls are equal
// to the last byte; only what Go's runtime reads for itself is more.
func TestTheSameAsAScript(t *testing.T) {
	dir := t.TempDir()
	c := agentConfig(t)
	c.Emit = filepath.Join(dir, "module.tape")
	run(t, c, nil, "agent").ended(t)
	module := c.Emit

	path := filepath.Join(dir, "agent.star")
	if err := os.WriteFile(path, []byte(agentScript), 0o644); err != nil {
		t.Fatal(err)
	}
	c = agentConfig(t)
	c.Emit = filepath.Join(dir, "script.tape")
	b, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := script.Run(t.Context(), b, path, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	ours, theirs := records(t, module), records(t, c.Emit)
	if report, err := fidelity.Compare(fidelity.Outcome, each(ours), each(theirs)); err != nil || len(report.Divergences) > 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	if a, b := of(ours, "llm_call"), of(theirs, "llm_call"); len(a) != 2 || len(b) != 2 {
		t.Errorf("%d and %d calls of the model", len(a), len(b))
	} else {
		for i := range a {
			if x, y := a[i].(*tape.LLMCall), b[i].(*tape.LLMCall); x.RequestDigest != y.RequestDigest || x.Response.Hash != y.Response.Hash {
				t.Errorf("call %d: %+v\nof the script: %+v", i, x, y)
			}
		}
	}
}

func each(all []*tape.Record) fidelity.Records {
	return func(yield func(*tape.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func records(t testing.TB, path string) []*tape.Record {
	t.Helper()
	f, err := tape.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*tape.Record
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func of(records []*tape.Record, kind string) (all []tape.Kind) {
	for _, r := range records {
		if r.Kind.Name() == kind {
			all = append(all, r.Kind)
		}
	}
	return all
}
