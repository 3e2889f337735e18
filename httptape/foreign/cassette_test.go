package foreign

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goVCR1 = `---
version: 1
rwmutex: {}
interactions:
- request:
    body: ""
    form: {}
    headers:
      Authorization:
      - Bearer sk-verysecretverysecret123
    url: https://api.example.com/items?page=1
    method: GET
  response:
    body: "{\"items\": [1,
      2], \"you\": \"sk-verysecretverysecret123\"}\n"
    headers:
      Content-Type:
      - application/json
      Set-Cookie:
      - session=abcdefghijklmnop; Path=/
      - b=2
    status: 200 OK
    code: 200
    duration: ""
- request:
    body: a=1&b=%20x
    form:
      a:
      - "1"
      ? this is the name of a field in a form that is so long that the writer of the cassette puts it on a line of its own, behind a mark
      : - x
    headers: {}
    url: https://api.example.com/items
    method: POST
  response:
    body: !!binary |
      //4AAQ==
    headers: {}
    status: 201 Created
    code: 201
    duration: 1.5s
`

func TestGoVCR1(t *testing.T) {
	r := imported(t, goVCR1)
	if r.report.Format != "go-vcr" || r.report.Version != "cassette version 1" || r.report.Exchanges != 2 {
		t.Errorf("%+v", r.report)
	}
	r.hides("verysecret", "abcdefghijklmnop")
	tr := r.open()
	res, body := r.ask(tr, "GET", "https://api.example.com/items?page=1", "", "Authorization", "Bearer another")
	if body != `{"items": [1, 2], "you": "td_authorization_000000000001"}`+"\n" || res.StatusCode != 200 {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	if got := res.Header["Set-Cookie"]; len(got) != 2 || got[1] != "b=2" && !strings.HasPrefix(got[1], "b=") {
		t.Errorf("cookies %q", got)
	}
	res, body = r.ask(tr, "POST", "https://api.example.com/items", "a=1&b=%20x")
	if body != "\xff\xfe\x00\x01" || res.StatusCode != 201 {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	if got := r.exchange(1).Stream[0].TMS; got != 1500 {
		t.Errorf("the answer came after %d ms", got)
	}
	r.closed(tr)
}

const goVCR2 = `---
version: 2
interactions:
    - id: 0
      request:
        proto: HTTP/1.1
        proto_major: 1
        proto_minor: 1
        content_length: 71
        transfer_encoding: []
        trailer: {}
        host: api.openai.com
        remote_addr: ""
        request_uri: ""
        body: '{"model":"gpt-x","messages":[{"role":"user","content":"it''s me"}]}'
        form: {}
        headers:
            Authorization:
                - Bearer sk-verysecretverysecret123
            Content-Type:
                - application/json
        url: https://api.openai.com/v1/chat/completions
        method: POST
      response:
        proto: HTTP/2.0
        proto_major: 2
        proto_minor: 0
        transfer_encoding: []
        trailer:
            X-Sum:
                - abc
        content_length: -1
        uncompressed: true
        body: |
            data: {"choices":[]}

            data: [DONE]
        headers:
            Content-Type:
                - text/event-stream
        status: 200 OK
        code: 200
        duration: 122.635855ms
`

func TestGoVCR2(t *testing.T) {
	r := imported(t, goVCR2)
	if r.report.Format != "go-vcr" || r.report.LLMCalls != 1 {
		t.Errorf("%+v", r.report)
	}
	tr := r.open()
	res, body := r.ask(tr, "POST", "https://api.openai.com/v1/chat/completions", `{"messages":[{"role":"user","content":"it's me"}],"model":"gpt-x"}`)
	if body != "data: {\"choices\":[]}\n\ndata: [DONE]\n" || res.Proto != "HTTP/2.0" {
		t.Errorf("%s %q", res.Proto, body)
	}
	if got := res.Trailer.Get("X-Sum"); got != "abc" {
		t.Errorf("trailer %q", got)
	}
	r.closed(tr)
	r.noted("not as long") // the request, as somebody shortened it
	if got := r.exchange(0).Stream[0].TMS; got != 122 {
		t.Errorf("the answer came after %d ms", got)
	}
}

const rubyVCR = `---
http_interactions:
- request:
    method: get
    uri: http://example.com:80/hello?name=a
    body:
      encoding: US-ASCII
      string: ''
    headers:
      User-Agent:
      - Ruby
  response:
    status:
      code: 200
      message: OK
    headers:
      Content-Type:
      - text/plain; charset=ISO-8859-1
      Content-Length:
      - '4'
    body:
      encoding: ISO-8859-1
      string: café
    http_version: '1.0'
  recorded_at: Tue, 01 Nov 2011 04:58:44 GMT
- request:
    method: post
    uri: http://example.com/upload
    body:
      encoding: ASCII-8BIT
      string: !binary |-
        //4=
    headers: &1
      Accept: "*/*"
  response:
    status:
      code: 201
    headers: *1
    body:
      encoding: UTF-8
      base64_string: |
        aGVsbG8g
        d29ybGQ=
    http_version:
  recorded_at: Tue, 01 Nov 2011 04:58:45 GMT
recorded_with: VCR 6.1.0
`

func TestVCR(t *testing.T) {
	r := imported(t, rubyVCR)
	if r.report.Format != "vcr" || r.report.Version != "VCR 6.1.0" || r.report.Exchanges != 2 {
		t.Errorf("%+v", r.report)
	}
	tr := r.open()
	res, body := r.ask(tr, "GET", "http://example.com/hello?name=a", "")
	if body != "caf\xe9" || res.Proto != "HTTP/1.0" || res.ContentLength != 4 {
		t.Errorf("%s %q, %d bytes", res.Proto, body, res.ContentLength)
	}
	res, body = r.ask(tr, "POST", "http://example.com/upload", "\xff\xfe")
	if body != "hello world" || res.StatusCode != 201 || res.Header.Get("Accept") != "*/*" {
		t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
	}
	r.closed(tr)
	if got := r.records()[1].VirtualTimeMS; got != 1320123525000 {
		t.Errorf("recorded at %d", got)
	}
}

func zipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func vcrpy(t *testing.T) string {
	return `interactions:
- request:
    body: null
    headers:
      Accept-Encoding:
      - gzip, deflate
      x-api-key:
      - verysecretverysecret
    method: GET
    uri: https://api.example.com/zipped
  response:
    body:
      string: !!binary |
        ` + base64.StdEncoding.EncodeToString(zipped(t, `{"a": 1}`)) + `
    headers:
      content-encoding:
      - gzip
      content-type:
      - application/json
    status:
      code: 200
      message: OK
- request:
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple
      - !!binary |
        YWJj
      - 0
      - null
    headers: {}
    method: PUT
    uri: https://api.example.com/file
  response:
    content: '{"httpx": true}'
    headers:
      content-encoding: [br]
    http_version: HTTP/2
    status_code: 200
- request:
    body: "{\"long\": \"some words\
      \ that go on\"}"
    headers: {}
    method: POST
    uri: https://api.example.com/file
  response:
    body:
      string: ''
    headers: {}
    status:
      code: 204
      message: No Content
version: 1
`
}

func TestVCRpy(t *testing.T) {
	r := imported(t, vcrpy(t))
	if r.report.Format != "vcr" || r.report.Version != "vcrpy cassette version 1" || r.report.Exchanges != 3 {
		t.Errorf("%+v", r.report)
	}
	r.hides("verysecret")
	tr := r.open()
	res, body := r.ask(tr, "GET", "https://api.example.com/zipped", "", "Accept-Encoding", "gzip")
	if body != string(zipped(t, `{"a": 1}`)) || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%q %v", body, res.Header)
	}
	res, body = r.ask(tr, "PUT", "https://api.example.com/file", "abc")
	if body != `{"httpx": true}` || res.Header.Get("Content-Encoding") != "" || res.Proto != "HTTP/2.0" {
		t.Errorf("%q %v", body, res.Header)
	}
	r.noted("stood there decoded")
	res, _ = r.ask(tr, "POST", "https://api.example.com/file", `{"long":"some words that go on"}`)
	if res.StatusCode != 204 {
		t.Error(res.Status)
	}
	r.closed(tr)
}

func TestJSONCassettes(t *testing.T) {
	for name, text := range map[string]string{
		"vcrpy": `{"version": 1, "interactions": [{"request": {"method": "GET", "uri": "http://example.com/", "body": null, "headers": {"A": ["b"]}},
			"response": {"status": {"code": 200, "message": "OK"}, "headers": {"Content-Type": ["text/plain"]}, "body": {"string": "hi \u00e9"}}}]}`,
		"VCR": `{"http_interactions":[{"request":{"method":"get","uri":"http://example.com/","body":{"encoding":"UTF-8","string":""},"headers":{}},
			"response":{"status":{"code":200,"message":"OK"},"headers":{},"body":{"encoding":"UTF-8","string":"hi é"},"http_version":null},
			"recorded_at":"Tue, 01 Nov 2011 04:58:44 GMT"}],"recorded_with":"VCR 3.0.0"}`,
		"betamax": `{"http_interactions": [{"request": {"body": {"encoding": "utf-8", "string": ""}, "headers": {}, "method": "GET", "uri": "http://example.com/"},
			"response": {"body": {"base64_string": "aGkgw6k=", "encoding": null}, "headers": {}, "status": {"code": 200, "message": "OK"}, "url": "http://example.com/"},
			"recorded_at": "2013-09-28T01:25:38"}], "recorded_with": "betamax/0.4.2"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := imported(t, text)
			tr := r.open()
			if _, body := r.ask(tr, "GET", "http://example.com/", ""); body != "hi é" {
				t.Errorf("%q", body)
			}
			r.closed(tr)
		})
	}
}

func TestCassetteErrors(t *testing.T) {
	for _, c := range []struct{ name, format, text, where, want string }{
		{"no list", "go-vcr", "version: 1\n", "", "no list interactions"},
		{"wrong family", "go-vcr", strings.ReplaceAll(goVCR1, "url:", "uri:"), "line 5", "import it as vcr"},
		{"wrong family", "vcr", goVCR1, "line 5", "import it as go-vcr"},
		{"broken item", "go-vcr", strings.Replace(goVCR1, "url: https://api.example.com/items\n", "url: \"x\n", 1), "line 33", "end of stream"},
		{"old form", "vcr", "--- \n- !ruby/struct:VCR::HTTPInteraction\n  request: x\n", "line 2", "before VCR 2"},
		{"cut JSON", "vcr", `{"version": 1, "interactions": [{"request": {`, "byte 46", "was cut"},
		{"twice", "vcr", `{"interactions": [{"request": {}, "request": {}}]}`, "byte 48", "stands twice"},
		{"not UTF-8", "vcr", "interactions:\n- request: \xff\n", "line 2", "not UTF-8"},
		{"no list of items", "vcr", "interactions: {request: {}}\n", "line 1", "no list of items"},
		{"base64", "vcr", strings.Replace(rubyVCR, "aGVsbG8g", "****", 1), "line 26", "body of the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := refused(t, c.format, c.text)
			e := asReadError(t, err)
			if e.Where != c.where && c.where != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s, %s", err, c.where, c.want)
			}
		})
	}
}

func TestEmptyCassettes(t *testing.T) {
	for _, text := range []string{"interactions: []\nversion: 1\n", "---\nhttp_interactions: []\nrecorded_with: VCR 6.0.0\n", "---\nversion: 2\ninteractions: []\n", "interactions: [{request: {}}]\n", `{"http_interactions": [], "recorded_with": "x"}`} {
		if r := imported(t, text); r.report.Exchanges != 0 {
			t.Errorf("%+v", r.report)
		}
	}
}

func TestNothingIsWrittenOver(t *testing.T) {
	path, dir := written(t, goVCR1), t.TempDir()
	out := filepath.Join(dir, "x.tape")
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := goVCR.Import(t.Context(), path, out, nil)
	if b, _ := os.ReadFile(out); !errors.Is(err, os.ErrExist) || string(b) != "mine" {
		t.Errorf("%v, %q", err, b)
	}
}

// TestLateSecret imports a secret that only the last item names.
func TestLateSecret(t *testing.T) {
	r := imported(t, strings.Replace(strings.Replace(goVCR1, "sk-verysecretverysecret123", "Zq8kP2mV5xW1", 1), "sk-verysecretverysecret123", "Zq8kP2mV5xW1", 1)+`- request:
    body: '{"client_secret": "1, 2], words"}'
    form: {}
    headers:
      X-Api-Key: [Zq8kP2mV5xW1]
    url: https://api.example.com/Zq8kP2mV5xW1
    method: GET
  response:
    body: ""
    headers: {}
    status: 200 OK
    code: 200
`)
	r.hides("Zq8kP2mV5xW1")
}
