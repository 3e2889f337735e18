package otlp

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// TestRunsForgotten: what is told of a run after its end, as may be, leaves nothing that stays.
func TestRunsForgotten(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	to, err := To(server.URL, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	runs := NewRuns(to, "host", nil)
	defer runs.Close(0)
	id := runtrace.ID{Agent: "a", Run: "1"}
	runs.Started(&runtrace.Started{AgentID: id.Agent, RunID: id.Run})
	runs.Turns(id, 0, make([]runtrace.Turn, 1))
	if len(runs.open) != 1 || runs.open[id].turns != 1 {
		t.Errorf("%d runs are open", len(runs.open))
	}
	runs.Ended(id, &runtrace.Ended{})
	runs.Turns(id, 1, make([]runtrace.Turn, 1))
	runs.Verdict(id, nil)
	if len(runs.open) != 0 {
		t.Errorf("%d runs are open", len(runs.open))
	}
}
