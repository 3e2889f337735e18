package exchange_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// canary is a value of no known shape, which no scrubber knows before a name gives it away.
const canary = "cnry7Q2x9ZpLm4Vt8KrW3nHd"

// phrase is one that JSON and forms escape.
const phrase = `cn"ry\7Q 2x%9+p/4V&8<W=n#d`

// noValue fails where v is in what a rig wrote.
func (g *rig) noValue(what, v string) {
	g.t.Helper()
	written := g.tape.String() + g.partText()
	for d := range g.store.All() {
		b, _ := g.store.Get(d)
		written += string(b)
	}
	quoted := strings.Trim(fmt.Sprintf("%q", v), `"`)
	for _, form := range []string{v, quoted, neturl.QueryEscape(v), hex.EncodeToString([]byte(v)), base64.StdEncoding.EncodeToString([]byte(v))[:24]} {
		if strings.Contains(written, form) {
			g.t.Errorf("%s: %q is written", what, form)
		}
	}
}

// multipartOf is a form of parts with one field more.
func multipartOf(t testing.TB, name, value string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, err := w.CreateFormFile("file", "a.bin")
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte{0, 1, 2, '"', ':'})
	if err := w.WriteField(name, value); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

// TestNamedInARequest: the value is written nowhere, in the body and beside it, nor in a request that comes later.
func TestNamedInARequest(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, v := range []string{canary, phrase} {
		js := fmt.Sprintf(`{"grant":{"list":[{"client_secret" : %q}]},"note":%q}`, v, "it is "+v)
		fields := "grant_type=refresh_token&client_secret=" + neturl.QueryEscape(v) + "&x=" + neturl.QueryEscape("a "+v)
		partsType, parts := multipartOf(t, "client_secret", v)
		for what, r := range map[string]struct{ contentType, body string }{
			"JSON":                        {"application/json", js},
			"JSON of another type":        {"application/vnd.api+json; charset=utf-8", js},
			"JSON of no type":             {"", "\n " + js},
			"JSON as text":                {"text/plain;charset=UTF-8", js},
			"JSON as a form":              {form, js},
			"JSON with a mark":            {"application/json", "\xef\xbb\xbf" + js},
			"lines of JSON":               {"application/x-ndjson", `{"index":{}}` + "\n" + js + "\n"},
			"a list":                      {"application/json", fmt.Sprintf(`{"api_keys":[],"api_key":["short", %q]}`, v)},
			"a form":                      {form, fields},
			"a form as text":              {"text/plain", fields},
			"a form of no type":           {"", fields},
			"a field of a field":          {form, neturl.QueryEscape("user[password]") + "=" + neturl.QueryEscape(v)},
			"JSON in a form":              {form, "payload=" + neturl.QueryEscape(js)},
			"parts":                       {partsType, parts},
			"parts of no type":            {"", parts},
			"parts of a type without one": {"multipart/form-data", parts},
		} {
			if what == "a list" && v == phrase { // a key holds no blank
				continue
			}
			g := newRig(t, exchange.TapOptions{})
			g.answer(g.begin(url+"?q="+neturl.QueryEscape(v), r.body, "Content-Type", r.contentType, "X-Note", "a "+v), "", nil, []byte("you sent "+v))
			g.answer(g.begin(url+"/"+neturl.PathEscape(v), ""), "", nil)
			g.noValue(what, v)
		}
		for coding := range encoders {
			g := newRig(t, exchange.TapOptions{})
			packed := encode(t, coding, js)[0]
			g.answer(g.begin(url, string(packed), "Content-Encoding", coding, "Content-Type", "application/json"), "", nil)
			g.noValue(coding, v)
			if x, _ := g.last(); !strings.Contains(g.payload(x.RequestPayload), "td_client_secret_") {
				t.Errorf("%s: %s", coding, g.payload(x.RequestPayload))
			}
		}
	}
}

