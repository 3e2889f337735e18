package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestJournalOfARenameThatFails: where a directory is renamed onto one that holds something nothing moves, and nothing of what
// stands there is read, or left half kept.
func TestJournalOfARenameThatFails(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", shortFile/16+1)
	p, dir := home(t, model{"d/a": "1", "e/long": long, "e/short": "1"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	if err := p.rename(in("d"), in("e")); !errors.Is(err, unix.ENOTEMPTY) {
		t.Fatal(err)
	}
	wants(t, p.take(p.j.Barrier()))
	p.j.mu.Lock()
	for _, r := range p.j.roots {
		r.node.each(func(n *node) {
			if n.taken != nil {
				t.Errorf("the pre-image of %s is begun, and nobody ends it", n.path())
			}
		})
	}
	p.j.mu.Unlock()
	wants(t, foundAs(t, p), "d/", "d/a 1", "e/")
}

// TestJournalOfACallThatCannotBeKept: a long pre-image of a call whose other one cannot be kept is ended all the same: other calls
// wait for it.
func TestJournalOfACallThatCannotBeKept(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", shortFile/16+1)
	p, dir := home(t, model{"long": long, "short": "1"}, &JournalOptions{Store: fullFor{cas.NewMemory(), 1}})
	touched := func(names ...string) *Touch {
		t := &Touch{Rename: true}
		for _, n := range names {
			t.Paths = append(t.Paths, TouchedPath{Path: filepath.Join(dir, n), Dir: -1})
		}
		return t
	}
	if then := p.j.Touch(touched("long", "short")); then == nil || then() == nil {
		t.Error("what cannot be kept is no error")
	}
	if n := p.j.roots[0].node.below["long"]; n.taken != nil {
		t.Error("the pre-image of long is begun, and nobody ends it")
	}
}

// A fullFor is a store that takes no content of just so many bytes.
type fullFor struct {
	cas.Store
	size int
}

func (s fullFor) Put(b []byte) (cas.Digest, error) {
	if len(b) == s.size {
		return cas.Digest{}, unix.ENOSPC
	}
	return s.Store.Put(b)
}

// TestJournalStaysInItsRoot: a program that swaps a directory for a link after its path was looked up brings nothing onto the tape
// of what the link leads to.
func TestJournalStaysInItsRoot(t *testing.T) {
	p, dir := home(t, model{"d/a": "1"}, nil)
	in := func(path string) string { return filepath.Join(dir, path) }
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "key"), []byte("outside"), 0o600))
	must(t, p.write(in("d/a"), "2"))
	must(t, os.Rename(in("d"), in("gone")))
	must(t, os.Symlink(outside, in("d")))
	if then := p.j.Touch(&Touch{Paths: []TouchedPath{{Path: in("d/key/new"), Dir: -1}}}); then != nil {
		must(t, then())
	}
	if _, err := p.store.Get(cas.Sum([]byte("outside"))); err == nil {
		t.Error("what lies outside was kept")
	}
}

// TestJournalOfTooMuchMovedBelow: what is not kept of a directory within one that is renamed is not said to have been absent.
func TestJournalOfTooMuchMovedBelow(t *testing.T) {
	lower(t, &maxMovedEntries, 400)
	p, dir := home(t, model{"d/a/x": "1"}, nil)
	in := func(i int) string { return filepath.Join(dir, fmt.Sprintf("d/a/%d", i)) }
	for i := range maxMovedEntries + 1 {
		must(t, os.WriteFile(in(i), nil, 0o644))
	}
	must(t, p.rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")))
	must(t, p.mkdir(filepath.Join(dir, "d")))
	must(t, p.mkdir(filepath.Join(dir, "d/a")))
	for i := range maxMovedEntries + 1 {
		p.touch(Touch{}, in(i))
	}
	if diff := cmp.Diff([]string{"e"}, p.j.Found(0).Absent); diff != "" {
		t.Error(diff)
	}
}

// TestJournalOfWhatCannotBeLookedAt: below a directory that is renamed it is listed, and not said to have been absent.
func TestJournalOfWhatCannotBeLookedAt(t *testing.T) {
	p, _ := home(t, model{}, nil)
	d := p.j.roots[0].node.child("d")
	m := &mover{j: p.j}
	must(t, m.one(d, borrowed(1<<20), "x")) // no such descriptor
	d.inherit(isFresh)
	if x := d.child("x"); x.is(isFresh) || p.j.lost[x] != Unreadable {
		t.Errorf("%b, %q", x.state, p.j.lost[x])
	}
}

// TestJournalOfASecretNameOfASnapshot: a path that the snapshots alone tell of, and that holds a secret, gives no record.
func TestJournalOfASecretNameOfASnapshot(t *testing.T) {
	s := scrub.New(scrub.Key{1}, nil)
	s.AddSecret("token", "lt4Xw2Lk9Vb4Nm6Tr8Yp")
	p, _ := home(t, model{}, &JournalOptions{Scrubber: s})
	if left := p.j.shown([]*item{{path: "a-lt4Xw2Lk9Vb4Nm6Tr8Yp", told: new(Change)}}); len(left) > 0 {
		t.Errorf("shown: %q", left[0].path)
	}
	if left := p.j.NotCovered(); len(left) > 0 {
		t.Errorf("not covered: %v", left)
	}
}
