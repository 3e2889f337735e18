package network

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// An answer is what a request gets, from an upstream, from the tape or from ourselves.
type answer struct {
	status int // 0 where none came: the program's connection is reset
	header http.Header
	length int64         // of the body in bytes, -1 where only its end tells
	body   exchange.Body // nil for none
	err    error         // why status is 0

	prompt bool // the header goes with the first chunk, not before it

	// pieces says that it counts in which pieces header, body and end come, as it does to who asked for a WebSocket and reads what it
	// got instead. A header and an end that come by themselves are empty chunks of the tape.
	pieces bool
	again  func(tell func()) // has tell called before the upstream is waited for again, once, unless the body has ended; nil for never

	text string // of 101, its status line's

	passes bool // the body is that of the recorded answer, byte by byte

	asked *incoming // the request, of a gRPC call that is passed on as it comes; nil for what came whole
	ends  *callBody // what gives the body of a recorded one; nil for none

	trailer *http.Header // whose values are there once the body has come to its end, before it perhaps their names; nil for none
	trails  bool         // the trailers count: the end is waited for, also where the length says that it has come
}

// pieces is a body of given chunks.
type pieces struct{ left [][]byte }

// whole is a body of one chunk.
func whole(b []byte) *pieces { return &pieces{[][]byte{b}} }

// Next implements body.
func (p *pieces) Next(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(p.left) == 0 {
		return nil, io.EOF
	}
	next := p.left[0]
	if p.left = p.left[1:]; len(p.left) == 0 {
		return next, io.EOF
	}
	return next, nil
}

// Close implements body.
func (p *pieces) Close() error { return nil }

// dead is an answer that never came.
func dead(err error) *answer { return &answer{err: err} }

// localAnswer is an answer of our own: the provider's error object, or a plain one, around a message. No SDK retries it.
func localAnswer(id *exchange.Identity, status int, kind, message string) *answer {
	b := exchange.ErrorBody(id, status, kind, message)
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
