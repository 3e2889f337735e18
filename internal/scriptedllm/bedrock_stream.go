package scriptedllm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
)

// eventStream is the content type of a Bedrock stream.
const eventStream = "application/vnd.amazon.eventstream"

// frame sends one message in Amazon's event stream encoding: lengths of the whole and of the headers, a checksum of
// both, the headers, the payload and a checksum of everything, all integers 32 bits and big-endian.
// https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
func (s *sink) frame(event string, payload any) {
	var headers []byte
	for _, h := range [][2]string{
		{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"},
	} {
		const kindString = 7
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(headers, kindString)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	body := encode(payload)
	const around = 16 // two lengths and two checksums
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(around+len(headers)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), body...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	s.send(string(b))
}

// padding is what Bedrock adds to every event, so that its length tells nothing.
func padding(re *reply) string {
	return string(bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz"), 2)[:1+re.outTokens()%40])
}

func (d converse) stream(re *reply, s *sink) {
	s.begin(eventStream)
	send := func(event string, o object) {
		o["p"] = padding(re)
		s.frame(event, o)
	}
	send("messageStart", object{"role": "assistant"})
	index := 0
	block := func(pieces iter.Seq[string], delta func(string) object) {
		for piece := range pieces {
			send("contentBlockDelta", object{"contentBlockIndex": index, "delta": delta(piece)})
		}
		send("contentBlockStop", object{"contentBlockIndex": index})
		index++
	}
	if re.answer.text != "" {
		block(re.textPieces(), func(piece string) object { return object{"text": piece} })
	}
	for _, c := range re.answer.calls {
		use := object{"toolUseId": re.callID(c, "tooluse_", base62, 22), "name": c.name}
		send("contentBlockStart", object{"contentBlockIndex": index, "start": object{"toolUse": use}})
		block(slices.Values(re.pieces(c.json())), func(piece string) object { return object{"toolUse": object{"input": piece}} })
	}
	send("messageStop", object{"stopReason": anthropic{}.stopReason(re)})
	send("metadata", object{"usage": d.usage(re), "metrics": object{"latencyMs": 551}})
}

func (invoke) stream(re *reply, s *sink) {
	s.begin(eventStream)
	anthropic{}.events(re, func(_ string, o any) {
		s.frame("chunk", object{"bytes": base64.StdEncoding.EncodeToString(encode(o)), "p": padding(re)})
	})
}
