package mcp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// canary is a secret of the environment; member one that a name in a message tells.
const (
	canary = `c4nAry"Q7\zW9xK2mP5/vT8+rJ`
	member = "Zk3vB8nM1qW6tY0uHdPe"
	shaped = "ghp_pq4RvT9xWz2LmK7sYb1NcD5fGh8JkA3eQ6uZ"
)

// guises are the forms in which a value may stand in JSON.
func guises(value string) []string {
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	return []string{
		string(quoted[1 : len(quoted)-1]), string(twice[1 : len(twice)-1]), url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value)),
		base64.URLEncoding.EncodeToString([]byte("x" + value)), hex.EncodeToString([]byte(value)),
	}
}

// No byte of a secret is in the directory of a tape, wherever in a conversation it stood, and the JSON of the messages stays JSON.
func TestNoSecretIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, rec := canaryLog(t, dir)
	for i, guise := range guises(canary) {
		c := log.Begin(&mcp.Opened{
			Transport: mcp.Stdio, Program: "/opt/" + url.QueryEscape(canary), Args: []string{"--key", canary, shaped}, Cwd: "/" + shaped,
		})
		big := strings.Repeat("x", 5000)
		say(t, c, "<log "+guise+" "+shaped, askInit, "<"+strings.Replace(ansInit, `"files"`, `"`+guise+`"`, 1),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"a","arguments":{"%[1]s":"%[1]s","apiKey":"%s"}}}`, guise, member),
			fmt.Sprintf(`<{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"%[1]s %s %s %s"}]}}`, guise, member, shaped, big),
			fmt.Sprintf(`<{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"%s"}}`, guise),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"result":{"content":{"password":"%s"}}}`, member),
			fmt.Sprintf(`<{"jsonrpc":"2.0","method":"%s","params":{"x":["%[1]s"]}}`, guise),
			`{"jsonrpc":"2.0","id":6,"method":"x"}`)
		c.Fault(mcp.Client, json.RawMessage("6"), "refused "+canary)
		for _, b := range []string{guise[:9], guise[9:] + "\n-----BEGIN PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n", "-----END PRIVATE KEY-----\n"} {
			if err := c.Stderr([]byte(b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Text(mcp.Server, []byte("half "+guise)); err != nil {
			t.Fatal(err)
		}
		if err := c.End(mcp.Ended{Signal: "SIGTERM"}); err != nil {
			t.Fatal(err)
		}
		if _, err := rec.Payload([]byte(big)); err != nil || i < 0 {
			t.Fatal(err)
		}
	}
	holdsNone(t, dir, append(guises(canary), canary, member, shaped, "MIIEvQIBADANBgkqhkiG9w0")...)
	holdsJSON(t, dir)
}

func canaryLog(t *testing.T, dir string) (*mcp.Log, *tape.Recorder) {
	t.Helper()
	s := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"CANARY_SECRET=" + canary}})
	return diskLog(t, dir, s)
}

func holdsNone(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		for _, s := range secrets {
			if i := bytes.Index(b, []byte(s)); i >= 0 {
				t.Errorf("%s holds %q: …%s…", path, s, b[max(0, i-80):min(len(b), i+80)])
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// holdsJSON wants every message on the tape to be JSON.
func holdsJSON(t *testing.T, dir string) {
	t.Helper()
	store := openStore(t, dir)
	for _, k := range readTape(t, dir) {
		call, ok := k.(*tape.MCPJSONRPC)
		if !ok {
			continue
		}
		for _, p := range []*tape.Payload{call.Request, call.Response} {
			b, err := p.Bytes(store)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 0 && !json.Valid(b) {
				t.Errorf("no JSON: %s", b)
			}
		}
	}
}

// Structure, names and numbers stay exactly what they were; only strings are looked into, and a number that is a secret becomes one.
func TestRedactKeepsTheShape(t *testing.T) {
	t.Parallel()
	r := newRig(t, "PIN_SECRET=9182736455", "API_TOKEN="+member)
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1.0,"b":[10000000000000000000001,-0,1e5, 2.50 ],"é":"\u00e9\/","z":null}}`: "",
		`{"jsonrpc":"2.0","id":1,"result":{"n":9182736455,"t":"x"}}`:                                                      `{"jsonrpc":"2.0","id":1,"result":{"n":"PIN","t":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"n":[9182736455,12],"t":"9182736455"}}`:                                        `{"jsonrpc":"2.0","id":1,"result":{"n":["PIN",12],"t":"PIN"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"` + member + `":true}}`:                                                       `{"jsonrpc":"2.0","id":1,"result":{"TOKEN":true}}`,
	} {
		got := string(r.log.Redact(mcp.Server, []byte(in)).Text)
		if want == "" {
			want = in
		}
		want = strings.NewReplacer("PIN", r.scrub.String("9182736455"), "TOKEN", r.scrub.String(member)).Replace(want)
		if got != want {
			t.Errorf("of %s became\n%s, want\n%s", in, got, want)
		}
	}
}

// What names of members and of settings in texts tell is hidden whatever its length; counts and marks of lists are not.
func TestRedactShortValues(t *testing.T) {
	r := newRig(t)
	for _, from := range []mcp.Side{mcp.Client, mcp.Server} {
		in := `{"jsonrpc":"2.0","id":1,"result":{"token":"abc12","authorization":"Bearer zz99","text":"api_key=abcdef12345678 x","max_tokens":12,"nextCursor":"abc12","secret":null}}`
		got := string(scrub.Renumber(r.log.Redact(from, []byte(in)).Text))
		want := `{"jsonrpc":"2.0","id":1,"result":{"token":"td_#1","authorization":"td_#2","text":"api_key=td_#3 x","max_tokens":12,"nextCursor":"abc12","secret":null}}`
		if got != want {
			t.Errorf("from %s: became %s", from, got)
		}
	}
}

// A secret that reaches over the ends of strings goes with all of them, and JSON stays JSON.
func TestRedactHidesWhatReachesOverStrings(t *testing.T) {
	t.Parallel()
	r := newRig(t, `LIST_SECRET=left9182x","right77y`)
	in := `{"jsonrpc":"2.0","id":1,"result":{"lines":["a","my left9182x","right77y is","b"],"n":[1,2]}}`
	got := r.log.Redact(mcp.Server, []byte(in))
	want := regexp.MustCompile(`^{"jsonrpc":"2.0","id":1,"result":{"lines":\["a","td_json_[0-9a-f]{12}","td_json_[0-9a-f]{12}","b"],"n":\[1,2]}}$`)
	if !want.Match(got.Text) || len(got.Messages) != 1 {
		t.Errorf("became %s", got.Text)
	}
}

// A secret that takes half of an escape with it leaves JSON.
func TestRedactLeavesNoHalfEscape(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	line := r.log.Redact(mcp.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"token":"-----BEGIN PRIVATE KEY-----\\"}}`))
	if len(line.Messages) != 1 || bytes.Contains(line.Text, []byte("PRIVATE")) {
		t.Errorf("became %s", line.Text)
	}
}

