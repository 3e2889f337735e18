package deck_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// script records one run of a program's text.
func (b *bench) script(argv ...string) *recording.Recording {
	b.t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		b.t.Skip(err)
	}
	argv[0] = path
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: b.env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Isolated: b.isolated,
		Streams: deck.Streams{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.holds(res.Recording.Dir)
	return res.Recording
}

// beside are the divergences of v that are not of processes: another program was given other arguments, and may print other things.
func beside(v *deck.Verdict) []fidelity.Divergence {
	return slices.DeleteFunc(slices.Clone(v.Divergences), func(d fidelity.Divergence) bool {
		return d.Lane == "program" || strings.HasPrefix(d.Lane, "process:")
	})
}

// TestWhatStandsAtAPathCompares: modes, links, kinds, empty directories, FIFOs and extended attributes of real programs' files are
// on the tape, a replay finds them equal, and another of one of them is the one divergence, named.
func TestWhatStandsAtAPathCompares(t *testing.T) {
	t.Parallel()
	const first = `import os
os.mkdir("empty", 0o755)
os.mkfifo("pipe", 0o600)
open("tool", "w").write("#!/bin/sh\n"); os.chmod("tool", 0o700)
os.symlink("tool", "link")
open("marked", "w").close(); os.setxattr("marked", "user.k", b"v")
os.chmod("given", 0o640)
`
	b := newBench(t)
	put(t, filepath.Join(b.dir, "given"), "g\n")
	rec := b.script("python3", "-c", first)
	v, _ := b.replay(rec, nil)
	b.green(v)
	for name, test := range map[string]struct {
		was, now string
		want     fidelity.Category
		path     string
	}{
		"mode":        {"0o700", "0o750", fidelity.FileWriteMode, "tool"},
		"given mode":  {"0o640", "0o600", fidelity.FileWriteMode, "given"},
		"of a FIFO":   {"0o600", "0o640", fidelity.FileWriteMode, "pipe"},
		"a directory": {`os.mkdir("empty", 0o755)`, "", fidelity.MissingInReplay, "empty"},
		"a FIFO":      {`os.mkfifo("pipe", 0o600)`, "", fidelity.MissingInReplay, "pipe"},
		"kind":        {`os.mkfifo("pipe", 0o600)`, `open("pipe", "w").close()`, fidelity.FileWriteMode, "pipe"},
		"attribute":   {`b"v"`, `b"w"`, fidelity.FileWriteAttrs, "marked"},
		"link":        {`os.symlink("tool", "link")`, `os.symlink("marked", "link")`, fidelity.FileWriteHash, "link"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			v, _ := b.replay(rec, &deck.ReplayOptions{Argv: []string{"python3", "-c", strings.Replace(first, test.was, test.now, 1)}})
			if got := beside(v); len(got) != 1 || got[0].Category != test.want || !strings.Contains(got[0].Message, test.path) {
				t.Errorf("%v, want one %s about %s", got, test.want, test.path)
			}
		})
	}
}

// TestUmaskIsGivenAgain: whoever replays may have another one.
func TestUmaskIsGivenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := b.script("sh", "-c", "umask; echo x > made; mkdir dir")
	if rec.Manifest.Umask == nil {
		t.Fatal("the recording does not hold the umask")
	}
	*rec.Manifest.Umask = 0o057
	v, out := b.replay(rec, nil)
	if got := beside(v); out != "0057\n" || len(got) != 2 {
		t.Errorf("%q, %v, want other modes of made and dir", out, got)
	}
}

// TestStatesThatEnd: what stood at a path for a while only is on the tape, whichever program made it, and the replay has the same.
func TestStatesThatEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	put(t, filepath.Join(b.dir, "kept.txt"), "as found\n")
	rec := b.script("sh", "-c", `cp kept.txt "$HOME/copy"
echo changed > kept.txt; cp "$HOME/copy" kept.txt
echo brief > brief.txt; rm brief.txt
mkdir d; rmdir d
echo one > twice.txt; echo two > twice.txt
echo tmp > t.tmp; mv t.tmp kept2.txt`)
	var got []string
	for _, k := range kinds(t, rec) {
		if f := tape.ChangedFile(k); f != nil {
			got = append(got, k.Name()+" "+f.Path+" "+shown(f.Content))
		}
	}
	want := []string{
		"file_write brief.txt brief", "file_write d ", "file_write kept.txt changed", "file_write twice.txt one", // which ended
		"file_delete brief.txt nothing", "file_delete d nothing", "file_write kept.txt as found", "file_write kept2.txt tmp",
		"file_write twice.txt two", "file_write ~/copy as found",
	}
	if !slices.Equal(got, want) {
		t.Errorf("on the tape:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	v, _ := b.replay(rec, nil)
	b.green(v)
	if len(v.Notes) > 0 {
		t.Errorf("notes: %q", v.Notes)
	}
}

// TestTimesOfLinksAreGivenAgain: those of links that the run makes are given again as those of files are.
func TestTimesOfLinksAreGivenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := b.script("sh", "-c", `mkdir d; echo x >d/f; ln -s f d/l; ln -s nowhere d/n; tar cf - d | md5sum; find d -printf "%p %T@\n" | sort`)
	v, _ := b.replay(rec, nil)
	b.green(v)
}

// TestTimesAreGivenAgain: tar of an unchanged tree, ls and find say on a replay what they said, however old the disk is by then.
func TestTimesAreGivenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	put(t, filepath.Join(b.dir, "src/a.txt"), "a\n")
	put(t, filepath.Join(b.dir, "src/deep/b.txt"), "b\n")
	put(t, filepath.Join(b.dir, "other/c.txt"), "c\n")
	run(t, "ln", "-s", "a.txt", filepath.Join(b.dir, "src/link"))
	run(t, "touch", "-h", "-d", "2021-03-04 05:06:07.123456789", filepath.Join(b.dir, "src/link"), filepath.Join(b.dir, "src/deep"), b.dir)
	rec := b.script("sh", "-c", `tar c src | md5sum; find . -not -path "./.tapedeck*" -printf "%p %M %T@ %l\n" | sort; find . -newer src/link -not -path "./.tapedeck*" | sort`)
	v, first := b.replay(rec, nil)
	b.green(v)
	run(t, "touch", filepath.Join(b.dir, "src/deep/b.txt"), filepath.Join(b.dir, "src"), filepath.Join(b.dir, "src/deep"))
	run(t, "touch", "-h", filepath.Join(b.dir, "src/link"))
	put(t, filepath.Join(b.dir, "later"), "")
	v, again := b.replay(rec, nil)
	b.green(v)
	if again != first {
		t.Errorf("first\n%s\nthen\n%s", first, again)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
