package fidelity

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// builtinMasks are those that tapedeck knows, on both sides, and the digest by which recordings compare.
func builtinMasks(own ...masks.Extra) (both [2]*masks.Masker, digest func(string) tape.Payload) {
	m := masks.New(&masks.Options{Extra: own, WorkTree: "/w"})
	return [2]*masks.Masker{m, m}, func(s string) tape.Payload {
		p := *inline(s)
		p.Hash = m.Digest([]byte(s))
		return p
	}
}

const (
	oneID   = "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"
	otherID = "1b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c12"
)

// TestMaskedPairs: each place at which a mask hides a difference is told with both values, or is a divergence.
func TestMaskedPairs(t *testing.T) {
	own := masks.Extra{Name: "build", Pattern: regexp.MustCompile(`build [0-9]+`)}
	masks, digest := builtinMasks(own)
	asks := func(text string) *tape.LLMCall {
		k := call("llm:a", 1, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, text), "yes")
		k.RequestDigest = digest(k.RequestPayload.Text).Hash
		return k
	}
	prints := func(text string, args ...string) *tape.ProcessSpawn {
		k := program(text, 0, args...)
		k.StdoutDigest = digest(text).Hash
		return k
	}
	for name, tt := range map[string]struct {
		was, now   string // of a request
		args       []string
		out, print string
		masked     []string // neither exact
		exact      []string // pairs
		red        int      // divergences that are not exact
		redExact   int
		given      bool // the monotonic clock
	}{
		"the same": {was: "on 2026-01-02", now: "on 2026-01-02"},
		"a date": {
			was: "on 2026-01-02", now: "on 2027-01-02", redExact: 1,
			masked: []string{"llm:a, date messages[0].content (user): 2026-01-02 → 2027-01-02"},
		},
		"every place": {
			was: "on 2026-01-02\nid " + oneID, now: "on 2026-01-03\nid " + otherID, redExact: 2,
			masked: []string{
				"llm:a, date messages[0].content (user), line 1: 2026-01-02 → 2026-01-03",
				"llm:a, uuid messages[0].content (user), line 2: " + oneID + " → " + otherID,
			},
		},
		"durations of arguments": {
			was: "stop after 50 ms", now: "stop after 51 ms", args: []string{"50 ms", "51 ms"}, redExact: 1,
			masked: []string{"llm:a, duration messages[0].content (user): 50 ms → 51 ms"},
		},
		"an argument":              {was: "on 2026-01-02", now: "on 2027-01-02", args: []string{"--day=2026-01-02"}, red: 1, redExact: 1},
		"one of two equal names":   {was: oneID + " and " + oneID, now: oneID + " and " + otherID, red: 1, redExact: 1},
		"a setting":                {was: "stop in 1000 ms", now: "stop in 9000 ms", red: 1, redExact: 1},
		"a setting that was short": {was: "stop in 100 ms", now: "stop in 200 ms", redExact: 1, masked: []string{"llm:a, duration messages[0].content (user): 100 ms → 200 ms"}},
		"a measured time": {
			was: "took 12 ms", now: "took 13 ms",
			masked: []string{"llm:a, duration messages[0].content (user): 12 ms → 13 ms"},
			exact:  []string{"llm:a, duration messages[0].content (user): 12 ms → 13 ms"},
		},
		"a time measured by a clock that was given": {
			was: "took 12 ms", now: "took 13 ms", given: true, redExact: 1,
			masked: []string{"llm:a, duration messages[0].content (user): 12 ms → 13 ms"},
		},
		"a setting that looks measured": {was: "took 12 ms", now: "took 17 ms", redExact: 1, masked: []string{"llm:a, duration messages[0].content (user): 12 ms → 17 ms"}},
		"a time longer than the run": {
			was: "took 2.345 s", now: "took 6.789 s", redExact: 1,
			masked: []string{"llm:a, duration messages[0].content (user): 2.345 s → 6.789 s"},
		},
		"a port": {
			was: "at 127.0.0.1:4001", now: "at 127.0.0.1:4002",
			masked: []string{"llm:a, port messages[0].content (user): 4001 → 4002"}, redExact: 1,
		},
		"links": {
			was: "drwxr-xr-x 3 a b 4 src", now: "drwxr-xr-x 4 a b 4 src", redExact: 1,
			masked: []string{"llm:a, links messages[0].content (user): 3 → 4"},
		},
		"links of a directory of an overlay": {
			was: "drwxr-xr-x 3 a b 4 src", now: "drwxr-xr-x 1 a b 4 src",
			masked: []string{"llm:a, links messages[0].content (user): 3 → 1"},
			exact:  []string{"llm:a, links messages[0].content (user): 3 → 1"},
		},
		"a mask of one's own": {
			was: "build 1", now: "build 2",
			masked: []string{"llm:a, build messages[0].content (user): build 1 → build 2"},
			exact:  []string{"llm:a, build messages[0].content (user): build 1 → build 2"},
		},
		"temporary names": {
			was: "in /tmp/agent-x7gh29kd", now: "in /tmp/agent-abcdefgh", redExact: 1,
			masked: []string{"llm:a, temp-name messages[0].content (user): x7gh29kd → abcdefgh"},
		},
		"names of a person": {was: "in /tmp/agent-reports", now: "in /tmp/agent-letters", red: 1, redExact: 1},
		"output": {
			out: "one\nat 07:08:09\n", print: "one\nat 08:09:10\n", redExact: 1,
			masked: []string{"program, time stdout, line 2: 07:08:09 → 08:09:10"},
		},
		"times that the runs read": {
			was: "at 2026-11-27T05:21:22Z", now: "at 2026-11-27T05:21:24Z",
			masked: []string{"llm:a, timestamp messages[0].content (user): 2026-11-27T05:21:22Z → 2026-11-27T05:21:24Z"},
			exact:  []string{"llm:a, timestamp messages[0].content (user): 2026-11-27T05:21:22Z → 2026-11-27T05:21:24Z"},
		},
		"names made of times that the runs read": {
			was: "turn 01a21b73-7850-7abc-8000-00000000000a", now: "turn 01a21b73-8020-7abc-8000-00000000000b",
			masked: []string{"llm:a, uuid messages[0].content (user): 01a21b73-7850-7abc-8000-00000000000a → 01a21b73-8020-7abc-8000-00000000000b"},
			exact:  []string{"llm:a, uuid messages[0].content (user): 01a21b73-7850-7abc-8000-00000000000a → 01a21b73-8020-7abc-8000-00000000000b"},
		},
		"a name made of a time that no run read": {
			was: "turn 01a21b73-7850-7abc-8000-00000000000a", now: "turn 01a21b73-93a8-7abc-8000-00000000000c", redExact: 1,
			masked: []string{"llm:a, uuid messages[0].content (user): 01a21b73-7850-7abc-8000-00000000000a → 01a21b73-93a8-7abc-8000-00000000000c"},
		},
		"a time that no run read": {
			was: "at 2026-11-27T05:21:22Z", now: "at 2026-11-27T05:21:29Z", redExact: 1,
			masked: []string{"llm:a, timestamp messages[0].content (user): 2026-11-27T05:21:22Z → 2026-11-27T05:21:29Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := prints(tt.out, tt.args...), prints(tt.print, tt.args...)
			now.Extra = tape.FlagFields(map[string]bool{tape.OwnTicksKey: !tt.given})
			a, b := []tape.Kind{asks(tt.was), was}, []tape.Kind{asks(tt.now), now}
			for _, exact := range []bool{false, true} {
				o := &LaneOptions{Masks: masks, Exact: exact}
				if exact {
					o.Times = [2][]int64{{1795756882e9 + 5}, {1795756883e9, 1795756884e9 + 7}}
					o.New = func(value string) bool { return value == "17 ms" }
				}
				r := compareTimed(t, a, b, o)
				want, red := tt.masked, tt.red
				if exact {
					want, red = tt.exact, tt.redExact
				}
				if d := cmp.Diff(want, maskedLines(r), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("exact %v: -want +got\n%s", exact, d)
				}
				if len(r.Divergences) != red {
					t.Errorf("exact %v: %v, want %d divergences", exact, r.Divergences, red)
				}
				for _, d := range r.Divergences {
					if d.Category != MaskedValue || !strings.Contains(d.Message, "replay") {
						t.Errorf("exact %v: %s %q", exact, d.Category, d.Message)
					}
				}
				if exact && r.Doubtful() > 0 {
					t.Errorf("%q leave a doubt", maskedLines(r))
				}
			}
		})
	}
}

