package deck

import (
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A moved is the recorded work tree in a directory of its own, where a replay outside the jail runs: without mounts no
// path can show anything else than what the disk has there. The zero moved moves nothing.
type moved struct {
	from, to string // of the work tree
}

// path is where a recorded path is now.
func (m moved) path(p string) string {
	if m.to == "" || !recording.Within(p, m.from) {
		return p
	}
	return m.to + strings.TrimPrefix(p, m.from)
}

// recorded is where a path of now was recorded.
func (m moved) recorded(p string) string {
	if m.to == "" || !recording.Within(p, m.to) {
		return p
	}
	return m.from + strings.TrimPrefix(p, m.to)
}

// env is env with the working directory where it is now.
func (m moved) env(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		out[i] = kv
		if dir, ok := strings.CutPrefix(kv, "PWD="); ok {
			out[i] = "PWD=" + m.path(dir)
		}
	}
	return out
}

// notes lists the arguments and variables that still name the work tree where it was recorded.
func (m moved) notes(argv, env []string) []string {
	if m.to == "" {
		return nil
	}
	var names []string
	for i, a := range argv[1:] {
		if strings.Contains(a, m.from) {
			names = append(names, fmt.Sprintf("argument %d", i+1))
		}
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name != "OLDPWD" && strings.Contains(value, m.from) && !strings.Contains(value, m.to) {
			names = append(names, "variable "+name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s names %s: there the program met the disk as it is now, not the recorded tree", strings.Join(names, ", "), m.from)}
}
