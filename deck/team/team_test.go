package team_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/team/remote"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Where a real PostgreSQL and a real bucket are, for who has them: .ci/run store starts both.
const postgresVar, bucketVar = "TAPEDECK_TEST_POSTGRES", "TAPEDECK_TEST_S3"

// A place is where a store of a test is, and whether it is used through a server.
type place struct {
	runs, blobs string
	http        bool
}

// eachPair runs a test on every pair of a database and a place of blobs that there is here.
func eachPair(t *testing.T, f func(t *testing.T, at place)) {
	databases := map[string]func(t *testing.T) string{"sqlite": func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "runs.sqlite") }}
	if os.Getenv(postgresVar) != "" {
		databases["postgres"] = schema
	}
	blobs := map[string]func(t *testing.T) string{"dir": func(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "blobs") }}
	if bucketURL := os.Getenv(bucketVar); bucketURL != "" {
		blobs["s3"] = func(t *testing.T) string {
			before, query, _ := strings.Cut(bucketURL, "?")
			return fmt.Sprintf("%s/%s-%d?%s", before, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), time.Now().UnixNano(), query)
		}
	}
	for name, d := range databases {
		for kind, b := range blobs {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				f(t, place{runs: d(t), blobs: b(t)})
			})
		}
		t.Run(name+" http", func(t *testing.T) {
			t.Parallel()
			f(t, place{d(t), blobs["dir"](t), true})
		})
	}
}

