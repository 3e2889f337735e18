package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Is reports whether the URL of a store is that of a server.
func Is(store string) bool {
	return strings.HasPrefix(store, "https://") || strings.HasPrefix(store, "http://")
}

// A Client is a store as a token shows it. It implements team.Access, and may be used by several goroutines. "" as a project is the token's; signers
// are the server's.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	pause func(ctx context.Context, d time.Duration) error
}

var _ team.Access = (*Client)(nil)

const (
	verdictHeader = "Tapedeck-Verdict"
	maxVerdict    = 8 << 10
	maxAnswer     = 256 << 20
	tries         = 6
	firstPause    = 200 * time.Millisecond
)

// Open is a client of the server at a URL: https://HOST:PORT, or http:// with an address of this machine, for a token is no secret on a wire that is
// not encrypted. It does not ask the server anything yet.
func Open(server, token string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--store: want https://HOST:PORT of a tapedeck store serve")
	}
	if u.Scheme == "http" && !isHere(u.Hostname()) {
		return nil, fmt.Errorf("--store %s: anybody on the way could read the token: want https://", server)
	}
	if token == "" {
		return nil, fmt.Errorf("--store %s: there is no token for it: TAPEDECK_STORE_TOKEN holds one, or a line \"%[1]s TOKEN\" of the file %s", server, tokensFile())
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ExpectContinueTimeout, t.DisableCompression = 5*time.Second, true
	return &Client{
		base: &url.URL{Scheme: u.Scheme, Host: u.Host}, token: token, pause: func(ctx context.Context, d time.Duration) error { return lane.Pause(ctx, nil, d) },
		http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, // the token is for nobody else
	}, nil
}

func isHere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func tokensFile() string { return filepath.Join(recording.ConfigDir(""), "store-tokens") }

// Token is that for a server: TAPEDECK_STORE_TOKEN's, else that of the line "URL TOKEN" in store-tokens of the configuration directory; "" for none.
func Token(server string) (string, error) {
	if t := os.Getenv("TAPEDECK_STORE_TOKEN"); t != "" {
		return strings.TrimSpace(t), nil
	}
	b, err := os.ReadFile(tokensFile())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && strings.TrimRight(f[0], "/") == strings.TrimRight(server, "/") {
			return f[1], nil
		}
	}
	return "", err
}

// Name implements team.Access.
func (c *Client) Name() string { return c.base.String() }

// Close implements team.Access.
func (c *Client) Close() error { c.http.CloseIdleConnections(); return nil }

// do makes a request until it is answered by another one than that the server is busy. The caller closes the body.
func (c *Client) do(ctx context.Context, method, name string, query url.Values, header http.Header, body func() (io.Reader, int64)) (*http.Response, error) {
	at := c.base.JoinPath("v1", name)
	at.RawQuery = query.Encode()
	for n := 1; ; n++ {
		r, size := body()
		req, err := http.NewRequestWithContext(ctx, method, at.String(), r)
		if err != nil {
			return nil, err
		}
		if req.ContentLength = size; header != nil {
			req.Header = header.Clone()
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := c.http.Do(req)
		if err != nil {
			if failed, ok := errors.AsType[*url.Error](err); ok { // which would name the request too
				err = failed.Err
			}
			return nil, fmt.Errorf("%s: %w", c.base, err)
		}
		if busy := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable; !busy || n == tries || c.pause(ctx, firstPause<<(n-1)) != nil {
			return resp, nil
		}
		resp.Body.Close()
	}
}

// of are the parameters of a request about a project.
func of(project string) url.Values {
	if project == "" {
		return url.Values{}
	}
	return url.Values{"project": {project}}
}

// ask has a method answer; there may be a result beside an error.
func ask[T any](ctx context.Context, c *Client, project, name string, in any) (result T, err error) {
	b, err := json.Marshal(in)
	if err != nil {
		return result, err
	}
	resp, err := c.do(ctx, http.MethodPost, name, of(project), http.Header{"Content-Type": {"application/json"}}, func() (io.Reader, int64) { return bytes.NewReader(b), int64(len(b)) })
	if err == nil {
		err = c.read(resp, &result)
	}
	return result, err
}

// read reads an answer.
func (c *Client) read(resp *http.Response, result any) error {
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&a); err != nil || a.Error == nil && resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusOK {
			return fmt.Errorf("%s: its answer cannot be read: %w", c.base, err)
		}
		return fmt.Errorf("%s: %s", c.base, resp.Status)
	}
	if len(a.Result) > 0 && result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			return fmt.Errorf("%s: its answer cannot be read: %w", c.base, err)
		}
	}
	if a.Error != nil {
		return a.Error
	}
	return nil
}

