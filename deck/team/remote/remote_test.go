package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A rig is a server of a store, and who has its keys.
type rig struct {
	t     *testing.T
	store *team.Store
	queue *queue.Queue
	url   string
}

func newRig(t *testing.T, o *Options) *rig {
	t.Helper()
	dir := t.TempDir()
	s, err := team.Open(t.Context(), "sqlite://"+filepath.Join(dir, "runs.sqlite"), "file://"+filepath.Join(dir, "blobs"))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	o.Store, o.Signer = s, testSigner(t)
	o.Queue, err = queue.Open(t.Context(), s)
	must(t, err)
	t.Cleanup(o.Queue.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Serve(ctx, l) }()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	scheme := "http"
	if o.TLS != nil {
		scheme = "https"
	}
	return &rig{t, s, o.Queue, scheme + "://" + l.Addr().String()}
}

func testSigner(t *testing.T) note.Signer {
	t.Helper()
	skey, _, err := note.GenerateKey(nil, "server")
	must(t, err)
	s, err := note.NewSigner(skey)
	must(t, err)
	return s
}

// token makes a token of a project.
func (r *rig) token(name, project string, roles ...string) string {
	r.t.Helper()
	secret, err := r.store.Grant(r.t.Context(), &team.Token{Name: name, Project: project, Roles: roles}, 0)
	must(r.t, err)
	return secret
}

func (r *rig) client(token string) *Client {
	r.t.Helper()
	c, err := Open(r.url, token)
	must(r.t, err)
	return c
}