// schema is a schema of its own in the database of a test.
func schema(t *testing.T) string {
	db, err := sql.Open("pgx", os.Getenv(postgresVar))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	_, err = db.ExecContext(t.Context(), "CREATE SCHEMA "+name)
	must(t, err)
	t.Cleanup(func() { _, _ = db.Exec("DROP SCHEMA " + name + " CASCADE") })
	u, err := url.Parse(os.Getenv(postgresVar))
	must(t, err)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// database is that of a place, without its store.
func (p place) database(t *testing.T) *sql.DB {
	t.Helper()
	driver, source := "pgx", p.runs
	if file, ok := strings.CutPrefix(p.runs, "sqlite://"); ok {
		driver, source = "sqlite", "file:"+file+"?_pragma=busy_timeout(30000)&_pragma=foreign_keys(ON)" // as every tapedeck opens it
	}
	db, err := sql.Open(driver, source)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// direct opens the store with its keys.
func (p place) direct(t *testing.T) *team.Store {
	t.Helper()
	s, err := team.Open(t.Context(), p.runs, p.blobs)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func (p place) open(t *testing.T) team.Access {
	t.Helper()
	if p.http {
		return served(t, p.direct(t))
	}
	return p.direct(t)
}

// served is a store through a server of its own, which signs as signer does: with a token for each project, as who asks for it would have.
func served(t *testing.T, s *team.Store) team.Access {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	sign, _ := signer(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- remote.New(&remote.Options{Store: s, Signer: sign, SearchStep: 1}).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	out := &byProject{of: make(map[string]*remote.Client)}
	for _, project := range []string{"", "p", "other"} {
		token := &team.Token{Name: strings.TrimRight("somebody-"+project, "-"), Project: project, Roles: team.Roles}
		secret, err := s.Grant(t.Context(), token, time.Hour)
		if err != nil { // another server of the test has it
			token.Name = rand.Text()
			secret, err = s.Grant(t.Context(), token, time.Hour)
		}
		must(t, err)
		out.of[project], err = remote.Open("http://"+l.Addr().String(), secret)
		must(t, err)
	}
	out.Access = out.of[""]
	return out
}

// byProject shows the token of the project that is meant.
type byProject struct {
	team.Access
	of map[string]*remote.Client
}

func (b *byProject) Push(ctx context.Context, rec *recording.Recording, o *team.PushOptions) (*team.Run, bool, error) {
	if o == nil {
		o = new(team.PushOptions)
	}
	return b.of[o.Project].Push(ctx, rec, o)
}

func (b *byProject) Pull(ctx context.Context, project, id, file string, progress func(done, total int64)) (*team.Run, error) {
	return b.of[project].Pull(ctx, project, id, file, progress)
}

func (b *byProject) Blob(ctx context.Context, run *team.Run, from, n int64) (io.ReadCloser, error) {
	return b.of[run.Project].Blob(ctx, run, from, n)
}

func (b *byProject) Find(ctx context.Context, project, id string) (*team.Run, error) {
	return b.of[project].Find(ctx, project, id)
}

func (b *byProject) Runs(ctx context.Context, q *team.Query) ([]team.Run, error) {
	return b.of[q.Project].Runs(ctx, q)
}

func (b *byProject) Search(ctx context.Context, text string, q *team.Query) ([]team.Hit, error) {
	return b.of[q.Project].Search(ctx, text, q)
}

func (b *byProject) Remove(ctx context.Context, project, id, why string, signer note.Signer) (*team.Tombstone, error) {
	return b.of[project].Remove(ctx, project, id, why, signer)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a recording of an agent that asks, is answered, and writes a file.
func made(t testing.TB, id, prompt, answer string, change func(m *recording.Manifest)) *recording.Recording {
	t.Helper()
	tt := NewTape(t)
	tt.Call("a", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, prompt),
		fmt.Sprintf(`{"id":"x","type":"message","role":"assistant","content":[{"type":"text","text":%q}],"usage":{"input_tokens":1,"output_tokens":1}}`, answer))
	tt.Record(&tape.FileWrite{File: tape.File{Path: "src/" + id + "_notes.go", Content: tt.Payload("package x")}})
	tt.Record(&tape.ProcessSpawn{Program: "/bin/agent", Args: []string{"agent"}, Stdout: tt.Payload("finished " + id + "\n")})
	tt.Close()
	dir := filepath.Join(t.TempDir(), ".tapedeck", id+".rec")
	must(t, os.MkdirAll(dir, 0o700))
	for from, to := range map[string]string{tt.Path: recording.TapeName, tt.Path + tape.StoreSuffix: recording.TapeName + tape.StoreSuffix} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	m := recording.NewManifest(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	m.ID, m.State, m.Argv, m.Cwd, m.Exit = id, recording.StateFinished, []string{"/usr/bin/agent", "fix it"}, "/w", &recording.Exit{}
	m.Program.Path, m.Axes, m.Totals = "/usr/bin/agent", map[string]recording.Axis{}, &recording.Totals{Models: []string{"claude_x"}, Turns: 1, PricedUSD: 0.5, Unpriced: []string{}}
	if change != nil {
		change(m)
	}
	must(t, m.Write(dir, false))
	rec, err := recording.Open(dir)
	must(t, err)
	return rec
}

// push adds a recording, and returns what the store says of it.
func push(t *testing.T, s team.Access, rec *recording.Recording) *team.Run {
	t.Helper()
	run, there, err := s.Push(t.Context(), rec, nil)
	if err != nil || there {
		t.Fatalf("push: there %v, %v", there, err)
	}
	return run
}

func ids(runs []team.Run) string {
	var out []string
	for i := range runs {
		out = append(out, runs[i].ID)
	}
	return strings.Join(out, " ")
}

func TestPushPull(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "why is the sky blue", "it scatters", nil)
		run := push(t, s, rec)
		if _, there, err := s.Push(t.Context(), rec, nil); err != nil || !there {
			t.Errorf("the second push: there %v, %v", there, err)
		}
		file := filepath.Join(t.TempDir(), "pulled")
		again, err := at.open(t).Pull(t.Context(), "", "on", file, nil) // another machine, the begin of the id
		must(t, err)
		if got, want := mustJSON(t, again), mustJSON(t, run); got != want {
			t.Errorf("pulled %s\npushed %s", got, want)
		}
		back, clean, err := library.UnpackTemp(t.Context(), file, nil)
		must(t, err)
		defer clean()
		for _, name := range []string{recording.ManifestName, recording.TapeName} {
			if a, b := read(t, rec.Dir, name), read(t, back.Dir, name); !bytes.Equal(a, b) {
				t.Errorf("%s has changed on the way", name)
			}
		}
		for _, id := range []string{"one1", "one2", "o"} { // the beginning of others is an id too
			push(t, s, made(t, id, "x", "y", nil))
		}
		if _, err := s.Pull(t.Context(), "", "on", file+"2", nil); err == nil || !strings.Contains(err.Error(), "begins one, one1") {
			t.Errorf("the beginning of several: %v", err)
		}
		if _, err := s.Pull(t.Context(), "", "two", file+"2", nil); !errors.Is(err, team.ErrNoRun) {
			t.Errorf("a run that nobody pushed: %v", err)
		}
		if _, err := s.Pull(t.Context(), "other", "one", file+"2", nil); !errors.Is(err, team.ErrNoRun) {
			t.Errorf("a run of another project: %v", err)
		}
	})
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return b
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func TestListAndSearch(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		push(t, s, made(t, "one", "why is the Sky blue", "it scatters light", nil))
		push(t, s, made(t, "two", "plant a tulip, not 50% of it", "a tulip stands in the garden", func(m *recording.Manifest) {
			m.Exit, m.StartedAt, m.Totals.PricedUSD = &recording.Exit{Code: 3}, m.StartedAt.Add(time.Hour), 2
		}))
		push(t, s, made(t, "three", "sky and tulip", strings.Repeat("much more text of it ", 9000)+" zebra", func(m *recording.Manifest) {
			m.Argv, m.Totals.Models = []string{"other"}, []string{"gpt"}
		}))
		day := time.Date(2026, 11, 1, 12, 30, 0, 0, time.UTC)
		for _, c := range []struct {
			q    team.Query
			want string
		}{
			{team.Query{}, "three two one"}, {team.Query{Limit: 2}, "three two"}, {team.Query{Failed: true}, "two"}, {team.Query{Since: day}, "two"},
			{team.Query{Until: day}, "three one"}, {team.Query{Agent: "agent"}, "two one"}, {team.Query{Model: "claude_"}, "two one"}, {team.Query{Model: "claude%"}, ""},
			{team.Query{MinCost: 1}, "two"}, {team.Query{Project: "p"}, ""}, {team.Query{Agent: "agent", Failed: true, MinCost: 3}, ""},
		} {
			runs, err := s.Runs(t.Context(), &c.q)
			if must(t, err); ids(runs) != c.want {
				t.Errorf("%+v: got %q, want %q", c.q, ids(runs), c.want)
			}
		}
		for _, c := range []struct {
			ask, want string
			q         team.Query
		}{
			{"sky", "three conversation one conversation", team.Query{}}, {"SKY Blue", "one conversation", team.Query{}}, {"tulip garden", "two conversation", team.Query{}},
			{"blue tulip", "", team.Query{}}, {"two_notes.go", "two file", team.Query{}}, {"finished three", "three output", team.Query{}}, {"fix", "two command one command", team.Query{}},
			{"zebra", "three conversation", team.Query{}}, {"tulip", "two conversation", team.Query{Failed: true}}, {"sky", "three conversation", team.Query{Limit: 1}},
			{`50% "OR" x*`, "", team.Query{}}, {"50%", "two conversation", team.Query{}}, {"sky", "", team.Query{Project: "p"}},
		} {
			hits, err := s.Search(t.Context(), c.ask, &c.q)
			must(t, err)
			var got []string
			for _, h := range hits {
				got = append(got, h.Run.ID, h.What)
				if !strings.Contains(strings.ToLower(h.Excerpt), strings.ToLower(strings.FieldsFunc(c.ask, func(r rune) bool { return strings.ContainsRune(" %_", r) })[0])) {
					t.Errorf("%s: the excerpt %q does not show it", c.ask, h.Excerpt)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: got %q, want %q", c.ask, got, c.want)
			}
		}
		if _, err := s.Search(t.Context(), "-- *", &team.Query{}); !errors.Is(err, team.ErrNoWords) {
			t.Errorf("no word: %v", err)
		}
	})
}

// TestChanged: what has the id of a run takes its place.
func TestChanged(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		old := push(t, s, made(t, "one", "alpha", "beta", nil))
		run := push(t, s, made(t, "one", "gamma", "delta", nil))
		if hits, err := s.Search(t.Context(), "alpha", &team.Query{}); err != nil || len(hits) > 0 {
			t.Errorf("the old text is found still: %v %v", hits, err)
		}
		if hits, err := s.Search(t.Context(), "gamma", &team.Query{}); err != nil || len(hits) != 1 || hits[0].Run.Digest != run.Digest {
			t.Errorf("the new text: %v %v", hits, err)
		}
		gone, err := s.Sweep(t.Context())
		if must(t, err); !at.http && (len(gone) != 1 || gone[0] != old.Digest) {
			t.Errorf("swept %v, want %v", gone, old.Digest)
		}
	})
}

