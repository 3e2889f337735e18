package seal

import (
	"bytes"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"golang.org/x/mod/sumdb/tlog"
)

// ProofName is what a proof is called in problems.
const ProofName = "proof.json"

// ParseProof reads a proof.json. It takes the one canonical form and nothing else. The error is a *Problem. Nothing is verified
// but the form.
func ParseProof(b []byte) (*Proof, error) {
	p, bad := parseProof(b)
	if bad != nil {
		return nil, bad
	}
	return p, nil
}

func parseProof(b []byte) (*Proof, *Problem) {
	if len(b) > MaxProof {
		return nil, problem(CodeTooLarge, ProofName, "it is larger than %d bytes", MaxProof)
	}
	e, p := &exact{b: b}, &Proof{}
	e.lit(`{"checkpoint":`)
	p.Checkpoint = e.str()
	e.lit(`,"format":`)
	e.format()
	e.lit(`,"id":`)
	p.ID = e.str()
	e.lit(`,"key":`)
	p.Key = e.key()
	e.lit(`,"leaf":{"at":`)
	p.Leaf = e.num()
	if e.has(`,"base64":`) {
		e.lit(",")
		p.Data = e.notText()
		e.lit(`,"path":`)
		p.LeafPath = e.hashes()
	} else {
		e.lit(`,"path":`)
		p.LeafPath = e.hashes()
		e.lit(`,"text":`)
		p.Data = []byte(e.str())
	}
	e.lit(`},"payloads":`)
	e.list(func() { p.Payloads = append(p.Payloads, e.payload()) })
	e.lit(`,"stream":`)
	p.Stream = e.stream()
	e.lit(`,"streamAt":`)
	p.StreamAt = e.num()
	e.lit(`,"streamPath":`)
	p.StreamPath = e.hashes()
	e.lit("}")
	if bad := e.end(ProofName); bad != nil {
		return nil, bad
	}
	return p, nil
}

// notText reads the member "base64", which holds what is no UTF-8.
func (e *exact) notText() []byte {
	e.lit(`"base64":`)
	b := e.base64()
	if e.failed == "" && utf8.Valid(b) {
		e.code = CodeNotCanonical
		e.fail("\"text\" for what is UTF-8")
	}
	return b
}

func (e *exact) payload() (p Payload) {
	if e.has(`{"base64":`) {
		e.lit("{")
		p.Bytes = e.notText()
		e.lit(`,"blake3":`)
		p.Digest = e.digest()
	} else {
		e.lit(`{"blake3":`)
		p.Digest = e.digest()
		e.lit(`,"text":`)
		p.Bytes = []byte(e.str())
	}
	e.lit("}")
	return p
}

// VerifyProof checks a proof with nothing but public keys. The error is a *Problem. Without keys it shows only that the proof is
// whole: Proven.SignerKnown is then false.
func VerifyProof(b []byte, o *ProofOptions) (*Proven, error) {
	if o == nil {
		o = &ProofOptions{}
	}
	p, bad := parseProof(b)
	if bad != nil {
		return nil, bad
	}
	out, bad := p.verify(o, ProofName)
	if bad != nil {
		return nil, bad
	}
	return out, nil
}

func (p *Proof) verify(o *ProofOptions, name string) (*Proven, *Problem) {
	c, err := parseCheckpoint(p.Checkpoint)
	if err != nil {
		return nil, problem(CodeCheckpoint, name, "%v", err)
	}
	if want := origin(p.Key.Name(), p.ID); c.origin != want || !validID(p.ID) {
		return nil, problem(CodeCheckpoint, name, "the checkpoint is of %.200q, the proof says %q", c.origin, want)
	}
	j := c.judge(name, p.Key, o.Keys, o.Witnesses)
	if len(j.problems) > 0 {
		return nil, &j.problems[0]
	}
	if bad := p.Stream.check(name); bad != nil {
		return nil, bad
	}
	if err := tlog.CheckRecord(p.StreamPath, c.tree.N, c.tree.Hash, p.StreamAt, recordHash(p.Stream.leaf())); err != nil {
		return nil, problem(CodeProof, name, "stream %s is not in the signed tree of %d streams: %v", p.Stream.Path, c.tree.N, err)
	}
	if err := tlog.CheckRecord(p.LeafPath, p.Stream.Leaves, p.Stream.Root, p.Leaf, recordHash(p.Data)); err != nil {
		bad := problem(CodeProof, name, "the leaf is not number %d of the %d of stream %s: %v", p.Leaf, p.Stream.Leaves, p.Stream.Path, err)
		bad.Leaf = p.Leaf
		return nil, bad
	}
	for i := range p.Payloads {
		if bad := p.Payloads[i].check(p, name); bad != nil {
			return nil, bad
		}
	}
	return &Proven{Proof: p, Signer: j.signer, SignerKnown: j.known, Cosignatures: j.cosigned, Unknown: j.unknown}, nil
}

// check holds a payload against its digest and the leaf.
func (p *Payload) check(of *Proof, name string) *Problem {
	if got := cas.Sum(p.Bytes); got != p.Digest {
		return problem(CodePayload, name, "the payload %s is damaged: its bytes hash to %s", p.Digest, got)
	}
	if !of.names(p) {
		return problem(CodePayload, name, "the leaf does not name the payload %s", p.Digest)
	}
	return nil
}

// names reports whether the leaf names a payload.
func (p *Proof) names(payload *Payload) bool {
	hex := payload.Digest.String()
	switch p.Stream.Kind {
	case Lines: // no byte of JSON text but the ends of a string can stand on both sides of it
		return bytes.Contains(p.Data, []byte(`"`+hex+`"`))
	case Blobs:
		b := blob{payload.Digest, int64(len(payload.Bytes))}
		return bytes.Equal(p.Data, b.leaf())
	case Files:
		return bytes.HasPrefix(p.Data, []byte(`{"blake3":"`+hex+`",`))
	}
	return false
}
