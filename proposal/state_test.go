package proposal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/policy"
)

func TestState(t *testing.T) {
	var s State
	none, a := s.Scope(""), s.Scope("a")
	if got := none.Get("k"); string(got) != "null" || none.Exists("k") || len(none.Keys()) != 0 || none.Keys() == nil || none.Snapshot() == nil {
		t.Error("an empty state has something")
	}
	for key, value := range map[string]string{"k": ` {"b":1.0,"a":"\u0041"}`, "null": "", "a": "3"} {
		if err := none.Set(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Set("k", []byte("7")); err != nil {
		t.Fatal(err)
	}
	if string(none.Get("k")) != ` {"b":1.0,"a":"\u0041"}` || string(a.Get("k")) != "7" || a.Exists("null") || !none.Exists("null") {
		t.Error("values are not kept as they came, each tenant's apart")
	}
	if diff := cmp.Diff([]string{"a", "k", "null"}, none.Keys()); diff != "" {
		t.Error(diff)
	}
	if got, err := json.Marshal(none.Snapshot()); err != nil || string(got) != `{"a":3,"k":{"b":1.0,"a":"\u0041"},"null":null}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAStateIsBounded(t *testing.T) {
	var s State
	c := s.Scope("")
	var limit *LimitError
	if err := c.Set("k", []byte(`"`+strings.Repeat("x", MaxStateValue)+`"`)); !errors.As(err, &limit) {
		t.Error(err)
	}
	if err := c.Set(strings.Repeat("k", MaxStateKey+1), []byte("1")); !errors.As(err, &limit) {
		t.Error(err)
	}
	if err := s.Scope(strings.Repeat("t", MaxStateKey+1)).Set("k", []byte("1")); !errors.As(err, &limit) {
		t.Error(err)
	}
	if err := c.Set("k", []byte(`{"a":1,"a":2}`)); err == nil || errors.As(err, &limit) {
		t.Error(err)
	}
	large := []byte(`"` + strings.Repeat("x", MaxStateValue-10) + `"`)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = s.Scope(fmt.Sprint(n%3)).Set(fmt.Sprint(n), large)
	}
	if !errors.As(err, &limit) || n > MaxStateBytes/MaxStateValue+1 {
		t.Errorf("%d large values, then %v", n, err)
	}
	if err := s.Scope("0").Set("0", []byte("1")); err != nil {
		t.Errorf("a full state takes no smaller value: %v", err)
	}
	keys := s.Scope("keys")
	for i := range MaxStateKeys {
		if err = keys.Set(fmt.Sprint("k", i), nil); err != nil {
			break
		}
	}
	if !errors.As(err, &limit) {
		t.Errorf("any number of keys is taken: %v", err)
	}
}

// What is written to the state while several proposals run is, when all have ended, the last write of each key that nobody took
// back: those of proposals that were aborted, and of attempts that failed, are as if they had never been.
func TestTakingBack(t *testing.T) {
	type write struct {
		key, value  string
		by, attempt int // by 0 is nobody's
		gone        bool
	}
	rapid.Check(t, func(rt *rapid.T) {
		var s State
		scope := s.Scope(rapid.SampledFrom([]string{"", "tenant"}).Draw(rt, "tenant"))
		var writes []*write
		open := map[int]*transaction{}
		next := 1
		key := rapid.SampledFrom([]string{"x", "y", "z"})
		takeBack := func(by, attempt int) {
			for _, w := range writes {
				if w.by == by && (attempt == 0 || w.attempt == attempt) {
					w.gone = true
				}
			}
		}
		pick := func() (int, *transaction) {
			var ids []int
			for id := range next {
				if open[id] != nil {
					ids = append(ids, id)
				}
			}
			id := rapid.SampledFrom(ids).Draw(rt, "proposal")
			return id, open[id]
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			step := rapid.SampledFrom([]string{"begin", "write", "write", "write", "keep", "back", "commit", "rollback", "set"}).Draw(rt, "step")
			if len(open) == 0 && step != "set" {
				step = "begin"
			}
			value, err := policy.NewValue(fmt.Append(nil, len(writes)))
			if err != nil {
				rt.Fatal(err)
			}
			switch step {
			case "begin":
				open[next] = scope.begin()
				open[next].mark()
				next++
			case "set":
				k := key.Draw(rt, "key")
				writes = append(writes, &write{key: k, value: string(value.Raw())})
				if err := scope.Set(k, value.Raw()); err != nil {
					rt.Fatal(err)
				}
			case "write":
				id, tx := pick()
				k := key.Draw(rt, "key")
				writes = append(writes, &write{key: k, value: string(value.Raw()), by: id, attempt: tx.attempt})
				if err := tx.write(k, value); err != nil {
					rt.Fatal(err)
				}
			case "keep":
				_, tx := pick()
				tx.keep()
				tx.mark()
			case "back":
				id, tx := pick()
				tx.back()
				takeBack(id, tx.attempt)
				tx.mark()
			case "commit", "rollback":
				id, tx := pick()
				if delete(open, id); step == "commit" {
					tx.commit()
				} else {
					tx.rollback()
					takeBack(id, 0)
				}
			}
		}
		for id, tx := range open {
			tx.rollback()
			takeBack(id, 0)
		}
		want := map[string]string{}
		for _, w := range writes {
			if !w.gone {
				want[w.key] = w.value
			}
		}
		got := map[string]string{}
		for k, v := range scope.Snapshot() {
			got[k] = string(v)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("state (- want, + got):\n%s", diff)
		}
		held, bytes := 0, 0
		for _, keys := range s.tenants {
			for k, versions := range keys {
				held, bytes = held+len(versions), bytes+size(k, versions)
			}
		}
		if held != s.held || bytes != s.bytes || held != len(want) {
			rt.Fatalf("%d versions in %d bytes are held, counted are %d in %d, for %d keys", held, bytes, s.held, s.bytes, len(want))
		}
	})
}

// A proposal that writes one key with each of its actions does not fill the state.
func TestOneKeyWrittenOften(t *testing.T) {
	var s State
	tx := s.Scope("").begin()
	large, err := policy.NewValue([]byte(`"` + strings.Repeat("x", 1<<20) + `"`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		tx.mark()
		if err := tx.write("k", large); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		tx.keep()
	}
	if tx.rollback(); s.held != 0 || s.bytes != 0 || len(s.tenants) != 0 {
		t.Errorf("%d versions and %d bytes are left", s.held, s.bytes)
	}
}

func TestStatesAreSharedByGoroutines(t *testing.T) {
	var s State
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := s.Scope(fmt.Sprint(i % 2))
			for n := range 200 {
				tx := c.begin()
				tx.mark()
				v, _ := policy.NewValue(fmt.Append(nil, n))
				if err := tx.write("k", v); err != nil {
					t.Error(err)
				}
				c.Snapshot()
				if n%2 == 0 {
					tx.commit()
				} else {
					tx.rollback()
				}
			}
		})
	}
	wg.Wait()
	if s.held != 2 {
		t.Errorf("%d versions are left of 2 keys", s.held)
	}
}