// keys are those of tombstones.
var keys = sync.OnceValues(func() (string, string) {
	skey, vkey, err := note.GenerateKey(nil, "test")
	if err != nil {
		panic(err)
	}
	return skey, vkey
})

func signer(t *testing.T) (note.Signer, note.Verifier) {
	skey, vkey := keys()
	s, err := note.NewSigner(skey)
	must(t, err)
	v, err := note.NewVerifier(vkey)
	must(t, err)
	return s, v
}

// TestRemove: of a run nothing is left in any file but its tombstone, and the run beside it is whole.
func TestRemove(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "the marigold is secret "+strings.Repeat("wisteria ", 5000), "so is the hyacinth", nil)
		run := push(t, s, rec)
		push(t, s, made(t, "two", "an iris", "a rose", nil))
		sign, verifier := signer(t)
		stone, err := s.Remove(t.Context(), "", "one", "asked by its author", sign)
		must(t, err)
		signed, err := note.Open([]byte(stone.Note), note.VerifierList(verifier))
		if must(t, err); !strings.Contains(signed.Text, `"reason":"asked by its author"`) || stone.Digest != run.Digest {
			t.Errorf("the tombstone: %+v", stone)
		}
		if file, ok := strings.CutPrefix(at.runs, "sqlite://"); ok {
			for _, word := range []string{"marigold", "wisteria", "hyacinth", "one_notes"} {
				holds(t, filepath.Dir(file), word)
			}
		}
		if dir, ok := strings.CutPrefix(at.blobs, "file://"); ok {
			holds(t, dir, run.Digest.String())
		}
		if runs, err := s.Runs(t.Context(), &team.Query{}); err != nil || ids(runs) != "two" {
			t.Errorf("left: %s %v", ids(runs), err)
		}
		for _, word := range []string{"marigold", "hyacinth"} {
			if hits, err := s.Search(t.Context(), word, &team.Query{}); err != nil || len(hits) > 0 {
				t.Errorf("%s is found: %v %v", word, hits, err)
			}
		}
		if _, err := s.Pull(t.Context(), "", "one", filepath.Join(t.TempDir(), "x"), nil); !errors.Is(err, team.ErrRemoved) {
			t.Errorf("pull: %v", err)
		}
		if _, err := s.Remove(t.Context(), "", "one", "again", sign); err != nil {
			t.Errorf("to remove it once more: %v", err)
		}
		if _, _, err := s.Push(t.Context(), rec, nil); !errors.Is(err, team.ErrRemoved) {
			t.Errorf("push: %v", err)
		}
		if _, _, err := s.Push(t.Context(), rec, &team.PushOptions{Again: true}); err != nil {
			t.Errorf("push again: %v", err)
		}
		if _, err := s.Remove(t.Context(), "", "three", "", sign); !errors.Is(err, team.ErrNoRun) {
			t.Errorf("a run that never was: %v", err)
		}
	})
}

