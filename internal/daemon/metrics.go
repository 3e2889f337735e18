package daemon

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/metric"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// metrics are what /metrics shows. Their labels are closed sets: methods of the table, codes of the protocol, reasons that
// the store names. Nothing that a client chose becomes one.
type metrics struct {
	set         metric.Set
	requests    *metric.Counters   // code ("ok" or the error's), method
	duration    *metric.Histograms // method
	well        map[string]served  // by method, those that are "ok"
	connections *metric.Gauge
	refused     *metric.Counters // reason
	frames      *metric.Counters // reason
	turns       *metric.Counter
	dropped     *metric.Counters // reason
	verdicts    *metric.Counters // decision
	decisions   *metric.Counters // decision
	callbacks   *metric.Counters // outcome
	batch       *metric.Histogram
	sync        *metric.Histogram
	events      *metric.Counter
	lost        *metric.Counter
}

func newMetrics(d *Daemon) *metrics {
	m := new(metrics)
	const daemon, store = "tapedeck_daemon_", "tapedeck_store_"
	m.requests = m.set.Counters(daemon+"requests_total", "Requests answered, by method and by ok or the code of their error.", "code", "method")
	m.duration = m.set.Histograms(daemon+"request_seconds", "From a request's arrival to its answer.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}, "method")
	m.connections = m.set.Gauge(daemon+"connections", "Connections that are open.")
	m.refused = m.set.Counters(daemon+"refused_total", "Connections and sign-ins that were refused, by reason.", "reason")
	m.frames = m.set.Counters(daemon+"frames_refused_total", "Frames that were answered without a method or dropped, by reason.", "reason")
	m.turns = m.set.Counter(daemon+"turns_total", "Turns that were acknowledged.")
	m.dropped = m.set.Counters(daemon+"turns_dropped_total", "Batches of turns that were not kept, by reason.", "reason")
	m.verdicts = m.set.Counters(daemon+"policy_verdicts_total", "Decisions of policies about an action.", "decision")
	m.decisions = m.set.Counters(daemon+"supervision_decisions_total", "Decisions of people.", "decision")
	m.callbacks = m.set.Counters(daemon+"tool_callbacks_total", "Calls of clients' tools, by what came of them.", "outcome")
	m.batch = m.set.Histogram(store+"log_batch_records", "Records that shared one fsync.", metric.Doubling(1, 13))
	m.sync = m.set.Histogram(store+"log_sync_seconds", "One fsync of the segment log.", metric.Doubling(.0001, 15))
	m.events = m.set.Counter(daemon+"trace_events_total", "Events handed to subscribers.")
	m.lost = m.set.Counter(daemon+"trace_events_lost_total", "Events that slow subscribers did not get.")
	m.set.GaugeFunc(daemon+"runs_open", "Runs that a connection holds open, or that are in their grace.", func() float64 { return float64(d.runs.len()) })
	m.set.GaugeFunc(daemon+"ready", "1 while it takes turns, else 0.", func() float64 {
		if d.ready() != nil {
			return 0
		}
		return 1
	})
	for name, c := range map[string]struct {
		help string
		of   func() float64
	}{
		"turns_total":        {"Turns that were acknowledged.", func() float64 { return float64(d.stats().Turns) }},
		"runs_started_total": {"Runs that were started.", func() float64 { return float64(d.stats().Started) }},
		"runs_ended_total":   {"Runs that ended.", func() float64 { return float64(d.stats().Ended) }},
		"repairs_total":      {"Run files that were written again from the log.", func() float64 { return float64(d.stats().Repairs) }},
		"log_blocks_total":   {"Blocks of the segment log, each of one fsync.", func() float64 { return float64(d.stats().Log.Blocks) }},
		"log_records_total":  {"Records of the segment log.", func() float64 { return float64(d.stats().Log.Records) }},
		"log_bytes_total":    {"Bytes of the segment log.", func() float64 { return float64(d.stats().Log.Bytes) }},
	} {
		m.set.CounterFunc(store+name, c.help, c.of)
	}
	if spans := d.o.Spans; spans != nil {
		m.set.CounterFunc(daemon+"otlp_spans_total", "Spans that the receiver of --otlp has taken.", func() float64 { sent, _ := spans.Counts(); return float64(sent) })
		m.set.CounterFunc(daemon+"otlp_spans_dropped_total", "Spans that it did not get.", func() float64 { _, dropped := spans.Counts(); return float64(dropped) })
	}
	m.set.Process()
	m.wells()
	return m
}

// served are the two series of one method's requests that were answered without an error, looked up once.
type served struct {
	count    *metric.Counter
	duration *metric.Histogram
}

// wells looks them up for every method of the table, and for other.
func (m *metrics) wells() {
	m.well = make(map[string]served, len(methods)+1)
	for name := range methods {
		m.well[name] = served{m.requests.With("ok", name), m.duration.With(name)}
	}
	m.well[otherMethod] = served{m.requests.With("ok", otherMethod), m.duration.With(otherMethod)}
}

// otherMethod stands for all that are not in the table.
const otherMethod = "other"

// handled counts one request; code is 0 or that of its error.
func (m *metrics) handled(method string, took time.Duration, code int) {
	well, known := m.well[method]
	if !known {
		method, well = otherMethod, m.well[otherMethod]
	}
	well.duration.Observe(took.Seconds())
	if code == 0 {
		well.count.Inc()
		return
	}
	m.requests.With(strconv.Itoa(code), method).Inc()
}

// committed counts one block of the store's log.
func (m *metrics) committed(b seglog.Batch) {
	m.batch.Observe(float64(b.Records))
	m.sync.Observe(b.Sync.Seconds())
}

// Spans is told of runs once the store has what it is told. It must not wait for anybody: whoever asked waits for it.
type Spans interface {
	Started(s *runtrace.Started)
	Turns(id runtrace.ID, base int, turns []runtrace.Turn)
	Verdict(id runtrace.ID, verdict json.RawMessage)
	Ended(id runtrace.ID, e *runtrace.Ended)
	// Counts are how many spans a receiver has taken, and how many were dropped.
	Counts() (sent, dropped int)
}

// A telling is a store that tells what it keeps.
type telling struct {
	store.Store
	spans Spans
}

func (t *telling) Start(ctx context.Context, s *runtrace.Started) (existing bool, err error) {
	existing, err = t.Store.Start(ctx, s)
	if err == nil && !existing {
		t.spans.Started(s)
	}
	return existing, err
}

func (t *telling) Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (base int, err error) {
	base, err = t.Store.Append(ctx, id, turns)
	if err == nil {
		t.spans.Turns(id, base, turns)
	}
	return base, err
}

func (t *telling) Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error {
	err := t.Store.Verdict(ctx, id, verdict)
	if err == nil {
		t.spans.Verdict(id, verdict)
	}
	return err
}

func (t *telling) End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error {
	err := t.Store.End(ctx, id, e)
	if err == nil {
		t.spans.Ended(id, e)
	}
	return err
}
