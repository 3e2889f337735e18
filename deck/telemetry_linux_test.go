package deck_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// TestTelemetryDoesNotGate: a program that reports other measures, and more or fewer times, is as faithful as it is without. A
// request that is no such report still counts.
func TestTelemetryDoesNotGate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") })
	const url = "https://api.example.com/otlp/v1/metrics"
	res, out := b.record("report", url, `{"resourceMetrics":[1]}`, `{"resourceMetrics":[2]}`)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	for bodies, green := range map[string]bool{
		`{"resourceMetrics":[3]} {"resourceMetrics":[4]} {"resourceMetrics":[5]}`: true,
		`{"resourceMetrics":[6]}`: true,
		`{"measures":[1]}`:        false,
	} {
		argv, _ := b.self("report", append([]string{url}, strings.Fields(bodies)...)...)
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		if v.Faithful() != green {
			t.Errorf("%s: faithful %t, want %t", bodies, v.Faithful(), green)
		}
		if green && v.Masked["telemetry"] == 0 {
			t.Errorf("%s: telemetry is not counted in %v", bodies, v.Masked)
		}
	}
}

func init() { programs["report"] = playReport }

// playReport posts each of its further arguments to the first, and does not look at the answers.
func playReport(args []string) int {
	for _, body := range args[1:] {
		res, err := http.Post(args[0], "application/json", strings.NewReader(body))
		if err != nil {
			return fail(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		if res.Body.Close(); err != nil {
			return fail(err)
		}
	}
	return 0
}