// holds fails where a file below dir has a word, or is called so.
func holds(t *testing.T, dir, word string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(bytes.ToLower(b), []byte(word)) || strings.Contains(path, word) {
			t.Errorf("%s still holds %s", path, word)
		}
		return err
	}))
}

// TestRemoveChanged: the bytes that a run had before it was changed go with it, and it comes back to nobody who was about to push it.
func TestRemoveChanged(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		old := push(t, s, made(t, "one", "alpha", "beta", nil))
		run := push(t, s, made(t, "one", "gamma", "delta", nil))
		sign, _ := signer(t)
		if _, err := s.Remove(t.Context(), "", "on", "", sign); !errors.Is(err, team.ErrNoRun) {
			t.Errorf("the beginning of an id: %v", err)
		}
		_, err := s.Remove(t.Context(), "", "one", "", sign)
		must(t, err)
		b, err := team.OpenBlobs(t.Context(), at.blobs)
		must(t, err)
		var missing *cas.MissingError
		for _, d := range []cas.Digest{old.Digest, run.Digest} {
			if _, err := b.Stat(t.Context(), d); !errors.As(err, &missing) {
				t.Errorf("a blob is left: %v", err)
			}
		}
	})
}

// TestMended: what is damaged in the store is brought again.
func TestMended(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "alpha", "beta", nil)
		run := push(t, s, rec)
		b, err := team.OpenBlobs(t.Context(), at.blobs)
		must(t, err)
		must(t, b.Delete(t.Context(), run.Digest))
		if _, there, err := s.Push(t.Context(), rec, nil); err != nil || there {
			t.Errorf("push: there %v, %v", there, err)
		}
		_, err = s.Pull(t.Context(), "", "one", filepath.Join(t.TempDir(), "x"), nil)
		must(t, err)
	})
}

