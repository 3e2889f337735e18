package metric

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	var s Set
	h := s.Histograms("b_seconds", "How long.", []float64{.5, 1}, "method")
	c := s.Counters("a_total", "How often.", "code", "method")
	g := s.Gauge("c", "How many.")
	s.Histogram("d", "None.", Doubling(2, 2))
	s.Counter("e_total", "Once.").Inc()
	for _, v := range []float64{.5, .75, 7} {
		h.With("m").Observe(v)
	}
	c.With("ok", "m").Inc()
	c.With("-1", `x"y`).Add(2)
	c.With("ok", "m").Inc()
	g.Add(3)
	g.Add(-4)
	want := `# HELP a_total How often.
# TYPE a_total counter
a_total{code="-1",method="x\"y"} 2
a_total{code="ok",method="m"} 2
# HELP b_seconds How long.
# TYPE b_seconds histogram
b_seconds_bucket{method="m",le="0.5"} 1
b_seconds_bucket{method="m",le="1"} 2
b_seconds_bucket{method="m",le="+Inf"} 3
b_seconds_sum{method="m"} 8.25
b_seconds_count{method="m"} 3
# HELP c How many.
# TYPE c gauge
c -1
# HELP d None.
# TYPE d histogram
d_bucket{le="2"} 0
d_bucket{le="4"} 0
d_bucket{le="+Inf"} 0
d_sum 0
d_count 0
# HELP e_total Once.
# TYPE e_total counter
e_total 1
`
	var got bytes.Buffer
	if s.write(&got); got.String() != want {
		t.Errorf("%s", got.String())
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	var s Set
	s.Process()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, nil)
	for _, name := range []string{"go_goroutines", "go_memstats_sys_bytes", "process_start_time_seconds"} {
		if !strings.Contains(w.Body.String(), "\n"+name+" ") || strings.Contains(w.Body.String(), "\n"+name+" 0\n") {
			t.Errorf("no %s in\n%s", name, w.Body)
		}
	}
}
