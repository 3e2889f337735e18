package foreign

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// harOf is a HAR file with these entries.
func harOf(entries ...string) string {
	return `{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"pages":[{"id":"p","title":"\"}]"}],"entries":[` +
		strings.Join(entries, ",\n") + `],"comment":""}}`
}

// harGet is an entry that asks for a path with GET; rest are further members of it.
func harGet(path, response string, rest ...string) string {
	return fmt.Sprintf(`{"startedDateTime":"2026-11-22T10:00:00.500Z","time":12.5,"request":{"method":"GET","url":"https://example.com%s","httpVersion":"h2",
		"headers":[{"name":":authority","value":"example.com"},{"name":"accept","value":"*/*"}],"queryString":[],"cookies":[],"headersSize":-1,"bodySize":0},
		"response":%s,"cache":{},"timings":{"blocked":1,"dns":-1,"send":0.1,"wait":10,"receive":1.4}%s}`, path, response, strings.Join(rest, ""))
}

// harPOST is an entry that posts.
func harPOST(path, post string) string {
	return fmt.Sprintf(`{"startedDateTime":"2026-11-22T10:00:00.500Z","time":1,"request":{"method":"post","url":"https://example.com%s","headers":[{"name":"Content-Length","value":"7"}],
		"postData":%s},"response":{"status":200,"headers":[],"content":{"size":2,"text":"ok"}}}`, path, post)
}

func TestHARAnswersByTime(t *testing.T) {
	entry := `{"startedDateTime":"%s","time":%d,"request":{"method":"GET","url":"https://API.example.com:443","headers":[]},
		"response":{"status":200,"httpVersion":"%s","headers":[{"name":"content-type","value":"text/plain"}],"content":{"size":1,"text":"%s"}}}`
	r := imported(t, harOf(
		fmt.Sprintf(entry, "2026-11-22T11:00:00.500+01:00", 120, "h2", "second"),
		fmt.Sprintf(entry, "2026-11-22T10:00:00.100Z", 20, "http/1.1", "first"),
		fmt.Sprintf(entry, "2026-11-22T10:00:00.700Z", 5, "h3", "third")))
	if r.report.Version != "HAR 1.2, WebInspector 537.36" || r.report.Exchanges != 3 {
		t.Errorf("%+v", r.report)
	}
	r.noted("order of their times")
	tr := r.open()
	for i, want := range []string{"first", "second", "third"} {
		res, body := r.ask(tr, "GET", "https://api.example.com/", "")
		if body != want || res.Proto != []string{"HTTP/1.1", "HTTP/2.0", "HTTP/3.0"}[i] {
			t.Errorf("%s %q, want %q", res.Proto, body, want)
		}
	}
	r.closed(tr)
	all := r.records()
	if got := all[1].VirtualTimeMS - all[0].VirtualTimeMS; got != 500 || all[1].MonotonicMS != 521 || tape.ExchangeOf(all[1].Kind).Stream[0].TMS != 120 {
		t.Errorf("%d ms later, %+v", got, all[1])
	}
}