// TestTwins: two runs of the same bytes have one blob, which goes with the last of them.
func TestTwins(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "alpha", "beta", nil)
		push(t, s, rec)
		if _, _, err := s.Push(t.Context(), rec, &team.PushOptions{Project: "p"}); err != nil {
			t.Fatal(err)
		}
		sign, _ := signer(t)
		_, err := s.Remove(t.Context(), "", "one", "", sign)
		must(t, err)
		_, err = s.Pull(t.Context(), "p", "one", filepath.Join(t.TempDir(), "x"), nil)
		must(t, err)
		run, err := s.Remove(t.Context(), "p", "one", "", sign)
		must(t, err)
		b, err := team.OpenBlobs(t.Context(), at.blobs)
		must(t, err)
		var missing *cas.MissingError
		if _, err := b.Stat(t.Context(), run.Digest); !errors.As(err, &missing) {
			t.Errorf("its blob: %v", err)
		}
	})
}

// TestManyAtOnce: whoever pushes, removes and sweeps at the same time, what was acknowledged last is true.
func TestManyAtOnce(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		recs := make([]*recording.Recording, 4)
		for i := range recs {
			recs[i] = made(t, fmt.Sprintf("run%d", i), "alpha", "beta", nil)
		}
		sign, _ := signer(t)
		var all sync.WaitGroup
		for worker := range 4 {
			s := at.open(t)
			all.Go(func() {
				for i := range recs {
					if _, _, err := s.Push(t.Context(), recs[(i+worker)%len(recs)], nil); err != nil && !errors.Is(err, team.ErrRemoved) {
						t.Errorf("push: %v", err)
					}
				}
				if _, err := s.Remove(t.Context(), "", "run0", "", sign); err != nil {
					t.Logf("remove: %v", err) // another one did, or reads
				}
				if _, err := s.Sweep(t.Context()); err != nil && !errors.Is(err, team.ErrRead) {
					t.Errorf("sweep: %v", err)
				}
			})
		}
		all.Wait()
		s := at.open(t)
		runs, err := s.Runs(t.Context(), &team.Query{})
		must(t, err)
		if len(runs) != len(recs)-1 {
			t.Errorf("left: %s", ids(runs))
		}
		for i := range runs {
			if _, err := s.Pull(t.Context(), "", runs[i].ID, filepath.Join(t.TempDir(), "x"), nil); err != nil {
				t.Errorf("an acknowledged run is gone: %v", err)
			}
		}
	})
}

