package team_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// TestTags: runs are found by tags that they were pushed with or given later, and keep them when they are pushed anew.
func TestTags(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "a tulip", "b", nil)
		for _, tags := range [][]string{{"nightly", "v1"}, {"later"}} { // the second time it is there already
			run, _, err := s.Push(t.Context(), rec, &team.PushOptions{Tags: tags})
			if must(t, err); !strings.Contains(strings.Join(run.Tags, " "), tags[0]) {
				t.Errorf("tags: %q", run.Tags)
			}
		}
		push(t, s, made(t, "two", "a tulip", "b", nil))
		_, _, err := s.Push(t.Context(), made(t, "one", "another tulip", "b", nil), &team.PushOptions{Project: "p", Tags: []string{"nightly"}})
		must(t, err)
		run, err := s.Tag(t.Context(), "", "two", []string{"nightly", "x/y:z"}, []string{"nosuch"})
		if must(t, err); strings.Join(run.Tags, " ") != "nightly x/y:z" {
			t.Errorf("tags: %q", run.Tags)
		}
		_, err = s.Tag(t.Context(), "", "one", nil, []string{"v1"})
		must(t, err)
		if run := push(t, s, made(t, "one", "no rose but a tulip", "b", nil)); strings.Join(run.Tags, " ") != "later nightly" {
			t.Errorf("tags of what was pushed anew: %q", run.Tags)
		}
		for want, tags := range map[string][]string{"two one": {"nightly"}, "one": {"nightly", "later"}, "two": {"x/y:z"}, "": {"v1"}} {
			runs, err := s.Runs(t.Context(), &team.Query{Tags: tags})
			if must(t, err); ids(runs) != want {
				t.Errorf("%q: %q, want %q", tags, ids(runs), want)
			}
			hits, err := s.Search(t.Context(), "tulip", &team.Query{Tags: tags})
			if must(t, err); len(hits) != len(runs) {
				t.Errorf("%q: %d hits", tags, len(hits))
			}
		}
		for _, bad := range []string{"", "a b", "a,b", strings.Repeat("x", 65), "a\n"} {
			if _, err := s.Tag(t.Context(), "", "one", []string{bad}, nil); err == nil {
				t.Errorf("the tag %q is taken", bad)
			}
		}
		if _, err := s.Tag(t.Context(), "", "three", []string{"a"}, nil); !errors.Is(err, team.ErrNoRun) {
			t.Errorf("of no run: %v", err)
		}
	})
}

// TestHold: a run on hold is neither removed nor let go nor changed, not even by who does not know of holds, until it is released.
func TestHold(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "a tulip", "b", nil)
		old := push(t, s, rec)
		push(t, s, made(t, "two", "a rose", "b", nil))
		run, err := s.Hold(t.Context(), "", "one", "somebody", "a lawsuit")
		must(t, err)
		if h := run.Hold; h == nil || h.By != "somebody" || h.Why != "a lawsuit" || time.Since(h.At).Abs() > time.Minute {
			t.Errorf("the hold: %+v", h)
		}
		sign, _ := signer(t)
		refused := func(what string, err error) {
			if !errors.Is(err, team.ErrHeld) || !strings.Contains(err.Error(), "by somebody") {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err = s.Hold(t.Context(), "", "one", "another", "x")
		refused("hold", err)
		_, err = s.Remove(t.Context(), "", "one", "", sign)
		refused("remove", err)
		_, _, err = s.Push(t.Context(), made(t, "one", "another", "b", nil), &team.PushOptions{Again: true})
		refused("push", err)
		if _, there, err := s.Push(t.Context(), rec, nil); err != nil || !there {
			t.Errorf("the very same: there %v, %v", there, err)
		}
		for _, r := range []team.Rule{{Older: time.Millisecond}, {MaxSize: 1}} {
			_, err := s.Prune(t.Context(), "", &r, sign)
			must(t, err)
		}
		if _, err := at.database(t).ExecContext(t.Context(), "DELETE FROM runs"); err == nil {
			t.Error("an older tapedeck has removed it")
		}
		_, err = s.Sweep(t.Context())
		must(t, err)
		pulled, err := s.Pull(t.Context(), "", "one", filepath.Join(t.TempDir(), "x"), nil)
		if must(t, err); pulled.Digest != old.Digest || pulled.Hold == nil {
			t.Errorf("pulled: %+v", pulled)
		}
		if runs, err := s.Runs(t.Context(), &team.Query{Held: true}); err != nil || ids(runs) != "one" {
			t.Errorf("on hold: %s %v", ids(runs), err)
		}
		_, err = s.Release(t.Context(), "", "one")
		must(t, err)
		_, err = s.Remove(t.Context(), "", "one", "", sign)
		must(t, err)
	})
}

