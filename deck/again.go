package deck

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxStdin bounds, in bytes, the recorded stdin that Again gives a program.
const maxStdin = 256 << 20

// Again fills the fields of o that say what runs and what it reaches with what rec was recorded with; those that are set stay. Secrets
// are on no disk: the error names an argument or an upstream that held one, which the caller must give then.
func Again(rec *recording.Recording, o *RecordOptions) error {
	m := rec.Manifest
	if len(o.Argv) == 0 {
		if len(m.ArgSecrets) > 0 {
			return fmt.Errorf("%s held a secret, which the recording does not have: give the command line behind --", m.ArgSecrets[0].Name)
		}
		if m.Redacted != nil && slices.ContainsFunc(m.Argv, func(a string) bool { return string(scrub.Renumber([]byte(a))) != a }) {
			return errors.New("its command line was redacted: give the command line behind --")
		}
		for i, a := range m.Argv {
			o.Argv = append(o.Argv, m.Bytes(fmt.Sprintf("argv.%d", i), a))
		}
	}
	o.Dir, o.Tree, o.Writable, o.Proxy = m.Cwd, m.Roots.Tree, m.Writable, m.Proxy
	o.RealTime = !m.Axes[axisClock].On
	config, err := recording.ReadConfig(m.Roots.Tree)
	if err != nil {
		return err
	}
	if m.Again == nil && len(m.Ports) > 0 && len(o.Upstreams)+len(config.Upstreams) == 0 {
		return errors.New("it was recorded with upstreams, and by a version that did not keep them: give them with --upstream")
	}
	if a := m.Again; a != nil {
		o.Passthrough, o.Isolated = a.Passthrough, a.Isolated
		upstreams := make(map[string]string)
		maps.Copy(upstreams, a.Upstreams)
		for name, url := range config.Upstreams {
			if upstreams[name] == "" || slices.Contains(a.Configured, name) {
				upstreams[name] = url
			}
		}
		maps.Copy(upstreams, o.Upstreams)
		for name, url := range upstreams {
			if url == "" {
				return fmt.Errorf("the upstream of %s held a secret, which the recording does not have: give it with --upstream %[1]s=URL", name)
			}
		}
		o.Upstreams = upstreams
	}
	if m.TTY != nil {
		o.Terminal = terminal.Auto
		return nil
	}
	store, err := rec.Store()
	if err != nil {
		return err
	}
	in, err := rec.OpenStdin(store)
	if err != nil {
		return err
	}
	var stdin []byte
	if in != nil {
		defer in.Close()
		stdin, err = io.ReadAll(io.LimitReader(in, maxStdin+1))
	}
	if len(stdin) > maxStdin {
		return fmt.Errorf("the recorded stdin has more than %d bytes", maxStdin)
	}
	if err == nil && m.Stdin != nil {
		o.Stdin = bytes.NewReader(stdin)
	}
	return err
}

// configured are the upstreams of o that tapedeck.yaml names as well.
func configured(o *RecordOptions, config map[string]string) (names []string) {
	for name, url := range config {
		if o.Upstreams[name] == url {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// againOf is what a manifest keeps of o for Again. An upstream that holds a secret is kept by its name.
func againOf(o *RecordOptions, scrubbed func(string) string) *recording.Again {
	a := &recording.Again{Upstreams: make(map[string]string), Passthrough: slices.Clone(o.Passthrough), Isolated: o.Isolated}
	for name, url := range o.Upstreams {
		if visible.WithoutUser(url) != url || scrubbed(url) != url || strings.Contains(url, "?") {
			url = ""
		}
		a.Upstreams[name] = url
	}
	return a
}

// Worse says why fresh, which was recorded like old and with so many signals from outside, is hardly meant to take its place: how it ended,
// or requests that got an error for an answer where the old one got none. "" for nothing.
func Worse(old, fresh *recording.Recording, signals int) (string, error) {
	switch was, is := old.Manifest.Exit, fresh.Manifest.Exit; {
	case signals > 0:
		return "it was interrupted", nil
	case was != nil && is != nil && *was != *is:
		return fmt.Sprintf("it ended with %s, and the recorded one with %s", is, was), nil
	}
	before, asked, err := failures(old)
	if err != nil {
		return "", err
	}
	now, asks, err := failures(fresh)
	if err != nil {
		return "", err
	}
	if asked > 0 && asks == 0 {
		return fmt.Sprintf("it called no model, and the recorded one did so %d times", asked), nil
	}
	for _, f := range slices.SortedFunc(maps.Keys(now), func(a, b failure) int { return strings.Compare(a.from+a.what, b.from+b.what) }) {
		if now[f] > before[f] {
			return fmt.Sprintf("%s answered with %s, %d times instead of %d", f.from, f.what, now[f], before[f]), nil
		}
	}
	return "", nil
}

// A failure is an answer that is an error: the host that gave it, and its status, or why there was none.
type failure struct{ from, what string }

// failures counts the answers of a recording that are errors, and the calls of models.
func failures(rec *recording.Recording) (all map[failure]int, calls int, err error) {
	all = make(map[failure]int)
	for r, err := range rec.Records() {
		if err != nil {
			return nil, 0, err
		}
		if _, ok := r.Kind.(*tape.LLMCall); ok {
			calls++
		}
		x := tape.ExchangeOf(r.Kind)
		if x == nil || x.Error == tape.Cancelled || x.Status != 0 && x.Status < http.StatusBadRequest {
			continue
		}
		f := failure{strings.Clone(x.URL), cmp.Or(x.Error, "an error")}
		if u, err := url.Parse(x.URL); err == nil {
			f.from = u.Host
		}
		if x.Status != 0 {
			f.what = strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)))
		}
		all[f]++
	}
	return all, calls, nil
}
