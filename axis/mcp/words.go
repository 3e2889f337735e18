package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// codeRefused is the code of the error that stands for an answer which is not on the tape.
const codeRefused = -32000

// answerOf is an answer, as a line without its end. kind is "result" or "error".
func answerOf(id json.RawMessage, kind string, value []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(append(append(b, `,"`...), kind...), `":`...)
	return append(append(b, value...), '}')
}

// errorAnswer answers with an error.
func errorAnswer(id json.RawMessage, message string) []byte {
	return errorWith(id, codeRefused, message)
}

func errorWith(id json.RawMessage, code int, message string) []byte {
	b := fmt.Appendf(nil, `{"code":%d,"message":`, code)
	return answerOf(id, "error", append(jsonscan.AppendText(b, message), '}'))
}

// lineOf is one line of messages, with its end; nil for none.
func lineOf(messages [][]byte, batch bool) []byte {
	switch {
	case len(messages) == 0:
		return nil
	case batch || len(messages) > 1:
		return append(append([]byte{'['}, bytes.Join(messages, []byte{','})...), ']', '\n')
	}
	return append(bytes.Clone(messages[0]), '\n')
}

// renamed gives a message of the tape the names of this run: its id, the token of its progress. Nil is for progress of a request that
// wants none.
func renamed(b []byte, part *bookPart, who *asker) []byte {
	switch {
	case part.call == nil:
		return b
	case part.name == spotToken && len(who.token) == 0:
		return nil
	}
	return edited(b, func(name string) []byte {
		switch {
		case name == spotID && part.answer, name == spotSubscription, name == spotRequest && !part.answer:
			return who.id
		case name == spotToken:
			return who.token
		}
		return nil
	})
}
