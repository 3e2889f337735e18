package httptape_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/httptape"
)

// gone fails where one of the values is on the disk below dir.
func gone(t *testing.T, dir string, values ...string) {
	t.Helper()
	disk := onDisk(t, dir)
	for _, v := range values {
		if bytes.Contains(disk, []byte(v)) {
			t.Errorf("%q is on the disk", v)
		}
	}
}

// TestKeysNeverReachTheTape: keys in headers, URLs and bodies, by name, by value, by shape; others replay green.
func TestKeysNeverReachTheTape(t *testing.T) {
	o := func(value string) *httptape.Options {
		return &httptape.Options{
			Secrets:     map[string]string{"SESSION": "exact-" + value},
			SecretNames: []string{"X-Tenant", "pin_code"},
			Env:         []string{"MY_API_KEY=env-" + value},
			Headers:     []string{"X-Tenant"},
		}
	}
	use := func(value string) func(c *http.Client, base string) {
		return func(c *http.Client, base string) {
			body := fmt.Sprintf(`{"password":"pass-%s","note":"exact-%s env-%s","pinCode":"pin-%s-long"}`, value, value, value, value)
			req := request(t, t.Context(), "POST", base+"/x?access_token=query-"+value+"&pin_code=short", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer bearer-"+value)
			req.Header.Set("X-Tenant", "t-"+value[:2]) // short: hidden in its own place
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Cookie", "sid=cookie-"+value)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, res); c.Transport.(*httptape.Transport).Recording() && !strings.Contains(got, "exact-"+value) {
				t.Errorf("the program does not get its own bytes: %s", got)
			}
			form := url.Values{"client_secret": {"form-" + value}}.Encode()
			post(t, c, base+"/form", "application/x-www-form-urlencoded", form)
		}
	}
	dir := t.TempDir()
	one, two := "0123456789abcdef", "fedcba98-another-length"
	base := recordAt(t, filepath.Join(dir, "one"), o(one), func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
		io.WriteString(w, r.URL.Query().Get("access_token"))
	}, use(one))
	gone(t, dir, one, "t-01", "=short")
	replayed(t, filepath.Join(dir, "one"), base, o(two), use(two))
}

// TestLateSecret: a token that an answer gave is a secret from the request that uses it on, and backwards too.
func TestLateSecret(t *testing.T) {
	const token = "opaque-0123456789-token"
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login": // nothing says that this is a secret
			fmt.Fprintf(w, `{"ticket":%q}`, token)
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, "ticket "+token)
			z.Close()
		default:
			io.WriteString(w, r.Header.Get("Authorization"))
		}
	}
	use := func(c *http.Client, base string) {
		var v struct{ Ticket string }
		if err := json.Unmarshal([]byte(get(t, c, base+"/login")), &v); err != nil {
			t.Fatal(err)
		}
		req := request(t, t.Context(), "GET", base+"/zipped", nil)
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		req = request(t, t.Context(), "POST", base+"/use", strings.NewReader("with "+v.Ticket))
		req.Header.Set("Authorization", "Bearer "+v.Ticket)
		if res, err = c.Do(req); err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != "Bearer "+v.Ticket {
			t.Errorf("got %q", got)
		}
	}
	path := both(t, nil, serve, use)
	gone(t, filepath.Dir(path), token, base64.StdEncoding.EncodeToString([]byte(token)))
}

