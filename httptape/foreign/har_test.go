package foreign

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

const smallHAR = `{"log":{"version":"1.2","creator":{"name":"test","version":"1"},"entries":[
{"startedDateTime":"2026-11-22T10:00:00.500Z","time":120,
 "request":{"method":"POST","url":"https://API.example.com/v1/chat/completions","headers":[{"name":"Authorization","value":"Bearer sk-verysecretverysecret123"},{"name":":authority","value":"api.example.com"},{"name":"Content-Type","value":"application/json"}],
  "postData":{"mimeType":"application/json","text":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"}},
 "response":{"status":200,"httpVersion":"h2","headers":[{"name":"Content-Type","value":"application/json"},{"name":"Content-Encoding","value":"gzip"}],
  "content":{"size":20,"mimeType":"application/json","text":"{\"choices\":[],\"echo\":\"sk-verysecretverysecret123\"}"}}},
{"startedDateTime":"2026-11-22T10:00:00.100Z","time":20,
 "request":{"method":"GET","url":"https://example.com:443","headers":[]},
 "response":{"status":200,"headers":[],"content":{"size":3,"encoding":"base64","text":"AAEC"}}}
]}}`

func TestHAR(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "x.har"), filepath.Join(dir, "x.tape")
	if err := os.WriteFile(path, []byte(smallHAR), 0o600); err != nil {
		t.Fatal(err)
	}
	im, err := Detect(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := im.Import(t.Context(), path, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Exchanges != 2 || r.LLMCalls != 1 {
		t.Errorf("%+v", r)
	}
	b, _ := os.ReadFile(out)
	t.Logf("%+v\n%s", r, b)
	if strings.Contains(string(b), "verysecret") {
		t.Error("a secret is on the tape")
	}
	tr, err := httptape.Open(out, &httptape.Options{Mode: httptape.ModeReplayOnly})
	if err != nil {
		t.Fatal(err)
	}
	c := tr.Client()
	res, err := c.Get("https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(res.Body); string(got) != "\x00\x01\x02" {
		t.Errorf("%q", got)
	}
	req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}],"model":"m"}`))
	if res, err = c.Do(req); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(res.Body); !strings.Contains(string(got), `"choices":[]`) {
		t.Errorf("%q", got)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}
