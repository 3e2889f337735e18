// Gen writes the documents of recordings as files, for who works on the page.
//
//	go run ./internal/page/gen -documents DIR REC…
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/page"
)

func main() {
	dir := flag.String("documents", "", "`directory` that gets the documents of the recordings that are named")
	flag.Parse()
	if err := documents(*dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// documents writes all documents of recordings below dir.
func documents(dir string, names []string) error {
	var recs []*recording.Recording
	for _, name := range names {
		rec, err := recording.Open(name)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	ctx := context.Background()
	shelf, err := page.NewShelf(ctx, recs, nil)
	if err != nil {
		return err
	}
	d, err := shelf.Documents(ctx)
	if err != nil {
		return err
	}
	for _, path := range slices.Concat([]string{"library.json"}, d.First, d.Turns, d.Records, d.Rest, d.Payloads) {
		b, err := shelf.Document(ctx, path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", path, err)
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