// TestNamedInAnAnswer: what an answer names is hidden in all of it, and in what the program sends later.
func TestNamedInAnAnswer(t *testing.T) {
	for _, v := range []string{canary, phrase} {
		js := fmt.Sprintf(`{"said":%q,"auth":{"password":%q}}`, "first "+v, v)
		for what, a := range map[string]struct{ contentType, body string }{
			"JSON":             {"application/json; charset=utf-8", js},
			"JSON as text":     {"text/html", " \n" + js},
			"JSON of no type":  {"", "[" + js + "]"},
			"a form":           {"application/x-www-form-urlencoded", "password=" + neturl.QueryEscape(v) + "&scope=" + neturl.QueryEscape(v)},
			"lines of JSON":    {"application/x-ndjson", "{\"a\":1}\n{\"password\":" + js[strings.LastIndex(js, ":")+1:len(js)-1] + "\n"},
			"an event":         {"text/event-stream", "data: {\"a\":1}\n\ndata: " + js + "\n\n"},
			"long, and before": {"application/json", `{"pad":"` + strings.Repeat("x", 70_000) + `",` + js[1:]},
		} {
			for _, coding := range append(slices.Collect(maps.Keys(encoders)), "") {
				for _, size := range []int{1 << 20, 7} {
					if what == "lines of JSON" || what == "an event" {
						size = 1 << 20 // each piece is looked at for itself
					}
					g := newRig(t, exchange.TapOptions{})
					h := headers("Content-Type", a.contentType)
					chunks := slices.Collect(slices.Chunk([]byte(a.body), size))
					if size == 1<<20 && coding != "" {
						h.Set("Content-Encoding", coding)
						chunks = encode(t, coding, a.body)
					}
					g.answer(g.begin(url, ""), "", h, chunks...)
					if x, _ := g.last(); len(x.Stream) != len(chunks) && h.Get("Content-Encoding") == "" {
						t.Errorf("%s: %d chunks, %d came", what, len(x.Stream), len(chunks))
					}
					g.answer(g.begin(url, "it is "+v, "Authorization", "Bearer "+v), "", nil)
					g.noValue(fmt.Sprint(what, " in ", coding, " by ", size), v)
				}
			}
		}
	}
}

// TestGuardedJSON: JSON behind what keeps a page from running it, in a call, in a sequence or in another text is looked at, sent and
// answered, whatever its type says.
func TestGuardedJSON(t *testing.T) {
	js := `{"said":"first ` + canary + `","auth":{"password":"` + canary + `"}}`
	for what, m := range map[string]struct{ contentType, body string }{
		"guarded":        {"application/json", ")]}'\n" + js},
		"guarded, comma": {"application/json; charset=utf-8", ")]}',\n" + js},
		"a loop":         {"text/javascript", "for(;;);" + js},
		"a sequence":     {"application/json", "\x1e" + js + "\n\x1e{}\n"},
		"a callback":     {"application/javascript", "/**/ my.cb_1({\"a\":1,\n" + js[1:] + ");"},
		"as JSON":        {"application/json", "cb([" + js + "]);"},
		"of no type":     {"", ")]}'\n" + js},
		"own type":       {"application/x-own", js},
		"a page":         {"text/html", "<script>x = {\"password\" : \"" + canary + "\"}</script>"},
		"a comment":      {"text/plain", "-- as it is\n" + js},
		"a form as text": {"text/plain", "a=b&password=" + canary},
	} {
		for _, coding := range []string{"", "gzip"} {
			g, body, h := newRig(t, exchange.TapOptions{}), []byte(m.body), headers("Content-Type", m.contentType)
			if coding != "" {
				body = encode(t, coding, m.body)[0]
				h.Set("Content-Encoding", coding)
			}
			g.answer(g.begin(url, string(body), "Content-Type", m.contentType, "Content-Encoding", coding), "", nil)
			g.noValue("sent "+what+" "+coding, canary)
			g = newRig(t, exchange.TapOptions{})
			g.answer(g.begin(url, ""), "", h, body)
			g.noValue("answered "+what+" "+coding, canary)
		}
	}
}

