package deck_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() {
	programs["housekeeper"] = playHousekeeper
	programs["mover"] = playMover
	programs["renamer"] = playRenamer
	programs["builder"] = playBuilder
}

// playHousekeeper says what it finds in the work tree, HOME and TMPDIR, and changes all three, before and between two
// questions to a model.
func playHousekeeper(args []string) int {
	home, tmp := os.Getenv("HOME"), os.Getenv("TMPDIR")
	for _, dir := range []string{".", home, tmp} {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				fmt.Println("?", err)
				return nil
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			b, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			fmt.Println(filepath.Base(dir), rel, info.Mode(), string(b))
			return nil
		})
	}
	ask := func(text string) {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, text)
		res, err := http.Post(args[0]+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		fmt.Println(string(b))
	}
	do := func(steps ...error) {
		for i, err := range steps {
			if err != nil {
				fmt.Println("step", i, err)
			}
		}
	}
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
	do(
		write("notes.txt", "one\n"), write("build/log", "built\n"),
		os.MkdirAll(filepath.Join(home, ".agent/deep"), 0o700), write(filepath.Join(home, ".agent/state.json"), `{"runs":2}`),
		os.Remove(filepath.Join(home, ".agent/old")), write(filepath.Join(tmp, "scratch.txt"), "s1\n"),
	)
	ask("first")
	do(
		write("notes.txt", "two\n"), os.Remove("gone.txt"),
		os.Rename(filepath.Join(tmp, "dir/in"), filepath.Join(tmp, "moved")), write(filepath.Join(tmp, "dir/beside"), "changed\n"), os.Chmod(filepath.Join(home, "tool"), 0o755),
		os.Symlink("state.json", filepath.Join(home, ".agent/link")), os.Remove(filepath.Join(tmp, "scratch.txt")),
	)
	ask("second")
	do(write("notes.txt", "three\n"), write(filepath.Join(home, ".agent/deep/last"), "x"))
	return 0
}