func TestHARBodies(t *testing.T) {
	zip64 := base64.StdEncoding.EncodeToString(zipped(t, "packed"))
	r := imported(t, harOf(
		harGet("/binary", `{"status":200,"headers":[],"content":{"size":3,"encoding":"base64","text":"AAEC"}}`),
		harGet("/decoded", `{"status":200,"headers":[{"name":"Content-Encoding","value":"gzip"},{"name":"Content-Length","value":"99"}],"content":{"size":5,"compression":94,"text":"plain"}}`),
		harGet("/as-it-came", `{"status":200,"headers":[{"name":"Content-Encoding","value":"gzip"}],"content":{"size":6,"encoding":"base64","text":"`+zip64+`"}}`),
		harGet("/not-modified", `{"status":304,"headers":[{"name":"ETag","value":"x"}],"content":{"size":6,"text":"cached"}}`),
		harGet("/empty", `{"status":200,"headers":[],"content":{"size":0,"mimeType":"text/plain"}}`),
		harGet("/cookies", `{"status":200,"headers":[{"name":"set-cookie","value":"a=1\nb=2"},{"name":"transfer-encoding","value":"chunked"}],"content":{"size":1,"text":"c"}}`),
		harGet("/cached", `{"status":200,"headers":[],"content":{"size":1,"text":"d"}}`, `,"_fromCache":"disk"`),
		harGet("/words", `{"status":200,"headers":[{"name":"Content-Type","value":"text/plain; charset=Shift_JIS"}],"content":{"size":1,"text":"語 \ufffd"}}`),
	))
	tr := r.open()
	for path, want := range map[string]string{"/binary": "\x00\x01\x02", "/decoded": "plain", "/as-it-came": string(zipped(t, "packed")), "/not-modified": "", "/empty": "", "/cookies": "c", "/cached": "d", "/words": "語 \ufffd"} {
		res, body := r.ask(tr, "GET", "https://example.com"+path, "", "Accept-Encoding", "gzip")
		if body != want {
			t.Errorf("%s: %q, want %q", path, body, want)
		}
		if got := res.Header.Get("Content-Encoding"); (got != "") != (path == "/as-it-came") {
			t.Errorf("%s: Content-Encoding %q", path, got)
		}
		if path == "/cookies" && len(res.Header["Set-Cookie"]) != 2 {
			t.Errorf("cookies %q", res.Header)
		}
	}
	r.closed(tr)
	for _, note := range []string{"Content-Encoding is left out", "304, HEAD", "browser's cache", "U+FFFD", "charset=shift_jis"} {
		r.noted(note)
	}
	for _, f := range r.exchange(0).RequestHeaders {
		if strings.Contains(f.Name, "uthority") {
			t.Errorf("a pseudo-header is on the tape: %v", f)
		}
	}
}

func TestHARRequests(t *testing.T) {
	const multi = "multipart/form-data; boundary=XX"
	r := imported(t, harOf(
		harPOST("/text", `{"mimeType":"text/plain","text":"hé\n"}`),
		harPOST("/form", `{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a b","value":"1&2"},{"name":"c","value":"%C3%A9"}]}`),
		harPOST("/firefox", `{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a","value":"b"}],"text":"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b"}`),
		harPOST("/parts", `{"mimeType":"`+multi+`","params":[{"name":"f","value":"text","fileName":"x.txt","contentType":"text/plain"},{"name":"g","value":"h"}]}`),
		harPOST("/binary", `{"mimeType":"application/octet-stream","encoding":"base64","text":"//4="}`),
		harPOST("/none", `null`),
	))
	tr := r.open()
	parts := "--YY\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\ntext\r\n" +
		"--YY\r\nContent-Disposition: form-data; name=\"g\"\r\n\r\nh\r\n--YY--\r\n"
	for _, c := range [][3]string{
		{"/text", "text/plain", "hé\n"}, {"/form", "application/x-www-form-urlencoded", "a+b=1%262&c=%C3%A9"},
		{"/firefox", "application/x-www-form-urlencoded", "a=b"}, {"/parts", "multipart/form-data; boundary=YY", parts},
		{"/binary", "application/octet-stream", "\xff\xfe"}, {"/none", "", ""},
	} {
		if _, body := r.ask(tr, "POST", "https://example.com"+c[0], c[2], "Content-Type", c[1]); body != "ok" {
			t.Errorf("%s: %q", c[0], body)
		}
	}
	r.closed(tr)
}

func TestHARFailures(t *testing.T) {
	none := `{"status":0,"headers":[],"content":{"size":0}%s}`
	for _, c := range []struct{ response, want string }{
		{fmt.Sprintf(none, `,"_error":"net::ERR_CONNECTION_REFUSED"`), exchange.Refused},
		{fmt.Sprintf(none, `,"_failureText":"net::ERR_NAME_NOT_RESOLVED"`), exchange.NoSuchHost + "example.com"},
		{fmt.Sprintf(none, `,"statusText":"net::ERR_EMPTY_RESPONSE"`), exchange.NoAnswer},
		{fmt.Sprintf(none, `,"_error":"net::ERR_BLOCKED_BY_CLIENT"`), "net::ERR_BLOCKED_BY_CLIENT"},
		{fmt.Sprintf(none, ""), "the HAR file has no answer"},
		{`{"status":200,"headers":[],"content":{"size":1,"text":"x"},"_error":"net::ERR_INCOMPLETE_CHUNKED_ENCODING"}`, exchange.CutShort},
		{`{"status":200,"headers":[],"content":{"size":0},"_error":"net::ERR_ABORTED"}`, tape.Cancelled},
		{`{"status":405,"headers":[],"content":{"size":1,"text":"x"},"_error":"net::ERR_HTTP_RESPONSE_CODE_FAILURE"}`, ""},
	} {
		r := imported(t, harOf(harGet("/", c.response)))
		if got := r.exchange(0).Error; !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.response, got, c.want)
		}
	}
}

