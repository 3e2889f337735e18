package truth

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A form is a kind of constant, with the words that usually stand around it.
type form struct {
	kind   string
	around string // %s is the constant
	pair   func(r *rand.Rand) (was, now string)
	plain  bool // it can stand in a path, a host's name, a file's name
	noted  bool // where time and randomness are not given again a mask may hide it, if a note says so
}

var forms = []form{
	{"number", "keep %s rows", twoNumbers, true, false},
	{"word", "for the %s team", twoWords, true, false},
	{"letter case", "signed %s", func(r *rand.Rand) (string, string) {
		w := pick(r, words)
		return w, strings.ToUpper(w[:1]) + w[1:]
	}, false, false},
	{"space", "indent%sthus", func(*rand.Rand) (string, string) { return " ", "  " }, false, false},
	{"version", "with v%s", func(r *rand.Rand) (string, string) {
		n := r.IntN(20) + 1
		return fmt.Sprintf("2.%d.4", n), fmt.Sprintf("2.%d.4", n+1)
	}, true, false},
	{"amount", "at most $%s", func(r *rand.Rand) (string, string) {
		n := r.IntN(8) + 1
		return fmt.Sprintf("%d,250.00", n), fmt.Sprintf("%d,250.00", n+1)
	}, false, false},
	{"date", "due on %s", func(r *rand.Rand) (string, string) {
		m, d := r.IntN(12)+1, r.IntN(28)+1
		return fmt.Sprintf("2026-%02d-%02d", m, d), fmt.Sprintf("2027-%02d-%02d", m, d)
	}, true, true},
	{"date in words", "due on %s", func(r *rand.Rand) (string, string) {
		d := r.IntN(20) + 1
		return fmt.Sprintf("March %d, 2026", d), fmt.Sprintf("March %d, 2026", d+1)
	}, false, true},
	{"time of day", "starts at %s", func(r *rand.Rand) (string, string) {
		h, m := r.IntN(11)+1, r.IntN(50)
		return fmt.Sprintf("%02d:%02d:09", h, m), fmt.Sprintf("%02d:%02d:09", h+1, m)
	}, false, true},
	{"timestamp", "all since %s", func(r *rand.Rand) (string, string) {
		d := r.IntN(20) + 1
		return fmt.Sprintf("2026-02-%02dT07:08:09Z", d), fmt.Sprintf("2026-02-%02dT07:08:09Z", d+1)
	}, false, true},
	{"Unix time", "timestamp=%s", func(r *rand.Rand) (string, string) {
		n := 1767000000 + r.IntN(9000000)
		return fmt.Sprint(n), fmt.Sprint(n + 86400)
	}, true, true},
	{"duration", "stop after %s", func(r *rand.Rand) (string, string) {
		n := r.IntN(8) + 1
		return pick2(r, []string{fmt.Sprintf("%d000 ms", n), fmt.Sprintf("%d000 ms", n+1)},
			[]string{fmt.Sprintf("%d.5 seconds", n), fmt.Sprintf("%d.5 seconds", n+1)}, []string{fmt.Sprintf("%dms", n*50), fmt.Sprintf("%dms", n*51)})
	}, false, true},
	{"UUID", "of customer %s", func(r *rand.Rand) (string, string) { return newUUID(r), newUUID(r) }, true, true},
	{"provider's id", "see %s", func(r *rand.Rand) (string, string) {
		p := pick(r, []string{"toolu_01", "call_", "msg_01", "chatcmpl-"})
		return p + letters(r, 22), p + letters(r, 22)
	}, true, true},
	{"hex digest", "of commit %s", func(r *rand.Rand) (string, string) {
		return digits(r, "0123456789abcdef", 40), digits(r, "0123456789abcdef", 40)
	}, true, false},
	{"ticket", "closes TCK-%s", twoNumbers, true, false},
	{"port", "on http://127.0.0.1:%s/", func(r *rand.Rand) (string, string) {
		n := 20000 + r.IntN(20000)
		return fmt.Sprint(n), fmt.Sprint(n + 17)
	}, false, true},
	{"PID", "stop pid %s", twoNumbers, false, true},
	{"temporary name", "below /tmp/%s/out", func(r *rand.Rand) (string, string) { return "build-" + letters(r, 8), "build-" + letters(r, 8) }, false, true},
	{"number of links", "drwxr-xr-x %s anna users 4096 src", func(r *rand.Rand) (string, string) {
		n := r.IntN(5) + 2
		return fmt.Sprint(n), fmt.Sprint(n + 1)
	}, false, true},
	{"line end", "a list%sof two", func(*rand.Rand) (string, string) { return "\n", "\r\n" }, false, false},
	{"tab", "name%svalue", func(*rand.Rand) (string, string) { return " ", "\t" }, false, false},
	{"byte order mark", "mark %sbegins", func(*rand.Rand) (string, string) { return "", "\ufeff" }, false, false},
	{"trailing blank", "to the end%s", func(*rand.Rand) (string, string) { return ".", ". " }, false, false},
	{"letter beyond ASCII", "in caf%s", func(*rand.Rand) (string, string) { return "é", "e\u0301" }, false, false},
}

// A source is where a value comes from that differs in every run.
type source struct {
	kind, call string
	in         *language // nil: both
}

var sources = []source{
	{kind: "time, ISO 8601", call: "now_iso"},
	{kind: "time, in words", call: "now_words"},
	{kind: "time, Unix seconds", call: "unix_seconds"},
	{kind: "time, Unix ms", call: "unix_ms"},
	{kind: "duration", call: "took"},
	{kind: "UUID 4", call: "uuid4"},
	{kind: "UUID 1", call: "uuid1", in: python},
	{kind: "random integer", call: "random_int"},
	{kind: "random float", call: "random_float"},
	{kind: "random hex", call: "random_hex"},
	{kind: "set order", call: "set_order", in: python},
	{kind: "hash()", call: "hash_of", in: python},
	{kind: "address of an object", call: "address", in: python},
	{kind: "PID", call: "pid"},
	{kind: "thread id", call: "thread_id", in: python},
	{kind: "temporary directory", call: "temp_dir"},
	{kind: "temporary name", call: "temp_name"},
	{kind: "time of an own file", call: "own_mtime"},
	{kind: "free port", call: "free_port", in: python},
	{kind: "order of finished tools"},
	{kind: "child: date", call: "child_date"},
	{kind: "child: $RANDOM", call: "child_random"},
	{kind: "child: mktemp -u", call: "child_temp"},
	{kind: "child: kernel's UUID", call: "child_uuid"},
	{kind: "child: PID", call: "child_pid"},
	{kind: "child: Python", call: "child_python"},
}

var words = []string{"blue", "green", "amber", "violet", "silver", "crimson", "ochre", "teal", "indigo", "maroon", "olive", "coral"}

func twoWords(r *rand.Rand) (was, now string) {
	i := r.IntN(len(words))
	return words[i], words[(i+1+r.IntN(len(words)-1))%len(words)]
}

func twoNumbers(r *rand.Rand) (was, now string) {
	n := 1100 + r.IntN(8000)
	return fmt.Sprint(n), fmt.Sprint(n + 1 + r.IntN(80))
}

func newUUID(r *rand.Rand) string {
	h := digits(r, "0123456789abcdef", 32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

func letters(r *rand.Rand, n int) string {
	return digits(r, "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", n)
}

func digits(r *rand.Rand, of string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	return string(b)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func pick2(r *rand.Rand, pairs ...[]string) (string, string) {
	p := pick(r, pairs)
	return p[0], p[1]
}
