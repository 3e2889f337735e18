package llm

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
)

// The binary framing of application/vnd.amazon.eventstream, as the AWS SDKs describe it. A message is
//
//	total length   4 bytes, big endian, of all of it
//	headers length 4 bytes
//	prelude CRC    4 bytes, CRC-32 (IEEE) of the 8 before it
//	headers        as long as said
//	payload        what is left, but for
//	message CRC    4 bytes, CRC-32 of all before it
//
// Nothing is allocated: payloads are slices of the body.
const (
	preludeLen   = 12
	messageCRC   = 4
	maxMessage   = 24 << 20 // of a whole message; the services send 16 MiB at most
	maxHeaderLen = 128 << 10
)

// isEventStream reports whether a body begins with the prelude of a message.
func isEventStream(body []byte) bool {
	_, _, ok := prelude(body)
	return ok
}

// prelude reads the lengths of the message that begins a body.
func prelude(body []byte) (total, headers int, ok bool) {
	if len(body) < preludeLen || crc32.ChecksumIEEE(body[:8]) != binary.BigEndian.Uint32(body[8:]) {
		return 0, 0, false
	}
	t, h := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	if t > maxMessage || h > maxHeaderLen || t < preludeLen+messageCRC+h {
		return 0, 0, false
	}
	return int(t), int(h), true
}

// messagePayloads yields the payload of each whole message. Behind a message that is damaged, as scrubbing damages the one
// that a secret stood in, it goes on with the next prelude that holds.
func messagePayloads(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(body) >= preludeLen {
			total, headers, ok := prelude(body)
			if !ok || total > len(body) || !intact(body[:total]) {
				body = body[1:]
				continue
			}
			if payload := body[preludeLen+headers : total-messageCRC]; !yield(payload) {
				return
			}
			body = body[total:]
		}
	}
}

// intact reports whether the CRC of a message holds.
func intact(message []byte) bool {
	end := len(message) - messageCRC
	return crc32.ChecksumIEEE(message[:end]) == binary.BigEndian.Uint32(message[end:])
}