func TestHARWithoutContent(t *testing.T) {
	r := imported(t, harOf(harGet("/", `{"status":200,"headers":[],"content":{"size":10,"mimeType":"text/plain"}}`)))
	r.noted("save it with content")
	tr := r.open()
	_, err := tr.Client().Get("https://example.com/")
	var damaged *httptape.DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "does not hold the body") {
		t.Errorf("%v", err)
	}
	if err := tr.Close(); err == nil {
		t.Error("an answer that could not be given is green")
	}
}

func TestHARSkips(t *testing.T) {
	url := func(u string) string {
		return strings.Replace(harGet("", `{"status":200,"headers":[],"content":{"size":0}}`), "https://example.com", u, 1)
	}
	r := imported(t, harOf(
		url("data:text/plain,x"), url("wss://example.com/"), url("ws://example.com/"), url("/relative"), url("https://"),
		harGet("/", `{"status":101,"headers":[],"content":{"size":0}}`),
		harGet("/", `{"status":200,"headers":[],"content":{"size":0}}`, `,"_webSocketMessages":[{"type":"send"}]`),
		strings.Replace(url("https://example.com"), `"GET"`, `"CONNECT"`, 1),
		harGet("/", `{"status":103,"headers":[],"content":{"size":0}}`),
		harGet("/kept", `{"status":200,"headers":[],"content":{"size":0}}`),
	))
	r.skipped("begins with data:", 1, "entry 1")
	r.skipped("WebSocket", 4, "entry 2")
	r.skipped("not absolute", 1, "entry 4")
	r.skipped("no host", 1, "entry 5")
	r.skipped("CONNECT", 1, "entry 8")
	r.skipped("no whole answer", 1, "entry 9")
	if r.report.Exchanges != 1 {
		t.Errorf("%+v", r.report)
	}
}

func TestHARSecrets(t *testing.T) {
	r := imported(t, harOf(
		harGet("/?api_key=Zq8kP2mV5xW1aa", `{"status":200,"headers":[],"content":{"size":9,"text":"early sk-proj-abcdefghijklmnopqrstuvwxyz012345 Lk4nB7vC2xZ9 Zq8kP2mV5xW1aa"}}`),
		`{"startedDateTime":"2026-11-22T10:00:01Z","time":1,"request":{"method":"POST","url":"https://example.com/login","headers":[{"name":"Cookie","value":"sid=Hj7gF4dS1aQ8"},
			{"name":"Authorization","value":"Bearer sk-proj-abcdefghijklmnopqrstuvwxyz012345"}],"cookies":[{"name":"sid","value":"Hj7gF4dS1aQ8"}],
			"postData":{"mimeType":"application/json","text":"{\"password\":\"Lk4nB7vC2xZ9\"}"}},
		 "response":{"status":200,"headers":[{"name":"Set-Cookie","value":"t=Mn5bV8cX3zL6; HttpOnly"}],"content":{"size":2,"text":"{}"}}}`,
	))
	r.hides("abcdefghijklmnopqrstuvwxyz012345", "Lk4nB7vC2xZ9", "Zq8kP2mV5xW1aa", "Hj7gF4dS1aQ8", "Mn5bV8cX3zL6")
	all := r.all()
	if !strings.Contains(all, "td_openai_0000000000") || !strings.Contains(all, "td_password_0000000000") {
		t.Error(all)
	}
	tr := r.open()
	if _, body := r.ask(tr, "GET", "https://example.com/?api_key=another-value-of-mine", ""); !strings.HasPrefix(body, "early td_") {
		t.Errorf("%q", body)
	}
	if _, body := r.ask(tr, "POST", "https://example.com/login", `{"password":"whatever else"}`); body != "{}" {
		t.Errorf("%q", body)
	}
	r.closed(tr)
}

