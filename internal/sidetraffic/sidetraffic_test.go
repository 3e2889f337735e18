package sidetraffic_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
)

var run = func() *sidetraffic.Span {
	var s sidetraffic.Span
	s.Add(at.UnixMilli())
	s.Add(at.Add(5 * time.Minute).UnixMilli())
	return &s
}()

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// TestReports tells what reports what happened in a run from what else is sent to somebody who says little to it.
func TestReports(t *testing.T) {
	ms, ns := at.UnixMilli(), at.UnixNano()
	rfc := at.Format(time.RFC3339Nano)
	span := make([]byte, 11)
	span[0], span[1], span[2] = 10, 9, 57 // field 1: a message with field 7, fixed64
	binary.LittleEndian.PutUint64(span[3:], uint64(ns))
	ok := sidetraffic.Exchange{Status: 200}
	for _, tt := range []struct {
		name, asked string
		of          sidetraffic.Exchange
		want        bool
	}{
		{"events", fmt.Sprintf(`{"session":"x","events":[{"name":"a","data":{"client_timestamp":%q}},{"name":"b","data":{"client_timestamp":%q}}]}`, rfc, rfc),
			sidetraffic.Exchange{Status: 200, Answer: []byte(`{"accepted_count":2,"rejected_count":0}`)}, true},
		{"a list", fmt.Sprintf(`[{"request_time_ms":%d,"log_event":[[{"event_time_ms":%d}]]}]`, ms, ms), ok, true},
		{"numbers as text", fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"%d"}]}]}]}`, ns), ok, true},
		{"seconds with a fraction, a line each", fmt.Sprintf("{\"t\":%d.25}\n{\"t\":%d}\n", ms/1000, ms/1000), ok, true},
		{"most with a time", fmt.Sprintf(`{"data":[{"object":"trace"},{"object":"trace.span","started_at":%q}]}`, rfc), ok, true},
		{"protobuf", string(span), ok, true},
		{"refused by the collector", fmt.Sprintf(`[{"at":%d}]`, ms), sidetraffic.Exchange{Status: 401, Answer: []byte(`{"request_id":"req_0123456789"}`)}, true},
		{"an answer that tells something", fmt.Sprintf(`[{"at":%d}]`, ms), sidetraffic.Exchange{Status: 200, Answer: []byte(`{"id":"b-17"}`)}, false},
		{"a long answer", fmt.Sprintf(`[{"at":%d}]`, ms), sidetraffic.Exchange{Status: 200, Answer: []byte(strings.Repeat("word ", 200))}, false},
		{"no answer", fmt.Sprintf(`[{"at":%d}]`, ms), sidetraffic.Exchange{}, false},
		{"times of another day", fmt.Sprintf(`[{"at":%d}]`, ms-48*3600*1000), ok, false},
		{"few with a time", fmt.Sprintf(`[{"at":%d},{"a":1},{"b":1}]`, ms), ok, false},
		{"one thing", fmt.Sprintf(`{"title":"broken","at":%d}`, ms), ok, false},
		{"a list of words", `{"title":"broken","labels":["a","b"]}`, ok, false},
		{"a list without times", `{"items":[{"sku":1,"count":2}]}`, ok, false},
		{"a mail", `{"to":[{"name":"a"}],"subject":"b"}`, ok, false},
		{"a form", "a=1&b=2", ok, false},
		{"nothing", "", ok, false},
	} {
		tt.of.Asked = []byte(tt.asked)
		if got := sidetraffic.Reports([]sidetraffic.Exchange{tt.of}, run); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
	report := sidetraffic.Exchange{Status: 200, Asked: []byte(fmt.Sprintf(`[{"at":%d}]`, ms))}
	other := sidetraffic.Exchange{Status: 200, Asked: []byte(`{"title":"broken"}`)}
	failed := report
	failed.Status = 500
	for _, all := range [][]sidetraffic.Exchange{{report, other}, {report, failed}} {
		if sidetraffic.Reports(all, run) {
			t.Errorf("a route on which not all requests report the same way: %+v", all)
		}
	}
}

func TestRules(t *testing.T) {
	rules := &sidetraffic.Rules{Gate: []string{"POST api.example.com/v1/rows"}, Ignore: []string{"flags.example.com/*", "api.example.com/v1/*"}}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]sidetraffic.Said{
		"https://api.example.com/v1/rows?a=1":   sidetraffic.Gates,
		"https://api.example.com/v1/other":      sidetraffic.Ignored,
		"https://flags.example.com":             sidetraffic.Ignored,
		"https://xflags.example.com/a":          sidetraffic.Nothing,
		"https://api.example.com/v2/rows":       sidetraffic.Nothing,
		"https://apixexample.com/v1/rows":       sidetraffic.Nothing,
		"https://api.example.com:8443/v1/other": sidetraffic.Nothing,
	} {
		if got := rules.Of(sidetraffic.RouteOf("POST", url)); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
	if got := rules.Of(sidetraffic.RouteOf("GET", "https://api.example.com/v1/rows")); got != sidetraffic.Ignored {
		t.Errorf("GET: %v", got)
	}
	for _, bad := range []string{"api.example.com", "POST", "POST a/b c", " a/b"} {
		if (&sidetraffic.Rules{Gate: []string{bad}}).Check() == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