// TestOtherBodies: what is clearly no text is not looked at, nor does text wait.
func TestOtherBodies(t *testing.T) {
	js := `{"password":"` + canary + `"}`
	for contentType, body := range map[string]string{"image/png": "x" + js, "application/octet-stream": "\x00\x01" + js, "application/pdf": "%PDF" + js} {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, body, "Content-Type", contentType), "", headers("Content-Type", contentType), []byte(body))
		x, _ := g.last()
		if g.payload(x.RequestPayload) != body || g.payload(x.Response) != body {
			t.Errorf("%s is changed", contentType)
		}
	}
	g := newRig(t, exchange.TapOptions{})
	o := g.begin(url, "")
	if err := errors.Join(o.Response(http.StatusOK, headers("Content-Type", "text/html")), o.Chunk([]byte("<p>some words of a page</p>\n"))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(g.partText(), "some words") {
		t.Error("a page waits")
	}
	if err := o.End(""); err != nil {
		t.Fatal(err)
	}
}

// TestStreamIsNotHeld: what an event says is in the part when Chunk returns, and so is what turns out to be lines of JSON.
func TestStreamIsNotHeld(t *testing.T) {
	for contentType, n := range map[string]int{"text/event-stream": 1, "application/x-ndjson": 1, "text/plain": 2, "application/json": 2} {
		g := newRig(t, exchange.TapOptions{})
		o := g.begin(url, "")
		if err := o.Response(http.StatusOK, headers("Content-Type", contentType)); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			event := fmt.Sprintf("{\"event\":%d}\n", i)
			if contentType == "text/event-stream" {
				event = "data: " + event + "\n"
			}
			if err := o.Chunk([]byte(event)); err != nil {
				t.Fatal(err)
			}
			if i+1 >= n && !strings.Contains(g.partText(), fmt.Sprintf("{\"event\":%d}", i)) {
				t.Errorf("%s: event %d waits", contentType, i)
			}
		}
		if err := o.End(""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongDocument: beyond what is held, an answer goes on as it comes, every byte and chunk of it.
func TestLongDocument(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	whole := `{"access_token":"` + canary + `","pad":"` + strings.Repeat("y", 3<<20) + `","refresh_token":"` + canary[1:] + `z"}`
	g.answer(g.begin(url, ""), "", headers("Content-Type", "application/json"), slices.Collect(slices.Chunk([]byte(whole), 100_000))...)
	g.noValue("long", canary)
	g.noValue("at its end", canary[1:]+"z")
	x, _ := g.last()
	if got := len(g.payload(x.Response)); got < 3<<20 || len(x.Stream) != len(whole)/100_000+1 {
		t.Errorf("%d bytes in %d chunks", got, len(x.Stream))
	}
	g.chunksOf(x)
}

// TestCutDocument keeps what came, without its secret.
func TestCutDocument(t *testing.T) {
	whole := `{"id":7,"access_token":"` + canary + `","expires_in":3600}`
	for n := range whole {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, ""), "cut", headers("Content-Type", "application/json"), []byte(whole[:n]))
		x, _ := g.last()
		if got := g.payload(x.Response); strings.Contains(got, canary[:8]) || !strings.HasPrefix(got, whole[:min(n, 10)]) {
			t.Errorf("cut at %d: %q", n, got)
		}
	}
}

