package tty_test

import (
	"compress/gzip"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// samples are recordings of real programs, beside the repository where they are there.
const samples = "../../../shared/samples/terminal/*.json.gz"

// TestHarmlessPrograms finds nothing in what programs show that have no secrets, and loses nothing of it.
func TestHarmlessPrograms(t *testing.T) {
	names, err := filepath.Glob(samples)
	if err != nil || len(names) == 0 {
		t.Skip("no samples:", samples)
	}
	for _, name := range names {
		if filepath.Base(name) == "cases.json.gz" {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json.gz"), func(t *testing.T) {
			raw, o := sample(t, name)
			began := time.Now()
			hits, err := tty.Scan(memory(raw), int64(len(raw)), nil, o)
			t.Logf("%d bytes in %v", len(raw), time.Since(began))
			for _, h := range hits {
				t.Errorf("%s: %q", h.Rule, raw[h.Start:h.End])
			}
			if file, _ := record(o, raw, rand.New(rand.NewPCG(1, 1)), 0); err != nil || string(file) != string(raw) {
				t.Errorf("the recording is another, %v", err)
			}
		})
	}
}

func sample(t *testing.T, name string) ([]byte, *tty.Options) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Rows, Cols int
		Raw        []byte `json:"raw_base64"`
	}
	if err := json.NewDecoder(z).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.Raw, &tty.Options{Rows: s.Rows, Cols: s.Cols}
}
