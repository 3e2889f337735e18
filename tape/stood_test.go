package tape_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What other producers write in the format's own keys, and has no form here.
var stood = map[string]string{
	"a digest of another kind":  line(`{"kind":"llm_call","request_digest":"sha256:AbC","response":` + nothing + `}`),
	"an empty digest":           line(`{"kind":"llm_call","request_digest":"","response":` + nothing + `}`),
	"an escape in a digest":     line(`{"kind":"llm_call","request_digest":"\u0061\"/","response":` + nothing + `}`),
	"a digest in capitals":      line(`{"kind":"file_read","path":"a","content_hash":"` + strings.ToUpper(goodHash) + `","len_bytes":1}`),
	"a digest and further keys": line(`{"kind":"file_write","path":"a","content_hash":"md5:1","len_bytes":1,"mode":"100644","later":[ 1 ]}`),
	"digests of MCP": line(`{"kind":"mcp_json_rpc","server":"s","method":"m","request_digest":"r","response_digest":"q","latency_ms":18446744073709551615,` +
		`"request_payload":` + nothing + `,"response_payload":` + nothing + `}`),
	"the hash of a text":   line(`{"kind":"llm_call","request_digest":"` + goodHash + `","response":{"content_hash":"sha256:1","text":"hi","later":1}}`),
	"the hash of a blob":   line(`{"kind":"llm_call","request_digest":"` + goodHash + `","response":{"content_hash":"../../etc/passwd","len_bytes":5000}}`),
	"a blob without end":   line(`{"kind":"llm_call","request_digest":"` + goodHash + `","response":{"content_hash":"` + goodHash + `","len_bytes":18446744073709551615}}`),
	"a sleep without end":  line(`{"kind":"clock_sleep","duration_ms":18446744073709551615}`),
	"the first wide sleep": line(`{"kind":"clock_sleep","duration_ms":9223372036854775808}`),
	"the last narrow one":  line(`{"kind":"clock_sleep","duration_ms":9223372036854775807}`),
	"a file without end":   line(`{"kind":"file_write","path":"a","content_hash":"` + goodHash + `","len_bytes":18446744073709551615}`),
	"a process without end": line(`{"kind":"process_spawn","program":"p","args":[],"cwd":null,"exit_code":0,"duration_ms":18446744073709551615,"stdout_payload":` + nothing +
		`,"stderr_payload":{"content_hash":"x","text":""}}`),
	"an ordinal and a seq": `{"type":"record","seq":18446744073709551615,"phase":"user_script","virtual_time_ms":2,"monotonic_ms":-3,"kind":{"kind":"clock_sleep","duration_ms":1},"g":18446744073709551615}`,
}

func TestWhatHasNoFormHereIsKeptByteForByte(t *testing.T) {
	for name, in := range stood {
		rec, err := tape.ParseRecord([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if out := string(tape.AppendRecord(nil, rec)); out != in {
			t.Errorf("%s: loaded\n%s\nsaved\n%s", name, in, out)
		}
	}
}

func TestWhatHasNoFormHereIsReplacedWithItsField(t *testing.T) {
	rec, err := tape.ParseRecord([]byte(stood["a digest of another kind"]))
	if err != nil {
		t.Fatal(err)
	}
	call := rec.Kind.(*tape.LLMCall)
	call.RequestDigest = cas.Sum(nil)
	if out := tape.AppendRecord(nil, rec); bytes.Contains(out, []byte("sha256:AbC")) || !bytes.Contains(out, []byte(cas.Sum(nil).String())) {
		t.Errorf("%s", out)
	}
	if rec, err = tape.ParseRecord([]byte(stood["a sleep without end"])); err != nil {
		t.Fatal(err)
	}
	sleep := rec.Kind.(*tape.ClockSleep)
	if sleep.DurationMS != math.MaxInt64 {
		t.Errorf("%d", sleep.DurationMS)
	}
	sleep.DurationMS = 7
	if out := string(tape.AppendKind(nil, sleep)); out != `{"kind":"clock_sleep","duration_ms":7}` {
		t.Errorf("%s", out)
	}
}

// Two texts differ, and equal ones do not, however they are escaped.
func TestDigestsOfOthersCompare(t *testing.T) {
	digest := func(text string) cas.Digest {
		rec, err := tape.ParseRecord([]byte(line(`{"kind":"llm_call","request_digest":` + text + `,"response":` + nothing + `}`)))
		if err != nil {
			t.Fatal(err)
		}
		return rec.Kind.(*tape.LLMCall).RequestDigest
	}
	if digest(`"a"`) != digest(`"\u0061"`) || digest(`"a"`) == digest(`"b"`) || digest(`""`).IsZero() {
		t.Error("equal texts differ, or others do not")
	}
}

// noStore fails the test that asks it.
type noStore struct{ cas.Store }

func TestABlobWithoutADigestIsRefused(t *testing.T) {
	for name, text := range map[string]string{"the hash of a blob": "", "the hash of a text": "hi"} {
		rec, err := tape.ParseRecord([]byte(stood[name]))
		if err != nil {
			t.Fatal(err)
		}
		p := rec.Kind.(*tape.LLMCall).Response
		if err := p.CheckHash(); !errors.Is(err, cas.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
		b, err := p.Bytes(noStore{})
		if text == "" && !errors.Is(err, cas.ErrName) || text != "" && (err != nil || string(b) != text) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if _, err := p.Open(noStore{}); text == "" && !errors.Is(err, cas.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheWriterRefusesWhatNoProducerReads(t *testing.T) {
	p := &tape.Payload{Inline: true, Hash: cas.Sum(nil)}
	for _, k := range []tape.Kind{
		&tape.ClockSleep{DurationMS: -5}, &tape.ClockRead{Source: "cpu"}, &tape.ClockRead{},
		&tape.ProcessSpawn{Program: "p", DurationMS: -1, Stdout: p, Stderr: p},
	} {
		var buf bytes.Buffer
		w, err := tape.NewWriter(&buf, &tape.Header{Producer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&tape.Record{Kind: k}); err == nil {
			t.Errorf("%s is written", fmt.Sprint(k))
		}
		if err := w.Append(&tape.Record{Kind: &tape.ClockRead{Source: "monotonic"}}); err != nil {
			t.Errorf("the tape does not go on: %v", err)
		}
	}
}
