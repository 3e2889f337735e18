package fidelity

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// call is a model call of a conversation.
func call(lane string, arrival uint64, body, answer string) *tape.LLMCall {
	return &tape.LLMCall{
		Provider: "anthropic", Endpoint: "messages", Model: "m",
		Exchange: tape.Exchange{
			Method: "POST", URL: "https://api.test/v1/messages", RequestDigest: sum(body), RequestPayload: inline(body),
			Status: 200, Response: inline(answer), Lane: lane, Arrival: arrival,
		},
	}
}

// get is a plain request.
func get(url string, arrival uint64, status int) *tape.HTTPExchange {
	x := &tape.HTTPExchange{Exchange: tape.Exchange{
		Method: "GET", URL: url, RequestDigest: sum(""), Status: status, Lane: "http:" + tape.HostOf(url), Arrival: arrival,
	}}
	if status != 0 {
		x.Response = inline("answer of " + url)
	}
	return x
}

// upgrade426 is a request for a WebSocket that the recorder refused.
func upgrade426(url string, arrival uint64) *tape.HTTPExchange {
	x := get(url, arrival, 426)
	x.RequestHeaders = []tape.HeaderField{{Name: "Upgrade", Value: "websocket"}}
	return x
}

// measured is telemetry.
func measured(url string, arrival uint64) *tape.HTTPExchange {
	x := get(url, arrival, 200)
	x.Lane = tape.TelemetryLane + tape.HostOf(url)
	return x
}

// refused is a call that nothing on the tape answers.
func refused(arrival uint64, body, why string) *tape.LLMCall {
	c := call(laneUnmatched, arrival, body, "no")
	c.Status, c.Error = 400, why
	return c
}

func wrote(path, content string) *tape.FileWrite {
	return &tape.FileWrite{File: tape.File{
		Path: path, ContentHash: sum(content), Content: inline(content), ContentDigest: sum(content), Mode: "100644",
	}}
}

// program is the recorded program's own record.
func program(stdout string, code int, args ...string) *tape.ProcessSpawn {
	return &tape.ProcessSpawn{
		Program: "/bin/agent", Args: args, ExitCode: code, Stdout: inline(stdout), StdoutDigest: sum(maskDigits(stdout)),
	}
}

var digits = regexp.MustCompile(`[0-9]{4,}`)

func maskDigits(s string) string { return digits.ReplaceAllString(s, "N") }

// digitMasks are the masks whose digests maskDigits stands for.
var digitMasks = ownMask("n", digits)

// ownMask are masks of one pattern, on both sides.
func ownMask(name string, pattern *regexp.Regexp) [2]*masks.Masker {
	m := masks.New(&masks.Options{Extra: []masks.Extra{{Name: name, Pattern: pattern}}})
	return [2]*masks.Masker{m, m}
}

