package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func list(t *testing.T, s store.Store) {
	var want []string
	for i := range 30 {
		id := start(t, s, []string{"a", "b", "c"}[i%3], fmt.Sprint("r", i))
		for range i {
			add(t, s, id, "x")
		}
		if i%2 == 0 {
			end(t, s, id)
		}
		want = append([]string{fmt.Sprint(id, " ", i)}, want...)
	}
	for agent, step := range map[string]int{"": 1, "a": 3} {
		all, err := s.List(t.Context(), agent)
		if err != nil || len(all) != 30/step {
			t.Fatalf("%d runs of %q, %v", len(all), agent, err)
		}
		for i, sum := range all {
			k := i * step
			if agent == "a" {
				k += 2 // r29 and r28 are others'
			}
			ended := (29-k)%2 == 0
			if got := fmt.Sprint(sum.ID, " ", sum.Turns); got != want[k] || ended != (sum.Status == runtrace.Completed) || sum.Intent != "to see" || sum.StartedAt == "" {
				t.Errorf("run %d is %+v, want %s", i, sum, want[k])
			}
		}
	}
	if all, err := s.List(t.Context(), "nobody"); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func traceParts(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	var texts []string
	for i := range 20 {
		texts = append(texts, strings.Repeat(fmt.Sprint(i%10), 100))
	}
	add(t, s, id, texts...)
	whole := trace(t, s, id, nil).Records
	for from := -1; from < 25; from++ {
		tr := trace(t, s, id, &store.TraceOptions{From: from})
		if want := whole[min(max(from, 0), 21):]; len(tr.Records) != len(want) || tr.Next != 21 || tr.From != min(max(from, 0), 21) {
			t.Errorf("from %d: %d records, from %d to %d", from, len(tr.Records), tr.From, tr.Next)
		}
	}
	for _, bytes := range []int{1, 150, 500, 2000, 1 << 20} {
		var got [][]byte
		for at, more := 0, true; more; {
			tr := trace(t, s, id, &store.TraceOptions{From: at, MaxBytes: bytes})
			size := 0
			for _, r := range tr.Records {
				size += len(r)
			}
			if len(tr.Records) == 0 || size > bytes && len(tr.Records) > 1 || tr.From != at {
				t.Fatalf("at most %d bytes from %d: %d records of %d", bytes, at, len(tr.Records), size)
			}
			got, at, more = append(got, tr.Records...), tr.Next, tr.More
		}
		if fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("in parts of %d bytes it is another", bytes)
		}
	}
}