// housekeeping is a bench with what playHousekeeper finds.
func housekeeping(t *testing.T) (b *bench, tmp string) {
	b = newBench(t)
	tmp = filepath.Join(filepath.Dir(b.dir), "tmp")
	b.env = append(b.env, "TMPDIR="+tmp)
	b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"yes"}}]}`)
	})
	for path, text := range map[string]string{
		filepath.Join(b.dir, "notes.txt"): "zero\n", filepath.Join(b.dir, "gone.txt"): "here\n",
		filepath.Join(b.dir, ".gitignore"): "build/\n", filepath.Join(b.dir, "build/log"): "old build\n",
		filepath.Join(b.home, ".agent/state.json"): `{"runs":1}`, filepath.Join(b.home, ".agent/old"): "o\n",
		filepath.Join(b.home, "tool"): "#!/bin/sh\n", filepath.Join(b.home, "only-read"): "r\n",
		filepath.Join(tmp, "dir/in"): "in\n", filepath.Join(tmp, "dir/beside"): "beside\n",
	} {
		put(t, path, text)
	}
	return b, tmp
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestChangesInOrder: what a program changes in the work tree, HOME and TMPDIR stands on the tape before the question that it
// asked after that, sorted by path, with what stood there before.
func TestChangesInOrder(t *testing.T) {
	b, _ := housekeeping(t)
	res, out := b.record("housekeeper", "https://api.openai.com")
	if strings.Contains(out, "step ") {
		t.Fatal(out)
	}
	var got []string
	for _, k := range kinds(t, res.Recording) {
		switch k := k.(type) {
		case *tape.LLMCall:
			got = append(got, "ask")
		case *tape.FileWrite:
			got = append(got, fmt.Sprintf("%s: %s -> %s", k.Path, shown(k.Before), shown(k.Content)))
		case *tape.FileDelete:
			got = append(got, fmt.Sprintf("%s: %s -> gone", k.Path, shown(k.Before)))
		}
	}
	want := []string{
		"$TMP/scratch.txt: nothing -> s1",
		"build/log: old build -> built",
		"notes.txt: zero -> one",
		"~/.agent/deep: nothing -> ",
		"~/.agent/old: o -> gone",
		`~/.agent/state.json: {"runs":1} -> {"runs":2}`,
		"ask",
		"$TMP/dir/beside: beside -> changed",
		"$TMP/dir/in: in -> gone",
		"$TMP/moved: nothing -> in",
		"$TMP/scratch.txt: s1 -> gone",
		"gone.txt: here -> gone",
		"notes.txt: one -> two",
		"~/.agent/link: nothing -> state.json",
		"~/tool: #!/bin/sh -> #!/bin/sh",
		"ask",
		"notes.txt: two -> three",
		"~/.agent/deep/last: nothing -> x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("on the tape:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func shown(p *tape.Payload) string {
	if p == nil {
		return "nothing"
	}
	return strings.TrimSpace(p.Text)
}

// TestExactStart: a replay starts from what the run found, in the work tree, HOME and TMPDIR, however the disk has changed
// since; and it leaves the disk alone.
func TestExactStart(t *testing.T) {
	b, tmp := housekeeping(t)
	res, out := b.record("housekeeper", "https://api.openai.com")
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if again != out {
		t.Errorf("the replay saw\n%s\nthe run\n%s", again, out)
	}

	put(t, filepath.Join(b.dir, "notes.txt"), "edited\n")
	put(t, filepath.Join(b.dir, "build/log"), "edited\n")
	put(t, filepath.Join(b.dir, "new.txt"), "new\n")
	put(t, filepath.Join(b.home, ".agent/state.json"), "edited")
	put(t, filepath.Join(b.home, ".agent/deep/more"), "not by the run")
	if err := os.RemoveAll(filepath.Join(tmp, "moved")); err != nil {
		t.Fatal(err)
	}
	before := listing(t, filepath.Dir(b.dir))
	v, again = b.replay(res.Recording, &deck.ReplayOptions{Watch: []string{"~/.agent", "$TMP/moved", "build"}})
	b.green(v)
	if again != out {
		t.Errorf("after the disk has changed the replay saw\n%s\nthe run\n%s", again, out)
	}
	if after := listing(t, filepath.Dir(b.dir)); after != before {
		t.Errorf("the replay changed the disk:\n%s\nwas\n%s", after, before)
	}
	if notes := strings.Join(v.Notes, "\n"); !strings.Contains(notes, "shown as it found it") {
		t.Errorf("no note says that HOME differs now:\n%s", notes)
	}

	put(t, filepath.Join(b.home, "only-read"), "edited")
	v, again = b.replay(res.Recording, nil)
	if again == out || v.Faithful() {
		t.Error("a file in HOME that was only read is not the one of now")
	}
}

// TestKeptReplayHolds: a replay that is kept holds all that its tape, its patch and its trees name, also what the recording has.
func TestKeptReplayHolds(t *testing.T) {
	b, _ := housekeeping(t)
	long := filepath.Join(b.home, "long")
	put(t, long, strings.Repeat("a long file\n", 1000))
	argv := []string{"sh", "-c", "echo two > a; rm ~/long; seq 9999 > ~/.agent/long; seq 8888 > b"}
	res, err := deck.Record(t.Context(), &deck.RecordOptions{Argv: argv, Env: b.env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config})
	if err != nil {
		t.Fatal(err)
	}
	put(t, long, "changed since")
	kept := filepath.Join(t.TempDir(), "kept.rec")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
	b.green(v)
	if err := os.RemoveAll(res.Recording.Dir); err != nil { // nothing of it is shared
		t.Fatal(err)
	}
	b.sound(kept)
	rec, err := recording.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	v, _ = b.replay(rec, &deck.ReplayOptions{Watch: []string{"~/.agent", "~/long"}})
	b.green(v)
}

// TestListingOfDirectories: ls -l says the same of the directories of a replay, which an overlay merges and so counts as one link.
func TestListingOfDirectories(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, dir := range []string{"a", "b/c"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	argv := []string{"sh", "-c", "ls -la . b " + b.home}
	res, err := deck.Record(t.Context(), &deck.RecordOptions{Argv: argv, Env: b.env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := b.replay(res.Recording, nil)
	b.green(v)
}

// TestLengthOfDirectories: ls and stat say of a directory how long the recorded one was, whatever an overlay has of it.
func TestLengthOfDirectories(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 300 {
		put(t, filepath.Join(b.dir, "d", fmt.Sprintf("%0100d", i)), "x")
	}
	rec := b.script("sh", "-c", "stat -c '%s %b' d; rm d/*7; ls -ld d; ls -s . d | head -20; stat -c %s d; chmod 700 d; ls -ld d")
	v, _ := b.replay(rec, nil)
	b.green(v)
}

// TestOrderOfNames: directories list their names in the order that they had, whatever the run took away, made or renamed there.
func TestOrderOfNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if !ordersByName(t) {
		t.Skip("this file system lists names as they were made")
	}
	for _, name := range strings.Fields("a b c d e sub/a sub/b sub/c sub/deep/a sub/deep/b") {
		put(t, filepath.Join(b.dir, name), name)
		put(t, filepath.Join(b.home, "agent", filepath.Base(name)), name)
	}
	const list = `find . ~/agent -path ./.tapedeck -prune -o -print; `
	const script = list + `rm b sub/a ~/agent/c; mv c f; mv sub/b sub/deep/c; ` + list + `for i in 1 2 3 4 5 6 7 8 9; do echo $i > n$i; echo $i > sub/deep/n$i; done; ` +
		list + `rm n1 n3 n5 sub/deep/n2; mkdir b; echo x >> a; rm -r sub/deep; ` + list
	rec := b.script("bash", "-c", script)
	v, _ := b.replay(rec, nil)
	b.green(v)
	for _, name := range strings.Fields("e n2 n4 n6") { // the disk has changed since
		if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.put("late", "x")
	v, _ = b.replay(rec, nil)
	b.green(v)
	_, out := b.replay(rec, &deck.ReplayOptions{Argv: []string{"bash", "-c", "(cat b; rm b; cat b n1 late; ls) 2>/dev/null"}})
	if want := "ba\nc\nd\ne\nsub\n"; out != want {
		t.Errorf("another program sees %q, want %q", out, want)
	}
}

// ordersByName reports whether directories list their names in one order, however they were made.
func ordersByName(t *testing.T) bool {
	var lists [2][]string
	for i := range lists {
		dir := t.TempDir()
		for k := range 20 {
			if i == 1 {
				k = 19 - k
			}
			put(t, filepath.Join(dir, strconv.Itoa(k)), "")
		}
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		lists[i], err = f.Readdirnames(-1)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Equal(lists[0], lists[1])
}

// TestTimesOfPipedFiles: what the last program of a pipeline writes was written when it was then, whoever of the pipeline begins while it is made.
func TestTimesOfPipedFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := b.script("bash", "-c", `for i in 1 2 3 4 5 6 7 8 9; do echo $i | sed s/1/2/ | sort > f$i; done; tar cf t.tar f?`)
	for range often(5) {
		v, _ := b.replay(rec, nil)
		b.green(v)
	}
}

// TestAbsentHome: a HOME that the run made is not there when a replay begins, though it is there now.
func TestAbsentHome(t *testing.T) {
	b, tmp := housekeeping(t)
	absent := filepath.Join(tmp, "absent/home")
	b.env[slices.Index(b.env, "HOME="+b.home)] = "HOME=" + absent
	res, out := b.record("housekeeper", "https://api.openai.com")
	if !strings.Contains(out, "no such file") || !strings.Contains(listing(t, absent), "state.json") {
		t.Fatalf("the run did not make its HOME:\n%s", out)
	}
	put(t, filepath.Join(absent, ".agent/state.json"), "edited")
	for _, path := range []string{absent, filepath.Join(b.home, "untouched")} {
		put(t, filepath.Join(path, "more"), "not by the run")
		v, again := b.replay(res.Recording, &deck.ReplayOptions{Watch: []string{absent}})
		b.green(v)
		if again != out {
			t.Errorf("the replay saw\n%s\nthe run\n%s", again, out)
		}
		if err := os.RemoveAll(absent); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatch: files outside the work tree gate where they are asked for.
func TestWatch(t *testing.T) {
	b, _ := housekeeping(t)
	b.realTime = true // else they gate anyway
	b.through = []string{"/bin/sh", "-c", `"$0" "$@"; :`}
	res, _ := b.record("housekeeper", "https://api.openai.com")
	b.through[2] = `"$0" "$@"; echo more >> ~/.agent/state.json`
	argv, _ := b.self("housekeeper", "https://api.openai.com")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
	b.green(v)
	v, _ = b.replay(res.Recording, &deck.ReplayOptions{Argv: argv, Watch: []string{filepath.Join(b.home, ".agent")}})
	if v.Total() != 1 || v.Divergences[0].Category != fidelity.MissingInRecorded {
		t.Errorf("%+v", v.Divergences)
	}
}

// TestWatchInCompare: what one of two recordings could not see is not compared, and nothing is green for it.
func TestWatchInCompare(t *testing.T) {
	b, _ := housekeeping(t)
	seen, _ := b.record("housekeeper", "https://api.openai.com")
	unseen, _ := b.recordOutside("housekeeper", "https://api.openai.com")
	v, err := deck.Compare(seen.Recording.Dir, unseen.Recording.Dir, &deck.CompareOptions{Watch: []string{"~/.agent"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(v.NotCompared, func(s string) bool { return strings.HasPrefix(s, "--watch ~/.agent: ") }) {
		t.Errorf("not compared: %q", v.NotCompared)
	}
}

// listing lists a directory with everything in it but recordings.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".tapedeck" || e.Name() == "config" {
			return fs.SkipDir
		}
		b, _ := os.ReadFile(path)
		fmt.Fprintln(&out, path, e.Type(), string(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestIsolatedLeavesTheDisk: an isolated run is recorded like any other, touches nothing, and can be applied afterwards.
func TestIsolatedLeavesTheDisk(t *testing.T) {
	b, _ := housekeeping(t)
	before := listing(t, filepath.Dir(b.dir))
	argv, env := b.self("housekeeper", "https://api.openai.com")
	var out strings.Builder
	res, err := deck.Record(t.Context(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Isolated: true,
		Streams: deck.Streams{Stdout: &out, Stderr: &out},
	})
	if err != nil || strings.Contains(out.String(), "step ") {
		t.Fatal(err, out.String())
	}
	b.holds(res.Recording.Dir)
	if after := listing(t, filepath.Dir(b.dir)); after != before {
		t.Errorf("the disk is now\n%s\nit was\n%s", after, before)
	}
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if again != out.String() {
		t.Errorf("the replay saw\n%s\nthe run\n%s", again, out.String())
	}
	if _, _, err := derive.Apply(res.Recording, false); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, b.dir); !strings.Contains(got, "three") || strings.Contains(got, "gone.txt") || !strings.Contains(got, "old build") {
		t.Errorf("applied:\n%s", got)
	}
}

// playMover renames directories of the work tree and TMPDIR, and changes what lies in them before and after.
func playMover([]string) int {
	for _, dir := range []string{".", os.Getenv("TMPDIR")} {
		in := func(name string) string { return filepath.Join(dir, name) }
		for i, err := range []error{
			os.WriteFile(in("d/early"), []byte("early"), 0o644),
			os.Rename(in("d"), in("e")),
			os.Rename(in("empty"), in("still-empty")),
			os.WriteFile(in("e/sub/late"), []byte("late"), 0o644),
			os.Remove(in("e/gone")),
			os.Rename(in("e/sub"), in("sub")),
		} {
			if err != nil {
				fmt.Println(dir, i, err)
			}
		}
	}
	return 0
}

// TestRenamedDirectories: an overlay renames no directory of a lower layer, and a replay renames what the run renamed.
func TestRenamedDirectories(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tmp := filepath.Join(filepath.Dir(b.dir), "tmp")
	b.env = append(b.env, "TMPDIR="+tmp)
	for _, dir := range []string{b.dir, tmp} {
		for name, text := range map[string]string{
			"d/keep": "keep", "d/gone": "gone", "d/sub/late": "was", "d/sub/other": "other", "d/build/out": "ignored", ".gitignore": "build/\n",
			"d/.env": "SECRET_TOKEN=abcd1234efgh5678\n",
		} {
			put(t, filepath.Join(dir, name), text)
		}
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	res, out := b.record("mover")
	if out != "" {
		t.Fatal(out)
	}
	v, out := b.replay(res.Recording, nil)
	b.green(v)
	if out != "" {
		t.Errorf("the replay could not do what the run did:\n%s", out)
	}
	for _, dir := range []string{b.dir, tmp} { // and however the disk looks now
		if err := os.RemoveAll(filepath.Join(dir, "sub")); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "d/sub/new"), "new")
	}
	kept := filepath.Join(t.TempDir(), "kept")
	v, out = b.replay(res.Recording, &deck.ReplayOptions{Keep: kept})
	if out != "" {
		t.Errorf("after the disk has changed:\n%s", out)
	}
	b.green(v)
	if got := listing(t, kept); strings.Contains(got, "new") || !strings.Contains(got, "e/keep") {
		t.Errorf("the replay left\n%s", got)
	}
}

func playRenamer([]string) int {
	if err := os.Rename("dir", "moved"); err != nil {
		return fail(err)
	}
	return 0
}

// TestRenamedCoveredDirectory: the snapshot has all of a directory, and the replay renames it as the run did. That it is gone from the disk is
// the run's doing, and told by no note.
func TestRenamedCoveredDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	put(t, filepath.Join(b.dir, "dir/sub/f"), "f\n")
	res, _ := b.record("renamer")
	v, out := b.replay(res.Recording, nil)
	b.green(v)
	if notes := strings.Join(v.Notes, "\n"); out != "" || strings.Contains(notes, "differ") {
		t.Errorf("the replay printed %q\n%s", out, notes)
	}
	put(t, filepath.Join(b.dir, "dir/sub/f"), "another\n")
	v, _ = b.replay(res.Recording, nil)
	b.green(v)
	if notes := strings.Join(v.Notes, "\n"); !strings.Contains(notes, "one file differs now (dir/sub/f)") {
		t.Errorf("no note of a file that was put there since:\n%s", notes)
	}
}

// playBuilder makes out of src, in the work tree and below HOME, where out is older.
func playBuilder([]string) int {
	for _, dir := range []string{".", os.Getenv("HOME")} {
		src, err := os.Stat(filepath.Join(dir, "src"))
		if err != nil {
			return fail(err)
		}
		if out, err := os.Stat(filepath.Join(dir, "out")); err == nil && out.ModTime().After(src.ModTime()) {
			fmt.Println("up to date")
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "src"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "out"), b, 0o644)
		}
		fmt.Println("built", err)
	}
	return 0
}

// TestTimesOfFiles: what goes by the times of files does on a replay what it did, whatever was written since.
func TestTimesOfFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{"out", "src"} { // src is newer
		for _, dir := range []string{b.dir, b.home} {
			put(t, filepath.Join(dir, name), name+"\n")
			if err := os.Chtimes(filepath.Join(dir, name), old, old.Add(time.Duration(i)*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, out := b.record("builder")
	if out != "built <nil>\nbuilt <nil>\n" {
		t.Fatal(out)
	}
	second, out := b.record("builder")
	if out != "up to date\nup to date\n" {
		t.Fatal(out)
	}
	check := func(when string) {
		t.Helper()
		for want, rec := range map[string]*recording.Recording{"built <nil>\nbuilt <nil>\n": first.Recording, "up to date\nup to date\n": second.Recording} {
			v, out := b.replay(rec, nil)
			b.green(v)
			if out != want {
				t.Errorf("%s: %q, want %q", when, out, want)
			}
		}
	}
	put(t, filepath.Join(b.dir, "src"), "edited\n")
	check("after an edit")
	put(t, filepath.Join(b.dir, "src"), "src\n") // the same content, another time
	check("after it was taken back")
}

// TestTimesOfOwnFiles: a file's recorded time is that of the same write, whoever waits for it and however often; what is written in another
// order, or given another time, differs.
func TestTimesOfOwnFiles(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	for name, c := range map[string]struct{ program, was, is string }{
		"polled": {program: `import os, threading, time
