package llm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"
)

// eventMessage is one message of an AWS event stream, with one header.
func eventMessage(event, payload string) []byte {
	const name = ":event-type"
	header := append([]byte{byte(len(name))}, name...)
	header = append(header, 7) // a string
	header = binary.BigEndian.AppendUint16(header, uint16(len(event)))
	header = append(header, event...)
	m := binary.BigEndian.AppendUint32(nil, uint32(preludeLen+len(header)+len(payload)+messageCRC))
	m = binary.BigEndian.AppendUint32(m, uint32(len(header)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, header...), payload...)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

// invokeChunk is one event of an invoke stream.
func invokeChunk(event string) []byte {
	return eventMessage("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abcdef"}`)
}

func collect(body []byte) []string {
	var texts []string
	for text := range answers(body) {
		texts = append(texts, string(text))
	}
	return texts
}

func TestAnswers(t *testing.T) {
	a, b := eventMessage("messageStart", `{"role":"assistant"}`), eventMessage("metadata", `{"usage":{}}`)
	stream := slices.Concat(a, b)
	damaged := bytes.Replace(slices.Concat(a, b), []byte("assistant"), []byte("td_x"), 1)
	flipped := slices.Clone(stream)
	flipped[len(a)-6] ^= 1
	for _, tc := range []struct {
		name string
		body []byte
		want []string
	}{
		{"event stream", stream, []string{`{"role":"assistant"}`, `{"usage":{}}`}},
		{"event stream that was cut", stream[:len(stream)-1], []string{`{"role":"assistant"}`}},
		{"event stream with a replaced secret", damaged, []string{`{"usage":{}}`}},
		{"event stream with a flipped bit", flipped, []string{`{"usage":{}}`}},
		{"NDJSON", []byte("{\"a\":1}\n{\"b\":2}\n"), []string{`{"a":1}`, `{"b":2}`}},
		{"NDJSON that was cut", []byte("{\"a\":1}\r\n{\"b\":"), []string{`{"a":1}`}},
		{"one object on several lines", []byte("{\n \"a\": 1\n}"), []string{"{\n \"a\": 1\n}"}},
		{"array", []byte(`[{"a":1},{"b":2}]`), []string{`{"a":1}`, `{"b":2}`}},
		{"events", []byte("data: {\"a\":1}\n\ndata: [DONE]\n\n"), []string{`{"a":1}`, "[DONE]"}},
		{"nothing", []byte(" \n"), nil},
	} {
		if got := collect(tc.body); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

func TestExtractElsewhere(t *testing.T) {
	claude := slices.Concat(
		invokeChunk(`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}`),
		invokeChunk(`{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}`),
		invokeChunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":7}}`))
	titan := slices.Concat(invokeChunk(`{"outputText":"a","inputTextTokenCount":3,"totalOutputTextTokenCount":null}`),
		invokeChunk(`{"outputText":"","totalOutputTextTokenCount":5,"amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":5}}`))
	for _, tc := range []struct {
		name   string
		answer string
		want   string
	}{
		{"converse", `{"output":{"message":{}},"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`,
			`{"inputTokens":5,"outputTokens":2,"totalTokens":7}`},
		{"converse stream", string(eventMessage("metadata", `{"usage":{"inputTokens":5,"outputTokens":2},"metrics":{"latencyMs":9}}`)),
			`{"inputTokens":5,"outputTokens":2}`},
		{"invoke", `{"type":"message","usage":{"input_tokens":1,"output_tokens":2}}`, `{"input_tokens":1,"output_tokens":2}`},
		{"invoke stream", string(claude), `{"cache_read_input_tokens":4,"input_tokens":10,"output_tokens":7}`},
		{"invoke of Llama", `{"generation":"x","prompt_token_count":3,"generation_token_count":4,"stop_reason":"stop"}`,
			`{"generation_token_count":4,"prompt_token_count":3}`},
		{"invoke stream of Titan", string(titan), `{"inputTokenCount":3,"outputTokenCount":5}`},
		{"invoke of Titan's embeddings", `{"embedding":[0.1],"inputTextTokenCount":4}`, `{"inputTextTokenCount":4}`},
		{"invoke of Titan, which counts its text apart", `{"inputTextTokenCount":4,"results":[{"tokenCount":9}]}`, ""},
		{"invoke refused", `{"message":"Too many tokens"}`, ""},
		{"ollama stream", `{"message":{"content":"a"},"done":false}` + "\n" +
			`{"message":{"content":""},"done":true,"total_duration":4883583458,"prompt_eval_count":26,"eval_count":282,"eval_duration":1}` + "\n",
			`{"eval_count":282,"prompt_eval_count":26}`},
		{"ollama embed", `{"embeddings":[[0.1]],"total_duration":1,"prompt_eval_count":8}`, `{"prompt_eval_count":8}`},
		{"ollama with a tool's results", `{"message":{"tool_calls":[{"function":{"arguments":{"results":5}}}]},"done":true,"eval_count":9}`, `{"eval_count":9}`},
		{"ollama cut", `{"message":{"content":"a"},"done":false}` + "\n", ""},
		{"ollama text that looks so", `{"response":"\"eval_count\":1","done":true}`, ""},
		{"groq stream", "data: {\"x_groq\":{\"id\":\"r\"}}\n\ndata: {\"choices\":[],\"x_groq\":{\"usage\":{\"total_tokens\":3}}}\n\ndata: [DONE]\n\n",
			`{"total_tokens":3}`},
		{"code assist", "data: {\"response\":{\"usageMetadata\":{\"totalTokenCount\":3}},\"traceId\":\"t\"}\n\n", `{"totalTokenCount":3}`},
		{"cohere stream", "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"usage\":{\"tokens\":{\"input_tokens\":1}}}}\n\n",
			`{"tokens":{"input_tokens":1}}`},
		{"cohere embed", `{"embeddings":{},"meta":{"billed_units":{"input_tokens":2}}}`, `{"billed_units":{"input_tokens":2}}`},
		{"transcription stream", "data: {\"type\":\"transcript.text.done\",\"usage\":{\"input_tokens\":1}}\n\n", `{"input_tokens":1}`},
	} {
		if got := string(FindUsage([]byte(tc.answer))); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// FuzzAnswers holds the decoders to slices of what came: no text is longer than the body, and all of them are not longer
// than it either, so that memory is bounded by it.
func FuzzAnswers(f *testing.F) {
	f.Add(slices.Concat(eventMessage("a", "{}"), eventMessage("b", `{"bytes":"e30="}`)))
	f.Add([]byte("{\"a\":1}\n{\"b\":2}\n"))
	f.Add([]byte("data: {\ndata: }\n\n"))
	f.Add([]byte("[1,{},"))
	f.Add(hostileStream(256))
	f.Add(binary.BigEndian.AppendUint32([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), crc32.ChecksumIEEE([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"))))
	f.Fuzz(func(t *testing.T, body []byte) {
		total := 0
		for text := range answers(body) {
			total += len(text)
		}
		if total > len(body) {
			t.Errorf("%d bytes out of %d", total, len(body))
		}
		if n := summed(body); n > 2*len(body) {
			t.Errorf("%d bytes of messages were summed for a body of %d", n, len(body))
		}
	})
}

// summed is how many bytes of messages are summed to read a body.
func summed(body []byte) (n int) {
	s := newEventStream(body)
	s.sum = func(b []byte) uint32 {
		n += len(b)
		return crc32.ChecksumIEEE(b)
	}
	for _, ok := s.next(); ok; _, ok = s.next() {
	}
	return n
}

// hostileStream is a body of preludes that hold, each of which promises a message up to the body's end.
func hostileStream(size int) []byte {
	body := make([]byte, 0, size)
	for len(body)+preludeLen+messageCRC <= size {
		from := len(body)
		body = binary.BigEndian.AppendUint32(body, uint32(size-from))
		body = binary.BigEndian.AppendUint32(body, 0)
		body = binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body[from:]))
	}
	return append(body, make([]byte, size-len(body))...)
}

// TestHostileEventStream reads what would cost the square of its length, if every sum that it asks for were taken: most of
// a minute. The limit is far above what the budget needs, so that a busy machine passes.
func TestHostileEventStream(t *testing.T) {
	body, start := hostileStream(4<<20), time.Now()
	if n := summed(body); n > 2*len(body) || n < len(body)-preludeLen {
		t.Errorf("%d bytes of messages were summed for a body of %d", n, len(body))
	}
	for text := range answers(body) {
		t.Errorf("a message of %d bytes", len(text))
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
}

// TestEventStreamBounds sees a prelude that promises more than any service sends taken for none, and nothing allocated.
func TestEventStreamBounds(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, 1<<31)
	huge = binary.BigEndian.AppendUint32(huge, 0)
	huge = binary.BigEndian.AppendUint32(huge, crc32.ChecksumIEEE(huge))
	if isEventStream(huge) {
		t.Error("2 GiB are taken for a message")
	}
	stream := []byte(strings.Repeat(string(eventMessage("contentBlockDelta", `{"delta":{"text":"hello"}}`)), 1000))
	if n := testing.AllocsPerRun(10, func() {
		for range messagePayloads(stream) {
		}
	}); n > 2 {
		t.Errorf("%g allocations", n)
	}
}
