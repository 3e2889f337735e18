package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// transcript is a fenced block that begins with a command line of session logs.
var transcript = regexp.MustCompile("(?ms)^```(?:console)?\n(\\$ tapedeck session .*?)^```$")

// TestDocsTranscripts runs the commands that the guides to session logs and importers show, over the files that they speak of,
// and holds what they print against what the guides have. A line "…" stands for any number of lines.
func TestDocsTranscripts(t *testing.T) {
	var blocks []string
	for _, name := range []string{"sessions.md", "reference/importers.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range transcript.FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, m[1])
		}
	}
	if len(blocks) < 6 {
		t.Fatalf("only %d transcripts found", len(blocks))
	}
	putDocsFiles(t)
	for _, block := range blocks {
		var got strings.Builder
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				got.WriteString(line)
				got.WriteString(runLine(t, strings.TrimSpace(command)))
			}
		}
		want := strings.ReplaceAll(regexp.QuoteMeta(block), "…\n", "(?:.*\n)*?")
		if !regexp.MustCompile("^" + want + "$").MatchString(got.String()) {
			t.Errorf("the guide has:\n%s\nprinted is:\n%s", block, &got)
		}
		for _, name := range []string{"session.jsonl", "session.md", "pi.jsonl", "whole.jsonl"} {
			_ = os.Remove(name)
		}
	}
}

// putDocsFiles makes a HOME in which the files of the guides lie, and goes there.
func putDocsFiles(t *testing.T) {
	t.Helper()
	home, transcripts := t.TempDir(), "../../sessionlog/foreign/testdata"
	put := func(name string, b []byte, err error) {
		if err == nil {
			path := filepath.Join(home, filepath.FromSlash(name))
			err = os.MkdirAll(filepath.Dir(path), 0o700)
			if err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{
		"tree.jsonl": "pi/tree.jsonl", "rollout.jsonl": "codex/session.jsonl", ".local/share/opencode/opencode.db": "opencode/opencode.db",
	} {
		b, err := os.ReadFile(filepath.Join(transcripts, from))
		put(name, b, err)
	}
	script, err := os.ReadFile("testdata/session.txtar")
	put("log.jsonl", fileOf(script, "log.jsonl"), err)
	put("crashed.jsonl", bytes.TrimSuffix(fileOf(script, "crashed.jsonl"), []byte("\n")), err)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Chdir(home)
}

// fileOf is a file of a script.
func fileOf(script []byte, name string) []byte {
	_, rest, _ := bytes.Cut(script, []byte("\n-- "+name+" --\n"))
	b, _, _ := bytes.Cut(rest, []byte("\n-- "))
	return append(bytes.Clone(b), '\n')
}

// runLine runs a command line, of which "|" joins two, and returns all that it prints.
func runLine(t *testing.T, line string) string {
	t.Helper()
	var in io.Reader = strings.NewReader("")
	var out, errs bytes.Buffer
	for command := range strings.SplitSeq(line, " | ") {
		out = bytes.Buffer{}
		args := strings.Fields(strings.ReplaceAll(command, "~", os.Getenv("HOME")))
		run(context.Background(), args[1:], streams{in, &out, &errs})
		in = bytes.NewReader(out.Bytes())
	}
	return out.String() + errs.String()
}
