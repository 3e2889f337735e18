package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// write makes files below a new directory, which it enters.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	write(t, map[string]string{
		"a/one/recording.json": "{}", "a/one/inside/recording.json": "{}", "a/packed": packed.Magic + "x", "a/text": "hello",
		"a/b_test.star": "", "a/star.star": "", ".tapedeck/two/recording.json": "{}", ".git/three/recording.json": "{}", "node_modules/x_test.star": "", "none/x": "", "lib/.tapedeck/x/recording.json": "{}",
		"a/torn/run.tape": "", "a/torn/run.tape.cas/ab": packed.Magic, "a/lfs.tar.zst": "version https://git-lfs.github.com/spec/v1\n", "a/empty.tar.zst": "", "a/data.tar.zst": "x",
	})
	all := []Case{
		{"a/b_test.star", Script}, {"a/empty.tar.zst", Packed}, {"a/lfs.tar.zst", Packed}, {"a/one", Recording}, {"a/packed", Packed},
		{"a/torn", Recording},
	}
	for _, paths := range [][]string{{"."}, {"a", "a/one"}, {"a/", "a/packed"}} {
		if got, err := Find(paths...); err != nil || !cmp.Equal(got, all) {
			t.Errorf("%v: %v %s", paths, err, cmp.Diff(all, got))
		}
	}
	for path, want := range map[string]string{".tapedeck": ".tapedeck/two", ".tapedeck/two": ".tapedeck/two", "lib": "lib/.tapedeck/x"} {
		if got, err := Find(path); err != nil || !cmp.Equal(got, []Case{{want, Recording}}) {
			t.Errorf("%s: %v %v", path, err, got)
		}
	}
	if err := os.Symlink("a", "link"); err != nil {
		t.Fatal(err)
	}
	if got, err := Find("link"); err != nil || len(got) != 6 || got[3] != (Case{"link/one", Recording}) {
		t.Errorf("through a link: %v %v", got, err)
	}
	for path, want := range map[string]string{"none": "no recording", "nowhere": "no such file", "a/text": "no recording"} {
		if got, err := Find("a", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

func TestRulesOfTheNearest(t *testing.T) {
	write(t, map[string]string{
		"tapedeck.yaml": "test: {mode: outcome}\n", "repo/.git/HEAD": "", "repo/recs/a/recording.json": "{}",
		"other/sub/tapedeck.yaml": "masks:\n  off: [time]\ntest:\n  timeout: 90s\n  watch: ['~/x']\n", "other/sub/deep/b/recording.json": "{}",
	})
	for path, want := range map[string]*recording.TestRules{
		"repo/recs/a": nil, "other/sub/deep/b": {Timeout: 90 * time.Second, Watch: []string{"~/x"}}, "other": {Mode: "outcome"},
	} {
		if _, got, err := new(Options).rulesFor(&Case{Path: path}); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %s", path, err, cmp.Diff(want, got))
		}
	}
}

func TestBadRules(t *testing.T) {
	for text, want := range map[string]string{
		"test: {mode: x}": "test: mode:", "test: {timeout: -1s}": "less than nothing", "test: {timout: 1s}": "unknown key timout",
		"test: {expect: [{reason: x}]}": "diverges is missing", "test: {expect: [{diverges: x}]}": "reason is missing",
		"test: {expect: [{diverges: x, reason: y, until: soon}]}": "want a day", "test: {expect: [{diverges: x, reason: y, recordings: '['}]}": "syntax error",
	} {
		write(t, map[string]string{"tapedeck.yaml": text, "a/recording.json": "{}"})
		if _, _, err := new(Options).rulesFor(&Case{Path: "a"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// report has divergences of messages; one that begins with > follows from what came before.
func report(messages ...string) *fidelity.Report {
	r := &fidelity.Report{Mode: "semantic"}
	for _, m := range messages {
		d := fidelity.Divergence{Category: fidelity.FileWriteHash, Message: strings.TrimPrefix(m, ">")}
		if d.Message != m {
			d.Follows = "follows from the file x"
		}
		r.Divergences = append(r.Divergences, d)
	}
	return r
}

func TestExpected(t *testing.T) {
	rules := &recording.TestRules{Expect: []recording.Expect{
		{Diverges: "out.txt", Reason: "r"}, {Diverges: "old", Reason: "r", Until: "2027-01-01"}, {Diverges: "mine", Reason: "r", Recordings: "smoke-*"},
	}}
	day := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		report *fidelity.Report
		now    time.Time
		want   Status
	}{
		{"x", report(), day, Faithful},
		{"x", report("out.txt changed"), day, Expected},
		{"x", report("out.txt changed", "other.txt changed"), day, Diverged},
		{"x", report("out.txt changed", ">other.txt changed"), day, Diverged},
		{"x", report(">other.txt changed"), day, Diverged},
		{"x", report("other changed", "out.txt changed"), day, Diverged},
		{"x", report("old changed"), day, Expected},
		{"x", report("old changed"), day.Add(time.Hour), Diverged},
		{"x", report("mine changed"), day, Diverged},
		{"smoke-1", report("mine changed"), day, Expected},
		{"x", &fidelity.Report{Omitted: 1, Divergences: report("out.txt").Divergences}, day, Diverged},
		{"x", &fidelity.Report{NotCompared: []string{"the screens"}}, day, Unsure},
		{"x", &fidelity.Report{NotCompared: []string{"the screens"}, Divergences: report("out.txt").Divergences}, day, Unsure},
		{"x", &fidelity.Report{Side: make([]fidelity.SideTraffic, 1)}, day, Unsure},
	} {
		r := Result{Case: Case{Path: "dir/" + tt.name + ".rec"}}
		if r.judge(tt.report, rules, tt.now); r.Status != tt.want {
			t.Errorf("%s, %v on %v: %s, want %s", tt.name, tt.report.Divergences, tt.now, r.Status, tt.want)
		}
	}
	byCategory := &recording.TestRules{Expect: []recording.Expect{{Diverges: "file_write_hash", Reason: "r"}}}
	if met, all := expected(byCategory, "x", report("a", "b"), day); !all || met[0].Met != 2 {
		t.Errorf("by category: %v %v", met, all)
	}
}

func TestExit(t *testing.T) {
	of := func(all ...Status) *Summary {
		s := new(Summary)
		for _, status := range all {
			s.Results = append(s.Results, &Result{Status: status})
		}
		return s
	}
	for _, tt := range []struct {
		s            *Summary
		exit, strict int
	}{
		{of(), 0, 0}, {of(Faithful, Expected, Skipped), 0, 0}, {of(Unsure), 0, 2}, {of(Diverged, Faithful), 2, 2},
		{of(Hangs, Diverged), 1, 1}, {of(Diverged, Broken), 1, 1}, {of(Damaged), 1, 1}, {of(Newer), 1, 1}, {of(NoProgram), 1, 1},
	} {
		if exit, strict := tt.s.Exit(false), tt.s.Exit(true); exit != tt.exit || strict != tt.strict {
			t.Errorf("%v: %d and %d, want %d and %d", tt.s, exit, strict, tt.exit, tt.strict)
		}
	}
}

// results are one of each kind of status that reports tell apart.
var results = &Summary{Took: 1500 * time.Millisecond, Results: []*Result{
	{Case: Case{"recs/good", Recording}, Name: "recs/good", Status: Faithful, Took: time.Second, Why: "FAITHFUL"},
	{Case: Case{"recs/red", Recording}, Name: "recs/red", Status: Diverged, Why: "DIVERGED: 1 divergence", First: "first divergence: 100% <b>\n  ```", Output: "\x1b[31mo]]>h"},
	{Case: Case{"recs/half|a", Recording}, Name: "recs/half|a", Status: Unsure, Why: "FAITHFUL, masked: time 1"},
	{Case: Case{"recs/bad", Packed}, Name: "recs/bad", Status: Damaged, Why: "a blob, with: 2"},
	{Case: Case{"recs/same", Recording}, Name: "recs/same", Status: Skipped, Why: "nothing changed"},
}}

// TestLeftBehind: a script that cannot be stopped goes on beside what is tried after it.
func TestLeftBehind(t *testing.T) {
	cases := []Case{{"a_test.star", Script}, {"b_test.star", Script}, {"c_test.star", Script}}
	var reported int
	o := &Options{Jobs: 1, Report: func(*Result) { reported++ }}
	s, err := o.run(t.Context(), cases, func(_ context.Context, c *Case) []*Result {
		r := &Result{Case: *c, Name: c.Path, Status: Faithful}
		if c.Path == cases[1].Path {
			r.Status, r.Err = Broken, suite.ErrLeftBehind
		}
		return []*Result{r}
	})
	if !errors.Is(err, suite.ErrLeftBehind) || reported != 2 || len(s.Results) != 2 || s.Left != 1 || s.Exit(false) != 1 {
		t.Errorf("%v, %d reported, %+v", err, reported, s)
	}
}

func TestJUnit(t *testing.T) {
	for strict, want := range map[bool][4]int{false: {5, 1, 1, 1}, true: {5, 2, 1, 1}} {
		var b bytes.Buffer
		if err := results.WriteJUnit(&b, strict); err != nil {
			t.Fatal(err)
		}
		var got junitSuites
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, &b)
		}
		if s := got.Suite; [4]int{s.Tests, s.Failures, s.Errors, s.Skipped} != want || len(s.Cases) != 5 {
			t.Errorf("strict %t: %+v", strict, s)
		}
		if red := got.Suite.Cases[1]; red.Failure == nil || red.Failure.Text != "first divergence: 100% <b>\n  ```" || red.Stderr != "\uFFFD[31mo]]>h" || red.Class != "recs" {
			t.Errorf("%+v", red)
		}
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := results.WriteSARIF(&b, false); err != nil {
		t.Fatal(err)
	}
	var got sarifLog
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, r := range got.Runs[0].Tool.Driver.Rules {
		known[r.ID] = true
	}
	var lines []string
	for _, r := range got.Runs[0].Results {
		if !known[r.RuleID] {
			t.Errorf("no rule %s", r.RuleID)
		}
		lines = append(lines, r.Level+" "+r.RuleID+" "+r.Locations[0].Physical.Artifact.URI)
	}
	if want := []string{"error diverged recs/red", "warning unsure recs/half%7Ca", "error damaged recs/bad"}; !cmp.Equal(lines, want) {
		t.Error(cmp.Diff(want, lines))
	}
}

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	for _, r := range results.Results {
		if err := r.Annotate(&b, false); err != nil {
			t.Fatal(err)
		}
	}
	want := "::error file=recs/red,title=recs/red%3A diverged::DIVERGED: 1 divergence%0Afirst divergence: 100%25 <b>%0A  ```\n" +
		"::warning file=recs/half|a,title=recs/half|a%3A unsure::FAITHFUL, masked: time 1\n" +
		"::error file=recs/bad,title=recs/bad%3A damaged::a blob, with: 2\n"
	if b.String() != want {
		t.Error(cmp.Diff(want, b.String()))
	}
	b.Reset()
	if err := results.WriteMarkdown(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 tried: 1 faithful, 1 unsure, 1 diverged, 1 damaged, 1 skipped", "| ✅ | <code>recs/good</code> | 1.0 s | FAITHFUL |", `recs/half&#124;a`, "````text\nfirst divergence: 100% <b>\n  ```\n````"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, &b)
		}
	}
}

func TestChangedSince(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for name, tc := range map[string]struct {
		change  func()
		program string // "" for /bin/sh as it is
		path    string // "" for repo/app/recs/a
		args    []string
		treeNow bool
		want    bool
	}{
		"nothing":                         {want: false},
		"nothing, over the tree of now":   {treeNow: true, want: false},
		"its own file":                    {change: put("repo/app/recs/a/run.tape"), want: true},
		"its own, through a link":         {change: put("repo/app/recs/a/run.tape"), path: "link/a", want: true},
		"another recording":               {change: put("repo/app/recs/b/run.tape"), treeNow: true, want: false},
		"the configuration":               {change: put("repo/app/tapedeck.yaml"), want: true},
		"a configuration that has gone":   {change: func() { os.Remove("repo/app/tapedeck.yaml") }, want: true},
		"a source, and the recorded tree": {change: put("repo/app/x.py"), want: false},
		"a source":                        {change: put("repo/app/x.py"), treeNow: true, want: true},
		"a new source":                    {change: put("repo/app/new file.py"), treeNow: true, want: true},
		"a source beside the tree":        {change: put("repo/other/x.py"), treeNow: true, want: false},
		"an argument that Git ignores":    {change: put("repo/app/local.env"), args: []string{"local.env"}, want: true},
		"what else Git ignores":           {change: put("repo/app/local.env"), want: false},
		"another program":                 {program: "/bin/ls", want: true},
		"in another repository":           {path: "repo2/recs/c", want: true}, // which does not know the commit
		"in no repository":                {path: "plain/d", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, map[string]string{
				"repo/app/recs/a/run.tape": "1", "repo/app/recs/a/recording.json": "{}", "repo/app/recs/b/run.tape": "1", "repo/app/recs/b/recording.json": "{}",
				"repo/app/tapedeck.yaml": "", "repo/.gitignore": "*.env\n", "repo/app/x.py": "1", "repo/other/x.py": "1", "repo2/recs/c/run.tape": "1", "plain/d/run.tape": "1",
			})
			os.Symlink("repo/app/recs", "link")
			runGit(t, "repo", "init -q", "add -A", "-c user.name=n -c user.email=e commit -qm x", "tag start")
			runGit(t, "repo2", "init -q", "add -A", "-c user.name=n -c user.email=e commit -qm y")
			if tc.change != nil {
				tc.change()
			}
			c, err := ChangedSince(t.Context(), "repo", "start")
			if err != nil {
				t.Fatal(err)
			}
			if tc.path == "" {
				tc.path = "repo/app/recs/a"
			}
			if tc.program == "" {
				tc.program = "/bin/sh"
			}
			m := new(recording.Manifest)
			m.Program.Path, m.Program.Digest = "/bin/sh", program.DigestOf(tc.program).String()
			m.Argv, m.Cwd, m.Roots.Tree = append([]string{"sh"}, tc.args...), "/recorded/app/", "/recorded/app"
			if got := c.touch(t.Context(), &recording.Recording{Manifest: m}, tc.path, tc.treeNow, "repo/app"); got != tc.want {
				t.Errorf("touched: %t", got)
			}
		})
	}
}

func TestChangedSinceACommitThatIsNotThere(t *testing.T) {
	write(t, map[string]string{"x": "1"})
	if _, err := ChangedSince(t.Context(), ".", "HEAD"); err == nil {
		t.Error("no repository, and no error")
	}
	runGit(t, ".", "init -q")
	c, err := ChangedSince(t.Context(), ".", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if _, known := c.below(t.Context(), "x"); known {
		t.Error("without a commit everything has changed")
	}
	runGit(t, ".", "add -A", "-c user.name=n -c user.email=e commit -qm x")
	if _, err := ChangedSince(t.Context(), ".", "no-such-ref"); err == nil || !strings.HasPrefix(err.Error(), "no-such-ref is no commit that this checkout has") {
		t.Errorf("no such commit: %v", err)
	}
}

func put(path string) func() { return func() { os.WriteFile(path, []byte("2"), 0o644) } }

func runGit(t *testing.T, dir string, commands ...string) {
	t.Helper()
	for _, args := range commands {
		if out, err := exec.Command("git", append([]string{"-C", dir}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v %s", args, err, out)
		}
	}
}

// TestDamagedRecordings: a recording that does not hold is damaged, whatever a replay of it would come to.
func TestDamagedRecordings(t *testing.T) {
	from, err := filepath.Abs("../../corpus/recording/called")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) error { return os.WriteFile(name, []byte(text), 0o644) }
	for name, harm := range map[string]func() error{
		"blob": func() error {
			return write("blob/run.tape.cas/1885dc86963b56749cc2e521db442bff0f6098fb946040b32bc8dd9e7a883bfd", "another")
		},
		"no-blob": func() error {
			return os.Remove("no-blob/run.tape.cas/1885dc86963b56749cc2e521db442bff0f6098fb946040b32bc8dd9e7a883bfd")
		},
		"tape":     func() error { return os.Truncate("tape/run.tape", 1000) },
		"manifest": func() error { return write("manifest/recording.json", "{}") },
	} {
		if err := errors.Join(os.CopyFS(name, os.DirFS(from)), harm()); err != nil {
			t.Fatal(err)
		}
		s, err := Run(t.Context(), []Case{{name, Recording}}, &Options{ConfigDir: t.TempDir()})
		if err != nil || len(s.Results) != 1 || s.Results[0].Status != Damaged || s.Exit(false) != 1 {
			t.Errorf("%s: %+v, %v", name, s.Results[0], err)
		}
	}
}

// TestModeOfACase: the flag goes before the rules of tapedeck.yaml, and these before the usual mode.
func TestModeOfACase(t *testing.T) {
	outcome := fidelity.Outcome
	for _, test := range []struct {
		o     Options
		rules *recording.TestRules
		want  fidelity.Mode
	}{
		{Options{}, nil, fidelity.Semantic},
		{Options{}, &recording.TestRules{}, fidelity.Semantic},
		{Options{}, &recording.TestRules{Mode: "byte-identical"}, fidelity.ByteIdentical},
		{Options{Mode: &outcome}, &recording.TestRules{Mode: "byte-identical"}, fidelity.Outcome},
	} {
		if got, err := test.o.mode(test.rules); err != nil || got != test.want {
			t.Errorf("%+v: %v, %v: want %v", test.rules, got, err, test.want)
		}
	}
}
