package exchange

import "strconv"

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