open("f", "w").write("0")
last = os.stat("f").st_mtime_ns
def write():
	time.sleep(0.05)
	with open("f", "w") as f:
		f.write("1")
threading.Thread(target=write).start()
while os.stat("f").st_mtime_ns == last: time.sleep(0.001)
print("changed")
`},
		"through a link": {program: `import os
os.mkdir("real")
os.symlink("real", "link")
open("link/f", "w").write("x")
print(os.stat("link/f").st_mtime_ns)
`},
		"in another order": {program: `import os, time
for name in "source", "target":
	open(name, "w").write("x")
	time.sleep(0.05)
print(os.path.getmtime("target") >= os.path.getmtime("source"))
`, was: `"source", "target"`, is: `"target", "source"`},
		"no time set": {program: `import os, time
open("f", "w").write("x")
then = time.time() - 0.02
os.utime("f", (then, then))
print(abs(os.stat("f").st_mtime - then) < 1e-3)
`, was: `os.utime("f", (then, then))`, is: "pass"},
	} {
		rec := b.script("python3", "-c", c.program)
		v, _ := b.replay(rec, new(deck.ReplayOptions))
		b.green(v)
		if c.was == "" {
			continue
		}
		v, _ = b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", strings.Replace(c.program, c.was, c.is, 1)}})
		if !slices.ContainsFunc(v.Divergences, func(d fidelity.Divergence) bool { return strings.Contains(d.Message, "stdout") }) {
			t.Errorf("%s: %s", name, verdictText(t, v))
		}
	}
}

// TestTimesThatAreSet: a time that a program gives a file stays on a replay, and what children tell of another one differs. A program finds its
// own files as old as the recorded one did, however often it writes them.
func TestTimesThatAreSet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	const program = `import os, pathlib, subprocess, time
os.mkdir("own")
for wait in 0, 0, 0.01, 0.01:
	with open("own/file", "a") as f: f.write("x")
	time.sleep(wait)
	print([os.stat(p).st_mtime_ns for p in ("own/file", "own")], pathlib.Path("own/../own/file").lstat().st_mtime_ns)