// TestHARTwice imports twice: the same bytes, and another key.
func TestHARTwice(t *testing.T) {
	text := harOf(harGet("/", `{"status":200,"headers":[{"name":"Set-Cookie","value":"t=Mn5bV8cX3zL6; HttpOnly"}],"content":{"size":2,"text":"`+strings.Repeat("long ", 2000)+`"}}`))
	if a, b := imported(t, text).all(), imported(t, text).all(); a != b || !strings.Contains(a, "long") {
		t.Errorf("two imports differ:\n%.1000s\n%.1000s", a, b)
	}
}

func TestHARErrors(t *testing.T) {
	good := harGet("/", `{"status":200,"headers":[],"content":{"size":0}}`)
	for _, c := range []struct{ name, text, where, want string }{
		{"no log", `{"entries":[]}`, "", "entries"},
		{"cut", harOf(good, good)[:900], "byte", "was cut"},
		{"cut in a text", `{"log":{"entries":[{"request":{"url":"http://x`, "byte", "was cut"},
		{"broken entry", harOf(good, `{"request":{"method":GET}}`), "byte", "not a JSON value"},
		{"twice", harOf(`{"request":{"url":"http://a/","url":"http://b/"}}`), "byte", `"url" stands twice`},
		{"entries twice", `{"log":{"entries":[],"entries":[]}}`, "byte", "stands twice"},
		{"not UTF-8", harOf(strings.Replace(good, "*/*", "\xff", 1)), "byte", "UTF-8"},
		{"nested", harOf(strings.Replace(good, `"cache":{}`, `"cache":`+strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000), 1)), "", "nested too deep"},
		{"more behind", harOf(good) + "x", "", "behind the value"},
		{"no comma", `{"log":{"entries":[{} {}]}}`, "byte 23", "does not go on"},
		{"a list", `{"log":1}`, "", "no list entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := refused(t, "har", c.text)
			if e := asReadError(t, err); !strings.Contains(e.Where, c.where) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v\nwant %s, %s", err, c.where, c.want)
			}
		})
	}
}

func TestHAROddities(t *testing.T) {
	r := imported(t, "\ufeff \r\n"+harOf(
		`{"request":{"method":null,"url":"http://example.com/a","headers":null,"postData":null},"response":{"status":200,"headers":null,"content":{"text":null,"size":0}}}`,
		harGet("/nul", `{"status":200,"headers":[],"content":{"size":1,"text":"a\u0000b"}}`),
		harGet("/x", `{"status":200,"headers":[{"name":"n","value":"caf\u00e9"}],"content":{"size":12345678901234567890,"text":"\ud83d\ude00"},"bodySize":-1}`)))
	if r.report.Exchanges != 3 {
		t.Fatalf("%+v", r.report)
	}
	tr := r.open()
	if _, body := r.ask(tr, "GET", "https://example.com/nul", ""); body != "a\x00b" {
		t.Errorf("%q", body)
	}
	if _, body := r.ask(tr, "GET", "https://example.com/x", ""); body != "😀" {
		t.Errorf("%q", body)
	}
	r.ask(tr, "GET", "http://example.com/a", "")
	r.closed(tr)
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]string{
		harOf(): "har", goVCR1: "go-vcr", goVCR2: "go-vcr", rubyVCR: "vcr", vcrpy(t): "vcr", `{"version":1,"interactions":[]}`: "vcr",
	} {
		im, err := Detect(written(t, text))
		if err != nil || im.Name() != want {
			t.Errorf("%.60q: %v, %v; want %s", text, im, err, want)
		}
	}
	for _, text := range []string{"", "{}", "a: b\n", "\x00\x01"} {
		if _, err := Detect(written(t, text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Detect(t.TempDir()); err == nil {
		t.Error("a directory is a cassette")
	}
}

// TestLongBody imports an answer of 20 MB, which stands in a blob.
func TestLongBody(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20<<16)
	r := imported(t, harOf(harGet("/", `{"status":200,"headers":[],"content":{"size":1,"text":"`+text+`"}}`)))
	if got := r.body(r.exchange(0).Response); got != text {
		t.Errorf("%d bytes, want %d", len(got), len(text))
	}
	if names, _ := os.ReadDir(filepath.Join(r.dir, "x.tape.cas")); len(names) != 1 {
		t.Errorf("%d blobs", len(names))
	}
}