// raw makes a request and returns its status and its body.
func (r *rig) raw(token, method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	must(r.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return resp.StatusCode, string(b)
}

// made is a recording with a text of an agent.
func made(t testing.TB, id, text string) *recording.Recording {
	t.Helper()
	tt := derivetest.NewTape(t)
	tt.Record(&tape.ProcessSpawn{Program: "/bin/agent", Args: []string{"agent"}, Stdout: tt.Payload(text + "\n")})
	tt.Close()
	dir := filepath.Join(t.TempDir(), ".tapedeck", id+".rec")
	must(t, os.MkdirAll(dir, 0o700))
	for from, to := range map[string]string{tt.Path: recording.TapeName, tt.Path + tape.StoreSuffix: recording.TapeName + tape.StoreSuffix} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	m := recording.NewManifest(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	m.ID, m.State, m.Argv, m.Cwd, m.Exit = id, recording.StateFinished, []string{"/usr/bin/agent"}, "/w", &recording.Exit{}
	m.Program.Path, m.Axes = "/usr/bin/agent", map[string]recording.Axis{}
	must(t, m.Write(dir, false))
	rec, err := recording.Open(dir)
	must(t, err)
	return rec
}

func push(t *testing.T, c team.Access, rec *recording.Recording, again bool) *team.Run {
	t.Helper()
	run, there, err := c.Push(t.Context(), rec, &team.PushOptions{Again: again})
	if must(t, err); there {
		t.Fatalf("%s: there already", run.ID)
	}
	return run
}

// TestIsolation: with all roles in a project, and knowing all of another one's ids, digests and words, nobody learns whether they are true: each
// answer is, byte by byte, that about what nobody has.
func TestIsolation(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	mine, theirs := r.token("a", "mine", team.Roles...), r.token("b", "theirs", team.Roles...)
	a, b := r.client(mine), r.client(theirs)
	push(t, a, made(t, "own", "a tulip"), false)
	secret := push(t, b, made(t, "secret", "the marigold is blue"), false)
	push(t, b, made(t, "gone00", "a rose"), false)
	_, err := b.Remove(t.Context(), "", "gone00", "asked for", nil)
	must(t, err)
	none := strings.Repeat("0", len(secret.Digest.String()))
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/find", `{"ID":"$id"}`}, {"POST", "/v1/verdict", `{"ID":"$id"}`}, {"POST", "/v1/verdicts", `{"IDs":["$id"]}`},
		{"POST", "/v1/remove", `{"ID":"$id","Why":"x"}`}, {"POST", "/v1/hold", `{"ID":"$id","Why":"x"}`}, {"POST", "/v1/release", `{"ID":"$id"}`}, {"POST", "/v1/tag", `{"ID":"$id","Add":["x"]}`}, {"GET", "/v1/blob?run=$id&digest=$digest&from=0&n=-1", ""}, {"GET", "/v1/blob?run=own&digest=$digest&from=0&n=-1", ""},
		{"POST", "/v1/search", `{"Text":"$word"}`}, {"POST", "/v1/search", `{"Text":"$word","Query":{"Project":"$project"}}`}, {"POST", "/v1/runs", `{"Project":"$project"}`},
		{"POST", "/v1/runs?project=$project", `{}`}, {"POST", "/v1/search?project=$project", `{"Text":"$word"}`}, {"POST", "/v1/prune?project=$project", `{}`},
	} {
		fill := func(s, id, digest, word, project string) string {
			return strings.NewReplacer("$id", id, "$digest", digest, "$word", word, "$project", project).Replace(s)
		}
		for _, id := range []string{"secret", "gone00"} {
			status, got := r.raw(mine, c.method, fill(c.path, id, secret.Digest.String(), "marigold", "theirs"), fill(c.body, id, secret.Digest.String(), "marigold", "theirs"))
			statusOfNone, want := r.raw(mine, c.method, fill(c.path, "nobody", none, "asphodel", "nobody"), fill(c.body, "nobody", none, "asphodel", "nobody"))
			if got = strings.ReplaceAll(got, id, "nobody"); status != statusOfNone || got != want {
				t.Errorf("%s %s of %s: %d %s\nof nobody: %d %s", c.path, c.body, id, status, got, statusOfNone, want)
			}
			if strings.Contains(got, "theirs") || strings.Contains(got, "marigold") {
				t.Errorf("%s says %s", c.path, got)
			}
		}
	}
	push(t, a, made(t, "gone00", "a rose"), false) // which has no tombstone here
	twin := made(t, "secret", "the marigold is blue")
	push(t, a, twin, false)
	if _, err := a.Remove(t.Context(), "", "secret", "x", nil); err != nil {
		t.Errorf("remove what is one's own: %v", err)
	}
	if _, err := a.Prune(t.Context(), "", &team.Rule{MaxSize: 1}, nil); err != nil {
		t.Error(err)
	}
	if gone, err := a.Sweep(t.Context()); err != nil || gone != nil {
		t.Errorf("a sweep: %v %v", gone, err)
	}
	if _, err := b.Pull(t.Context(), "", "secret", filepath.Join(t.TempDir(), "x"), nil); err != nil {
		t.Errorf("what another project purged is gone here: %v", err)
	}
	if runs, err := b.Runs(t.Context(), &team.Query{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs are left: %v", len(runs), err)
	}
}

// TestUnknown: whatever is wrong with a token, the answer is the same.
func TestUnknown(t *testing.T) {
	r := newRig(t, &Options{})
	good := r.token("good", "p", team.RoleRead)
	revoked := r.token("revoked", "p", team.Roles...)
	must(t, r.store.Revoke(t.Context(), "revoked"))
	over, err := r.store.Grant(t.Context(), &team.Token{Name: "over", Roles: team.Roles}, time.Millisecond)
	must(t, err)
	for err == nil {
		_, err = r.store.Identify(t.Context(), over)
	}
	status, want := r.raw("", "POST", "/v1/runs", "{}")
	if status != http.StatusUnauthorized {
		t.Fatalf("%d %s", status, want)
	}
	for _, token := range []string{"x", revoked, over, good + "x", good[:len(good)-1], "tapedeck__", strings.Repeat("y", 4000)} {
		for _, path := range []string{"/v1/runs", "/v1/nosuch", "/", "/v1/push", "/v1/blob"} {
			if status, got := r.raw(token, "POST", path, "{}"); status != http.StatusUnauthorized || got != want {
				t.Errorf("%.40s %s: %d %s", token, path, status, got)
			}
		}
	}
	if status, got := r.raw(good, "POST", "/v1/runs", "{}"); status != http.StatusOK {
		t.Errorf("the good one: %d %s", status, got)
	}
	if status, _ := r.raw("", "GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
}

// TestRoles: each request wants one role, and no other one will do.
func TestRoles(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	wants := map[string]string{"POST /v1/push": team.RolePush, "GET /v1/blob": team.RoleRead}
	for _, some := range []map[string]method{methods, jobMethods} {
		for name, m := range some {
			wants["POST /v1/"+name] = m.role
		}
	}
	for _, role := range team.Roles {
		token := r.token(role, "p", role)
		for request, want := range wants {
			method, path, _ := strings.Cut(request, " ")
			status, got := r.raw(token, method, path, "{}")
			if denied := status == http.StatusForbidden; denied != (role != want) {
				t.Errorf("%s with %s: %d %s", request, role, status, got)
			}
		}
	}
	if status, _ := r.raw(r.token("pusher", "p", team.RolePush), "POST", "/v1/push?again=1", ""); status != http.StatusForbidden {
		t.Errorf("what was purged is pushed again by whoever may push: %d", status)
	}
}

// TestAudited: each act stands under the name of its token before it is answered; words that were looked for and texts do not.
func TestAudited(t *testing.T) {
	r := newRig(t, &Options{SearchStep: time.Millisecond})
	c := r.client(r.token("eva", "p", team.Roles...))
	rec := made(t, "one", "the marigold is blue")
	push(t, c, rec, false)
	if _, there, err := c.Push(t.Context(), rec, nil); err != nil || !there {
		t.Errorf("pushed twice: there %v, %v", there, err)
	}
	_, err := c.Runs(t.Context(), &team.Query{})
	must(t, err)
	hits, err := c.Search(t.Context(), "marigold", &team.Query{})
	if must(t, err); len(hits) != 1 {
		t.Errorf("%d hits", len(hits))
	}
	_, err = c.Pull(t.Context(), "", "on", filepath.Join(t.TempDir(), "x"), nil)
	must(t, err)
	_, err = c.Find(t.Context(), "", "nosuch")
	if !errors.Is(err, team.ErrNoRun) {
		t.Error(err)
	}
	run, err := c.Find(t.Context(), "", "one")
	must(t, err)
	for from, n := range map[int64]int64{0: 10, 5: 10, run.Size - 3: -1} {
		body, err := c.Blob(t.Context(), run, from, n)
		must(t, err)
		got, err := io.ReadAll(body)
		must(t, errors.Join(err, body.Close()))
		direct, err := r.store.Blob(t.Context(), run, from, n)
		must(t, err)
		want, err := io.ReadAll(direct)
		if must(t, errors.Join(err, direct.Close())); !bytes.Equal(got, want) || len(got) == 0 {
			t.Errorf("%d bytes from %d on: %x, want %x", n, from, got, want)
		}
	}
	if _, err := c.Blob(t.Context(), run, run.Size+1, 1); !errors.Is(err, ErrRequest) {
		t.Errorf("behind the end: %v", err)
	}
	stone, err := c.Remove(t.Context(), "", "one", "asked for", nil)
	if must(t, err); stone.SignedBy() != "server" {
		t.Errorf("signed by %q", stone.SignedBy())
	}
	acts, err := r.store.Acts(t.Context(), nil, 100)
	must(t, err)
	var got []string
	for _, a := range acts {
		got = append(got, strings.TrimSpace(a.Token+" "+a.What+" "+a.About))
	}
	if want := "grant eva,eva push one,eva push one,eva list,eva search,eva show one,eva pull one,eva read one,eva purge one"; strings.Join(got, ",") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ","), want)
	}
	if b, _ := json.Marshal(acts); bytes.Contains(b, []byte("marigold")) {
		t.Errorf("%s", b)
	}
}

