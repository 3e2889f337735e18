package deck

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// mcpDigests checks that the digests of an MCP call are those of its payloads. Another producer may have taken them before it
// redacted: only what says of which conversation it is, as our recorders do, is held to it.
func mcpDigests(k tape.Kind) (problems []error) {
	m, ok := k.(*tape.MCPJSONRPC)
	if !ok || m.Conversation == 0 {
		return nil
	}
	for _, d := range []struct {
		key  string
		said cas.Digest
		of   *tape.Payload
	}{{"request_digest", m.RequestDigest, m.Request}, {"response_digest", m.ResponseDigest, m.Response}} {
		if d.of != nil && d.said != d.of.Hash {
			problems = append(problems, fmt.Errorf("%s is %s, and its payload %s", d.key, d.said.Short(), d.of.Hash.Short()))
		}
	}
	return problems
}
