package mcp_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// An oauthServer is a server of MCP with the endpoints of its authorization server. It makes up all that it gives.
type oauthServer struct {
	t     *testing.T
	mu    sync.Mutex
	given []string          // secrets
	asked map[string]string // challenge by code
}

func (s *oauthServer) secret() string {
	v := rand.Text() + rand.Text()
	s.given = append(s.given, v)
	return v
}

func (s *oauthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := func(status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	base := "http://" + webHost
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		reply(200, map[string]any{"resource": base + "/mcp", "authorization_servers": []string{base}})
	case "/.well-known/oauth-authorization-server":
		reply(200, map[string]any{"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "registration_endpoint": base + "/register"})
	case "/register":
		reply(201, map[string]any{"client_id": "client-1", "client_secret": s.secret(), "registration_access_token": s.secret(), "redirect_uris": []string{"http://127.0.0.1:7777/callback"}})
	case "/authorize":
		code := s.secret()
		s.asked[code] = r.URL.Query().Get("code_challenge")
		http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?code="+code+"&state="+r.URL.Query().Get("state"), http.StatusFound)
	case "/token":
		r.ParseForm()
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if r.Form.Get("grant_type") == "authorization_code" && s.asked[r.Form.Get("code")] != base64.RawURLEncoding.EncodeToString(sum[:]) {
			reply(400, map[string]any{"error": "invalid_grant"})
			return
		}
		reply(200, map[string]any{"access_token": s.secret(), "refresh_token": s.secret(), "token_type": "Bearer", "expires_in": 3600})
	case "/mcp":
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(401)
			return
		}
		reply(200, map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"tools": []any{}, "echo": r.Header.Get("Mcp-Param-Word")}})
	default:
		http.NotFound(w, r)
	}
}

// An oauthClient does the flow of a client of MCP, browser and all.
type oauthClient struct {
	t    *testing.T
	http *http.Client
	made []string // secrets
}

func (c *oauthClient) do(method, u, kind, body string, header ...string) (*http.Response, string) {
	c.t.Helper()
	r, err := http.NewRequest(method, "http://"+webHost+u, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(b)
}

func (c *oauthClient) member(body, name string) string {
	c.t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		c.t.Fatalf("%v: %s", err, body)
	}
	s, _ := v[name].(string)
	return s
}

// flow gets a token, refreshes it and calls with it. It returns what is the same in each run.
func (c *oauthClient) flow() (seen []string) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	accept := []string{"Accept", "application/json, text/event-stream"}
	note := func(res *http.Response) {
		seen = append(seen, fmt.Sprint(res.Request.Method, res.Request.URL.Path, res.StatusCode))
	}
	res, _ := c.do("POST", "/mcp", "application/json", call, accept...)
	note(res)
	res, _ = c.do("GET", "/.well-known/oauth-protected-resource/mcp", "", "")
	note(res)
	res, _ = c.do("GET", "/.well-known/oauth-authorization-server", "", "")
	note(res)
	res, body := c.do("POST", "/register", "application/json", `{"client_name":"p","redirect_uris":["http://127.0.0.1:7777/callback"]}`)
	note(res)
	secret := c.member(body, "client_secret")
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	c.made = append(c.made, verifier, state, secret)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {"client-1"}, "redirect_uri": {"http://127.0.0.1:7777/callback"}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	res, _ = c.do("GET", "/authorize?"+q.Encode(), "", "")
	note(res)
	to, err := res.Location()
	if err != nil {
		c.t.Fatal(err)
	}
	if to.Query().Get("state") != state {
		c.t.Errorf("the state came back as %q, sent was %q", to.Query().Get("state"), state)
	}
	code := to.Query().Get("code")
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "client_id": {"client-1"},
		"client_secret": {secret}, "redirect_uri": {"http://127.0.0.1:7777/callback"}}
	res, body = c.do("POST", "/token", "application/x-www-form-urlencoded", form.Encode())
	note(res)
	access, refresh := c.member(body, "access_token"), c.member(body, "refresh_token")
	res, _ = c.do("POST", "/mcp", "application/json", call, append(accept, "Authorization", "Bearer "+access)...)
	note(res)
	form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {"client-1"}}
	res, body = c.do("POST", "/token", "application/x-www-form-urlencoded", form.Encode())
	note(res)
	call2 := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"api_key":"` + verifier + `"}}}`
	res, _ = c.do("POST", "/mcp", "application/json", call2, append(accept, "Authorization", "Bearer "+c.member(body, "access_token"),
		"Mcp-Param-Word", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(verifier))+"?=")...)
	note(res)
	return seen
}

// The whole flow of OAuth replays with another verifier and state, and leaves no secret.
func TestOAuthReplay(t *testing.T) {
	t.Parallel()
	server := &oauthServer{t: t, asked: make(map[string]string)}
	var secrets []string
	replayed(t, server, func(g *webRig) []string {
		hc := g.client()
		hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c := &oauthClient{t: g.t, http: hc}
		seen := c.flow()
		g.end()
		secrets = append(secrets, c.made...)
		all := g.file.bytes()
		for _, r := range g.records() {
			for _, p := range tape.Payloads(r.Kind) {
				b, err := p.Bytes(g.store)
				if err != nil {
					t.Error(err)
				}
				all = append(all, b...)
			}
		}
		for _, v := range append(secrets, server.given...) {
			if strings.HasPrefix(v, "td_") { // what a replay gives
				continue
			}
			if bytes.Contains(all, []byte(v)) {
				t.Errorf("%q is on the tape", v)
			}
			if bytes.Contains(all, []byte(base64.StdEncoding.EncodeToString([]byte(v)))) {
				t.Errorf("%q is on the tape in base64", v)
			}
		}
		return seen
	})
}