// Whatever stands in a message, what is written is JSON of the same shape.
func TestRedactedIsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, "PIN_SECRET=9182736455", "API_TOKEN="+member, "ODD_SECRET="+canary)
	pieces := rapid.SampledFrom(append(guises(canary), member, "9182736455", shaped, "a", `\"`, `\\`, `\u0041`, "password", "\xff", " ", "-----BEGIN PRIVATE KEY-----",
		"Bearer ", "https://u:hunter2hunter2@h/"))
	rapid.Check(t, func(t *rapid.T) {
		text := func() string { return strings.Join(rapid.SliceOfN(pieces, 0, 4).Draw(t, "text"), "") }
		in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"%s":"%s","list":["%s",%s,"%s"],"token":"%s"}}`, text(), text(), text(),
			rapid.SampledFrom([]string{"1", "9182736455", "99182736455.0e1", "null"}).Draw(t, "number"), text(), text())
		line := r.log.Redact(mcp.Server, []byte(in))
		if len(line.Messages) != 1 {
			t.Fatalf("%q became %q", in, line.Text)
		}
		for _, secret := range []string{member, "9182736455", shaped, canary} {
			if bytes.Contains(line.Text, []byte(secret)) {
				t.Fatalf("%q became %q", in, line.Text)
			}
		}
	})
}

// Two runs with other secrets and other scrub keys compare as equal, and so do two askers that count in another way.
func TestDigestsOfTwoRuns(t *testing.T) {
	t.Parallel()
	digests := func(key scrub.Key, secret, id, token string) string {
		r := newRigWith(t, scrub.New(key, &scrub.Options{Env: []string{"API_TOKEN=" + secret}}), nil)
		c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "p"})
		say(t, c, askInit, "<"+ansInit,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"_meta":{"progressToken":%s},"b":"%s","a":["%[3]s",1]}}`, id, token, secret),
			fmt.Sprintf(`<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id),
			fmt.Sprintf(`<{"id":%s,"result":{"text":"%s of %s","at":"2026-01-02T03:04:05Z"},"jsonrpc":"2.0"}`, id, secret, "x"))
		var b strings.Builder
		for _, k := range r.records() {
			if k, ok := k.(*tape.MCPJSONRPC); ok {
				fmt.Fprintln(&b, k.Method, k.ParamsDigest, k.ResultDigest, k.RequestDigest == k.Request.Hash, k.ResponseDigest == k.Response.Hash)
			}
		}
		return b.String()
	}
	one, two := digests(scrub.Key{1}, "aB3dE6gH9jK2mN5p", "7", "7"), digests(scrub.Key{2}, "zY8xW5vU2tS9rQ6p", `"k"`, `"t"`)
	if one != two || strings.Count(one, "true true") != 4 {
		t.Errorf("digests\n%s\nand\n%s", one, two)
	}
	if other := digests(scrub.Key{1}, "aB3dE6gH9jK2mN5p", "7", "7,\"more\":1"); other == one {
		t.Error("what else stands in _meta does not count")
	}
}

// Params that are absent, null or empty are the same question.
func TestNoParams(t *testing.T) {
	t.Parallel()
	log := newRig(t).log
	for _, params := range []string{"", "null", "{}", ` { } `, `{"_meta":{"progressToken":1}}`} {
		if got := string(log.Surface("tools/list", json.RawMessage(params))); got != "{}" {
			t.Errorf("%q compares as %s", params, got)
		}
	}
}
