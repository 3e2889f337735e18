package bench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// goTest is a source that runs a test of one of our packages, which fails where a limit is not held, and reads figures
// from what it logs.
type goTest struct {
	pkg  string
	test string
	line *regexp.Regexp // whose submatches are figures
	read func(found [][]float64) reading
}

func (g goTest) args() []string {
	return []string{"test", g.pkg, "-run", "^" + g.test + "$", "-v", "-count", "1", "-timeout", "30m"}
}

func longVar(short bool) string {
	if short {
		return "TAPEDECK_LONG="
	}
	return "TAPEDECK_LONG=1"
}

func (g goTest) how(short bool) string {
	return "`" + longVar(short) + " go " + strings.Join(quoted(g.args()), " ") + "`"
}

func (g goTest) measure(ctx context.Context, e *env) (reading, error) {
	text, err := e.goTest(ctx, g.args(), longVar(e.short))
	if err != nil {
		return reading{}, err
	}
	var found [][]float64
	for _, m := range g.line.FindAllStringSubmatch(text, -1) {
		var figures []float64
		for _, s := range m[1:] {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return reading{}, fmt.Errorf("%q: %w", m[0], err)
			}
			figures = append(figures, v)
		}
		found = append(found, figures)
	}
	if len(found) == 0 {
		return reading{}, fmt.Errorf("%s does not say what was held: want %s in its log", g.test, g.line)
	}
	return g.read(found), nil
}
