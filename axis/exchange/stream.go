package exchange

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// keyAfter is the key of a record whose request was still coming when its answer began: a list of integers, how many of its messages
// had come, and one more once it had ended, before the head of the answer, before each chunk of "stream", and before its end.
const keyAfter = "answered_after"

// messageHead is the length in bytes of what stands before each message of gRPC: a flag, and the message's length in four bytes.
const messageHead = 5

// FirstMessage returns the first message of b, which are gRPC's, with its head; nil where b does not hold all of it.
func FirstMessage(b []byte) []byte {
	if len(b) < messageHead {
		return nil
	}
	if size := int64(binary.BigEndian.Uint32(b[1:])) + messageHead; size <= int64(len(b)) {
		return b[:size]
	}
	return nil
}

// messagesOf splits what was asked in gRPC's messages; ok is false where something else is left.
func messagesOf(b []byte) (all [][]byte, ok bool) {
	all = [][]byte{}
	for m := FirstMessage(b); m != nil; m = FirstMessage(b) {
		all, b = append(all, m), b[len(m):]
	}
	return all, len(b) == 0
}

// A Call is the request of a recorded gRPC call.
type Call struct {
	Messages [][]byte // with their heads, as they stand on the tape; nil where they cannot be told apart
	Steps    int      // how many of them, and one more for their end, had come when the answer ended
	Ended    bool     // their end had
}

// streamKey names what calls of one method have in common.
type streamKey struct{ method, url string }

// A method is what the tape holds of the calls of one method.
type method struct {
	streams  bool // some were answered while they still came
	eager    bool // one before its first message
	patience time.Duration
}

// afterOf reads the further key of a record that tells how its request came; nil for none, and for one that tells nothing.
func afterOf(extra []tape.Field) []int {
	var after []int
	raw := tape.FieldValue(extra, keyAfter)
	if raw == nil || json.Unmarshal(raw, &after) != nil || len(after) < 2 {
		return nil
	}
	for i := range after {
		if after[i] < 0 || i > 0 && after[i] < after[i-1] {
			return nil
		}
	}
	return after
}

// streamReset is the error of a stream of HTTP/2 that was reset, which net/http gives to whoever asks for one of its shape
// (errors.As).
type streamReset struct {
	StreamID uint32
	Code     resetCode
	Cause    error
}

type resetCode uint32

// resetCodes are the error codes of HTTP/2 (RFC 9113, 7), by their number.
var resetCodes = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// Error implements error.
func (e streamReset) Error() string { return StreamReset + e.code() }

func (e streamReset) code() string {
	if int(e.Code) < len(resetCodes) {
		return resetCodes[e.Code]
	}
	return strconv.FormatUint(uint64(e.Code), 10)
}
