package fidelity

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// keyTrailers is the key of an exchange that holds the fields behind the body of its answer.
const keyTrailers = "response_trailers"

// callStatus is the status of a gRPC call, "grpc-status 5": it stands in the trailers, or in the head of an answer that has none. "" is
// that of any other exchange.
func callStatus(k *tape.HTTPExchange) string {
	var trailers [][2]string
	_ = json.Unmarshal(tape.FieldValue(k.Extra, keyTrailers), &trailers) // one that cannot be read holds no status
	for _, f := range k.ResponseHeaders {
		trailers = append(trailers, [2]string{f.Name, f.Value})
	}
	for _, f := range trailers {
		if strings.EqualFold(f[0], "Grpc-Status") {
			return "grpc-status " + f[1]
		}
	}
	return ""
}
