package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// enveloped is a record of another producer with messages for payloads. Some keep the params and the result alone, or leave out of a
// message what says that it is one. A payload that is neither stays as it is.
func (b *Book) enveloped(k *tape.MCPJSONRPC, seq uint64) *tape.MCPJSONRPC {
	begin := `{"jsonrpc":"2.0","id":` + strconv.FormatUint(seq, 10)
	whole := *k
	whole.Request = b.envelope(k.Request, func(all json.RawMessage) []byte {
		params := all
		if member(all, "method") != nil {
			params = member(all, "params")
		}
		out := jsonscan.AppendText([]byte(begin+`,"method":`), k.Method)
		if len(params) > 0 && params[0] != 'n' { // null is none
			out = append(append(out, `,"params":`...), params...)
		}
		return append(out, '}')
	})
	whole.Response = b.envelope(k.Response, func(all json.RawMessage) []byte {
		kind, value := "result", all
		for _, key := range []string{"result", "error"} {
			if v := member(all, key); v != nil && v[0] != 'n' {
				kind, value = key, v
			}
		}
		return append(append([]byte(begin+`,"`+kind+`":`), value...), '}')
	})
	return &whole
}

// envelope is a payload of what wrap makes of it, unless it is a message, or no JSON.
func (b *Book) envelope(p *tape.Payload, wrap func(all json.RawMessage) []byte) *tape.Payload {
	if p == nil || p.Len == 0 || !p.Inline && b.store == nil {
		return p
	}
	all, err := p.Bytes(b.store)
	if err != nil {
		return p // whoever answers with it finds out
	}
	if _, _, err := Parse(all); err == nil || !json.Valid(all) {
		return p
	}
	all = wrap(bytes.TrimSpace(all))
	return &tape.Payload{Hash: cas.Sum(all), Text: string(all), Inline: true, Len: int64(len(all))}
}