// TestNoSecret: bodies in which names say nothing of a secret, or their values are none, are kept to the byte.
func TestNoSecret(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","max_tokens":1024,"token_count":"12345678901234567","max_completion_tokens":"abcdefgh12345678"}`,
		`{"next_page_token":"CAUQAAabcdef1234567890","pageToken":"CAUQAAabcdef1234567890","nextPageToken":"CAUQAAabcdef1234567890","NextToken":"eyJhbGcabcdef1234567890"}`,
		`{"token_type":"bearer_of_12345678","token_endpoint":"https://auth.example.com/token/12345","password_policy":"at-least-12-chars-2"}`,
		`{"tools":[{"input_schema":{"type":"object","properties":{"password":{"type":"string","description":"The password of 12345"},"api_key":{"type":"string"}},"required":["password","api_key","access_token"]}}]}`,
		`{"messages":[{"role":"user","content":"my password: \"hunter2-0123456789\", {\"api_key\": \"abcdef0123456789abcdef\"} token=abcdef0123456789"}]}`,
		`{"prompt_cache_key":"session-0123456789abcdef","idempotency_key":"0123456789abcdef0123","public_key":"0123456789abcdef0123","cacheKey":"k-0123456789abcdef0123"}`,
		`{"logprobs":{"content":[{"token":" authentication","logprob":-0.1,"top_logprobs":[{"token":" implementation","logprob":-0.1}]},{"token":"0123456789012345"}]}}`,
		`{"eos_token":"<|endoftext_0123456789|>","bos_token":"<s_0123456789_abcdef>","unk_token":"[UNK-0123456789-ab]"}`,
		`{"key":"images/2026/photo-0123456789.png","token":"hello","secret":"the-name-of-one","primary_key":"abcdefgh0123456789","tokens":["abcdefgh0123456789"]}`,
		`{"api_key":"${OPENAI_API_KEY}","password":"{{ vault.password }}","access_token":"<your token here>","client_secret":"$CLIENT_SECRET"}`,
		`{"api_key":"the key of your account","has_password":true,"password":null,"api_token":12345678901234567890,"secret_key":{"from":"abcdef0123456789abcdef"}}`,
		`{"token":"5b10ac8d-82e0-5b22-cc7d-4ef5aabbccdd","session_key_url":"https://example.com/a1b2c3d4e5f6","auth":{"token_url":"https://x/0123456789abcdef"}}`,
		`{"monkey":"abcdef0123456789abcdef","passwordless":"abcdef0123456789abcdef","secretary":"abcdef0123456789abcdef","keyword":"abcdef0123456789ab"}`,
		`["password","abcdef0123456789abcdef",": \"x\"", "api_key", ":abcdef0123456789abcdef"]`,
		`{"x":":password","y":"abcdef0123456789abcdef","password\\":"abcdef0123456789abcdef"}`,
		"name=Ada&page_token=abcdef0123456789abcdef&note=the+password+is+none&max_tokens=abcdef0123456789abcdef",
		"the password = abcdef0123456789abcdef, as she said",
	} {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, body), "", headers("Content-Type", "application/json"), []byte(body))
		x, _ := g.last()
		if got := g.payload(x.RequestPayload); got != body {
			t.Errorf("request\n%s became\n%s", body, got)
		}
		if got := g.payload(x.Response); got != body {
			t.Errorf("answer\n%s became\n%s", body, got)
		}
	}
}

// TestNames: which names say so, of a value that looks made and of one that is a word.
func TestNames(t *testing.T) {
	const made, word = "k9f2a7c1d4e8b3a6f0", "correcthorse"
	for name, want := range map[string]int{
		"password": 2, "Password": 2, "userPassword": 2, "user_password": 2, "PASSWD": 2, "db.password": 2, "passphrase": 2, "password2": 2,
		"access_token": 2, "accessToken": 2, "ACCESS-TOKEN": 2, "accesstoken": 2, "refresh_token": 2, "id_token": 2, "sessionToken": 2,
		"client_secret": 2, "clientSecret": 2, "api_key": 2, "apiKey": 2, "APIKey": 2, "x-api-key": 2, "openai_api_key": 2, "private_key": 2,
		"secret_access_key": 2, "client_assertion": 2, "code_verifier": 2,
		"token": 1, "secret": 1, "jira_token": 1, "jiraToken": 1, "userAPIToken": 2, "credentials": 1, "aws_secret_access_key": 1, "SLACK_TOKEN_PROD": 1,
		"HF_TOKEN": 1, "OPENAI_KEY": 1, "openaiKey": 1, "webhook_secret": 2,
		"key": 0, "keys": 0, "tokens": 0, "max_tokens": 0, "token_type": 0, "next_page_token": 0, "cache_key": 0, "key_id": 0, "name": 0, "": 0,
		"secret_name": 0, "foreignKey": 0, "turkey": 0, "progressToken": 0, "token_type_prod": 0,
	} {
		for value, needs := range map[string]int{made: 1, word: 2} {
			g := newRig(t, exchange.TapOptions{})
			g.begin(url, fmt.Sprintf(`{%q:%q}`, name, value)).End("")
			x, _ := g.last()
			if hidden := !strings.Contains(g.payload(x.RequestPayload), value); hidden != (want >= needs) {
				t.Errorf("%s: %s: hidden is %t", name, value, hidden)
			}
		}
	}
}

