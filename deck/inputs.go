package deck

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
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

// treeInputs are the files at paths, in which the work trees that two runs found differ. Nothing is read of those that do not fit into maxDecoded
// with the shorter ones, on both sides.
func treeInputs(paths []string, before, after *files.Tree, was, now cas.Store) []fidelity.Input {
	paths = paths[:min(len(paths), maxInputs)]
	size := func(path string) int64 { return sizeIn(before, path) + sizeIn(after, path) }
	read, left := make(map[string]bool), int64(maxDecoded)
	for _, path := range slices.SortedStableFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(size(a), size(b)) }) {
		left -= size(path)
		read[path] = left >= 0
	}
	var out []fidelity.Input
	for _, path := range paths {
		out = append(out, fidelity.Input{
			Name: "the file " + path + ", in which the work trees differ", Short: "the file " + path,
			Bytes: func(s fidelity.Side) ([]byte, error) {
				switch {
				case !read[path]:
					return nil, nil
				case s == fidelity.Recorded:
					return fileIn(before, path, was)
				}
				return fileIn(after, path, now)
			},
		})
	}
	return out
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
	// What Git keeps explains least, and a fresh clone has another form of all of it: enough to leave no room for the rest.
	ofGit := func(path string) int { return strings.Count("/"+path, "/.git/") }
	slices.SortStableFunc(out, func(a, b string) int { return min(ofGit(a), 1) - min(ofGit(b), 1) })
	return out
}

func sizeIn(t *files.Tree, path string) int64 {
	if e, ok := t.Lookup(path); ok {
		return e.Size
	}
	return 0
}

// fileIn returns what a tree holds at path; nothing where it is no regular file.
func fileIn(t *files.Tree, path string, store cas.Store) ([]byte, error) {
	e, ok := t.Lookup(path)
	if !ok || e.Digest.IsZero() {
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

// Bounds of what is known of the files that a replay reads.
const (
	maxReads    = 20_000
	maxReadFile = 1 << 20
	maxReadText = 16 << 20 // in all
)

// reads are the files that the programs of a replay opened for reading. What of them was written since the recording holds what is new
// in the program: a value that differs and stands there is no chance.
type reads struct {
	since time.Time // when the recording began

	mu     sync.Mutex
	paths  map[string]bool
	looked bool
	texts  [][]byte
}

// Reads implements jail.Inputs.
func (p *processes) Reads(path string) {
	if p.clock == nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") {
		return
	}
	r := &p.reads
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.paths) < maxReads {
		if r.paths == nil {
			r.paths = make(map[string]bool)
		}
		r.paths[path] = true
	}
}

// Changing implements jail.Inputs.
func (p *processes) Changing() bool { return p.stamps.changing.Load() }

// Recent implements jail.Inputs. On a replay files have recorded times.
func (p *processes) Recent(at int64) bool {
	since := p.stamps.began
	if recorded := p.reads.since; !recorded.IsZero() && recorded.Before(since) {
		since = recorded
	}
	return at >= since.Add(-tick).UnixNano()
}

// hold reports whether a file that is newer than the recording holds a value.
func (r *reads) hold(value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked {
		r.looked = true
		r.look()
	}
	for _, text := range r.texts {
		if standsIn(text, value) {
			return true
		}
	}
	return false
}

// standsIn reports whether a text holds a value by itself, and not as a piece of a longer word or number.
func standsIn(text []byte, value string) bool {
	for value != "" {
		i := bytes.Index(text, []byte(value))
		if i < 0 {
			return false
		}
		end := i + len(value)
		if (i == 0 || !ofWord(text[i-1])) && (end == len(text) || !ofWord(text[end])) {
			return true
		}
		text = text[i+1:]
	}
	return false
}

func ofWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || strings.IndexByte("._+/", c) >= 0
}

// look reads those files. What cannot be read holds nothing.
func (r *reads) look() {
	left := int64(maxReadText)
	for path := range r.paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > min(left, maxReadFile) || !info.ModTime().After(r.since) {
			continue
		}
		f, err := regular.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxReadFile))
		f.Close()
		if err == nil {
			left -= int64(len(text))
			r.texts = append(r.texts, text)
		}
	}
}