// TestDurationsOfThreads: which of several threads reads a clock first is chance, and what it measures too.
func TestDurationsOfThreads(t *testing.T) {
	m, _ := builtinMasks()
	for ticks, red := range map[*tape.Payload]int{inline("read"): 0, nil: 1} {
		run := func(took string) []tape.Kind {
			thread := &tape.ProcessSpawn{SpawnID: 2, ParentSpawnID: 1, Ticks: ticks, Extra: tape.FlagFields(map[string]bool{tape.ForkedKey: true})}
			agent := program("took "+took+"\n", 0)
			agent.SpawnID = 1
			return []tape.Kind{thread, agent}
		}
		if r := compareTimed(t, run("12 ms"), run("13 ms"), &LaneOptions{Masks: m, Exact: true}); len(r.Divergences) != red {
			t.Errorf("ticks %v: %v", ticks, r.Divergences)
		}
	}
}

// TestAnotherSecret: what both runs were given alike differs because the program does, unless a person ran another command line.
func TestAnotherSecret(t *testing.T) {
	masks, _ := builtinMasks()
	prints := func(secret string) []tape.Kind { return []tape.Kind{program("token td_token_"+secret+"\n", 0)} }
	for _, replaced := range []bool{false, true} {
		r := compareTimed(t, prints("0123456789ab"), prints("ba9876543210"), &LaneOptions{Masks: masks, Exact: true, SameSecrets: true, ProgramReplaced: replaced})
		if red, masked := len(r.Divergences), len(r.MaskedPairs); replaced && (red > 0 || masked != 1) || !replaced && (red != 1 || masked > 0) {
			t.Errorf("another command line %v: %v, %q", replaced, r.Divergences, maskedLines(r))
		}
	}
}

