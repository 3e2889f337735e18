package masks_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

var maskOptions = masks.Options{Home: "/home/ann", WorkTree: "/home/ann/proj", Temp: "/run/t"}

func TestMask(t *testing.T) {
	m := masks.New(&maskOptions)
	for _, tt := range []struct{ in, want string }{
		{"id 0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11.", "id <uuid>."},
		{`"\n0B5E0C52-7D3C-4F7E-9D55-0C2A5F2F3C11"`, `"\n<uuid>"`},
		{`{"id":"toolu_01A09q90qw90lq917835lq9"}`, `{"id":"toolu_<id>"}`},
		{"call_9xkT3bbbLmN0pQrS4tUvWxYz", "call_<id>"},
		{"chatcmpl-0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "chatcmpl-<id>"},
		{"resp_68a1b2c3d4 fc_68a1b2c3d4 rs_68a1b2c3d4", "resp_<id> fc_<id> rs_<id>"},
		{"msg_0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11 fco_0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "msg_<uuid> fco_<uuid>"},
		{"at 2026-11-21T07:08:09.123Z", "at <timestamp>"},
		{"2026-11-21 07:08:09+01:00,", "<timestamp>,"},
		{"2026-11-21T07:08Z", "<timestamp>"},
		{"20261121T070809Z", "<timestamp>"},
		{"today is 2026-11-21.", "today is <date>."},
		{`log\n2026/11/21`, `log\n<date>`},
		{"Today's date is Saturday, November 21, 2026 (en-US)", "Today's date is <date> (en-US)"},
		{"Sat Nov 21 2026", "<date>"},
		{"Sat Nov 21 06:58:50 UTC 2026", "<date>"},
		{"Date:   Sat Nov  1 06:58:50 2026 +0000", "Date:   <date> +0000"},
		{"Sat, 21 Nov 2026 06:58:50 GMT", "<date> <time> GMT"},
		{"-rw-r--r-- 1 u u 12 Nov 21 06:58 f", "-rw-r--r-- <links> u u 12 <date> f"},
		{"11/21/2026, 7:08:09 AM", "<date>, <time>"},
		{"21.11.2026", "<date>"},
		{"11/21/2026, 7:08:09\u202fPM", "<date>, <time>"},
		{"May 5, 2026", "<date>"},
		{"[07:08:09.123] 7:08 PM", "[<time>] <time>"},
		{"time:07:08:09", "time:<time>"},
		{"ok in 1.234s, 12ms, 15 \u00b5s, 3us", "ok in <duration>, <duration>, <duration>, <duration>"},
		{"3 passed in 0.02 seconds", "3 passed in <duration>"},
		{"built in 5s, took 2 seconds", "built in <duration>, took <duration>"},
		{"took 5s", "took <duration>"},
		{"real\t0m0.003s", "real\t<duration>"},
		{`"duration_ms": 1234,`, `"duration_ms": <duration>,`},
		{`"totalDurationMs":417,"write_file":{"total_duration":5,"totalLatencyMs":3.5}`, `"totalDurationMs":<duration>,"write_file":{"total_duration":<duration>,"totalLatencyMs":<duration>}`},
		{`elapsed_seconds=12; \"wall_time_ms\": 9`, `elapsed_seconds=<duration>; \"wall_time_ms\": <duration>`},
		{`{"create_time":1795244930123,"created": 1795244930}`, `{"create_time":<unix-time>,"created": <unix-time>}`},
		{`"{\"turn_started_at_unix_ms\":1795244930123}"`, `"{\"turn_started_at_unix_ms\":<unix-time>}"`},
		{`"prompt_cache_key":"019a-bc"`, `"prompt_cache_key":"<cache-key>"`},
		{`{"event_id":"evt_k2xQvTmwLp","event_id2":"x","id":"event_id"}`, `{"event_id":"<event-id>","event_id2":"x","id":"event_id"}`},
		{"Chunk ID: 1f3a9c\nWall time: 0.0500 seconds", "Chunk ID: 1f3a9c\nWall time: <duration>"},
		{"pid 12, PID: 345, pid=6 [pid 7] \"pid\":8", "pid <pid>, PID: <pid>, pid=<pid> [pid <pid>] \"pid\":<pid>"},
		{"Process Group PGID: 128, pgid=9, PGIDs 3", "Process Group PGID: <pid>, pgid=<pid>, PGIDs 3"},
		{"http://127.0.0.1:43117/x localhost:8080 [::1]:99", "http://127.0.0.1:<port>/x localhost:<port> [::1]:<port>"},
		{"/tmp/tmpab_dkx12/a", "/tmp/<temp-name>/a"},
		{"/tmp/tmpabcdefgh/a.txt", "/tmp/<temp-name>/a.txt"},
		{"/tmp/tmp.AbCdEfGhIj", "/tmp/tmp.<temp-name>"},
		{"/var/tmp/TestFoo123456789/001/x", "/var/tmp/<temp-name>/001/x"}, {"/tmp/x/TestFoo123456789", "/tmp/x/TestFoo<temp-name>"},
		{"/run/t/gem-x7Gh29Kd/out.json", "<temp>/gem-<temp-name>/out.json"},
		{"$TMP/ccXyZaBc.o", "$TMP/<temp-name>.o"},
		{"cd /home/ann/proj && ls /home/ann/proj/a.go /home/ann/.x", "cd <worktree> && ls <worktree>/a.go <home>/.x"},
		{"<cwd>/home/ann/proj</cwd>", "<cwd><worktree></cwd>"},
		{"file:///home/ann/proj.", "file://<worktree>."},
		{`\n/home/ann\n`, `\n<home>\n`},
	} {
		if got := string(m.Mask([]byte(tt.in))); got != tt.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

// TestNearMisses: what only looks like a volatile fact must still differ.
func TestNearMisses(t *testing.T) {
	m := masks.New(&maskOptions)
	for _, in := range []string{
		"version 1.2.3", "v2026.11.21", "write 3 files", "exit 12", "a.go:10:11", "16:9", "ratio 12:34",
		"api.example.com:8443", "10.0.0.1:8080", "my-localhost:80", "host.localhost:80", "127.0.0.1:80a",
		"#aabbcc", "#12ab34", "color: 112233", "3f2504e0", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11a", "0b5e0c52-7d3c-4f7e-9d55", "x0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11",
		"?api-version=2024-10-21&x=1", `"version": "2025-06-18"`, `{\"apiVersion\":\"2024-10-21\"}`, "gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "2026-13-21", "2026-11-41", "1234-56-78", "backup-2026-11-21",
		"November 21", "Sat", "May 5 people", "21 November", "1/2/3", "11/21",
		"timeout 30s", "sleep 5", "5 minutes", "5m", "1.5x", "12msg", "a12ms", "1.2.3s", "give 5 us", "retry 3 seconds",
		"25:61:61", "12:34:56:78", "fe80::12:34:56", "fe80:12:34:56:1",
		`"max_duration_ms":1250`, `"cache_duration_seconds": 45`, `target_latency_ms=31`, `"duration":5`,
		`"created":12345`, `"max_created":1795244930123`, `"timestamp":"soon"`, "created 1795244930123", "1795244930123",
		"call_function_name", "msg_queue", "call_1", "toolu_abc", "run_tests12", "recall_9xkT3bbbLmN0pQrS4",
		"pid", "pid_max 123", "rapid 123", "pid 12345678", "pid 1.5", "Chunk ID: xyz", "prompt_cache_key",
		"/tmp/hello.txt", "/tmp/x/report1.txt", "/tmp/x/node-compile-cache", "/tmp/x/TestFooBar", "/home/x7Gh29Kd", "/mnt/tmp/x7Gh29Kd",
		"/home/anna", "/mnt/home/ann", "/home/ann.bak", "home/ann", "/home/ann-2", "x/home/ann",
	} {
		if got := string(m.Mask([]byte(in))); got != in {
			t.Errorf("Mask(%q) = %q", in, got)
		}
	}
}

func TestMaskKeepsItsInput(t *testing.T) {
	m := masks.New(nil)
	in := []byte("a 12ms b")
	out := m.Mask(in)
	if string(in) != "a 12ms b" || string(out) != "a <duration> b" {
		t.Errorf("in %q, out %q", in, out)
	}
	if same := []byte("nothing here"); &m.Mask(same)[0] != &same[0] {
		t.Error("a text without volatile facts was copied")
	}
	if m.Mask(nil) != nil {
		t.Error("nothing became something")
	}
}

func TestUsedAndDisabled(t *testing.T) {
	opts := maskOptions
	opts.Disabled = []string{"duration", "home", "temp-name"}
	opts.Extra = []masks.Extra{
		{Name: "build", Pattern: regexp.MustCompile(`build #(\d+)`)},
		{Name: "word", Pattern: regexp.MustCompile(`w[a-z]+`)},
	}
	if err := opts.Check(); err != nil {
		t.Fatal(err)
	}
	m := masks.New(&opts)
	in := "12ms /home/ann/x /home/ann/proj /tmp/x7Gh29Kd build #77 pid 1 pid 2 wo"
	want := "12ms /home/ann/x <worktree> /tmp/x7Gh29Kd build #<build> pid <pid> pid <pid> <word>"
	got := string(m.Mask([]byte(in)))
	want = strings.ReplaceAll(want, "<worktree>", "<<word>>") // an extra mask sees what the others left
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff(map[string]int{"worktree": 1, "build": 1, "pid": 2, "word": 2}, m.Used()); diff != "" {
		t.Error(diff)
	}
}

func TestMaskOptionsCheck(t *testing.T) {
	any := regexp.MustCompile(".")
	for _, o := range []masks.Options{
		{Disabled: []string{"no-such-mask"}},
		{Extra: []masks.Extra{{Name: "Upper", Pattern: any}}},
		{Extra: []masks.Extra{{Name: "uuid", Pattern: any}}},
		{Extra: []masks.Extra{{Name: "x"}}},
	} {
		if o.Check() == nil {
			t.Errorf("%+v passed", o)
		}
		masks.New(&o).Mask([]byte("text")) // ignored, no panic
	}
}

// TestMasksAreListed: each mask says what it does and its example shows it.
func TestMasksAreListed(t *testing.T) {
	m := masks.New(&masks.Options{Home: "/home/user", WorkTree: "/home/user/project", Temp: "/run/user/tmp"})
	for _, info := range masks.All() {
		if info.Name == "" || info.What == "" {
			t.Errorf("%+v says too little", info)
		}
		before := m.Used()[info.Name]
		got := string(m.Mask([]byte(info.Example)))
		if dropped := got == "" && m.Used()[info.Name] == before+1; !dropped && !strings.Contains(got, "<"+info.Name+">") {
			t.Errorf("%s: its example %q becomes %q", info.Name, info.Example, got)
		}
	}
}

func TestDigest(t *testing.T) {
	m := masks.New(&maskOptions)
	one := m.Digest([]byte("td_a_key_0123456789ab took 12ms"))
	two := m.Digest([]byte("td_a_key_ba9876543210 took 13ms"))
	if one != two || one != cas.Sum([]byte("td_#1 took <duration>")) {
		t.Errorf("%s, %s", one, two)
	}
	if one != m.Digest([]byte("td_b_key_0123456789ab took 12ms")) {
		t.Error("the rule that found a secret makes a difference")
	}
}

// fragments are parts of which texts are drawn in which something happens.
var fragments = []string{
	"0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "toolu_01A09q90qw90", "chatcmpl-", "2026-11-21", "T07:08:09", "07:08:09.5", "Z", "+01:00",
	"Sat", " ", ",", "Nov", "21", "2026", "11/21/2026", "12ms", "1.5s", "in ", "3s", "pid ", "123", "127.0.0.1:", "localhost:", "4711",
	"/tmp", "/tmp/", "tmp.", "x7Gh29Kd", "/home/ann", "/proj", "/", ".", "-", "_", ":", "a", "9", `\n`, `"created":`, "1795244930123",
	`prompt_cache_key":"`, `"`, "AM", "<", ">", "é", "Chunk ID: ", "abcd12", "//", "://", "f",
}

func TestMaskIsIdempotent(t *testing.T) {
	m := masks.New(&maskOptions)
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 12).Draw(t, "fragments"), "")
		once := string(m.Mask([]byte(in)))
		if twice := string(m.Mask([]byte(once))); twice != once {
			t.Fatalf("%q\n once %q\ntwice %q", in, once, twice)
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, s := range fragments {
		f.Add([]byte(s))
	}
	m := masks.New(&maskOptions)
	f.Fuzz(func(t *testing.T, b []byte) {
		in := string(b)
		m.Mask(b)
		scrub.Renumber(b)
		if string(b) != in {
			t.Fatal("the input was changed")
		}
	})
}
