package seal_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
	"pgregory.net/rapid"
)

// TestWhere changes a tape whose lines all differ, in one way, and holds what is said against what was done.
func TestWhere(t *testing.T) {
	if !long {
		flag.Set("rapid.checks", "25") // each is files on the disk; it is the one property here
	}
	k := newKey(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 700).Draw(rt, "lines")
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`{"seq":%d,"x":%q}`+"\n", i, strings.Repeat("y", i%97))
		}
		dir, err := os.MkdirTemp("", "where-*")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "run.tape")
		save := func(l []string) {
			if err := os.WriteFile(path, []byte(strings.Join(l, "")), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		save(all)
		if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, ID: "x"}); err != nil {
			rt.Fatal(err)
		}
		changed, code, line := change(rt, all)
		save(changed)
		r, err := seal.Verify(context.Background(), dir, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if len(r.Problems) != 1 || r.Problems[0].Code != code || r.Problems[0].Line != int64(line) || r.Problems[0].Leaf != int64(line)-1 {
			rt.Fatalf("%+v, expected %s in line %d", r.Problems, code, line)
		}
	})
}

// change does one thing to lines and returns what must be said, with the line from 1.
func change(rt *rapid.T, all []string) (changed []string, code seal.Code, line int) {
	n := len(all)
	i := rapid.IntRange(0, n-1).Draw(rt, "at")
	fresh := func(count int) (l []string) {
		for j := range count {
			l = append(l, fmt.Sprintf(`{"new":%d}`+"\n", j))
		}
		return l
	}
	switch rapid.SampledFrom([]string{"change", "remove", "insert", "swap", "cut", "append"}).Draw(rt, "what") {
	case "change":
		return slices.Concat(all[:i], fresh(1), all[i+1:]), seal.CodeChanged, i + 1
	case "insert":
		return slices.Concat(all[:i], fresh(rapid.IntRange(1, 300).Draw(rt, "count")), all[i:]), seal.CodeAdded, i + 1
	case "append":
		return slices.Concat(all, fresh(rapid.IntRange(1, 300).Draw(rt, "count"))), seal.CodeAdded, n + 1
	case "cut":
		return all[:i], seal.CodeCut, i + 1
	case "remove":
		to := rapid.IntRange(i+1, n).Draw(rt, "to")
		if to == n {
			return all[:i], seal.CodeCut, i + 1
		}
		return slices.Concat(all[:i], all[to:]), seal.CodeRemoved, i + 1
	}
	j := rapid.IntRange(0, n-2).Draw(rt, "other")
	if j >= i {
		j++
	}
	changed = slices.Clone(all)
	changed[i], changed[j] = changed[j], changed[i]
	return changed, seal.CodeReordered, min(i, j) + 1
}