os.rename("own/file", "own/other")
print([e.stat().st_mtime for e in os.scandir("own")])
for name in "set", "written": open(name, "w").close()
os.utime("set", (1e9, 1e9))
for ask in "stat -c %Y set written", "stat set written", "ls -l --time-style=full-iso": subprocess.run(ask, shell=True)
`
	rec := b.script("python3", "-c", program)
	for _, c := range []struct {
		to    string
		green bool
	}{{"(1e9, 1e9)", true}, {"(1e9, 1000000001)", false}, {"None", false}} {
		v, _ := b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", strings.Replace(program, "(1e9, 1e9)", c.to, 1)}})
		changed := 0
		for _, d := range v.Divergences {
			changed += strings.Count(d.Message, "stdout")
		}
		if c.green {
			b.green(v)
		} else if changed == 0 {
			t.Errorf("%s: %s", c.to, verdictText(t, v))
		}
	}
}

// TestLibraries: a library of 2 MiB or more that a program loads from the work tree, found there or made by the run, lies where it lay. The
// kernel aligns it for huge pages where it was recorded, and not in the layers of a replay.
func TestLibraries(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const huge = 2 << 20
	libs, _ := filepath.Glob("/usr/lib/*-linux-gnu/*.so*")
	i := slices.IndexFunc(libs, func(lib string) bool {
		st, err := os.Lstat(lib)
		return err == nil && st.Mode().IsRegular() && st.Size() > 3*huge/2 && st.Size() < 4*huge && strings.HasPrefix(filepath.Base(lib), "libcrypto.so")
	})
	if i < 0 {
		t.Skip("no libcrypto here")
	}
	b := newBench(t)
	lib, err := os.ReadFile(libs[i])
	if err != nil {
		t.Fatal(err)
	}
	b.put("found.so", string(lib))
	atHome := filepath.Join(b.home, "found.so")
	if err := os.WriteFile(atHome, lib, 0o644); err != nil {
		t.Fatal(err)
	}
	const loads = `import ctypes, os, shutil
