package daemon

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what /metrics shows. Their labels are closed sets: methods of the table, codes of the protocol, reasons that
// the store names. Nothing that a client chose becomes one.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // method, code ("ok" or the error's)
	duration    *prometheus.HistogramVec // method
	connections prometheus.Gauge
	refused     *prometheus.CounterVec // reason
	openRuns    prometheus.GaugeFunc
	turns       prometheus.Counter
	dropped     *prometheus.CounterVec // reason
	verdicts    *prometheus.CounterVec // decision
	callbacks   *prometheus.CounterVec // outcome
	events      prometheus.Counter
	lost        prometheus.Counter
}

func newMetrics(openRuns func() int) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("requests_total", "Requests answered, by method and by ok or the code of their error.", "method", "code"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: "request_seconds", Help: "From a request's arrival to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		}, []string{"method"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: "connections", Help: "Connections that are open."}),
		refused: counters("refused_total", "Connections and sign-ins that were refused, by reason.", "reason"),
		openRuns: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "tapedeck", Subsystem: "daemon", Name: "runs_open", Help: "Runs that a connection holds open."},
			func() float64 { return float64(openRuns()) }),
		turns:     counter("turns_total", "Turns that were acknowledged."),
		dropped:   counters("turns_dropped_total", "Batches of turns that were not kept, by reason.", "reason"),
		verdicts:  counters("policy_verdicts_total", "Decisions of policies about an action.", "decision"),
		callbacks: counters("tool_callbacks_total", "Calls of clients' tools, by what came of them.", "outcome"),
		events:    counter("trace_events_total", "Events handed to subscribers."),
		lost:      counter("trace_events_lost_total", "Events that slow subscribers did not get."),
	}
	m.registry.MustRegister(m.requests, m.duration, m.connections, m.refused, m.openRuns, m.turns, m.dropped, m.verdicts,
		m.callbacks, m.events, m.lost, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
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

// served counts one request. known is whether the method is one of the table.
func (m *metrics) served(method, code string, took time.Duration) {
	m.requests.WithLabelValues(method, code).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}
