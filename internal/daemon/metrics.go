package daemon

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// metrics are what /metrics shows. Their labels are closed sets: methods of the table, codes of the protocol, reasons that
// the store names. Nothing that a client chose becomes one.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // method, code ("ok" or the error's)
	duration    *prometheus.HistogramVec // method
	well        map[string]served        // by method, those that are "ok"
	connections prometheus.Gauge
	refused     *prometheus.CounterVec // reason
	frames      *prometheus.CounterVec // reason
	turns       prometheus.Counter
	dropped     *prometheus.CounterVec // reason
	verdicts    *prometheus.CounterVec // decision
	callbacks   *prometheus.CounterVec // outcome
	batch       prometheus.Histogram
	sync        prometheus.Histogram
	events      prometheus.Counter
	lost        prometheus.Counter
}

func newMetrics(d *Daemon) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("requests_total", "Requests answered, by method and by ok or the code of their error.", "method", "code"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: "request_seconds", Help: "From a request's arrival to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}, []string{"method"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: "connections", Help: "Connections that are open."}),
		refused:   counters("refused_total", "Connections and sign-ins that were refused, by reason.", "reason"),
		frames:    counters("frames_refused_total", "Frames that were answered without a method or dropped, by reason.", "reason"),
		turns:     counter("turns_total", "Turns that were acknowledged."),
		dropped:   counters("turns_dropped_total", "Batches of turns that were not kept, by reason.", "reason"),
		verdicts:  counters("policy_verdicts_total", "Decisions of policies about an action.", "decision"),
		callbacks: counters("tool_callbacks_total", "Calls of clients' tools, by what came of them.", "outcome"),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tapedeck", Subsystem: "store", Name: "log_batch_records", Help: "Records that shared one fsync.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13)}),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tapedeck", Subsystem: "store", Name: "log_sync_seconds", Help: "One fsync of the segment log.",
			Buckets: prometheus.ExponentialBuckets(.0001, 2, 15)}),
		events: counter("trace_events_total", "Events handed to subscribers."),
		lost:   counter("trace_events_lost_total", "Events that slow subscribers did not get."),
	}
	m.registry.MustRegister(m.requests, m.duration, m.connections, m.refused, m.frames, m.turns, m.dropped, m.verdicts,
		m.callbacks, m.batch, m.sync, m.events, m.lost, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.ofStore(d)
	m.wells()
	return m
}

// ofStore shows what the store counts itself.
func (m *metrics) ofStore(d *Daemon) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: name, Help: help}, f))
	}
	total := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "tapedeck", Subsystem: "store", Name: name, Help: help}, f))
	}
	gauge("runs_open", "Runs that a connection holds open, or that are in their grace.", func() float64 { return float64(d.runs.len()) })
	gauge("ready", "1 while it takes turns, else 0.", func() float64 {
		if d.ready() != nil {
			return 0
		}
		return 1
	})
	total("turns_total", "Turns that were acknowledged.", func() float64 { return float64(d.stats().Turns) })
	total("runs_started_total", "Runs that were started.", func() float64 { return float64(d.stats().Started) })
	total("runs_ended_total", "Runs that ended.", func() float64 { return float64(d.stats().Ended) })
	total("repairs_total", "Run files that were written again from the log.", func() float64 { return float64(d.stats().Repairs) })
	total("log_blocks_total", "Blocks of the segment log, each of one fsync.", func() float64 { return float64(d.stats().Log.Blocks) })
	total("log_records_total", "Records of the segment log.", func() float64 { return float64(d.stats().Log.Records) })
	total("log_bytes_total", "Bytes of the segment log.", func() float64 { return float64(d.stats().Log.Bytes) })
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "tapedeck", Subsystem: "daemon", Name: name, Help: help}, labels)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tapedeck", Subsystem: "daemon", Name: name, Help: help})
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// served are the two series of one method's requests that were answered without an error, looked up once.
type served struct {
	count    prometheus.Counter
	duration prometheus.Observer
}

// wells looks them up for every method of the table, and for other.
func (m *metrics) wells() {
	m.well = make(map[string]served, len(methods)+1)
	for name := range methods {
		m.well[name] = served{m.requests.WithLabelValues(name, "ok"), m.duration.WithLabelValues(name)}
	}
	m.well[otherMethod] = served{m.requests.WithLabelValues(otherMethod, "ok"), m.duration.WithLabelValues(otherMethod)}
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
	m.requests.WithLabelValues(method, strconv.Itoa(code)).Inc()
}

// committed counts one block of the store's log.
func (m *metrics) committed(b seglog.Batch) {
	m.batch.Observe(float64(b.Records))
	m.sync.Observe(b.Sync.Seconds())
}
