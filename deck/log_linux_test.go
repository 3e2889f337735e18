package deck_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// What the network axis logs of an exchange that was cut names its URL, and not the key in it.
func TestLogOfARunHoldsNoKey(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("half"))
	})
	argv, env := b.self("get", "http://api.example.com/v1?key=nobody-knows-this-key")
	var log bytes.Buffer
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Proxy: true,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil || res.Counts["http_exchange"] != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if !strings.Contains(log.String(), "exchange was cut") || strings.Contains(log.String(), "nobody-knows") {
		t.Errorf("logged:\n%s", &log)
	}
}