// TestTokenOfAnAnswer: a member whose name says so is hidden at once, in a long answer too, and chunks stay.
func TestTokenOfAnAnswer(t *testing.T) {
	const token = "an-access-token-without-a-shape"
	long := strings.Repeat("x", 9000)
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"pad":%q,"accessToken":%q}`, long, token)
	}
	path := both(t, nil, serve, func(c *http.Client, base string) {
		var v struct{ AccessToken string }
		if err := json.Unmarshal([]byte(get(t, c, base)), &v); err != nil || v.AccessToken == "" {
			t.Errorf("%v, %q", err, v.AccessToken)
		}
	})
	gone(t, filepath.Dir(path), token)
	if !bytes.Contains(onDisk(t, filepath.Dir(path)), []byte("td_accesstoken_000000000001")) {
		t.Error("the placeholder has no number")
	}
}

// TestOneTapeForTwoDevelopers: other keys, the same bytes.
func TestOneTapeForTwoDevelopers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "test")
	var before []byte
	for i, key := range []string{"sk-developer-one-0123456789", "sk-developer-two-9876543210-longer"} {
		o := &httptape.Options{Mode: httptape.ModeRecordOnly}
		recordAt(t, path, o, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "hello "+r.Header.Get("Authorization"))
		}, func(c *http.Client, base string) {
			req := request(t, t.Context(), "GET", base, nil)
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
		})
		after, err := os.ReadFile(path + ".tape")
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && !bytes.Equal(before, after) {
			t.Errorf("the tape changed:\n%s%s", before, after)
		}
		before = after
		gone(t, dir, key)
	}
}

// TestSecretOfAVariable: a key in the URL's path needs a value to record and none to replay.
func TestSecretOfAVariable(t *testing.T) {
	const name = "HTTPTAPE_TEST_PATH_KEY"
	path := filepath.Join(t.TempDir(), "test")
	run := func() error {
		tr := open(t, path, nil)
		res, err := tr.Client().Get("http://127.0.0.1:1/bot" + tr.Secret(name) + "/send")
		if err == nil {
			text(t, res)
		}
		if errClose := tr.Close(); err == nil {
			err = errClose
		}
		return err
	}
	if err := run(); err == nil {
		t.Error("recorded without the variable")
	}
	if _, err := os.Stat(path + ".tape"); err == nil {
		t.Error("a tape stands")
	}
	t.Setenv(name, "real-key-0123456789")
	recordAt(t, path, nil, say("sent"), func(c *http.Client, base string) {
		get(t, c, base+"/bot"+c.Transport.(*httptape.Transport).Secret(name)+"/send")
	})
	gone(t, filepath.Dir(path), "real-key-0123456789")
	os.Unsetenv(name) // t.Setenv puts it back
	if err := run(); err != nil {
		t.Error(err)
	}
}

func TestDropHeaders(t *testing.T) {
	o := &httptape.Options{DropHeaders: []string{"x-noise", "user-agent"}}
	path, _ := record(t, o, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Noise", "n") }, func(c *http.Client, base string) {
		req := request(t, t.Context(), "GET", base, nil)
		req.Header.Set("User-Agent", "somebody/1")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text(t, res); res.Header.Get("X-Noise") != "n" {
			t.Error("the caller lacks a header")
		}
	})
	if got := lines(t, path)[0]; strings.Contains(got, "X-Noise") || strings.Contains(got, "somebody") {
		t.Errorf("kept: %s", got)
	}
}

// TestNothingIsComputedFromASecret: two recordings from nothing, whose keys are random, write the same of every secret, in
// whatever form it stood.
func TestNothingIsComputedFromASecret(t *testing.T) {
	const key = "sk-in-many-forms/0123456789"
	serve := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", base64.StdEncoding.EncodeToString([]byte("x"+key)), url.QueryEscape(key), strings.Repeat(key+" ", 3000))
	}
	var said []string
	for range 2 {
		path, _ := record(t, nil, serve, func(c *http.Client, base string) {
			req := request(t, t.Context(), "GET", base, nil)
			req.Header.Set("X-Api-Key", key)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
		})
		_, response, _ := strings.Cut(lines(t, path)[0], `"response":`)
		response, _, _ = strings.Cut(response, "}")
		said = append(said, response)
		gone(t, filepath.Dir(path), key, url.QueryEscape(key))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "len_bytes") {
		t.Errorf("%s\n%s", said[0], said[1])
	}
}

// TestSecretOfADroppedHeader: what a header gives away that is itself kept off the tape is hidden in the URL and in bodies all
// the same.
func TestSecretOfADroppedHeader(t *testing.T) {
	const token, tenant, session = "opaque-0123456789-token", "tenant-0123456789-abc", "session-0123456789-xyz"
	o := &httptape.Options{
		DropHeaders: []string{"Authorization", "X-Tenant", "X-Session-Key"}, SecretNames: []string{"X-Tenant"},
		Rewrite: func(r *exchange.Request) { r.Header.Del("X-Other-Key") },
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Session-Key", session)
		fmt.Fprintf(w, "%s, your session is %s", r.URL.Path, session)
	}
	path := both(t, o, serve, func(c *http.Client, base string) {
		req := request(t, t.Context(), "POST", base+"/"+token+"/"+tenant+"?other=other-"+token, strings.NewReader("for "+tenant))
		req.Header.Set("Authorization", "Own "+token)
		req.Header.Set("X-Tenant", tenant)
		req.Header.Set("X-Other-Key", "other-"+token)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
	})
	gone(t, filepath.Dir(path), token, tenant, session)
}

// TestSecretsOutOfLogs: what is logged and what errors say of a request holds none of its secrets.
func TestSecretsOutOfLogs(t *testing.T) {
	const key = "opaque-0123456789-key"
	var said bytes.Buffer
	o := &httptape.Options{Mode: httptape.ModeRecordOnly, SecretNames: []string{"pin_code"}, Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	tr := open(t, filepath.Join(t.TempDir(), "test"), o)
	for _, header := range []string{"Upgrade", "X-Note"} {
		req := request(t, t.Context(), "GET", "http://127.0.0.1:1/bot"+key+"/x?pincode=4711", nil)
		req.Header.Set("X-Api-Key", key)
		req.Header.Set(header, "websocket")
		_, err := tr.RoundTrip(req)
		fmt.Fprintln(&said, err)
	}
	srv := httptest.NewServer(tr.Handler("http://127.0.0.1:1/"))
	req := request(t, t.Context(), "GET", srv.URL+"/bot"+key+"/x", nil)
	req.Header.Set("X-Api-Key", key)
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
	}
	srv.Close()
	if !strings.Contains(said.String(), "/bottd_x_api_key_") || strings.Contains(said.String(), key) || strings.Contains(said.String(), "4711") {
		t.Error(said.String())
	}
}

// TestNamedInABody: what names in bodies give away is hidden, whatever the Content-Type says; a test with other secrets gets its
// answers.
func TestNamedInABody(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/token" {
			fmt.Fprintf(w, `{"access_token":"answered-%s","token_type":"bearer"}`, body[len(body)-16:])
			return
		}
		fmt.Fprintf(w, "you are %s", r.Header.Get("Authorization"))
	}
	use := func(v string) func(c *http.Client, base string) {
		return func(c *http.Client, base string) {
			var got struct {
				Token string `json:"access_token"`
			}
			answer := post(t, c, base+"/token", "text/plain", "grant_type=refresh_token&refreshToken="+v)
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Fatal(err)
			}
			req := request(t, t.Context(), "GET", base+"/me?t="+got.Token, nil)
			req.Header.Set("Authorization", "Bearer "+got.Token)
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
		}
	}
	path, base := record(t, nil, serve, use("refresh-0123456789abcdef"))
	gone(t, filepath.Dir(path), "0123456789abcdef")
	replayed(t, path, base, nil, use("another-fedcba98-of-other-length"))
}