func compareLanes(t *testing.T, mode Mode, a, b []tape.Kind, o *LaneOptions) *Report {
	t.Helper()
	if o == nil {
		o = &LaneOptions{Masks: digitMasks}
	}
	r, err := CompareLanes(mode, tapeOf(a...), tapeOf(b...), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// code is a divergence without its text.
type code struct {
	Lane     string
	Category Category
}

func codes(r *Report) []code {
	var out []code
	for _, d := range r.Divergences {
		out = append(out, code{d.Lane, d.Category})
	}
	return out
}

func TestLanes(t *testing.T) {
	type kinds = []tape.Kind
	tests := []struct {
		name  string
		a, b  kinds
		o     *LaneOptions
		want  []code
		notes int
	}{
		{
			name: "conversations may finish in another order",
			a:    kinds{call("llm:a", 1, "a1", "x"), call("llm:b", 2, "b1", "y"), call("llm:a", 3, "a2", "z")},
			b:    kinds{call("llm:b", 1, "b1", "y"), call("llm:a", 2, "a1", "x"), call("llm:a", 3, "a2", "z")},
		},
		{
			name: "arrival orders a lane, not the end of the answer",
			a:    kinds{call("llm:a", 2, "a2", "x"), call("llm:a", 1, "a1", "y")},
			b:    kinds{call("llm:a", 1, "a1", "y"), call("llm:a", 2, "a2", "x")},
		},
		{
			name: "one request that was not asked is one divergence",
			a:    kinds{call("llm:a", 1, "1", "x"), call("llm:a", 2, "2", "y"), call("llm:a", 3, "3", "z")},
			b:    kinds{call("llm:a", 1, "1", "x"), call("llm:a", 2, "3", "z")},
			want: []code{{"llm:a", MissingInReplay}},
		},
		{
			name: "a repeat that was not asked again",
			a:    kinds{call("llm:a", 1, "1", "x"), call("llm:a", 2, "1", "x")},
			b:    kinds{call("llm:a", 1, "1", "x")},
			want: []code{{"llm:a", MissingInReplay}},
		},
		{
			name: "another answer",
			a:    kinds{call("llm:a", 1, "1", "x")}, b: kinds{call("llm:a", 1, "1", "y")},
			want: []code{{"llm:a", LLMResponseHash}},
		},
		{
			name: "a changed request of another recording is one divergence",
			a:    kinds{call("llm:a", 1, "1", "x"), call("llm:a", 2, "2", "y")},
			b:    kinds{call("llm:a", 1, "1", "x"), call("llm:a", 2, "other", "y")},
			want: []code{{"llm:a", LLMRequestDigest}},
		},
		{
			name: "a changed first message changes the lane's name, not the conversation",
			a:    kinds{call("llm:a", 1, "1", "x")}, b: kinds{call("llm:b", 1, "2", "x")},
			want: []code{{"llm:a", LLMRequestDigest}},
		},
		{
			name: "a refused request and the one in its place",
			a:    kinds{call("llm:a", 1, "1", "x"), program("done\n", 0)},
			b:    kinds{refused(1, "2", "the nearest is seq 0"), program("failed\n", 1)},
			want: []code{
				{laneUnmatched, MissingInRecorded}, {"llm:a", MissingInReplay},
				{laneProgram, "process_exit_code"}, {laneProgram, ProcessStdoutHash},
			},
		},
		{
			name: "plain requests may come in another order",
			a:    kinds{get("http://h.test/a", 1, 200), get("http://h.test/b", 2, 200)},
			b:    kinds{get("http://h.test/b", 1, 200), get("http://h.test/a", 2, 200)}, notes: 1,
		},
		{
			name: "requests that no upstream answered never gate",
			a:    kinds{get("http://telemetry.test/a", 1, 0)},
			b:    kinds{get("http://telemetry.test/b", 1, 0), get("http://telemetry.test/c", 2, 0)}, notes: 1,
		},
		{
			name: "nor when the replay no longer sends them",
			a:    kinds{get("http://telemetry.test/a", 1, 0)}, notes: 1,
		},
		{
			name: "a refused upgrade may be asked for again", notes: 1,
			a: kinds{upgrade426("http://h.test/a", 1)}, b: kinds{upgrade426("http://h.test/a", 1), upgrade426("http://h.test/a", 2)},
		},
		{
			name: "or not at all", notes: 1,
			a: kinds{upgrade426("http://h.test/a", 1), get("http://h.test/b", 2, 200)}, b: kinds{get("http://h.test/b", 1, 200)},
		},
		{
			name: "one that was not recorded gates",
			b:    kinds{upgrade426("http://h.test/a", 1)}, want: []code{{"http:h.test", MissingInRecorded}},
		},
		{
			name: "and so does one to another place", notes: 1,
			a: kinds{upgrade426("http://h.test/a", 1)}, b: kinds{upgrade426("http://h.test/b", 1)},
			want: []code{{"http:h.test", MissingInRecorded}},
		},
		{
			name: "what an older recorder took for telemetry may come in any number",
			a:    kinds{measured("http://t.test/v1/metrics", 1)},
			b:    kinds{measured("http://t.test/v1/metrics", 1), measured("http://t.test/v1/metrics", 2)},
		},
		{
			name: "telemetry that nothing recorded is like gates",
			b: kinds{func() tape.Kind {
				x := measured("http://t.test/v1/metrics", 1)
				x.Lane, x.Error = laneUnmatched, "not on the tape"
				return x
			}()},
			want: []code{{laneUnmatched, MissingInRecorded}},
		},
		{
			name: "a 426 to a request for nothing else gates",
			a:    kinds{get("http://h.test/a", 1, 426)}, want: []code{{"http:h.test", MissingInReplay}},
		},
		{
			name: "an answer that the replay no longer gives does gate",
			a:    kinds{get("http://h.test/a", 1, 200)}, b: kinds{get("http://h.test/a", 1, 0)},
			want: []code{{"http:h.test", "http_status"}, {"http:h.test", HTTPResponseHash}},
		},
		{
			name: "ids in a URL are masked",
			a:    kinds{get("http://h.test/a?id=12345", 1, 200)},
			b: kinds{func() tape.Kind {
				x := get("http://h.test/a?id=99999", 1, 200)
				x.Response = inline("answer of http://h.test/a?id=12345")
				return x
			}()},
		},
		{
			name: "files compare by path, not by order",
			a:    kinds{wrote("b", "1"), wrote("a", "1"), call("llm:a", 1, "1", "x")},
			b:    kinds{wrote("a", "1"), wrote("b", "1"), call("llm:a", 1, "1", "x")},
		},
		{
			name: "files compare by path, not by where they stand among calls",
			a:    kinds{wrote("a", "1"), call("llm:a", 1, "1", "x")},
			b:    kinds{call("llm:a", 1, "1", "x"), wrote("a", "1")},
		},
		{
			name: "other content, another file, and one deleted instead",
			a:    kinds{wrote("a", "1"), wrote("b", "1"), wrote("c", "1")},
			b:    kinds{wrote("a", "2"), &tape.FileDelete{File: tape.File{Path: "b"}}, wrote("d", "1")},
			want: []code{
				{laneFiles, FileWriteHash}, {laneFiles, KindMismatch}, {laneFiles, MissingInRecorded}, {laneFiles, MissingInReplay},
			},
		},
		{
			name: "files outside the work tree and Git's own are a note each", notes: 2,
			a: kinds{wrote("~/.agent/log", "1"), wrote("$TMP/x", "1"), wrote("/etc/x", "1"), wrote(".git/index", "1")},
			b: kinds{wrote("~/.agent/log", "2"), wrote("sub/.git/index", "2")},
		},
		{
			name: "unless they are watched",
			a:    kinds{wrote("~/.agent/log", "1")}, b: kinds{wrote("~/.agent/log", "2")},
			o:    &LaneOptions{Watch: []string{"~/.agent/"}},
			want: []code{{laneFiles, FileWriteHash}},
		},
		{
			name: "what is watched and fits nothing is a note each", notes: 2,
			a: kinds{wrote("~/.agent/log", "1")}, b: kinds{wrote("~/.agent/log", "1")},
			o: &LaneOptions{Watch: []string{"~/.agnet", "~/.agent/[", "~/.agent/l*"}},
		},
		{
			name: "volatile output is masked",
			a:    kinds{program("took 1234 ms\n", 0)}, b: kinds{program("took 98765 ms\n", 0)},
		},
		{
			name: "volatile arguments are masked",
			a:    kinds{program("", 0, "--port", "12345")}, b: kinds{program("", 0, "--port", "54321")},
		},
		{
			name: "another program is a note",
			a:    kinds{program("", 0, "a")}, b: kinds{program("", 0, "b")},
			o: &LaneOptions{ProgramReplaced: true}, notes: 1,
		},
		{
			name: "another argument is not",
			a:    kinds{program("", 0, "a")}, b: kinds{program("", 0, "b")}, want: []code{{laneProgram, ProcessArgs}},
		},
		{
			name: "a new refused connection counts once", notes: 1,
			a: kinds{&tape.NetRefused{Addr: "1.1.1.1", Port: 1}, &tape.NetRefused{Addr: "2.2.2.2", Port: 2}},
			b: kinds{
				&tape.NetRefused{Addr: "2.2.2.2", Port: 2}, &tape.NetRefused{Addr: "2.2.2.2", Port: 2},
				&tape.TLSRefused{Host: "2.2.2.2", Port: 2}, &tape.TLSRefused{Host: "2.2.2.2", Port: 2},
			},
			want: []code{{laneNetwork, MissingInRecorded}},
		},
		{
			name: "a spare connection to a host that answers is a note", notes: 1,
			a: kinds{fetched("https://api.test/a")},
			b: kinds{fetched("https://api.test/a"), &tape.TLSRefused{Host: "api.test", Port: 443}},
		},
		{
			name: "a spare connection to another port is not", notes: 1,
			a:    kinds{fetched("https://api.test/a"), wrote("~/state", "1")},
			b:    kinds{fetched("https://api.test/a"), wrote("~/state", "2"), &tape.TLSRefused{Host: "api.test", Port: 8443}},
			want: []code{{laneNetwork, MissingInRecorded}},
		},
		{
			name: "an answer to another request's key",
			o:    &LaneOptions{Crossed: 1}, want: []code{{"", Crossed}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compareLanes(t, Semantic, tt.a, tt.b, tt.o)
			if d := cmp.Diff(tt.want, codes(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if len(got.Notes) != tt.notes {
				t.Errorf("notes %q, want %d", got.Notes, tt.notes)
			}
		})
	}
}

// fetched is a plain request that was answered.
func fetched(url string) *tape.HTTPExchange {
	return &tape.HTTPExchange{Exchange: tape.Exchange{Method: "GET", URL: url, Status: 200, Lane: "http:" + tape.HostOf(url)}}
}

func TestUnaskedAndRefused(t *testing.T) {
	got := compareLanes(t, Semantic,
		[]tape.Kind{call("llm:a", 1, "1", "x"), program("a\n", 0)},
		[]tape.Kind{refused(1, "2", "the nearest is seq 0"), program("b\n", 0)}, nil)
	zero := uint64(0)
	want := &RequestRef{Seq: &zero, Method: "POST", URL: "https://api.test/v1/messages", Lane: "llm:a"}
	if d := cmp.Diff([]RequestRef{*want}, got.Unasked); d != "" {
		t.Errorf("unasked -want +got\n%s", d)
	}
	want.Lane = laneUnmatched
	want.Cause = "nearest is the recorded request at seq 0, which was never asked for\nbody\n  - 1\n  + 2"
	if d := cmp.Diff([]RequestRef{*want}, got.Refused); d != "" {
		t.Errorf("refused -want +got\n%s", d)
	}
	if first := got.Divergences[0]; first.Cause != want.Cause || first.Category != MissingInRecorded {
		t.Errorf("first divergence %+v", first)
	}
}

func TestCauseOfAChangedRequest(t *testing.T) {
	a := call("llm:a", 1, `{"messages":[{"role":"user","content":"write hello.txt"}]}`, "x")
	b := call("llm:a", 1, `{"messages":[{"role":"user","content":"write bye.txt"}]}`, "x")
	got := compareLanes(t, Semantic, []tape.Kind{a}, []tape.Kind{b}, nil)
	want := "messages[0].content (user)\n  - \"write hello.txt\"\n  + \"write bye.txt\""
	if len(got.Divergences) != 1 || got.Divergences[0].Cause != want {
		t.Errorf("%+v", got.Divergences)
	}
}

func TestCauseOfOutputIsTheFirstLineThatMaskingLeaves(t *testing.T) {
	a, b := program("took 1234 ms\nhello\n", 0), program("took 5678 ms\nbye\n", 0)
	got := compareLanes(t, Semantic, []tape.Kind{a}, []tape.Kind{b}, nil)
	if want := "line 2\n  - \"hello\"\n  + \"bye\""; len(got.Divergences) != 1 || got.Divergences[0].Cause != want {
		t.Errorf("%+v", got.Divergences)
	}
}

func TestPayloadsAreOnlyReadToExplain(t *testing.T) {
	blobs := map[cas.Digest]string{sum("old"): "old", sum("new"): "new"}
	reads := 0
	o := &LaneOptions{Payload: func(p *tape.Payload, _ Side) ([]byte, error) {
		reads++
		return []byte(blobs[p.Hash]), nil
	}}
	spilled := func(s string) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{Stdout: &tape.Payload{Hash: sum(s), Len: 3}}
	}
	if got := compareLanes(t, Semantic, []tape.Kind{spilled("old")}, []tape.Kind{spilled("old")}, o); !got.Faithful() || reads != 0 {
		t.Errorf("%v after %d reads", got, reads)
	}
	got := compareLanes(t, Semantic, []tape.Kind{spilled("old")}, []tape.Kind{spilled("new")}, o)
	if want := "line 1\n  - \"old\"\n  + \"new\""; got.Divergences[0].Cause != want {
		t.Errorf("%+v", got.Divergences)
	}
	o.Payload = func(*tape.Payload, Side) ([]byte, error) { return nil, errors.New("no such blob") }
	got = compareLanes(t, Semantic, []tape.Kind{spilled("old")}, []tape.Kind{spilled("new")}, o)
	if len(got.Divergences) != 1 || !strings.Contains(got.Divergences[0].Cause, "no such blob") {
		t.Errorf("%+v", got.Divergences)
	}
}

func TestSpawnLanes(t *testing.T) {
	spawn := func(id, parent uint64, name string, args ...string) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{Program: "/usr/bin/" + name, Args: args, SpawnID: id, ParentSpawnID: parent}
	}
	forked := spawn(4, 2, "sh") // what it starts is what the shell does
	forked.Extra = tape.FlagFields(map[string]bool{tape.ForkedKey: true})
	side := &laneSide{}
	for _, r := range recordsOf(
		spawn(6, 4, "cat", "x"), spawn(2, 1, "sh", "-c", "cat x"), spawn(5, 3, "cat", "x"), spawn(3, 1, "sh", "-c", "cat x"),
		forked, spawn(1, 0, "agent"),
	) {
		side.add(r, 0)
	}
	want := map[int]string{
		0: "process:sh -c cat x > cat x", 1: "process:sh -c cat x",
		2: "process:sh -c cat x#2 > cat x", 3: "process:sh -c cat x#2",
	}
	got, keys := make(map[int]string), make(map[cas.Digest]bool)
	for at, l := range spawnLanes(side, maskDigits) {
		if l != nil {
			got[at], keys[l.key] = l.name, true
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(keys) != len(want) {
		t.Errorf("-want +got\n%s\n%d keys", d, len(keys))
	}
}

// TestSpawnsBesideEachOther: two processes whose long commands differ at the end may begin in another order.
func TestSpawnsBesideEachOther(t *testing.T) {
	spawn := func(id uint64, word string) tape.Kind {
		return &tape.ProcessSpawn{Program: "/bin/sh", Args: []string{"-c", strings.Repeat("set up; ", 20) + word}, SpawnID: id, ParentSpawnID: 1}
	}
	r := compareLanes(t, Semantic, []tape.Kind{spawn(2, "one"), spawn(3, "two"), program("", 0)}, []tape.Kind{spawn(3, "one"), spawn(2, "two"), program("", 0)}, nil)
	if len(r.Divergences) > 0 {
		t.Errorf("%+v", r.Divergences)
	}
	r = compareLanes(t, Semantic, []tape.Kind{spawn(2, "one"), program("", 0)}, []tape.Kind{spawn(2, "two"), program("", 0)}, nil)
	if len(r.Divergences) != 1 || r.Divergences[0].Category != ProcessArgs {
		t.Errorf("another command: %+v", r.Divergences)
	}
}

func TestLanesInOtherModes(t *testing.T) {
	slow := program("", 0)
	slow.DurationMS = 9
	write := func(s string) []tape.Kind {
		return []tape.Kind{wrote("a", "x"), wrote("a", s), wrote("~/b", s), program("", 0)}
	}
	tests := []struct {
		name string
		mode Mode
		a, b []tape.Kind
		want []code
	}{
		{"bytes count durations", ByteIdentical, []tape.Kind{program("", 0)}, []tape.Kind{slow}, []code{{laneProgram, ProcessDuration}}},
		{"the program's own records too", PhaseAware, []tape.Kind{program("", 0)}, []tape.Kind{slow}, []code{{laneProgram, ProcessDuration}}},
		{"outcome: the last content", Outcome, write("1"), write("1"), nil},
		{"outcome: another content", Outcome, write("1"), write("2"), []code{{"", OutcomeFSDiff}}},
		{
			"outcome: what was asked does not count, how often does", Outcome,
			[]tape.Kind{call("llm:a", 1, "1", "x")}, []tape.Kind{refused(1, "2", ""), refused(2, "2", "")},
			[]code{{"", OutcomeLLMCallCount}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, codes(compareLanes(t, tt.mode, tt.a, tt.b, nil))); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// maskedLines are the masked pairs of a report as people read them.
func maskedLines(r *Report) (out []string) {
	for i := range r.MaskedPairs {
		out = append(out, r.MaskedPairs[i].String())
	}
	return out
}