// compareTimed compares runs of which each record was written a second after the one before.
func compareTimed(t *testing.T, a, b []tape.Kind, o *LaneOptions) *Report {
	t.Helper()
	timed := func(kinds []tape.Kind) Records {
		recs := recordsOf(kinds...)
		for i := range recs {
			recs[i].MonotonicMS = int64(1000 * (i + 1))
		}
		return yieldAll(recs, nil)
	}
	r, err := CompareLanes(Semantic, timed(a), timed(b), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMaskedArgumentOfAChild: a duration that a changed file holds is no measured one, in the arguments of what the program starts too.
func TestMaskedArgumentOfAChild(t *testing.T) {
	masks, _ := builtinMasks()
	runs := func(text string) []tape.Kind {
		return []tape.Kind{
			&tape.ProcessSpawn{SpawnID: 2, ParentSpawnID: 1, Program: "/bin/echo", Args: []string{"took " + text}},
			&tape.ProcessSpawn{SpawnID: 1, Program: "/bin/agent", Extra: tape.FlagFields(map[string]bool{tape.OwnTicksKey: true})},
		}
	}
	source := Input{Name: "agent", Bytes: func(s Side) ([]byte, error) {
		return []byte("echo 'took " + [2]string{"12 ms", "13 ms"}[s] + "'"), nil
	}}
	for _, tt := range []struct {
		inputs []Input
		red    int
	}{{nil, 0}, {[]Input{source}, 1}} {
		r := compareTimed(t, runs("12 ms"), runs("13 ms"), &LaneOptions{Masks: masks, Exact: true, Inputs: tt.inputs})
		if len(r.Divergences) != tt.red {
			t.Errorf("%d inputs differ: %d divergences, want %d: %+v", len(tt.inputs), len(r.Divergences), tt.red, r.Divergences)
		}
	}
}

// TestMaskedVerdict: what leaves a doubt stands in the verdict, a pair that a hundred records repeat once.
func TestMaskedVerdict(t *testing.T) {
	masks, digest := builtinMasks()
	var a, b []tape.Kind
	for i := range 3 {
		for _, s := range []struct {
			kinds *[]tape.Kind
			day   string
		}{{&a, "2026-01-02"}, {&b, "2026-01-03"}} {
			body := fmt.Sprintf(`{"day":%q,"turn":%d}`, s.day, i)
			k := call("llm:a", uint64(i+1), body, "yes")
			k.RequestDigest = digest(body).Hash
			*s.kinds = append(*s.kinds, k)
		}
	}
	r := compareLanes(t, Semantic, a, b, &LaneOptions{Masks: masks})
	if s := r.String(); !strings.HasPrefix(s, "FAITHFUL, masked: date 1 (semantic") || r.Doubtful() != 1 || !r.Faithful() {
		t.Errorf("%s, %d in doubt", s, r.Doubtful())
	}
	if d := cmp.Diff([]string{"llm:a, date day: 2026-01-02 → 2026-01-03 (and in 2 records more)"}, maskedLines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestRemasked: records compare by the masks of now, whatever their digests were taken under.
func TestRemasked(t *testing.T) {
	_, digest := builtinMasks()
	prints := func(text string) []tape.Kind {
		k := program(text, 0)
		k.StdoutDigest = digest(text).Hash
		return []tape.Kind{k}
	}
	more, _ := builtinMasks(masks.Extra{Name: "build", Pattern: regexp.MustCompile(`build [0-9]+`)})
	r := compareLanes(t, Semantic, prints("build 1"), prints("build 2"), &LaneOptions{Masks: more, Remasked: true})
	if len(r.Divergences) > 0 || len(r.MaskedPairs) != 1 || !r.MaskedPairs[0].Settled {
		t.Errorf("a mask that was added: %v, %q", r.Divergences, maskedLines(r))
	}
	less := masks.New(&masks.Options{Disabled: []string{"time"}})
	r = compareLanes(t, Semantic, prints("07:08:09"), prints("08:09:10"), &LaneOptions{Masks: [2]*masks.Masker{less, less}, Remasked: true})
	if d := cmp.Diff([]code{{"program", ProcessStdoutHash}}, codes(r)); d != "" {
		t.Errorf("a mask that was switched off: -want +got\n%s", d)
	}
}

// TestBroughtNames: a name that an answer said again is no constant of the program.
func TestBroughtNames(t *testing.T) {
	masks, digest := builtinMasks()
	asks := func(arrival uint64, body, answer string) *tape.LLMCall {
		k := call("llm:a", arrival, body, answer)
		k.RequestDigest = digest(body).Hash
		return k
	}
	a := []tape.Kind{asks(1, `"I am `+oneID+`"`, "hello "+oneID), asks(2, `["I am `+oneID+`","hello `+oneID+`"]`, "ok")}
	b := []tape.Kind{asks(1, `"I am `+otherID+`"`, "hello "+oneID), asks(2, `["I am `+otherID+`","hello `+oneID+`"]`, "ok")}
	r := compareLanes(t, Semantic, a, b, &LaneOptions{Masks: masks})
	if len(r.Divergences) > 0 || len(r.MaskedPairs) != 2 {
		t.Errorf("%v, %q", r.Divergences, maskedLines(r))
	}
}

// TestHeaders: what a program sends in its headers compares, but for what transport owns.
func TestHeaders(t *testing.T) {
	masks, _ := builtinMasks()
	const secret, another = "Bearer td_authorization_0123456789ab", "Bearer td_authorization_ba9876543210"
	for name, tt := range map[string]struct {
		was, now string // of one header
		header   string
		secrets  bool
		want     []string // messages
		masked   int
	}{
		"the same":                  {header: "X-Tenant", was: "a", now: "a"},
		"another tenant":            {header: "X-Tenant", was: "a", now: "b", want: []string{"the header x-tenant changed"}},
		"one that is gone":          {header: "X-Tenant", was: "a", want: []string{"the header x-tenant changed"}},
		"a trace":                   {header: "Traceparent", was: "a", now: "b"},
		"one of a family":           {header: "X-B3-Spanid", was: "a", now: "b"},
		"a deadline":                {header: "Grpc-Timeout", was: "59996826u", now: "59995888u"},
		"an id":                     {header: "X-Session", was: oneID, now: otherID, masked: 1},
		"a token":                   {header: "X-Nonce", was: "8f3a9c0d1e2b4f5a", now: "0a1b2c3d4e5f6071", masked: 1},
		"another secret":            {header: "Authorization", was: secret, now: another, secrets: true, want: []string{"the header authorization holds another secret"}},
		"another session":           {header: "X-Session-Id", was: "td_x_session_id_0123456789ab", now: "td_x_session_id_ba9876543210", secrets: true, masked: 1},
		"secrets under another key": {header: "Authorization", was: secret, now: another},
		"a boundary":                {header: "Content-Type", was: "multipart/form-data; boundary=a", now: "multipart/form-data; boundary=b"},
		"another type":              {header: "Content-Type", was: "text/plain", now: "text/html", want: []string{"the header content-type changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(value string) []tape.Kind {
				k := call("llm:a", 1, "{}", "yes")
				if k.RequestHeaders = nil; value != "" {
					k.RequestHeaders = []tape.HeaderField{{Name: tt.header, Value: value}}
				}
				return []tape.Kind{k}
			}
			r := compareLanes(t, Semantic, with(tt.was), with(tt.now), &LaneOptions{
				Masks: masks, SameSecrets: tt.secrets, Headers: func(name string) bool { return !HeaderIn(TransportHeaders(), name) },
			})
			var got []string
			for _, d := range r.Divergences {
				message, _, _ := strings.Cut(d.Message, ":")
				got = append(got, message)
				if d.Category != "llm_request_headers" || strings.Contains(d.Message, "td_") {
					t.Errorf("%s %q", d.Category, d.Message)
				}
			}
			if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if len(r.MaskedPairs) != tt.masked {
				t.Errorf("%q, want %d", maskedLines(r), tt.masked)
			}
		})
	}
}

// TestSignatures: a signature of other headers says nothing of its own, and one of the same is another key's.
func TestSignatures(t *testing.T) {
	with := func(signature, attempt, trace string) []tape.Kind {
		k := call("llm:a", 1, "{}", "yes")
		k.RequestHeaders = []tape.HeaderField{
			{Name: "Amz-Sdk-Invocation-Id", Value: attempt}, {Name: "Authorization", Value: "AWS4-HMAC-SHA256 td_authorization_" + signature}, {Name: "X-Amzn-Trace-Id", Value: trace},
		}
		return []tape.Kind{k}
	}
	o := &LaneOptions{SameSecrets: true, Headers: func(name string) bool { return !HeaderIn(TransportHeaders(), name) }}
	for what, tt := range map[string]struct {
		attempt, trace string
		want           int
	}{"of other headers": {otherID, oneID, 0}, "of the same": {oneID, oneID, 1}, "beside another header": {oneID, otherID, 1}} {
		if r := compareLanes(t, Semantic, with("0123456789ab", oneID, oneID), with("ba9876543210", tt.attempt, tt.trace), o); len(r.Divergences) != tt.want {
			t.Errorf("%s: %v", what, r.Divergences)
		}
	}
}

// TestCallersOfOneRequest: equal requests of two callers are paired by what their headers say.
func TestCallersOfOneRequest(t *testing.T) {
	of := func(arrival uint64, tenant string) tape.Kind {
		k := call("llm:a", arrival, "{}", "yes")
		k.RequestHeaders = []tape.HeaderField{{Name: "X-Tenant", Value: tenant}}
		return k
	}
	r := compareLanes(t, Semantic, []tape.Kind{of(1, "a"), of(2, "b")}, []tape.Kind{of(1, "b"), of(2, "a")},
		&LaneOptions{Headers: func(string) bool { return true }})
	if len(r.Divergences) > 0 {
		t.Errorf("%v", r.Divergences)
	}
}

// TestMaskedFields: forms and parts compare by what they say, the whole name of a file too.
func TestMaskedFields(t *testing.T) {
	part := func(boundary, file string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" + file + "\"\r\n\r\nhello\r\n--" + boundary + "--\r\n"
	}
	masks, _ := builtinMasks()
	for name, tt := range map[string]struct {
		was, now string
		want     []string
	}{
		"a boundary":     {part("aaaa", "r.txt"), part("bbbb", "r.txt"), nil},
		"a file's name":  {part("aaaa", "r.txt"), part("aaaa", "../../etc/r.txt"), []string{"http:h, not-matched parts.f.filename: "}},
		"a field's time": {"d=2026-01-02+07%3A08%3A09", "d=2026-01-03+07%3A08%3A09", []string{"http:h, timestamp form.d: 2026-01-02 07:08:09 → 2026-01-03 07:08:09"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(body string) []tape.Kind {
				return []tape.Kind{&tape.HTTPExchange{Exchange: tape.Exchange{
					Method: "POST", URL: "http://h/", RequestDigest: sum("one"), RequestPayload: inline(body), Status: 200, Lane: "http:h",
				}}}
			}
			got := maskedLines(compareLanes(t, Semantic, with(tt.was), with(tt.now), &LaneOptions{Masks: masks}))
			if len(got) != len(tt.want) || len(got) > 0 && !strings.HasPrefix(got[0], tt.want[0]) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestMaskedOutcome: of outcomes what masks hide in files counts, and nothing else.
func TestMaskedOutcome(t *testing.T) {
	masks, digest := builtinMasks()
	for _, digests := range [][2]bool{{}, {true, true}, {true, false}, {false, true}} { // those of a recording have none
		run := func(day string, digested bool) []tape.Kind {
			f, p := wrote("log", day+strings.Repeat("x", 2*maxMaskedValue)), program(day, 0)
			if f.ContentDigest, p.StdoutDigest = (cas.Digest{}), digest(day).Hash; digested {
				f.ContentDigest = digest(f.Content.Text).Hash
			}
			return []tape.Kind{f, p}
		}
		a, b := run("2026-01-02 ", digests[Recorded]), run("2026-01-03 ", digests[Replay])
		r := compareLanes(t, Outcome, a, b, &LaneOptions{Masks: masks})
		if d := cmp.Diff([]string{"files, date log: 2026-01-02 → 2026-01-03"}, maskedLines(r)); d != "" || r.Score != 1 {
			t.Errorf("%v: -want +got\n%s", digests, d)
		}
		r = compareLanes(t, Outcome, a, b, &LaneOptions{Masks: masks, Exact: true})
		if d := cmp.Diff([]code{{laneFiles, MaskedValue}}, codes(r)); d != "" || r.Score != 0 {
			t.Errorf("%v: exact: -want +got\n%s", digests, d)
		}
	}
}

// TestMaskedStates: of a file that is written several times, each state stands for that of the other run which differs in what masks hide alone.
func TestMaskedStates(t *testing.T) {
	masks, _ := builtinMasks()
	run := func(states ...string) (all []tape.Kind) {
		for _, s := range states {
			f := wrote("log", s)
			f.ContentDigest = cas.Digest{}
			all = append(all, f)
		}
		return append(all, program("", 0))
	}
	const first, second = "began 2026-01-02T03:04:05Z\n", "began 2026-01-02T03:04:06Z\n"
	r := compareLanes(t, Semantic, run(first, "two\n", first), run(first, "two\n", second), &LaneOptions{Masks: masks})
	if d := cmp.Diff([]string{"files, timestamp log: 2026-01-02T03:04:05Z → 2026-01-02T03:04:06Z"}, maskedLines(r)); d != "" || r.Score != 1 {
		t.Errorf("-want +got\n%s", d)
	}
	r = compareLanes(t, Semantic, run(first, "two\n"), run(second, "three\n"), &LaneOptions{Masks: masks})
	if d := cmp.Diff([]code{{laneFiles, FileWriteHash}}, codes(r)); d != "" {
		t.Errorf("another word: -want +got\n%s", d)
	}
}