// TestJobs: who puts jobs sees those of the project alone, by numbers that count nothing.
func TestJobs(t *testing.T) {
	r := newRig(t, &Options{})
	mine, theirs := r.token("a", "mine", team.RoleReplay), r.token("b", "theirs", team.Roles...)
	a, b := r.client(mine).Queue(), r.client(theirs).Queue()
	first, err := a.Put(t.Context(), []queue.Job{{What: queue.Test, Run: "one"}, {What: queue.Verify, Run: "two", Timeout: time.Minute}}, &queue.PutOptions{Priority: 1})
	must(t, err)
	others, err := b.Put(t.Context(), []queue.Job{{What: queue.Test, Run: "secret"}, {What: queue.Retention, Rule: team.Rule{Keep: 1}}}, nil)
	must(t, err)
	second, err := a.Put(t.Context(), []queue.Job{{What: queue.Replay, Run: "three"}}, nil)
	must(t, err)
	if len(first) != 2 || len(second) != 1 || second[0] == first[1]+3 {
		t.Errorf("put %v and %v", first, second)
	}
	list, err := a.List(t.Context(), "", 10)
	if must(t, err); len(list) != 3 || list[0].ID != second[0] || list[0].Run != "three" || list[2].Priority != 1 {
		t.Errorf("listed %+v", list)
	}
	if n, err := a.Workers(t.Context(), "", ""); err != nil || n != 0 {
		t.Errorf("%d workers, %v", n, err)
	}
	direct, err := r.queue.List(t.Context(), "theirs", 10)
	must(t, err)
	for _, id := range []int64{others[0], direct[0].ID, direct[1].ID, -1, 0, 1 << 41, 1 << 62} { // as they are told of, as they are, and none
		if id == first[0] || id == first[1] || id == second[0] {
			continue
		}
		for name, f := range map[string]func(context.Context, string, ...int64) error{"cancel": a.Cancel, "retry": a.Retry} {
			if err := f(t.Context(), "", id); !errors.Is(err, queue.ErrNoJob) || err.Error() != fmt.Sprintf("job %d: %v", id, queue.ErrNoJob) {
				t.Errorf("%s %d: %v", name, id, err)
			}
		}
		status, got := r.raw(mine, "POST", "/v1/ended", fmt.Sprintf(`{"IDs":[%d]}`, id))
		if _, want := r.raw(mine, "POST", "/v1/ended", `{"IDs":[987654321]}`); status != 200 || got != strings.Replace(want, "987654321", fmt.Sprint(id), 1) {
			t.Errorf("ended %d: %s", id, got)
		}
	}
	must(t, a.Cancel(t.Context(), "", first[0]))
	var ended []string
	ctx, stop := context.WithCancel(t.Context())
	summary, err := a.Wait(ctx, append(first, second...), func(g *gate.Result) { ended = append(ended, g.Name+" "+g.Why); stop() }, func(err error) { t.Error(err) })
	if !errors.Is(err, context.Canceled) || strings.Join(ended, ",") != "one cancelled" || summary.Left != 2 {
		t.Errorf("ended %q, %+v, %v", ended, summary, err)
	}
	list, err = a.List(t.Context(), "", 10, "cancelled")
	if must(t, err); len(list) != 3 { // who waits no more has cancelled the others
		t.Errorf("cancelled: %+v", list)
	}
	must(t, a.Retry(t.Context(), "", first[0]))
	for _, bad := range []queue.Job{{What: "rm"}, {What: queue.Test, Timeout: -1}, {What: queue.Test, Timeout: longestJob + 1}} {
		if _, err := b.Put(t.Context(), []queue.Job{bad}, nil); !errors.Is(err, ErrRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := a.Put(t.Context(), []queue.Job{{What: queue.Retention, Rule: team.Rule{Keep: 1}}}, nil); !errors.Is(err, ErrRole) {
		t.Errorf("who may not purge puts a retention: %v", err)
	}
	if _, err := a.Put(t.Context(), []queue.Job{{What: queue.Test, Project: "theirs"}}, nil); !errors.Is(err, ErrProject) {
		t.Errorf("a job of another project: %v", err)
	}
	if left, err := r.queue.List(t.Context(), "theirs", 10); err != nil || len(left) != 2 || left[0].State != direct[0].State {
		t.Errorf("theirs: %+v, %v", left, err)
	}
}

// TestNumbers: what hides a number finds it, and another project's does not.
func TestNumbers(t *testing.T) {
	s := New(&Options{Signer: testSigner(t)})
	n, err := s.numbersOf("p")
	must(t, err)
	other, err := s.numbersOf("q")
	must(t, err)
	seen := make(map[int64]bool)
	for _, id := range []int64{0, 1, 2, 3, 1000, 1<<40 - 1, 1 << 40, 1<<63 - 1} {
		shown := n.hide(id)
		if n.find(shown) != id && id < 1<<40 || seen[shown] || id < 1<<40 && shown == other.hide(id) || shown < 0 {
			t.Errorf("%d is shown as %d, found as %d", id, shown, n.find(shown))
		}
		seen[shown] = true
	}
}

// TestVerdictOfPusher: what a replay found before the push is known, for the recording's bytes do not have it.
func TestVerdictOfPusher(t *testing.T) {
	r := newRig(t, &Options{})
	c := r.client(r.token("eva", "p", team.Roles...))
	run := push(t, c, made(t, "one", "x"), false)
	file := filepath.Join(t.TempDir(), "x")
	_, err := c.Pull(t.Context(), "", "one", file, nil)
	must(t, err)
	_, there, err := r.store.PushPacked(t.Context(), file, packed.Limits{}, &library.Verdict{Status: "faithful"}, &team.PushOptions{Project: "q"})
	must(t, err)
	again, err := r.store.Run(t.Context(), "q", "one")
	if must(t, err); there || again.Digest != run.Digest || again.Verdict.Status != "faithful" {
		t.Errorf("there %v, %+v", there, again)
	}
}

// TestTLS: the same through TLS, where requests share a connection; who does not know the certificate sends nothing.
func TestTLS(t *testing.T) {
	pair := httptest.NewTLSServer(nil)
	defer pair.Close()
	r := newRig(t, &Options{MaxPush: 64 << 10, TLS: &tls.Config{Certificates: pair.TLS.Certificates}})
	c := r.client(r.token("eva", "p", team.RolePush, team.RoleRead))
	if _, err := r.client("x").Runs(t.Context(), &team.Query{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger: %v", err)
	}
	known := x509.NewCertPool()
	known.AddCert(pair.Certificate())
	transport := c.http.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: known}
	run := push(t, c, made(t, "one", "x"), false)
	_, err := c.Pull(t.Context(), "", "one", filepath.Join(t.TempDir(), "x"), nil)
	must(t, err)
	if _, _, err := c.Push(t.Context(), made(t, "two", "x"), &team.PushOptions{Again: true}); !errors.Is(err, ErrRole) {
		t.Errorf("push without the role: %v", err)
	}
	long := bytes.NewReader(make([]byte, 1<<20))
	resp, err := c.do(t.Context(), "POST", "push", nil, http.Header{"Expect": {"100-continue"}}, func() (io.Reader, int64) { return long, long.Size() })
	must(t, err)
	if err := c.read(resp, nil); !errors.Is(err, ErrTooMuch) || resp.ProtoMajor != 2 {
		t.Errorf("a long push: %v, HTTP/%d", err, resp.ProtoMajor)
	}
	if got, err := c.Find(t.Context(), "", run.ID); err != nil || got.Digest != run.Digest {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnfit: what is no packed recording is refused, and no path of this machine is said.
func TestUnfit(t *testing.T) {
	r := newRig(t, &Options{MaxPush: 64 << 10, MaxUnpacked: 1})
	t.Setenv("TMPDIR", t.TempDir())
	token := r.token("eva", "p", team.Roles...)
	dir := t.TempDir()
	_, err := library.Pack(t.Context(), made(t, "one", "x"), filepath.Join(dir, "packed"), nil)
	must(t, err)
	whole, err := os.ReadFile(filepath.Join(dir, "packed"))
	must(t, err)
	for what, c := range map[string]struct {
		body string
		want int
	}{
		"nothing": {"", 422}, "a text": {"hello", 422}, "cut": {string(whole[:len(whole)/2]), 422}, "unpacks to more": {string(whole), 422}, "longer": {strings.Repeat("x", 64<<10+1), 413},
	} {
		status, got := r.raw(token, "POST", "/v1/push", c.body)
		if status != c.want || strings.Contains(got, os.TempDir()) {
			t.Errorf("%s: %d %s", what, status, got)
		}
	}
	if status, got := r.raw(token, "POST", "/v1/find", `{"ID":"`+strings.Repeat("x", maxBody)+`"}`); status != 413 {
		t.Errorf("a long request: %d %s", status, got)
	}
	for _, body := range []string{"", "[]", `{"ID":""}`, `{"ID":1}`, "{"} {
		if status, got := r.raw(token, "POST", "/v1/find", body); status != 400 {
			t.Errorf("%q: %d %s", body, status, got)
		}
	}
	if status, _ := r.raw(token, "POST", "/v1/runs", `{"Limit":-1}`); status != 400 {
		t.Errorf("a limit below 0: %d", status)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "tapedeck-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestBusy: who holds all that one project may have under way keeps nobody else out.
func TestBusy(t *testing.T) {
	r := newRig(t, &Options{})
	mine, theirs := r.token("a", "mine", team.Roles...), r.token("b", "theirs", team.Roles...)
	for range perProject {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		must(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/push HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", mine)
		b := make([]byte, 12)
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "HTTP/1.1 100" { // its body is waited for
			t.Fatalf("%q %v", b, err)
		}
	}
	if status, got := r.raw(mine, "POST", "/v1/runs", "{}"); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d %s", status, got)
	}
	if status, got := r.raw(theirs, "POST", "/v1/runs", "{}"); status != http.StatusOK {
		t.Errorf("another project: %d %s", status, got)
	}
}

// deadlines is an answer that knows until when it may be waited for.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestPace: a client has a minute for the next byte, less where it is slower than the least speed; each piece of a long answer has its time.
func TestPace(t *testing.T) {
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	p := newPace(d)
	if d.read != p.start.Add(patience) {
		t.Errorf("at first until %v", d.read.Sub(p.start))
	}
	_, err := io.ReadAll(p.reader(bytes.NewReader(make([]byte, 100*slowest))))
	if must(t, err); time.Until(d.read) > patience {
		t.Errorf("who was fast may be silent for %v", time.Until(d.read))
	}
	p.start = p.start.Add(-2 * patience) // the bytes of 100 seconds took as long
	if _, err := p.reader(bytes.NewReader(nil)).Read(nil); !errors.Is(err, io.EOF) || d.read != p.start.Add(patience+100*time.Second) {
		t.Errorf("who was slow has until %v", d.read.Sub(p.start))
	}
	if p.read(); !d.read.IsZero() {
		t.Error("a long answer is the client's fault")
	}
	n, err := p.writer(d).Write(make([]byte, 10*slowest+1))
	if must(t, err); n != 10*slowest+1 || p.n != int64(n) || d.write.Before(p.start.Add(patience)) || time.Until(d.write) > patience || !p.began {
		t.Errorf("%d bytes are written, until %v", n, d.write.Sub(p.start))
	}
}

// TestRest: answers of a search come at few moments only.
func TestRest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 250, 1: 249, 249: 1, 250: 0, 251: 249, 600: 400, 1001: 999} {
		if got := rest(250*time.Millisecond, took*time.Millisecond); got != want*time.Millisecond {
			t.Errorf("%d ms: rests %v, want %d ms", took, got, want)
		}
	}
}

// TestOpen: a token goes nowhere but to its server, and over no wire in the clear.
func TestOpen(t *testing.T) {
	for at, ok := range map[string]bool{
		"https://store.example:9200": true, "http://127.0.0.1:1": true, "http://[::1]:1/": true, "http://localhost:1": true, "http://store.example": false, "http://10.0.0.1:1": false,
		"http://127.0.0.1.example.org": false, "https://u:secret@x": false, "https://": false, "https://x/path": false, "https://x?token=secret": false,
	} {
		_, err := Open(at, "t")
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", at, err)
		}
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the token went elsewhere") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := Open(server.URL, "t")
	must(t, err)
	if _, err := c.Runs(t.Context(), &team.Query{}); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect: %v", err)
	}
	server.Close()
	if _, err := c.Runs(t.Context(), &team.Query{}); err == nil || strings.Contains(err.Error(), "Bearer") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestToken(t *testing.T) {
	t.Cleanup(xdg.Reload) // behind Setenv's
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TAPEDECK_STORE_TOKEN", "")
	xdg.Reload()
	must(t, os.MkdirAll(filepath.Dir(tokensFile()), 0o700))
	if got, err := Token("https://a:1"); err != nil || got != "" {
		t.Errorf("no file: %q, %v", got, err)
	}
	must(t, os.WriteFile(tokensFile(), []byte("# mine\nhttps://a:1/ first\n\nhttps://b:1\thers\n"), 0o600))
	for server, want := range map[string]string{"https://a:1": "first", "https://b:1/": "hers", "https://c:1": ""} {
		if got, err := Token(server); err != nil || got != want {
			t.Errorf("%s: %q, %v", server, got, err)
		}
	}
	t.Setenv("TAPEDECK_STORE_TOKEN", "mine\n")
	if got, err := Token("https://c:1"); err != nil || got != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLook: a record of a long run is read in ranges, which stands in the audit.
func TestLook(t *testing.T) {
	r := newRig(t, &Options{})
	c := r.client(r.token("ci", "roses", team.RolePush, team.RoleRead))
	rec := made(t, "long", "a text")
	tt := derivetest.NewTape(t)
	for i := range 4000 {
		sum := cas.Sum(fmt.Append(nil, i))
		tt.Record(&tape.FileWrite{File: tape.File{Path: strings.Repeat(sum.String(), 8)}})
	}
	for i := range 4000 { // what does not compress
		a, b := cas.Sum(fmt.Append(nil, i, "a")), cas.Sum(fmt.Append(nil, i, "b"))
		tt.Record(&tape.FileWrite{File: tape.File{Path: a.String() + b.String()}})
	}
	tt.Close()
	must(t, os.Rename(tt.Path, rec.TapePath()))
	run := push(t, c, rec, false)
	if run.Table.IsZero() {
		t.Fatalf("%d bytes without a table", run.Size)
	}
	seq := uint64(7777)
	dir := filepath.Join(t.TempDir(), "a")
	_, clean, err := team.Look(t.Context(), c, "", "lo", dir, &team.LookOptions{Seq: &seq})
	must(t, err)
	clean()
	b, err := os.ReadFile(filepath.Join(dir, recording.TapeName))
	if err != nil || !strings.Contains(string(b), `"seq":7777,`) || strings.Count(string(b), "\n") != 2 {
		t.Errorf("%q, %v", b, err)
	}
	acts, err := r.store.Acts(t.Context(), nil, 100)
	must(t, err)
	shown := 0
	for _, a := range acts {
		if a.What == "show" && a.Token == "ci" && a.About == "long" {
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("%d acts of %v", shown, acts)
	}
}
