package tape_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestEveryRecordIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := source{t}.record()
		line := tape.AppendRecord(nil, want)
		got, err := tape.ParseRecord(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("read another record (-written +read):\n%s", diff)
		}
		if !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
			t.Fatalf("no line of JSON: %s", line)
		}
	})
}

// A record of ours is written by another way than one with keys of others: both give the same keys in the same order.
func TestKeysOfOthersChangeNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := source{t}.record()
		rec.Extra = nil
		want := tape.AppendRecord(nil, rec)
		rec.Extra = []tape.Field{{Name: "later", Value: json.RawMessage("1")}}
		if got := bytes.Replace(tape.AppendRecord(nil, rec), []byte(`,"later":1`), nil, 1); !bytes.Equal(got, want) {
			t.Fatalf("with a key of others:\n%s\nwithout:\n%s", got, want)
		}
	})
}

func TestEveryHeaderIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := source{t}.header()
		var buf bytes.Buffer
		if _, err := tape.NewWriter(&buf, want); err != nil {
			t.Fatal(err)
		}
		r, err := tape.NewReader(&buf, "tape")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Header()); diff != "" {
			t.Fatalf("read another header (-written +read):\n%s", diff)
		}
	})
}

// Every order of the keys, and white space wherever JSON allows some, is the same record.
func TestOrderAndWhiteSpaceDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := source{t}.record()
		line := tape.AppendRecord(nil, want)
		got, err := tape.ParseRecord(shuffled(t, line))
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if again := tape.AppendRecord(nil, got); !sameButExtra(line, again) {
			t.Fatalf("wrote\n%s\nread again\n%s", line, again)
		}
	})
}

// shuffled writes a record's line with the keys of its two outer objects in another order, and spaces.
func shuffled(t *rapid.T, line []byte) []byte {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(line, &outer); err != nil {
		t.Fatal(err)
	}
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(outer["kind"], &inner); err != nil {
		t.Fatal(err)
	}
	outer["kind"] = spaced(t, inner)
	return spaced(t, outer)
}

func spaced(t *rapid.T, object map[string]json.RawMessage) []byte {
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	b := []byte("{ ")
	for i, key := range rapid.Permutation(keys).Draw(t, "keys") {
		if i > 0 {
			b = append(b, " ,\t"...)
		}
		name, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(append(b, name...), " : "...), object[key]...)
	}
	return append(b, " }"...)
}