// TestBlobs: ranges, and what is not there.
func TestBlobs(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		b, err := team.OpenBlobs(t.Context(), at.blobs)
		must(t, err)
		content := []byte("0123456789")
		d := cas.Sum(content)
		var missing *cas.MissingError
		if _, err := b.Get(t.Context(), d, 0, -1); !errors.As(err, &missing) {
			t.Errorf("get: %v", err)
		}
		for range 2 {
			must(t, b.Put(t.Context(), d, int64(len(content)), func() io.Reader { return bytes.NewReader(content) }))
		}
		// What cannot be written again stays as it is: other runs may have it.
		cut := func() io.Reader { return io.MultiReader(strings.NewReader("01"), iotest.ErrReader(errors.New("cut"))) }
		if err := b.Replace(t.Context(), d, int64(len(content)), cut); err == nil {
			t.Error("half a blob takes the place of a whole one")
		}
		must(t, b.Replace(t.Context(), d, int64(len(content)), func() io.Reader { return bytes.NewReader(content) }))
		for _, c := range []struct {
			from, n int64
			want    string
		}{{0, -1, "0123456789"}, {3, 4, "3456"}, {0, 1, "0"}, {8, 10, "89"}, {9, -1, "9"}, {4, 0, ""}} {
			r, err := b.Get(t.Context(), d, c.from, c.n)
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, err)
			if must(t, r.Close()); string(got) != c.want {
				t.Errorf("%d bytes from %d on: %q, want %q", c.n, c.from, got, c.want)
			}
		}
		if size, err := b.Stat(t.Context(), d); err != nil || size != int64(len(content)) {
			t.Errorf("size %d, %v", size, err)
		}
		for range 2 {
			must(t, b.Delete(t.Context(), d))
		}
	})
}

// TestDamagedBlob: other bytes than those that were pushed are never given.
func TestDamagedBlob(t *testing.T) {
	at := place{runs: "sqlite://" + filepath.Join(t.TempDir(), "runs.sqlite"), blobs: "file://" + filepath.Join(t.TempDir(), "blobs")}
	s := at.open(t)
	run := push(t, s, made(t, "one", "alpha", "beta", nil))
	blob := filepath.Join(strings.TrimPrefix(at.blobs, "file://"), run.Digest.String()[:2], run.Digest.String())
	b, err := os.ReadFile(blob)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(blob, b, 0o600))
	file := filepath.Join(t.TempDir(), "x")
	var corrupt *cas.CorruptError
	if _, err := s.Pull(t.Context(), "", "one", file, nil); !errors.As(err, &corrupt) || recording.Exists(file) {
		t.Errorf("pull: %v; a file is there: %v", err, recording.Exists(file))
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	newer := "sqlite://" + filepath.Join(dir, "newer.sqlite")
	s, err := team.Open(t.Context(), newer, "file://"+dir)
	must(t, err)
	must(t, s.Close())
	db, err := sql.Open("sqlite", strings.TrimPrefix(newer, "sqlite://"))
	must(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO tapedeck_schema VALUES (99)")
	must(t, err)
	must(t, db.Close())
	for _, c := range []struct{ runs, blobs, want string }{
		{newer, "file://" + dir, "of version 99"}, {"mysql://x?p=secret", "file://" + dir, "want sqlite:///PATH or postgres://"}, {"host=x password=secret", "file://" + dir, "want sqlite:///PATH"}, {"sqlite://" + dir + "/x", "ftp://x", "want file:///PATH or s3://"},
		{"sqlite://" + dir + "/x", "s3://b?endpoint=http:secret", "want http://HOST:PORT"}, {"sqlite://" + dir + "/no/x", "file://" + dir, "unable to open"},
		{"sqlite://" + dir + "/x", "", "--blobs is missing"}, {"postgres://u:secret@127.0.0.1:1/x", "file://" + dir, "127.0.0.1"},
	} {
		_, err := team.Open(context.Background(), c.runs, c.blobs)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %s: %v, want %q", c.runs, c.blobs, err, c.want)
		}
	}
}
