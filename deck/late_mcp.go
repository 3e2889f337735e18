package deck

import (
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// mcpCall takes them out of both messages of a call, whose digests are then those of a run that knew them from the beginning.
func (l *late) mcpCall(k *tape.MCPJSONRPC) error {
	from := mcp.Side(k.From)
	if from == "" {
		from = mcp.Client
	}
	var err error
	for _, m := range []struct {
		from           mcp.Side
		method         string
		payload        **tape.Payload
		digest, inside *cas.Digest
	}{
		{from, k.Method, &k.Request, &k.RequestDigest, &k.ParamsDigest},
		{from.Other(), "", &k.Response, &k.ResponseDigest, &k.ResultDigest},
	} {
		if *m.payload == nil || (*m.payload).Len == 0 && !(*m.payload).Inline {
			continue
		}
		if *m.payload, err = l.mcpMessage(m.from, m.method, *m.payload, m.inside); err != nil {
			return err
		}
		*m.digest = (*m.payload).Hash
	}
	return nil
}

// mcpMessage returns a message without them. inside becomes the digest of what is compared of it, where it has one.
func (l *late) mcpMessage(from mcp.Side, method string, p *tape.Payload, inside *cas.Digest) (*tape.Payload, error) {
	b, err := p.Bytes(l.s.store)
	if err != nil {
		return nil, err
	}
	line := l.mcp.Redact(from, b)
	if len(line.Messages) == 1 && !inside.IsZero() {
		m := &line.Messages[0]
		*inside = l.mcp.Digest(method, firstOf(m.Params, m.Result, m.Error))
	}
	return tape.MakePayload(l.s.store, line.Text)
}

// firstOf returns the first that is there.
func firstOf(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}
