package deck_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestSideTraffic: what reports what happened in the run may hold other things, and come more or fewer times; the verdict names it, and
// is not strict. Any other request that holds something else gates, whatever its answer says.
func TestSideTraffic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"accepted":1}`) })
	const events, tickets = "https://api.example.com/v1/events", "https://api.example.com/v1/tickets"
	recorded := []string{events, `{"events":[{"at":NOW,"is":"begun"}]}`, tickets, `{"title":"broken","labels":["a"]}`, events, `{"events":[{"at":NOW,"is":"a"},{"at":NOW,"is":"b"}]}`}
	res, out := b.record("report", recorded...)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	change := func(was, now string) []string {
		return strings.Split(strings.Replace(strings.Join(recorded, "\n"), was, now, 1), "\n")
	}
	for name, tt := range map[string]struct {
		args  []string
		rules string // of tapedeck.yaml, written after the recording
		red   bool
		side  string // the verdict's line
	}{
		"other events":         {args: change("begun", "on"), side: "POST /v1/events, 2 recorded, 2 on replay"},
		"one more":             {args: append(recorded, events, `{"events":[{"at":NOW}]}`), side: "POST /v1/events, 2 recorded, 3 on replay"},
		"none":                 {args: recorded[2:4], side: "POST /v1/events, 2 recorded, 0 on replay"},
		"another form":         {args: change(`{"events":[{"at":NOW,"is":"begun"}]}`, `{"measures":[1]}`), red: true},
		"another ticket":       {args: change("broken", "fixed"), red: true},
		"two tickets":          {args: append(recorded, recorded[2:4]...), red: true},
		"no ticket":            {args: recorded[:2], red: true},
		"a path that gates":    {args: change("begun", "on"), rules: "side: {gate: [POST api.example.com/v1/*]}", red: true},
		"a path that does not": {args: change("broken", "fixed"), rules: "side: {ignore: [api.example.com/v1/t*]}", side: "POST /v1/tickets, 1 recorded, 1 on replay, 1 with another content"},
	} {
		config := filepath.Join(b.dir, recording.ConfigName)
		if err := os.WriteFile(config, []byte(tt.rules), 0o644); err != nil {
			t.Fatal(err)
		}
		argv, _ := b.self("report", tt.args...)
		v, out := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		if v.Faithful() == tt.red {
			t.Errorf("%s: faithful %t, want %t: %+v\n%s", name, v.Faithful(), !tt.red, v.Divergences, out)
		}
		side := ""
		for i := range v.Side {
			side += v.Side[i].String()
		}
		if !tt.red && (v.Strictly() || !strings.Contains(side, tt.side)) {
			t.Errorf("%s: side %q, want %q; strictly %t", name, side, tt.side, v.Strictly())
		}
	}
}

// TestSideTrafficLimit is the line of docs/reference/limits.md: a list of what was measured just now, whose answer acknowledges, is not told from a
// report of what happened, unless tapedeck.yaml says that it gates.
func TestSideTrafficLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("rows.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ok":true}`) })
	res, _ := b.record("report", "https://rows.example.com/rows", `[{"at":NOW,"degrees":20}]`)
	srv.Close()
	argv, _ := b.self("report", "https://rows.example.com/rows", `[{"at":NOW,"degrees":90}]`)
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
	if !v.Faithful() || len(v.Side) != 1 || v.Strictly() {
		t.Errorf("faithful %t, side %+v: docs/reference/limits.md says that this is side traffic", v.Faithful(), v.Side)
	}
}

func init() { programs["report"] = playReport }

// playReport posts to each URL of its arguments what the next one holds, the time in the place of NOW, and does not look at the
// answers.
func playReport(args []string) int {
	for ; len(args) > 1; args = args[2:] {
		body := strings.ReplaceAll(args[1], "NOW", strconv.FormatInt(time.Now().UnixMilli(), 10))
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
