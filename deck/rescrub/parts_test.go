package rescrub

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestLateManifest: what became known late is in no field of the manifest that holds what the program was given, typed keys and
// upstreams too.
func TestLateManifest(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	all := scrub.New(scrub.Key{1}, nil)
	begun := all.Mark()
	all.AddSecret("token", secret)
	m := &recording.Manifest{
		Argv: []string{"agent", "--say=" + secret}, Env: []recording.EnvVar{{Name: "NOTE", Value: secret}},
		ArgSecrets: []recording.EnvVar{{Name: "argv.1", Value: secret}}, TTY: &recording.TTY{Keys: []byte("say " + secret + "\r")},
		Again: &recording.Again{Upstreams: map[string]string{"a": "http://127.0.0.1/" + secret, "b": "http://127.0.0.1/b"}},
	}
	was := *m
	(&Pass{Written: Written{Find: all.Since(begun)}}).Manifest(m)
	text, err := json.Marshal(m)
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(m.TTY.Keys), secret) {
		t.Errorf("%s, %q, %v", text, m.TTY.Keys, err)
	}
	if want := map[string]string{"a": "", "b": "http://127.0.0.1/b"}; !maps.Equal(m.Again.Upstreams, want) {
		t.Errorf("upstreams %v, want %v", m.Again.Upstreams, want)
	}
	if !m.Env[0].Secret || m.Argv[1] != "--say="+all.String(secret) {
		t.Errorf("%+v, %q", m.Env, m.Argv)
	}
	if !strings.Contains(was.Argv[1], secret) || !strings.Contains(string(was.TTY.Keys), secret) { // others may read it meanwhile
		t.Error("the manifest that was handed out is another one")
	}
}

// TestLateParts: of an answer that could not be kept what is left stays, without the secret in its line, in its bytes, and
// where the line is torn. What is no part is not touched.
func TestLateParts(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	all := scrub.New(scrub.Key{1}, nil)
	begun := all.Mark()
	all.AddSecret("token", secret)
	placeholder := all.String(secret)
	l := &Pass{Written: Written{Dir: t.TempDir(), Find: all.Since(begun)}}
	dir := filepath.Join(l.Dir, recording.PartName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 70<<10)
	texts := map[string]string{
		"1": `{"url":"https://h/` + secret + `"}` + "\n" + long + secret + "\xff" + secret, "2": `{"url":"https://h/` + secret, "3": "{}\nnothing",
		"notes.txt": secret,
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.parts(); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		if name != "notes.txt" {
			text = strings.ReplaceAll(text, secret, placeholder)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is %d bytes, want %d: %.80q, %v", name, len(got), len(text), got, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(texts) {
		t.Errorf("left over: %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, "1"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestLateStreams: what is known late is taken out of the streams of a process, and a digest of them is taken anew where there was one: by one that
// there was not they would compare as those of the program do.
func TestLateStreams(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	all := scrub.New(scrub.Key{1}, nil)
	begun := all.Mark()
	all.AddSecret("token", secret)
	store, err := cas.OpenDir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &Pass{Written: Written{Store: store, Find: all.Since(begun)}}
	for _, was := range []cas.Digest{{}, cas.Sum([]byte(secret))} {
		text := func() *tape.Payload {
			return &tape.Payload{Hash: cas.Sum([]byte(secret)), Len: int64(len(secret)), Text: secret, Inline: true}
		}
		k := &tape.ProcessSpawn{SpawnID: 2, ParentSpawnID: 1, Stdin: text(), Stdout: text(), Stderr: text(), StdoutDigest: was, StderrDigest: was}
		if err := l.again(&tape.Record{Kind: k}); err != nil {
			t.Fatal(err)
		}
		if k.Stdin.Text != all.String(secret) || k.Stdout.Text != k.Stdin.Text || k.Stderr.Text != k.Stdin.Text {
			t.Errorf("%+v, %+v, %+v", k.Stdin, k.Stdout, k.Stderr)
		}
		for _, now := range []cas.Digest{k.StdoutDigest, k.StderrDigest} {
			if now.IsZero() != was.IsZero() || !was.IsZero() && now == was {
				t.Errorf("digest %s of what had %s", now.Short(), was.Short())
			}
		}
	}
}