shutil.copy("found.so", "made.so")
for lib in "./found.so", "./made.so", os.environ["HOME"] + "/found.so":
	print(hex(ctypes.cast(ctypes.CDLL(lib).OPENSSL_version_major, ctypes.c_void_p).value), object())
`
	b.isolated = true // layers while recording too, and beside the replay's in other places
	v, _ := b.replay(b.script("python3", "-c", loads), new(deck.ReplayOptions))
	b.green(v)
	b.isolated = false
	rec := b.script("python3", "-c", loads)
	v, _ = b.replay(rec, new(deck.ReplayOptions))
	b.green(v)

	const hostile = `import ctypes, os
mmap = ctypes.CDLL(None).mmap
mmap.argtypes, mmap.restype = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long], ctypes.c_void_p
for name in "found.so", os.environ["HOME"] + "/found.so":
	fd = os.open(name, os.O_RDONLY)
	was = os.fstat(fd).st_dev
	mmap(None, 4 << 20, 1, 0x802, fd, 0)
	print(was == os.fstat(fd).st_dev)
	for change in lambda: os.open("/proc/self/fd/%d" % fd, os.O_RDWR), lambda: os.fchmod(fd, 0o777), lambda: os.utime(fd, (1, 1)), lambda: os.link("/proc/self/fd/%d" % fd, "linked"):
		try: print(change())
		except OSError as e: print(e.strerror)
`
	_, out := b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", hostile}})
	if want := strings.Repeat("False\n"+strings.Repeat("Read-only file system\n", 3)+"Invalid cross-device link\n", 2); out != want {
		t.Errorf("a program that wants to change a library is told\n%s\nwant\n%s", out, want)
	}
}
