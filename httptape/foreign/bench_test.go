package foreign

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// words are bodies as an API of texts answers them.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, `{"id":%d,"text":"the quick \"brown\" fox jumps over the lazy dog, line %d\nand on","tags":["a","b"],"at":1.5},`, rng.IntN(1e6), b.Len())
	}
	return `{"items":[` + strings.TrimSuffix(b.String(), ",") + `]}`
}

func longHAR(size int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var entries []string
	for total := 0; total < size; {
		text, _ := json.Marshal(words(rng, 4000+rng.IntN(60000)))
		e := harGet(fmt.Sprintf("/items?page=%d", len(entries)), `{"status":200,"httpVersion":"h2","headers":[{"name":"content-type","value":"application/json"},{"name":"content-encoding","value":"br"},
			{"name":"date","value":"Sun, 22 Nov 2026 10:00:00 GMT"}],"cookies":[],"content":{"size":1,"mimeType":"application/json","text":`+string(text)+`},"redirectURL":"","headersSize":-1,"bodySize":-1}`)
		entries = append(entries, e)
		total += len(e)
	}
	return harOf(entries...)
}

func longGoVCR(t testing.TB, size int) string {
	type side map[string]any
	rng := rand.New(rand.NewPCG(1, 2))
	var items []side
	for total := 0; total < size; {
		body := words(rng, 4000+rng.IntN(60000))
		total += len(body)
		items = append(items, side{"id": len(items), "request": side{"url": fmt.Sprintf("https://example.com/items?page=%d", len(items)), "method": "GET", "body": "", "headers": side{"Accept": []string{"*/*"}}},
			"response": side{"code": 200, "body": body, "headers": side{"Content-Type": []string{"application/json"}}, "duration": "1ms"}})
	}
	b, err := yaml.Marshal(side{"version": 2, "interactions": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func benchImport(b *testing.B, name, text string, peer func() error, peerName string) {
	path := filepath.Join(b.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	im, _ := ByName(name)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	dir := b.TempDir()
	begun := cputime.Spent()
	for i := 0; b.Loop(); i++ {
		if _, err := im.Import(b.Context(), path, filepath.Join(dir, strconv.Itoa(i)), nil); err != nil {
			b.Fatal(err)
		}
	}
	ours := (cputime.Spent() - begun) / time.Duration(b.N)
	begun = cputime.Spent()
	const rounds = 3
	for range rounds {
		if err := peer(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cputime.Spent()-begun)/rounds)/float64(ours), "x_cpu_"+peerName)
	b.ReportMetric(float64(len(text))/1e6/ours.Seconds(), "MB/cpu_s")
}

// BenchmarkHAR imports a HAR file; the ratio is to encoding/json.Unmarshal of the same bytes, which makes no tape.
func BenchmarkHAR(b *testing.B) {
	text := longHAR(16 << 20)
	benchImport(b, "har", text, func() error { var v any; return json.Unmarshal([]byte(text), &v) }, "encoding/json")
}

// BenchmarkGoVCR imports a cassette; the ratio is to yaml/v3's Unmarshal of the same bytes, which makes no tape.
func BenchmarkGoVCR(b *testing.B) {
	text := longGoVCR(b, 8<<20)
	benchImport(b, "go-vcr", text, func() error { var v any; return yaml.Unmarshal([]byte(text), &v) }, "yaml/v3")
}
