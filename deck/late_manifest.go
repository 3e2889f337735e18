package deck

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// hideLate notes the arguments and variables anew, with what is known by now, and ends l: the recording is clean but for its
// recording.json, which is written next.
func (r *recorder) hideLate(l *late) error {
	err := l.step(lateManifest, func() error {
		r.noteAgain()
		return nil
	})
	if err != nil {
		return err
	}
	return l.sweep()
}

// noteAgain notes the arguments and variables with what is known by now.
func (r *recorder) noteAgain() {
	m := r.manifest
	m.ArgSecrets, m.Raw = nil, nil
	m.noteArgs(r.guard.scrub, r.o.Argv)
	m.noteEnv(r.guard.scrub, r.env)
}

// exposed has the recording say that it may hold secrets, where err is that. It stays unfinished.
func (r *recorder) exposed(err error) error {
	var le *LateError
	if !errors.As(err, &le) {
		return err
	}
	le.Dir = r.dir
	r.noteAgain()
	r.manifest.Axes = map[string]Axis{"secrets": {On: true, NotCovered: []string{le.Error()}}}
	return errors.Join(err, r.manifest.write(r.safe(), r.o.Sync))
}

// clearLate takes out of the manifest of a replay, which is the recording's, what became known in the replay.
func (m *Manifest) clearLate(find *scrub.Scrubber) {
	m.Argv, m.Env, m.ArgSecrets = slices.Clone(m.Argv), slices.Clone(m.Env), slices.Clone(m.ArgSecrets)
	for i, a := range m.Argv {
		m.Argv[i] = find.String(a)
	}
	for i, a := range m.ArgSecrets {
		m.ArgSecrets[i].Value = find.String(a.Value)
	}
	if m.TTY != nil {
		tty := *m.TTY
		tty.Keys, _ = find.Bytes(tty.Keys)
		m.TTY = &tty
	}
	for i := range m.Env {
		if v := find.Env([]string{m.Env[i].Name + "=" + m.Env[i].Value}); !m.Env[i].Secret && len(v) == 1 && v[0].Secret {
			m.Env[i] = EnvVar{Name: v[0].Name, Value: v[0].Value, Secret: true, Shape: v[0].Shape}
		}
	}
}

// marked is the list of a recording's secrets in which those that were taken out late say so: a replay's program may bring one as
// early as the recorded one did.
func (l *late) marked(all []scrub.Secret) []scrub.Secret {
	if l == nil {
		return all
	}
	found := make(map[string]scrub.Secret)
	for _, s := range l.find.Found() {
		found[scrub.Digits(s.Placeholder)] = s
	}
	out := slices.Clone(all)
	for i := range out {
		digits := scrub.Digits(out[i].Placeholder)
		_, is := found[digits]
		out[i].Late = out[i].Late || is
		delete(found, digits)
	}
	return joinedSecrets(out, slices.SortedFunc(maps.Values(found), func(a, b scrub.Secret) int { return cmp.Compare(a.Placeholder, b.Placeholder) }))
}

// inPaths lists the paths of the recording that hold what became known late. They stay: a recording needs them as they are.
func (l *late) inPaths(m *Manifest) []string {
	if l == nil {
		return nil
	}
	var out []string
	for _, p := range []struct{ what, path string }{
		{"the program", m.Program.Path}, {"its directory", m.Cwd}, {"the work tree", m.Roots.Tree}, {"HOME", m.Roots.Home}, {"TMP", m.Roots.Temp},
	} {
		if _, found := l.find.Bytes([]byte(p.path)); found {
			out = append(out, "the path of "+p.what+" (a value that the run used as a secret stands in it)")
		}
	}
	return out
}
