package bench

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// goBench is a source that runs benchmarks of one of our packages.
type goBench struct {
	pkg   string
	bench string // regexp, as go test -bench takes it
	long  string // -benchtime
	short string // the same of a short run
	read  func(benches) (reading, error)
}

// rounds is how often every benchmark runs; figures are medians.
const rounds = 3

func (g goBench) args(short bool) []string {
	args := []string{"test", g.pkg, "-run", "^$", "-bench", g.bench}
	if short {
		return append(args, "-benchtime", g.short, "-short")
	}
	return append(args, "-benchtime", g.long, "-count", strconv.Itoa(rounds))
}

func (g goBench) how(short bool) string {
	return "`TAPEDECK_LONG=1 go " + strings.Join(quoted(g.args(short)), " ") + "`"
}

func (g goBench) measure(ctx context.Context, e *env) (reading, error) {
	text, err := e.goTest(ctx, g.args(e.short), "TAPEDECK_LONG=1") // some do not run without it
	if err != nil {
		return reading{}, err
	}
	return g.read(parseBenches(text))
}

// goTest runs go test, once for all rows that want the same.
func (e *env) goTest(ctx context.Context, args []string, more ...string) (string, error) {
	key := strings.Join(append(args, more...), " ")
	out, ok := e.outputs[key]
	if !ok {
		cmd := e.command(ctx, e.root, "go", args...)
		cmd.Env = append(os.Environ(), more...)
		b, err := cmd.CombinedOutput()
		if err != nil {
			said := new(tail)
			said.Write(b)
			err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said)
		}
		out = output{string(b), err}
		e.outputs[key] = out
	}
	return out.text, out.err
}

// benches are the metrics of benchmarks, by name and unit, in the order of the rounds.
type benches map[string]map[string][]float64

// benchLine is a result as go test prints it: the name, behind it "-" and the number of processors where that is not 1,
// the number of iterations, then metrics. The format: https://go.dev/design/14313-benchmark-format.
var benchLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

func parseBenches(text string) benches {
	out := make(benches)
	for line := range strings.Lines(text) {
		m := benchLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		fields := strings.Fields(m[2])
		for ; len(fields) >= 2; fields = fields[2:] {
			v, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				break
			}
			if out[m[1]] == nil {
				out[m[1]] = make(map[string][]float64)
			}
			out[m[1]][fields[1]] = append(out[m[1]][fields[1]], v)
		}
	}
	return out
}

// median returns the middle round of a metric. The error says what there is in its place.
func (bs benches) median(name, unit string) (float64, error) {
	if vs := bs[name][unit]; len(vs) > 0 {
		return median(vs), nil
	}
	var there []string
	for name, metrics := range bs {
		for unit := range metrics {
			there = append(there, name+" "+unit)
		}
	}
	sort.Strings(there)
	return 0, fmt.Errorf("go test gave no %s of %s, but %s", unit, name, strings.Join(there, ", "))
}

// median is the middle of some values.
func median(vs []float64) float64 {
	sorted := slices.Sorted(slices.Values(vs))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// metric reads a figure that a benchmark reports itself, and others beside it.
func metric(name, unit string, beside ...string) func(benches) (reading, error) {
	return func(bs benches) (reading, error) {
		v, err := bs.median(name, unit)
		if err != nil {
			return reading{}, err
		}
		var more []string
		for _, u := range beside {
			w, err := bs.median(name, u)
			if err != nil {
				return reading{}, err
			}
			more = append(more, figure(w)+" "+u)
		}
		return reading{value: v, beside: strings.Join(more, ", ")}, nil
	}
}

// ratio reads how long one benchmark takes by how long another does, in ns/op.
func ratio(name, peer string) func(benches) (reading, error) {
	return func(bs benches) (reading, error) {
		ours, err := bs.median(name, "ns/op")
		if err != nil {
			return reading{}, err
		}
		theirs, err := bs.median(peer, "ns/op")
		if err != nil {
			return reading{}, err
		}
		return reading{value: ours / theirs, beside: fmt.Sprintf("%s against %s", duration(ours), duration(theirs))}, nil
	}
}

// duration writes nanoseconds in the unit that suits them.
func duration(ns float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= u.size {
			return figure(ns/u.size) + " " + u.name
		}
	}
	return figure(ns) + " ns"
}
