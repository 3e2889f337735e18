//go:build agents

package agents

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// TestRounds records and replays each agent $TAPEDECK_AGENTS_ROUNDS times, fresh HOME and all, and reports how long these
// took; each recording is replayed $TAPEDECK_AGENTS_REPLAYS times, once by default.
func TestRounds(t *testing.T) {
	rounds, replays := count("TAPEDECK_AGENTS_ROUNDS", 0), count("TAPEDECK_AGENTS_REPLAYS", 1)
	if rounds == 0 {
		t.Skip("TAPEDECK_AGENTS_ROUNDS says how often")
	}
	run.Tool(t, "node")
	all := slices.Concat(Recipes, Further)
	for i := range all {
		r := &all[i]
		t.Run(r.Name, func(t *testing.T) {
			program := r.program(t, os.Getenv("TAPEDECK_AGENTS"))
			took := make(map[string]*times)
			for n := range rounds {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					run.Each(t, func(t *testing.T, b *run.Box) {
						as := filepath.Base(t.Name())
						if took[as] == nil {
							took[as] = new(times)
						}
						r.round(t, b, program, replays, took[as])
					})
				})
			}
			for as, x := range took {
				t.Logf("%s as %s: record %s, replay %s", r.Name, as, spread(x.record), spread(x.replay))
			}
		})
	}
}

// times are how long recordings and replays took.
type times struct{ record, replay []time.Duration }

// round is one recording and its replays. A red one is an error, and the next one is tried all the same.
func (r *Recipe) round(t *testing.T, b *run.Box, program []string, replays int, took *times) {
	r.prepare(b)
	server := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Key: r.Value, Gzip: true}))
	began := time.Now()
	res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, prompt)...)
	took.record = append(took.record, time.Since(began))
	server.Close()
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	for range replays {
		began := time.Now()
		report, res := b.Replay()
		took.replay = append(took.replay, time.Since(began))
		if res.Status != 0 || report == nil {
			t.Errorf("replay: %v", res)
		}
	}
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "never"
	}
	slices.Sort(d)
	const unit = 10 * time.Millisecond
	return d[0].Round(unit).String() + " to " + d[len(d)-1].Round(unit).String() + ", median " + d[len(d)/2].Round(unit).String()
}

func count(name string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return otherwise
	}
	return n
}