// TestReferences: what says where a secret is to be taken from is none; a password that looks a little like it is one.
func TestReferences(t *testing.T) {
	for value, want := range map[string]bool{
		"${OPENAI_API_KEY}": false, "$CLIENT_SECRET": false, "{{ vault.password }}": false, "{{.Values.password}}": false, "{{API_TOKEN}}": false,
		"${env:API_TOKEN}": false, "${{ secrets.TOKEN }}": false, "${db.password}": false,
		"$uperSecret99": true, "<hunter2hunter2>": true, "%hunterhunter%": true, "{{abcabcabc}}": true, "${hunter2}": true, "$HUNTER2-2": true,
		"{{a b c d e}}": true, "${A}${{b}}": true, "x$CLIENT_SECRET": true,
	} {
		for _, name := range []string{"password", "client_secret"} {
			g := newRig(t, exchange.TapOptions{})
			g.begin(url, fmt.Sprintf(`{%q:%q}`, name, value)).End("")
			x, _ := g.last()
			if hidden := !strings.Contains(g.payload(x.RequestPayload), value); hidden != want {
				t.Errorf("%s: %s: hidden is %t", name, value, hidden)
			}
		}
	}
}

// TestSecretNames: names of the caller's own say so of anything.
func TestSecretNames(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	g.scrub = scrub.New(scrub.Key{1}, &scrub.Options{SecretNames: []string{"pin_code", "X-Note"}})
	g.tap = exchange.NewTap(g.rec, classifier{}, g.scrub, nil)
	g.begin(url+"?xNote=blue+whale&pinCode=17", `{"pinCode":"a red herring","n":"blue whale"}`, "Pin-Code", "17").End("")
	x, _ := g.last()
	if strings.Contains(x.URL+value(x.RequestHeaders, "Pin-Code"), "17") {
		t.Errorf("%s, %v", x.URL, x.RequestHeaders)
	}
	if got := x.URL + g.payload(x.RequestPayload); strings.Contains(got, "herring") || strings.Contains(got, "whale") {
		t.Error(got)
	}
}

