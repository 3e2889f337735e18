package testbench

import (
	"bytes"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// messages puts what was asked and what came onto the tape, under the id of its place among the requests to its server.
func (t *tools) messages(k *tape.MCPJSONRPC, x *toolExchange) (err error) {
	id := strconv.AppendUint(nil, x.id, 10)
	asked := request(id, x.method, x.params)
	var answer []byte
	switch {
	case t.b.from != nil:
		if asked, answer, err = t.likeTaped(x, asked); err != nil {
			return err
		}
	case x.answer != nil:
		answer = response(id, x.answer)
	}
	if k.Request, err = t.rec.Payload(asked); err != nil {
		return err
	}
	if k.Response, err = t.rec.Payload(answer); err != nil {
		return err
	}
	k.RequestDigest, k.ResponseDigest = k.Request.Hash, k.Response.Hash
	if t.b.from != nil && t.b.from.foreign { // whose digests may be of something else
		was := x.call.kind
		if k.Request.Same(was.Request) {
			k.RequestDigest = was.RequestDigest
		}
		if k.Response.Same(was.Response) {
			k.ResponseDigest = was.ResponseDigest
		}
	}
	return nil
}

// likeTaped returns the messages of a replay. The answer stands as the tape has it, byte by byte. So does, of another producer's tape, a
// request that asks the same: its blanks and its id are not what the run did.
func (t *tools) likeTaped(x *toolExchange, asked []byte) (_, answer []byte, err error) {
	was := x.call.kind
	if was.Response != nil {
		if answer, err = was.Response.Bytes(t.book.store); err != nil {
			return nil, nil, err
		}
	}
	if !t.b.from.foreign || was.Request == nil {
		return asked, answer, nil
	}
	m, err := messageOf(was.Request, t.book.store)
	switch {
	case err != nil: // nobody knows what it asked
		return asked, answer, nil
	case m.Method == x.method && bytes.Equal(sortedParams(m.Method, m.Params), sortedParams(x.method, t.book.clean(x.params))):
		asked, err = was.Request.Bytes(t.book.store)
		return asked, answer, err
	}
	return request(m.ID, x.method, x.params), answer, nil
}

// sortedParams is the canonical form of the params of a request, with no arguments where they are empty.
func sortedParams(method string, params []byte) []byte {
	v, err := canonjson.Parse(params)
	if err != nil || v.Kind != canonjson.Object {
		return []byte("{}")
	}
	v.Members = withoutEmpty(method, v.Members)
	return v.Append(nil)
}