// Push implements team.Access.
func (c *Client) Push(ctx context.Context, rec *recording.Recording, o *team.PushOptions) (run *team.Run, there bool, err error) {
	if o == nil {
		o = new(team.PushOptions)
	}
	file, p, clean, err := o.Packed(ctx, rec)
	if err != nil {
		return nil, false, err
	}
	defer clean()
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	query := of(o.Project)
	query["tag"] = o.Tags
	if o.Again {
		query.Set("again", "1")
	}
	header := http.Header{"Content-Type": {"application/zstd"}, "Expect": {"100-continue"}} // who is refused sends nothing
	if v := library.VerdictOf(rec); v != nil {
		if b, err := json.Marshal(v); err == nil && len(b) <= maxVerdict {
			header.Set(verdictHeader, base64.StdEncoding.EncodeToString(b))
		}
	}
	resp, err := c.do(ctx, http.MethodPost, "push", query, header, func() (io.Reader, int64) {
		return team.Counted(io.NewSectionReader(f, 0, p.Size), p.Size, o.Progress), p.Size
	})
	if err != nil {
		return nil, false, err
	}
	var done pushed
	err = c.read(resp, &done)
	return done.Run, done.There, err
}

// Pull implements team.Access.
func (c *Client) Pull(ctx context.Context, project, id, file string, progress func(done, total int64)) (*team.Run, error) {
	run, err := c.Find(ctx, project, id)
	if err != nil {
		return nil, err
	}
	body, err := c.Blob(ctx, run, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return run, run.Receive(body, file, progress)
}

// Blob implements team.Access. The bytes are those of the run as it is known here, or there is no such run.
func (c *Client) Blob(ctx context.Context, run *team.Run, from, n int64) (io.ReadCloser, error) {
	query := url.Values{"run": {run.ID}, "digest": {run.Digest.String()}, "from": {fmt.Sprint(from)}, "n": {fmt.Sprint(n)}}
	resp, err := c.do(ctx, http.MethodGet, "blob", query, nil, func() (io.Reader, int64) { return nil, 0 })
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, c.read(resp, nil)
	}
	return resp.Body, nil
}

// Find implements team.Access.
func (c *Client) Find(ctx context.Context, project, id string) (*team.Run, error) {
	if id == "" {
		return nil, errors.New("expected the id of a run, got nothing")
	}
	return ask[*team.Run](ctx, c, project, "find", runAsked{id})
}

// Runs implements team.Access.
func (c *Client) Runs(ctx context.Context, q *team.Query) ([]team.Run, error) {
	return ask[[]team.Run](ctx, c, q.Project, "runs", q)
}

// Search implements team.Access.
func (c *Client) Search(ctx context.Context, text string, q *team.Query) ([]team.Hit, error) {
	return ask[[]team.Hit](ctx, c, q.Project, "search", searchAsked{text, *q})
}

// Verdicts implements team.Access.
func (c *Client) Verdicts(ctx context.Context, project string, ids []string) (map[string][]team.Verdict, error) {
	return ask[map[string][]team.Verdict](ctx, c, project, "verdicts", verdictsAsked{ids})
}

// Verdict implements team.Access.
func (c *Client) Verdict(ctx context.Context, project, id, tapedeck, program string) (*team.Verdict, error) {
	found, err := ask[verdictFound](ctx, c, project, "verdict", verdictAsked{id, tapedeck, program})
	if found.Verdict != nil {
		found.Verdict.Detail = found.Detail
	}
	return found.Verdict, err
}

// Remove implements team.Access.
func (c *Client) Remove(ctx context.Context, project, id, why string, _ note.Signer) (*team.Tombstone, error) {
	return ask[*team.Tombstone](ctx, c, project, "remove", removeAsked{id, why})
}

// Prune implements team.Access.
func (c *Client) Prune(ctx context.Context, project string, r *team.Rule, _ note.Signer) ([]*team.Tombstone, error) {
	return ask[[]*team.Tombstone](ctx, c, project, "prune", r)
}

// Expired implements team.Access.
func (c *Client) Expired(ctx context.Context, project string, r *team.Rule) ([]team.Expired, error) {
	return ask[[]team.Expired](ctx, c, project, "expired", r)
}

// Tag implements team.Access.
func (c *Client) Tag(ctx context.Context, project, id string, add, remove []string) (*team.Run, error) {
	return ask[*team.Run](ctx, c, project, "tag", tagAsked{id, add, remove})
}

// Hold implements team.Access. It is the token's.
func (c *Client) Hold(ctx context.Context, project, id, _, why string) (*team.Run, error) {
	return ask[*team.Run](ctx, c, project, "hold", removeAsked{id, why})
}

// Release implements team.Access.
func (c *Client) Release(ctx context.Context, project, id string) (*team.Run, error) {
	return ask[*team.Run](ctx, c, project, "release", runAsked{id})
}

// Sweep implements team.Access. Nobody is told what went: it may have been another project's.
func (c *Client) Sweep(ctx context.Context) ([]cas.Digest, error) {
	_, err := ask[nothing](ctx, c, "", "sweep", nothing{})
	return nil, err
}
