package foreign

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// read imports a file and returns its events, each as JSON, and the report.
func read(t testing.TB, path string) ([]string, *Report, error) {
	t.Helper()
	i, err := Detect(path)
	if err != nil {
		return nil, nil, err
	}
	var got []string
	r, err := i.Import(context.Background(), path, func(e sessionlog.Event) error {
		b, err := json.Marshal(e)
		got = append(got, string(e.Kind())+" "+string(b))
		return err
	})
	return got, r, err
}

func TestTry(t *testing.T) {
	path := os.Getenv("TRY")
	if path == "" {
		t.Skip()
	}
	got, r, err := read(t, path)
	for _, l := range got {
		t.Log(l)
	}
	b, _ := json.MarshalIndent(r, "", " ")
	t.Logf("%s %v", b, err)
}