// sameButExtra compares two lines, but for the order of the keys that the package does not know.
func sameButExtra(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

const goodHash = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"

// nothing is the payload of no bytes.
const nothing = `{"content_hash":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","text":""}`

// line wraps the object of a kind into a record.
func line(kind string) string {
	return `{"type":"record","seq":1,"phase":"user_script","virtual_time_ms":2,"monotonic_ms":3,"kind":` + kind + `}`
}

func TestLinesSurviveLoadAndSaveByteForByte(t *testing.T) {
	for name, in := range map[string]string{
		"unknown kind":            line(`{"kind":"tea_break",  "b":1.50,"a":[ ],"b":2}`),
		"unknown kind, name last": line(`{"minutes":5,"kind":"tea_break"}`),
		"unknown key":             line(`{"kind":"clock_sleep","duration_ms":1,"why":{"a": 1}}`),
		"null of an optional key": line(`{"kind":"file_delete","path":"a","content":null,"mode":"100644"}`),
		"zeros of optional keys": line(`{"kind":"http_exchange","method":"","url":"u","request_headers":[],"status":0,` +
			`"stream":[],"lane":"","arrival":0,"later":1}`),
		"null usage":     line(`{"kind":"llm_call","request_digest":"` + goodHash + `","response":{"content_hash":"` + goodHash + `","text":""},"usage":null,"lane":"x"}`),
		"key of payload": line(`{"kind":"random_read","length":1,"payload":{"content_hash":"` + goodHash + `","len_bytes":1,"codec":"none"}}`),
		"keys of chunks": line(`{"kind":"llm_call","request_digest":"` + goodHash + `","response":{"content_hash":"` + goodHash + `","text":""},` +
			`"stream":[{"offset":0,"length":1,"t_ms":2,"x":1},{"offset":1,"length":1,"t_ms":2,"g":0},{"offset":2,"length":1,"t_ms":2},` +
			`{"offset":3,"length":1,"t_ms":2,"g":null,"x":{"y": [ ]},"x":2.50},{"offset":4,"length":1,"t_ms":2,"g":5,"z":0}]}`),
		"g zero, later keys, raw last": `{"type":"record","seq":0,"phase":"runtime_finalize","virtual_time_ms":-1,"monotonic_ms":0,` +
			`"kind":{"kind":"env_read","name":"� "},"g":0,"later":[1, 2],"raw":{"name":"/yA="}}`,
	} {
		r, err := tape.ParseRecord([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if out := string(tape.AppendRecord(nil, r)); out != in {
			t.Errorf("%s: loaded\n%s\nsaved\n%s", name, in, out)
		}
	}
}

func TestAnOrdinalThatIsSetReplacesTheExplicitZeroOfAChunk(t *testing.T) {
	r, err := tape.ParseRecord([]byte(line(`{"kind":"http_exchange","stream":[{"offset":0,"length":1,"t_ms":2,"g":0,"x":1}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	call := r.Kind.(*tape.HTTPExchange)
	call.Stream[0].G = 9
	call.StreamExtra = append(call.StreamExtra, tape.ChunkField{Chunk: 1, Field: call.StreamExtra[1].Field}) // of no chunk
	want := `{"kind":"http_exchange","stream":[{"offset":0,"length":1,"t_ms":2,"g":9,"x":1}]}`
	if got := string(tape.AppendKind(nil, call)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAValueThatIsSetReplacesTheExplicitZeroOfItsKey(t *testing.T) {
	r, err := tape.ParseRecord([]byte(line(`{"kind":"ws_open","url":"","lane":null,"arrival":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	open := r.Kind.(*tape.WSOpen)
	kept := len(open.Extra)
	open.Lane = "x"
	if got, want := string(tape.AppendKind(nil, open)), `{"kind":"ws_open","url":"","lane":"x","arrival":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(open.Extra) != kept {
		t.Error("writing changed the record")
	}
}

func TestStringsAreEscapedAsOtherProducersDo(t *testing.T) {
	for in, want := range map[string]string{
		"":                         `""`,
		"a\"b\\c/":                 `"a\"b\\c/"`,
		"\b\t\n\f\r":               `"\b\t\n\f\r"`,
		"\x00\x01\x1f\x7f":         "\"\\u0000\\u0001\\u001f\x7f\"",
		"<a>&\u2028\u2029 é 🙂":     "\"<a>&\u2028\u2029 é 🙂\"",
		"not UTF-8: \xff\xfe, end": "\"not UTF-8: \ufffd\ufffd, end\"",
	} {
		got := string(tape.AppendKind(nil, &tape.EnvRead{VarName: in + "."}))
		if want := `{"kind":"env_read","name":` + strings.TrimSuffix(want, `"`) + `."}`; got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestSafeStringKeepsTheTrueBytesOfWhatIsNotUTF8(t *testing.T) {
	if text, raw := tape.SafeString("plain é"); text != "plain é" || raw != nil {
		t.Errorf("got %q and %q", text, raw)
	}
	if text, raw := tape.SafeString("a\xff\xfe"); text != "a\ufffd\ufffd" || string(raw) != "a\xff\xfe" {
		t.Errorf("got %q and %q", text, raw)
	}
}

func TestEscapesOfOtherProducersAreRead(t *testing.T) {
	in := `{"kind":"env_read","name":"\u00e9\/\ud83d\ude42\ud83d \u2028"}`
	r, err := tape.ParseRecord([]byte(line(in)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Kind.(*tape.EnvRead).VarName, "é/🙂\ufffd \u2028"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMalformedLinesAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for name, tt := range map[string]struct {
		in   string
		want error
	}{
		"number as text":      {line(`{"kind":"clock_sleep","duration_ms":"1"}`), tape.ErrMalformed},
		"fraction":            {line(`{"kind":"clock_sleep","duration_ms":1.0}`), tape.ErrMalformed},
		"exponent":            {line(`{"kind":"clock_sleep","duration_ms":1e3}`), tape.ErrMalformed},
		"leading zero":        {line(`{"kind":"clock_sleep","duration_ms":01}`), tape.ErrNotJSON},
		"out of range":        {line(`{"kind":"clock_sleep","duration_ms":18446744073709551616}`), tape.ErrMalformed},
		"a sleep below 0":     {line(`{"kind":"clock_sleep","duration_ms":-5}`), tape.ErrMalformed},
		"a source of its own": {line(`{"kind":"clock_read","source":"cpu","value_ms":1}`), tape.ErrMalformed},
		"no source":           {line(`{"kind":"clock_read","source":"","value_ms":1}`), tape.ErrMalformed},
		"a process below 0": {line(`{"kind":"process_spawn","program":"p","args":[],"cwd":null,"exit_code":0,"duration_ms":-5,"stdout_payload":` + nothing +
			`,"stderr_payload":` + nothing + `}`), tape.ErrMalformed},
		"a length of ours out of range": {line(`{"kind":"random_read","payload":{"content_hash":"` + goodHash + `","len_bytes":18446744073709551615}}`), tape.ErrMalformed},
		"a hash of ours":                {line(`{"kind":"random_read","payload":{"content_hash":"sha256:1","len_bytes":1}}`), cas.ErrName},
		"below range":                   {line(`{"kind":"ws_close","connection":-1}`), tape.ErrMalformed},
		"null":                          {line(`{"kind":"clock_sleep","duration_ms":null}`), tape.ErrMalformed},
		"missing key":                   {line(`{"kind":"clock_sleep"}`), tape.ErrMalformed},
		"key twice":                     {line(`{"kind":"clock_sleep","duration_ms":1,"duration_ms":1}`), tape.ErrMalformed},
		"kind twice":                    {line(`{"kind":"clock_sleep","kind":"clock_sleep","duration_ms":1}`), tape.ErrMalformed},
		"no kind":                       {line(`{"duration_ms":1}`), tape.ErrMalformed},
		"kind is a list":                {line(`[]`), tape.ErrMalformed},
		"record is a list":              {`[1]`, tape.ErrMalformed},
		"header of three":               {line(`{"kind":"ws_open","request_headers":[["a","b","c"]]}`), tape.ErrMalformed},
		"header of one":                 {line(`{"kind":"ws_open","request_headers":[["a"]]}`), tape.ErrMalformed},
		"chunk without t_ms":            {line(`{"kind":"http_exchange","stream":[{"offset":1,"length":1}]}`), tape.ErrMalformed},
		"payload without hash":          {line(`{"kind":"random_read","payload":{"text":""}}`), tape.ErrMalformed},
		"payload of less":               {line(`{"kind":"random_read","payload":{"content_hash":"` + goodHash + `","len_bytes":-1}}`), tape.ErrMalformed},
		"hash in capitals":              {line(`{"kind":"dir_list","names_digest":"` + strings.ToUpper(goodHash) + `"}`), cas.ErrName},
		"hash that is a path":           {line(`{"kind":"dir_list","names_digest":"../../../../etc/passwd"}`), cas.ErrName},
		"raw that is no base64":         {`{"type":"record","seq":0,"virtual_time_ms":0,"monotonic_ms":0,"kind":{"kind":"x"},"raw":{"a":"*"}}`, tape.ErrMalformed},
		"another type":                  {`{"type":"footer"}`, tape.ErrMalformed},
		"header":                        {`{"type":"header","version":1,"harn_version":"x"}`, tape.ErrSecondHeader},
		"something behind it":           {line(`{"kind":"x"}`) + `{}`, tape.ErrNotJSON},
		"comma at the end":              {line(`{"kind":"x","a":1,}`), tape.ErrNotJSON},
		"no comma":                      {line(`{"kind":"clock_read","source":"wall" "value_ms":1}`), tape.ErrNotJSON},
		"control character":             {line("{\"kind\":\"env_read\",\"name\":\"a\x01\"}"), tape.ErrNotJSON},
		"not UTF-8":                     {line("{\"kind\":\"env_read\",\"name\":\"a\xff\"}"), tape.ErrNotJSON},
		"bad escape":                    {line(`{"kind":"env_read","name":"\x"}`), tape.ErrNotJSON},
		"cut":                           {line(`{"kind":"env_read","name":"a"}`)[:100], tape.ErrNotJSON},
		"empty":                         {"", tape.ErrNotJSON},
		"too deep":                      {line(`{"kind":"x","a":` + deep + `}`), tape.ErrNotJSON},
	} {
		r, err := tape.ParseRecord([]byte(tt.in))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %+v and error %v, want error %v", name, r, err, tt.want)
		}
	}
}
