package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// Cancelled is the error of an exchange that the program itself ended before its answer did.
const Cancelled = "the program ended the request"

// HeldOn is the error of a replayed exchange that was recorded as Cancelled and that the program, for all the time it was
// given, did not end.
const HeldOn = "the program did not end the request, as it had while recording"

// errCancelled is Cancelled where it comes up in reading an answer.
var errCancelled = errors.New(Cancelled)

// An answer is what a request gets, from an upstream, from the tape or from ourselves.
type answer struct {
	status int // 0 where none came: the program's connection is reset
	header http.Header
	length int64 // of the body in bytes, -1 where only its end tells
	body   body  // nil for none
	err    error // why status is 0

	prompt bool // the first chunk is there at once: the header need not be sent before it

	recorded *exchange.Recorded // that the body is the body of, byte by byte; nil for none
	blobs    cas.Store          // of its tape
}

// A body gives an answer's chunks.
type body interface {
	// next returns the next chunk, valid until the next call. Its error comes with the chunk or after it: io.EOF at the
	// end, any other where the answer was cut.
	next(ctx context.Context) ([]byte, error)
	close()
}

// whole is a body of one chunk.
type whole []byte

func (b whole) next(context.Context) ([]byte, error) { return b, io.EOF }
func (b whole) close()                               {}

// dead is an answer that never came.
func dead(err error) *answer { return &answer{err: err} }

// localAnswer is an answer of our own: the provider's error object, or a plain one, around a message. No SDK retries it.
func localAnswer(id *exchange.Identity, status int, kind, message string) *answer {
	b := errorBody(id, status, kind, message)
	return &answer{
		status: status,
		header: http.Header{
			"Content-Type":   {"application/json"},
			"Content-Length": {strconv.Itoa(len(b))},
			"X-Should-Retry": {"false"},
		},
		length: int64(len(b)),
		body:   whole(b),
	}
}

func errorBody(id *exchange.Identity, status int, kind, message string) []byte {
	if id != nil && id.ErrorBody != nil {
		return id.ErrorBody(status, message)
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)                                                   // people read the message
	_ = enc.Encode(map[string]detail{"error": {Type: kind, Message: message}}) // strings always have a JSON form
	return b.Bytes()
}
