package team

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// BenchmarkMany lists, searches and pushes in a store of 100,000 runs, beside one row that is read by its key. p99 is of all that were timed.
func BenchmarkMany(b *testing.B) {
	for name, address := range map[string]string{"sqlite": "sqlite://" + filepath.Join(b.TempDir(), "runs.sqlite"), "postgres": os.Getenv("TAPEDECK_TEST_POSTGRES")} {
		if address != "" {
			b.Run(name, func(b *testing.B) { many(b, inSchema(b, address)) })
		}
	}
}

// inSchema gives a benchmark tables of its own.
func inSchema(b *testing.B, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" {
		return address
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf("b%d", time.Now().UnixNano())
	if _, err := db.Exec("CREATE SCHEMA " + name); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = db.Exec("DROP SCHEMA " + name + " CASCADE"); db.Close() })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func many(b *testing.B, address string) {
	s, err := Open(b.Context(), address, "file://"+filepath.Join(b.TempDir(), "blobs"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	run := func(i int) (*Run, []text) {
		r := &Run{
			ID: fmt.Sprintf("run%06d", i), Agent: fmt.Sprintf("agent%d", i%7), Argv: []string{"agent", "fix it"}, StartedAt: time.Unix(1_800_000_000+int64(i), 0),
			Exit: &recording.Exit{Code: i % 10 / 9}, Totals: &recording.Totals{Models: []string{fmt.Sprintf("model-%d", i%3)}, PricedUSD: float64(i%100) / 100}, Digest: cas.Sum(fmt.Append(nil, i)),
		}
		return r, []text{{"conversation", fmt.Sprintf("please fix the parser of module number%d and say what was wrong", i)}, {"file", fmt.Sprintf("src/module%d/parser.go", i)}, {"output", "all tests passed"}}
	}
	const runs = 100_000
	for from := 0; from < runs; from += 10_000 {
		err = s.db.within(b.Context(), func(tx *sql.Tx) error {
			for i := from; i < from+10_000 && err == nil; i++ {
				r, texts := run(i)
				var seq int64
				if seq, err = s.db.put(b.Context(), tx, r); err == nil {
					err = s.db.index(b.Context(), tx, seq, texts)
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, statement := range []string{"ANALYZE"} {
		if _, err := s.db.db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	list := func(q Query) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Runs(ctx, &q); return err }
	}
	search := func(text string, q Query) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Search(ctx, text, &q); return err }
	}
	for _, c := range []struct {
		name string
		f    func(context.Context) error
	}{
		{"ByKey", func(ctx context.Context) error { _, err := s.db.find(ctx, "", "run012345"); return err }},
		{"List", list(Query{})}, {"ListFailed", list(Query{Failed: true, Model: "model-1", MinCost: 0.5})}, {"ListNone", list(Query{Agent: "nobody"})},
		{"SearchRare", search("number77777", Query{})}, {"SearchCommon", search("parser wrong", Query{})}, {"SearchCommonFailed", search("tests passed", Query{Failed: true})},
		{"SearchNone", search("parser zyzzyva", Query{})},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := c.f(b.Context()); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
	b.Run("Push", func(b *testing.B) {
		file, i := filepath.Join(b.TempDir(), "packed"), runs
		for b.Loop() {
			content := make([]byte, 150<<10)
			_, _ = rand.Read(content)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				b.Fatal(err)
			}
			r, texts := run(i)
			r.Digest, r.Size, i = cas.Sum(content), int64(len(content)), i+1
			if _, err := s.add(b.Context(), r, texts, file, new(PushOptions)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