func verdicts(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	other := start(t, s, "b", "s")
	for i := range 10 {
		for k, to := range []runtrace.ID{id, other, {}} {
			if err := s.Verdict(t.Context(), to, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i*10+k))); err != nil {
				t.Fatal(err)
			}
		}
		add(t, s, id, "x")
	}
	end(t, s, id)
	if err := s.Verdict(t.Context(), id, json.RawMessage(`"late"`)); err != nil {
		t.Error(err)
	}
	for k, to := range []runtrace.ID{id, other, {}} {
		all, err := s.Verdicts(t.Context(), to)
		if err != nil || len(all) < 10 {
			t.Fatalf("%v, %v", all, err)
		}
		for i, v := range all[:10] {
			if string(v) != fmt.Sprintf(`{"n":%d}`, i*10+k) {
				t.Errorf("verdict %d of %s: %s", i, to, v)
			}
		}
	}
	if err := s.Verdict(t.Context(), runtrace.ID{Agent: "b", Run: "r"}, json.RawMessage("1")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
	if _, err := s.Verdicts(t.Context(), runtrace.ID{Agent: "b", Run: "r"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
	var invalid *runtrace.InvalidError
	if err := s.Verdict(t.Context(), id, json.RawMessage("{")); !errors.As(err, &invalid) {
		t.Errorf("no JSON: %v", err)
	}
	var large *runtrace.TooLargeError
	if err := s.Verdict(t.Context(), id, json.RawMessage(`"`+strings.Repeat("x", runtrace.MaxLine)+`"`)); !errors.As(err, &large) {
		t.Errorf("too large: %v", err)
	}
}

func canceled(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, id, []runtrace.Turn{turn("x")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Start(ctx, started(runtrace.ID{Agent: "a", Run: "s"})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	add(t, s, id, "y")
	check(t, s, id, "y")
}

func closed(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, startErr := s.Start(t.Context(), started(id))
	_, appendErr := s.Append(t.Context(), id, []runtrace.Turn{turn("x")})
	_, findErr := s.Find(t.Context(), "r")
	_, listErr := s.List(t.Context(), "")
	_, traceErr := s.Trace(t.Context(), id, nil)
	_, subErr := s.Subscribe(t.Context(), id, nil)
	_, verdictsErr := s.Verdicts(t.Context(), id)
	for i, err := range []error{startErr, appendErr, findErr, listErr, traceErr, subErr, verdictsErr,
		s.End(t.Context(), id, &runtrace.Ended{}), s.Verdict(t.Context(), id, json.RawMessage("1")), s.Close(t.Context())} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	s.Stats() // must not panic
}

// Many writers of many runs: each run has its own turns, in order.
func many(t *testing.T, s store.Store) {
	const runs, turns = 100, 20
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() {
			id := start(t, s, fmt.Sprint("agent", i%7), fmt.Sprint("run", i))
			for k := range turns {
				if base := add(t, s, id, fmt.Sprint(i, "/", k)); base != k {
					t.Errorf("base %d, want %d", base, k)
				}
			}
			if i%2 == 0 {
				end(t, s, id)
			}
		})
	}
	group.Wait()
	for i := range runs {
		var texts []string
		for k := range turns {
			texts = append(texts, fmt.Sprint(i, "/", k))
		}
		check(t, s, runtrace.ID{Agent: fmt.Sprint("agent", i%7), Run: fmt.Sprint("run", i)}, texts...)
	}
}

func follow(t testing.TB, s store.Store, id runtrace.ID, o *store.SubscribeOptions) *store.Subscription {
	t.Helper()
	sub, err := s.Subscribe(context.Background(), id, o)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func next(t testing.TB, sub *store.Subscription) store.Event {
	t.Helper()
	e, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func subscribe(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	add(t, s, id, "one", "two")
	sub := follow(t, s, id, nil)
	defer sub.Close()
	if sub.ID != id || len(sub.Turns) != 2 || sub.Cursor != 2 || sub.Status != runtrace.InProgress {
		t.Errorf("snapshot %+v", sub)
	}
	add(t, s, id, "three", "four")
	end(t, s, id)
	whole := trace(t, s, id, nil).Records
	if string(sub.Turns[0]) != string(whole[1]) || string(sub.Turns[1]) != string(whole[2]) {
		t.Errorf("snapshot %s", sub.Turns)
	}
	for i, want := range []store.Event{
		{Cursor: 3, Status: runtrace.InProgress}, {Cursor: 4, Status: runtrace.InProgress}, {Cursor: 5, Status: runtrace.Completed},
	} {
		e := next(t, sub)
		if string(e.Record) != string(whole[3+i]) || e.Cursor != want.Cursor || e.Status != want.Status || e.Lost != 0 {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := s.Subscribe(t.Context(), runtrace.ID{Agent: "b", Run: "r"}, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
}

func subscribeEnded(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	add(t, s, id, "one")
	end(t, s, id)
	sub := follow(t, s, id, nil)
	if len(sub.Turns) != 1 || sub.Cursor != 1 || sub.Status != runtrace.Completed {
		t.Errorf("snapshot %+v", sub)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after it: %v", err)
	}
	sub.Close()
}

// Subscribers that come while turns are appended see each turn once: in the snapshot or after it.
func subscribeRandom(t *testing.T, s store.Store) {
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		id := start(t, s, "a", fmt.Sprint("r", round))
		batches := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 12).Draw(rt, "batches")
		writers := rapid.IntRange(1, 3).Draw(rt, "writers")
		readers := rapid.IntRange(1, 4).Draw(rt, "readers")
		var writing, reading sync.WaitGroup
		for range writers {
			writing.Go(func() {
				for _, n := range batches {
					add(t, s, id, make([]string, n)...)
				}
			})
		}
		seen := make([][]string, readers)
		for i := range readers {
			reading.Go(func() { seen[i] = readAll(t, follow(t, s, id, nil)) })
		}
		writing.Wait()
		end(t, s, id)
		reading.Wait()
		var want []string
		for _, r := range trace(t, s, id, nil).Records[1:] {
			want = append(want, string(r))
		}
		for i := range seen {
			got, late := strings.Join(seen[i], "\n"), strings.Join(want[:len(want)-1], "\n") // who came after the end gets no event
			if got != strings.Join(want, "\n") && got != late {
				rt.Fatalf("reader %d saw %d records of %d:\n%s", i, len(seen[i]), len(want), strings.Join(seen[i], "\n"))
			}
		}
	})
}

// readAll is the snapshot and what follows, whose cursors must be contiguous.
func readAll(t *testing.T, sub *store.Subscription) (lines []string) {
	defer sub.Close()
	for _, l := range sub.Turns {
		lines = append(lines, string(l))
	}
	for {
		e, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return lines
		}
		lines = append(lines, string(e.Record))
		if want := len(lines); err != nil || e.Lost != 0 || e.Cursor != want {
			t.Errorf("%+v, %v; want cursor %d", e, err, want)
			return lines
		}
	}
}

// A subscriber that does not read holds nobody up, and learns what it missed and where to find it.
func slowSubscriber(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	add(t, s, id, "0")
	sub := follow(t, s, id, &store.SubscribeOptions{MaxEvents: 3})
	defer sub.Close()
	for i := 1; i <= 10; i++ {
		add(t, s, id, fmt.Sprint(i))
	}
	whole := trace(t, s, id, nil).Records
	for i := range 3 {
		if e := next(t, sub); string(e.Record) != string(whole[2+i]) || e.Cursor != 2+i {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	e := next(t, sub)
	if e.Record != nil || e.Lost != 7 || e.From != 5 || e.Cursor != 11 || e.Status != runtrace.InProgress {
		t.Errorf("lost: %+v", e)
	}
	if missed := trace(t, s, id, &store.TraceOptions{From: e.From}); len(missed.Records) != 7 || missed.Next != e.From+e.Lost {
		t.Errorf("%d records to catch up", len(missed.Records))
	}
	add(t, s, id, "11")
	if e := next(t, sub); e.Cursor != 12 || e.Lost != 0 {
		t.Errorf("after it: %+v", e)
	}
	bytes := follow(t, s, id, &store.SubscribeOptions{MaxBytes: 300})
	defer bytes.Close()
	add(t, s, id, strings.Repeat("x", 1000), strings.Repeat("y", 1000))
	if e := next(t, bytes); e.Record == nil {
		t.Errorf("one event of any size fits: %+v", e)
	}
	if e := next(t, bytes); e.Lost != 1 {
		t.Errorf("the next does not: %+v", e)
	}
}

// longSnapshot follows runs that have more turns than a snapshot takes: what is missing is named before anything else comes.
func longSnapshot(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	for range 5 {
		add(t, s, id, strings.Repeat("x", 1000))
	}
	o := &store.SubscribeOptions{MaxSnapshot: 2500}
	sub := follow(t, s, id, o)
	defer sub.Close()
	if len(sub.Turns) != 2 || sub.Cursor != 2 {
		t.Fatalf("%d turns up to %d", len(sub.Turns), sub.Cursor)
	}
	if e := next(t, sub); e.Record != nil || e.Lost != 3 || e.From != 3 || e.Cursor != 5 || e.Status != runtrace.InProgress {
		t.Errorf("missing: %+v", e)
	}
	add(t, s, id, "after")
	if e := next(t, sub); e.Cursor != 6 || e.Lost != 0 {
		t.Errorf("after it: %+v", e)
	}
	late := follow(t, s, id, o)
	defer late.Close()
	add(t, s, id, "before it was told")
	if e := next(t, late); e.Lost != 5 || e.From != 3 || e.Cursor != 7 {
		t.Errorf("missing, and what came since: %+v", e)
	}
	if err := s.End(t.Context(), id, &runtrace.Ended{}); err != nil {
		t.Fatal(err)
	}
	over := follow(t, s, id, o)
	if e := next(t, over); e.Lost != 6 || e.From != 3 || e.Cursor != 8 || e.Status != runtrace.Completed {
		t.Errorf("missing of one that has ended: %+v", e)
	}
	if missed := trace(t, s, id, &store.TraceOptions{From: 3}); len(missed.Records) != 6 {
		t.Errorf("%d records to catch up", len(missed.Records))
	}
	if _, err := over.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}

func unsubscribe(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	sub := follow(t, s, id, nil)
	sub.Close()
	sub.Close()
	add(t, s, id, "one")
	if e, err := sub.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v", e, err)
	}
}

func closeSubscribed(t *testing.T, s store.Store) {
	sub := follow(t, s, start(t, s, "a", "r"), nil)
	done := make(chan error)
	go func() {
		_, err := sub.Next(context.Background())
		done <- err
	}()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	sub.Close()
}
