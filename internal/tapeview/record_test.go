package tapeview

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestSummariesOfInputs(t *testing.T) {
	inline := func(s string) *tape.Payload {
		return &tape.Payload{Hash: cas.Sum([]byte(s)), Inline: true, Text: s, Len: int64(len(s))}
	}
	for _, tt := range []struct {
		kind tape.Kind
		want string
	}{
		{&tape.DirList{Path: "src"}, "listed src"},
		{&tape.DirList{Path: "src", Names: inline(`["a","b"]`)}, "listed src: 2 names"},
		{&tape.DirList{Path: "src", Names: inline("no list")}, "listed src"},
		{&tape.EnvRead{VarName: "HOME"}, "HOME"},
		{&tape.EnvRead{VarName: "HOME", Value: inline("/h")}, "HOME=/h"},
		{&tape.EnvRead{VarName: "HOME", Value: inline(strings.Repeat("x", 500))}, "HOME, 500 bytes"},
		{&tape.FileStat{Path: "a", Type: "file", LenBytes: 3}, "looked at a: a file, 3 bytes"},
		{&tape.FileStat{Path: "a", Type: "none"}, "looked at a: nothing is there"},
		{&tape.FileStat{Path: "a", Type: "dir"}, "looked at a: dir"},
		{&tape.RandomRead{Length: 32}, "drew 32 bytes"},
		{&tape.ProcessSpawn{PID: 101, DurationMS: 5}, "a fork of its starter: exit 0 after 0.005s"},
		{&tape.ProcessSpawn{DurationMS: 5}, "threads of its starter: exit 0 after 0.005s"},
	} {
		if got := content(tt.kind); got != tt.want {
			t.Errorf("%#v: %q, want %q", tt.kind, got, tt.want)
		}
	}
}