// TestForeignRules: what another producer wrote compares as it stands, but for names that the caller orders.
func TestForeignRules(t *testing.T) {
	s := scrub.New(scrub.Key{1}, &scrub.Options{Rules: scrub.RulesForeign, SecretNames: []string{"pin"}})
	tap := exchange.NewTap(nil, classifier{}, s, nil)
	o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Body: []byte(`{"password":"correcthorse","pin":"0123456789"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(o.Request().Body); !strings.Contains(got, "correcthorse") || strings.Contains(got, "0123456789") {
		t.Error(got)
	}
}

// TestNamedReplays: a request matches with the same value, another and the placeholder, and the placeholder of the recorded answer then
// stands for the value that the program has.
func TestNamedReplays(t *testing.T) {
	bodies := map[string]func(v string) (contentType, body string){
		"JSON": func(v string) (string, string) {
			return "application/json", fmt.Sprintf(`{"refresh_token":%q,"n":1}`, v)
		},
		"form": func(v string) (string, string) { return "", "a=b&refresh_token=" + neturl.QueryEscape(v) },
		"parts": func(v string) (string, string) {
			return "", "--b\r\nContent-Disposition: form-data; name=refresh_token\r\n\r\n" + v + "\r\n--b--\r\n"
		},
	}
	for what, body := range bodies {
		const recorded = "1//0cnry7Q2x9Zp+Lm4Vt8KrW3nHd"
		g := newRig(t, exchange.TapOptions{})
		contentType, sent := body(recorded)
		g.answer(g.begin(url, sent, "Content-Type", contentType), "", headers("Content-Type", "application/json"),
			[]byte(`{"refresh_token":"`+recorded+`","access_token":"`+canary+`"}`))
		g.noValue(what, recorded)
		g.noValue(what, canary)
		x, _ := g.last()
		answered := g.payload(x.Response)
		for _, value := range []string{recorded, "another-one/of+17", "td_refresh_token_0123456789ab"} {
			s := newScrubber()
			book, err := exchange.NewBook(g.records(), classifier{}, g.store)
			if err != nil {
				t.Fatal(err)
			}
			tap := exchange.NewTap(nil, classifier{}, s, &exchange.TapOptions{Replay: true})
			contentType, sent := body(value)
			o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Header: headers("Content-Type", contentType), Body: []byte(sent)})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := o.Take(book); !ok {
				t.Errorf("%s with %s: no answer", what, value)
			}
			given := string(s.Reveal([]byte(answered)))
			if isReal := !strings.HasPrefix(value, "td_"); isReal != strings.Contains(given, value) || strings.Contains(given, canary) {
				t.Errorf("%s with %s: the program gets %s", what, value, given)
			}
		}
	}
}

// TestManyCookies: a site that sets a cookie with each answer takes no password's place.
func TestManyCookies(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	for i := range 520 {
		g.answer(g.begin(url, "", "Cookie", fmt.Sprintf("sid=cookie-of-no-shape-%d", i)), "", nil)
	}
	g.answer(g.begin(url+"/"+canary, `{"password":"`+canary+`"}`), "", nil, []byte("it is "+canary))
	g.noValue("after 520 cookies", canary)
}

// TestManyNamed: beyond what is learnt, a value is hidden where its name stands, in every kind of message, and the name is listed.
func TestManyNamed(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	g := newRig(t, exchange.TapOptions{})
	for i := range 513 {
		g.answer(g.begin(url, fmt.Sprintf(`{"api_token":"value-of-no-shape-%d"}`, i)), "", nil)
	}
	n := 0
	value := func() (v, quoted string) { // never the same
		n++
		v = fmt.Sprintf(`%d"%s`, n, phrase)
		return v, fmt.Sprintf("%q", v)
	}
	hidden := func(what, v, escaped string) {
		t.Helper()
		g.noValue(what, v)
		if written := g.tape.String(); strings.Contains(written, strings.Trim(fmt.Sprintf("%q", escaped), `"`)) {
			t.Errorf("%s: %s is written", what, escaped)
		}
	}
	for what, body := range map[string]func(v, quoted string) (contentType, body string){
		"JSON": func(_, q string) (string, string) { return "application/json", `{"a":1,"password": ` + q + `,"b":2}` },
		"list": func(_, q string) (string, string) { return "", `[{"passwords":1,"password":["x",` + q + `]}]` },
		"form": func(v, _ string) (string, string) { return form, "a=b&password=" + neturl.QueryEscape(v) + "&c=d" },
		"JSON in a form": func(_, q string) (string, string) {
			return form, "a=b&p=" + neturl.QueryEscape(`{"password":`+q+`}`) + "&c=d"
		},
		"parts":         func(v, _ string) (string, string) { return multipartOf(t, "password", v) },
		"JSON in parts": func(_, q string) (string, string) { return multipartOf(t, "p", `{"a":1,"password":`+q+`}`) },
	} {
		v, quoted := value()
		contentType, sent := body(v, quoted)
		g.answer(g.begin(url, sent, "Content-Type", contentType), "", nil)
		hidden(what, v, quoted[1:len(quoted)-1])
		x, _ := g.last()
		if got := g.payload(x.RequestPayload); !strings.Contains(got, "td_password_") || !strings.HasPrefix(got, sent[:4]) || !strings.HasSuffix(got, sent[len(sent)-2:]) {
			t.Errorf("%s: %s became %s", what, sent, got)
		}
	}
	for i := range 513 { // queries count with headers
		g.answer(g.begin(fmt.Sprintf("%s?userPassword=query-of-no-shape-%d", url, i), ""), "", nil)
	}
	v, quoted := value()
	g.answer(g.begin(url+"?a=b&q="+neturl.QueryEscape(`{"password":`+quoted+`}`)+"&c=d", ""), "", nil)
	if x, _ := g.last(); !strings.HasPrefix(x.URL, url+"?a=b&q=td_password_") || !strings.HasSuffix(x.URL, "&c=d") {
		t.Error(x.URL)
	}
	hidden("JSON in a query", v, neturl.QueryEscape(quoted[1:len(quoted)-1]))
	v, _ = value()
	g.answer(g.begin(url+"?a=b&userPassword="+neturl.QueryEscape(v)+"&c=d#e", ""), "", nil)
	if x, _ := g.last(); !strings.HasPrefix(x.URL, url+"?a=b&userPassword=td_") || !strings.HasSuffix(x.URL, "&c=d#e") {
		t.Error(x.URL)
	}
	hidden("query", v, neturl.QueryEscape(v))
	for what, contentType := range map[string]string{"document": "application/json", "events": "text/event-stream", "lines": "application/x-ndjson"} {
		for _, coding := range append(slices.Collect(maps.Keys(encoders)), "") {
			v, quoted := value()
			w, quotedToo := value()
			sent := "{\"password\":" + quoted + ",\"n\":1}\n"
			more := "{\"pad\":\"" + strings.Repeat("x", 70_000) + "\",\"password\":" + quotedToo + "}\n"
			chunks := [][]byte{[]byte(sent), []byte(more)}
			h := headers("Content-Type", contentType)
			if coding != "" {
				h.Set("Content-Encoding", coding)
				chunks = encode(t, coding, sent, more)
			}
			g.answer(g.begin(url, ""), "", h, chunks...)
			hidden(what+" "+coding, v, quoted[1:len(quoted)-1])
			hidden(what+" "+coding, w, quotedToo[1:len(quotedToo)-1])
			x, _ := g.last()
			got := g.payload(x.Response)
			if !strings.HasPrefix(got, `{"password":"td_password_`) || strings.Count(got, "td_password_") != 2 || len(x.Stream) != 2 {
				t.Errorf("%s %s: %.100s in %d chunks", what, coding, got, len(x.Stream))
			}
			g.chunksOf(x)
		}
	}
	for _, name := range []string{"password", "userPassword"} {
		if !slices.Contains(g.scrub.NotCovered(), name) {
			t.Errorf("%s is not listed: %v", name, g.scrub.NotCovered())
		}
	}
}