// TestRules: what each rule lets go, by age, count, size and tag, of one project.
func TestRules(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		var size int64
		for i := range 6 { // run0 is the oldest
			o := &team.PushOptions{Tags: []string{fmt.Sprintf("mod%d", i%2)}}
			run, _, err := s.Push(t.Context(), made(t, fmt.Sprintf("run%d", i), "a", "b", func(m *recording.Manifest) { m.StartedAt = time.Now().Add(time.Duration(i-6) * time.Hour) }), o)
			must(t, err)
			if size = max(size, run.Size); i == 0 {
				o.Project = "p"
				_, _, err := s.Push(t.Context(), made(t, "other", "a", "b", nil), o)
				must(t, err)
			}
		}
		_, err := s.Hold(t.Context(), "", "run1", "somebody", "evidence")
		must(t, err)
		for _, c := range []struct {
			rule team.Rule
			want string
		}{
			{team.Rule{}, ""}, {team.Rule{Tag: "mod0"}, ""}, {team.Rule{Older: 90 * time.Minute}, "run0 run2 run3 run4"}, {team.Rule{Keep: 2}, "run0 run2 run3"},
			{team.Rule{Older: 210 * time.Minute, Keep: 4}, "run0"}, {team.Rule{Keep: 9}, ""}, {team.Rule{MaxSize: size}, "run0 run2 run3 run4 run5"},
			{team.Rule{MaxSize: 4 * size}, "run0 run2"}, {team.Rule{MaxSize: 6 * size}, ""}, {team.Rule{MaxSize: size, Keep: 3}, "run0 run2"},
			{team.Rule{Tag: "mod0", Keep: 1}, "run0 run2"}, {team.Rule{Tag: "mod1", MaxSize: 2 * size}, "run3"}, {team.Rule{Tag: "nosuch", Older: 1}, ""},
		} {
			expired, err := s.Expired(t.Context(), "", &c.rule)
			must(t, err)
			var got []string
			for _, e := range expired {
				got = append(got, e.ID)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%+v: %q, want %q", c.rule, got, c.want)
			}
		}
		sign, _ := signer(t)
		gone, err := s.Prune(t.Context(), "", &team.Rule{Keep: 2}, sign)
		if must(t, err); len(gone) != 3 || !strings.Contains(gone[0].Note, "not among the newest 2") {
			t.Errorf("gone: %+v", gone)
		}
		if blobs, err := s.Sweep(t.Context()); err != nil || len(blobs) != 3 && !at.http {
			t.Errorf("swept %v, %v", blobs, err)
		}
		bytes, err := at.direct(t).Bytes(t.Context())
		if must(t, err); int64(bytes) > 4*size || int64(bytes) < 3*size {
			t.Errorf("%d bytes, of runs of %d", bytes, size)
		}
	})
}

// TestOlderStore: a store of the tapedeck before is brought up to date with what is in it.
func TestOlderStore(t *testing.T) {
	f, err := os.Open("testdata/version2.sqlite.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	b, err := io.ReadAll(z)
	must(t, err)
	file := filepath.Join(t.TempDir(), "runs.sqlite")
	must(t, os.WriteFile(file, b, 0o600))
	s := place{runs: "sqlite://" + file, blobs: "file://" + t.TempDir()}.direct(t)
	hits, err := s.Search(t.Context(), "marigold", &team.Query{})
	must(t, err)
	if len(hits) != 1 || hits[0].Run.Size != 5633 || hits[0].Run.Hold != nil || len(hits[0].Run.Tags) > 0 {
		t.Fatalf("hits: %+v", hits)
	}
	if n, err := s.Bytes(t.Context()); err != nil || n != 5633 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_, err = s.Hold(t.Context(), "", hits[0].Run.ID, "somebody", "evidence")
	must(t, err)
}
