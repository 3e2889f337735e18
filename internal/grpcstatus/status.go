// Package grpcstatus reads how a gRPC call ended, which its HTTP status does not tell: the fields grpc-status and grpc-message behind the
// body of its answer, or in the head of an answer that has no body.
//
// The definition is "gRPC over HTTP2" (Responses) and the list of status codes, both in the documents of the gRPC project.
package grpcstatus

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Status is how a call ended. The zero Status is that of an exchange which tells none, as all do that are no gRPC.
type Status struct {
	Code    string // a decimal number, as it stood
	Message string // decoded; "" for none
}

// Of returns the status of the call that a record holds, that of its trailers first.
func Of(k tape.Kind) Status {
	x := tape.ExchangeOf(k)
	if x == nil {
		return Status{}
	}
	var trailers [][2]string
	_ = json.Unmarshal(tape.FieldValue(*tape.Extras(k), bare.KeyTrailers), &trailers) // those that cannot be read hold no status
	if s := in(trailers); s.Code != "" {
		return s
	}
	head := make([][2]string, len(x.ResponseHeaders))
	for i, f := range x.ResponseHeaders {
		head[i] = [2]string{f.Name, f.Value}
	}
	return in(head)
}

func in(fields [][2]string) (s Status) {
	for _, f := range fields {
		switch {
		case s.Code == "" && strings.EqualFold(f[0], "Grpc-Status"):
			s.Code = f[1]
		case s.Message == "" && strings.EqualFold(f[0], "Grpc-Message"):
			s.Message = decoded(f[1])
		}
	}
	if s.Code == "" {
		return Status{}
	}
	return s
}

// decoded is a grpc-message as text. One that is not encoded as it should be stays as it is.
func decoded(message string) string {
	if text, err := url.PathUnescape(message); err == nil {
		return text
	}
	return message
}

// Failed reports whether the call did not end well.
func (s Status) Failed() bool { return s.Code != "" && s.Code != "0" }

// String is the status for people: "NOT_FOUND (5): no such thing".
func (s Status) String() string {
	text := s.name()
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}

// name is the code as the list of codes calls it.
func (s Status) name() string {
	if s.Code == "" {
		return "none"
	}
	if name := names[s.Code]; name != "" {
		return name + " (" + s.Code + ")"
	}
	return "grpc-status " + s.Code
}

var names = map[string]string{
	"0": "OK", "1": "CANCELLED", "2": "UNKNOWN", "3": "INVALID_ARGUMENT", "4": "DEADLINE_EXCEEDED", "5": "NOT_FOUND",
	"6": "ALREADY_EXISTS", "7": "PERMISSION_DENIED", "8": "RESOURCE_EXHAUSTED", "9": "FAILED_PRECONDITION", "10": "ABORTED",
	"11": "OUT_OF_RANGE", "12": "UNIMPLEMENTED", "13": "INTERNAL", "14": "UNAVAILABLE", "15": "DATA_LOSS", "16": "UNAUTHENTICATED",
}
