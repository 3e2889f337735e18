package tape_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// seedTapes adds the corpus.
func seedTapes(f *testing.F, add func(tape []byte)) {
	for _, c := range corpusTapes(f) {
		add(c.Body)
	}
}

// Whatever the bytes are, a reader gives records and errors with a place; what loaded saves, and loads again the same.
func FuzzReader(f *testing.F) {
	seedTapes(f, func(b []byte) { f.Add(b, false); f.Add(b, true) })
	f.Fuzz(func(t *testing.T, in []byte, tolerant bool) {
		r, err := tape.NewReaderOptions(bytes.NewReader(in), "fuzz", &tape.ReaderOptions{Tolerant: tolerant})
		if err != nil {
			checkLoadError(t, err)
			return
		}
		var records []*tape.Record
		for rec, err := range r.Records() {
			if err != nil {
				checkLoadError(t, err)
				return
			}
			records = append(records, rec)
		}
		once := save(t, r.Header(), records)
		again, err := tape.NewReader(bytes.NewReader(once), "again")
		if err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		var reread []*tape.Record
		for rec, err := range again.Records() {
			if err != nil {
				t.Fatalf("%v in %s", err, once)
			}
			reread = append(reread, rec)
		}
		if twice := save(t, again.Header(), reread); !bytes.Equal(once, twice) {
			t.Fatalf("saved\n%s\nthen\n%s", once, twice)
		}
	})
}

func checkLoadError(t *testing.T, err error) {
	t.Helper()
	var at *tape.LoadError
	if !errors.As(err, &at) || at.Path != "fuzz" || at.Line < 1 {
		t.Fatalf("error without its place: %v", err)
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return
		}
	}
	t.Fatalf("error of no kind: %v", err)
}

// Every record that a line holds is written to a line that holds the same record.
func FuzzParseRecord(f *testing.F) {
	seedTapes(f, func(b []byte) {
		for line := range bytes.Lines(b) {
			f.Add(line)
		}
	})
	f.Fuzz(func(t *testing.T, in []byte) {
		before := allocated()
		rec, err := tape.ParseRecord(in)
		if grown := allocated() - before; grown > 1<<20+64*uint64(len(in)) {
			t.Fatalf("%d bytes were allocated for a line of %d", grown, len(in))
		}
		if err != nil {
			return
		}
		line := tape.AppendRecord(nil, rec)
		again, err := tape.ParseRecord(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if diff := cmp.Diff(rec, again); diff != "" {
			t.Fatalf("wrote %s\nand read another record (-written +read):\n%s", line, diff)
		}
		if twice := tape.AppendRecord(nil, again); !bytes.Equal(line, twice) {
			t.Fatalf("wrote\n%s\nthen\n%s", line, twice)
		}
	})
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Every payload that is read is written to bytes that hold the same payload.
func FuzzParsePayload(f *testing.F) {
	for _, s := range []string{
		"null", `{"content_hash":"` + goodHash + `","text":"a"}`, `{"content_hash":"` + goodHash + `","len_bytes":4097}`,
		`{"text":"\u00e9","content_hash":"` + goodHash + `","later":[1, 2]}`, `{"content_hash":"../../x","len_bytes":-1}`,
		`{"content_hash":"` + goodHash + `","text":"a","len_bytes":1}`, "{", "[]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := tape.ParsePayload(in)
		if err != nil {
			return
		}
		if p != nil && (p.Len < 0 || p.Inline && p.Len != int64(len(p.Text))) {
			t.Fatalf("a payload of %d bytes: %+v", p.Len, p)
		}
		once := p.AppendJSON(nil)
		again, err := tape.ParsePayload(once)
		if err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("wrote %s\nand read another payload (-written +read):\n%s", once, diff)
		}
	})
}

// Every string is written to JSON that holds it, in the one form that the format has, wherever in a buffer it begins.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "a", "plain text, sixteen and more bytes long", "\x00\x01\x1f \x7f\"\\/\b\f\n\r\t", "{\"a\":\"b\"}\n{\"a\":\"b\"}\n",
		"é\u2028\U0001f642", "\xff", "a long text with \xe2\x82 in its middle", strings.Repeat("\x01", 40), strings.Repeat("\"", 33),
	} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, in string, before uint8) {
		prefix := bytes.Repeat([]byte("p"), int(before))
		kind := string(tape.AppendKind(prefix, &tape.EnvRead{VarName: in + "."})[len(prefix):])
		want, _ := tape.SafeString(in)
		var got struct{ Name string }
		if err := json.Unmarshal([]byte(kind), &got); err != nil || got.Name != want+"." {
			t.Fatalf("%q became %s: %q, %v", in, kind, got.Name, err)
		}
		if text := kind[len(`{"kind":"env_read","name":`) : len(kind)-1]; text != slowText(want+".") {
			t.Fatalf("%q became %s, want %s", in, text, slowText(want+"."))
		}
		rec, err := tape.ParseRecord([]byte(line(kind)))
		if err != nil || rec.Kind.(*tape.EnvRead).VarName != want+"." {
			t.Fatalf("%q is read as %+v, %v", in, rec, err)
		}
	})
}

// slowText is the format's form of UTF-8 text, as its definition has it.
func slowText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' && strings.ContainsRune("\b\f\n\r\t", r):
			b.WriteString(`\` + string("btnvfr"[r-'\b']))
		case r < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// Every number is written as strconv writes it, and read again.
func FuzzNumber(f *testing.F) {
	for n := uint64(1); n < 1e19; n *= 10 {
		f.Add(n-1, int64(n))
		f.Add(n, -int64(n))
	}
	f.Add(uint64(1<<64-1), int64(-1<<63))
	f.Fuzz(func(t *testing.T, unsigned uint64, signed int64) {
		in := &tape.Record{Seq: unsigned, MonotonicMS: signed, Kind: &tape.ClockSleep{}}
		text := string(tape.AppendRecord(nil, in))
		if !strings.Contains(text, `"seq":`+strconv.FormatUint(unsigned, 10)+`,`) ||
			!strings.Contains(text, `"monotonic_ms":`+strconv.FormatInt(signed, 10)+`,`) {
			t.Fatalf("%d and %d became %s", unsigned, signed, text)
		}
		rec, err := tape.ParseRecord([]byte(text))
		if err != nil || rec.Seq != unsigned || rec.MonotonicMS != signed {
			t.Fatalf("%s is read as %+v, %v", text, rec, err)
		}
	})
}

// The reader takes a line exactly where encoding/json takes it and it is UTF-8, but for what is nested too deep.
func FuzzNotJSON(f *testing.F) {
	seedTapes(f, func(b []byte) {
		for line := range bytes.Lines(b) {
			f.Add(line)
		}
	})
	f.Fuzz(func(t *testing.T, in []byte) {
		_, err := tape.ParseRecord(in)
		if i := bytes.IndexByte(in, '\n'); i >= 0 && i < len(in)-1 {
			return // no line
		}
		isJSON := json.Valid(in) && utf8.Valid(in)
		if refused := errors.Is(err, tape.ErrNotJSON); refused == isJSON && bytes.Count(in, []byte("["))+bytes.Count(in, []byte("{")) < 5000 {
			t.Fatalf("%q: JSON %t, %v", in, isJSON, err)
		}
	})
}
