package deck

import (
	"bytes"
	"errors"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxInputs is how many differing inputs of two runs a divergence is traced to.
const maxInputs = 200

// inputs lists what two runs were given and what differs: stdin, variables, files of the work tree.
func inputs(a, b *side) ([]fidelity.Input, error) {
	out := append(stdinInput(a, b), envInputs(a.rec.Manifest, b.rec.Manifest)...)
	before, errA := a.rec.Tree()
	after, errB := b.rec.Tree()
	if err := errors.Join(errA, errB); err != nil || before == nil || after == nil {
		return out, err
	}
	out = append(out, treeInputs(differing(before, after), before, after, a.tape.Store, b.tape.Store)...)
	return out[:min(len(out), maxInputs)], nil
}

// treeInputs are the files at paths, in which the work trees that two runs found differ.
func treeInputs(paths []string, before, after *files.Tree, was, now cas.Store) []fidelity.Input {
	var out []fidelity.Input
	for _, path := range paths[:min(len(paths), maxInputs)] {
		out = append(out, fidelity.Input{
			Name: "the file " + path + ", in which the work trees differ", Short: "the file " + path,
			Bytes: func(s fidelity.Side) ([]byte, error) {
				if s == fidelity.Recorded {
					return fileIn(before, path, was)
				}
				return fileIn(after, path, now)
			},
		})
	}
	return out
}

func written(changed bool) int {
	if changed {
		return 1
	}
	return 0
}

// differing lists the regular files of either tree that the other has in another form, or not at all.
func differing(a, b *files.Tree) []string {
	var out []string
	for _, e := range a.Entries {
		other, ok := b.Lookup(e.Path)
		if !e.Digest.IsZero() && (!ok || other.Digest != e.Digest) {
			out = append(out, e.Path)
		}
	}
	for _, e := range b.Entries {
		if _, ok := a.Lookup(e.Path); !ok && !e.Digest.IsZero() {
			out = append(out, e.Path)
		}
	}
	return out
}

// fileIn returns what a tree holds at path; nothing where it is no regular file, or too long to explain anything.
func fileIn(t *files.Tree, path string, store cas.Store) ([]byte, error) {
	e, ok := t.Lookup(path)
	if !ok || e.Digest.IsZero() || e.Size > maxDecoded/16 {
		return nil, nil
	}
	return store.Get(e.Digest)
}

func stdinInput(a, b *side) []fidelity.Input {
	if bytes.Equal(a.rec.Manifest.Stdin, b.rec.Manifest.Stdin) {
		return nil
	}
	return []fidelity.Input{{Name: "stdin", Bytes: func(s fidelity.Side) ([]byte, error) {
		from := a
		if s == fidelity.Replay {
			from = b
		}
		p, err := tape.ParsePayload(from.rec.Manifest.Stdin)
		if err != nil || p == nil {
			return nil, err
		}
		return p.Bytes(from.tape.Store)
	}}}
}

// envInputs lists the variables that are no secrets and differ.
func envInputs(a, b *recording.Manifest) []fidelity.Input {
	was := make(map[string]string)
	for _, v := range a.Env {
		was[v.Name] = v.Value
	}
	var out []fidelity.Input
	for _, v := range b.Env {
		if before, ok := was[v.Name]; !v.Secret && (!ok || before != v.Value) && len(out) < maxInputs {
			out = append(out, fidelity.Input{Name: "the variable " + v.Name, Chance: true, Bytes: func(s fidelity.Side) ([]byte, error) {
				if s == fidelity.Recorded {
					return []byte(before), nil
				}
				return []byte(v.Value), nil
			}})
		}
	}
	return out
}