// TestOneValueOfAQuery: a value in a query is one, with its escapes undone as those of a form are, and so it is known elsewhere.
func TestOneValueOfAQuery(t *testing.T) {
	for _, name := range []string{"access_token", "userPassword"} {
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url+"?"+name+"=correct+horse%20battery", `"correct horse battery"`), "", nil, []byte("correct horse battery, correct%20horse+battery"))
		g.noValue(name, "correct horse battery")
		if found := g.scrub.Found(); len(found) != 1 {
			t.Errorf("%s: learnt are %v", name, found)
		}
	}
}

// FuzzNamed: no body is looked through for ever or with a panic, and nothing but what is learnt changes.
func FuzzNamed(f *testing.F) {
	for _, seed := range []string{`{"password":"`, `[{"password" : ["a\"b",`, "password=%zz&", "--\n--", "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nabcdefgh\r\n--b", `"":"":`} {
		f.Add("", []byte(seed))
		f.Add("multipart/form-data; boundary=b", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		store := cas.NewMemory()
		var b bytes.Buffer
		w, err := tape.NewWriter(&b, &tape.Header{Producer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		tap := exchange.NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), classifier{}, newScrubber(), nil)
		o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Header: headers("Content-Type", contentType), Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Response(http.StatusOK, headers("Content-Type", contentType)); err != nil {
			t.Fatal(err)
		}
		for c := range slices.Chunk(body, 5) {
			if err := o.Chunk(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.End(""); err != nil {
			t.Fatal(err)
		}
	})
}
