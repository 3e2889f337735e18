package seal

import (
	"bytes"

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
	p.walk(e)
	if bad := e.end(ProofName); bad != nil {
		return nil, bad
	}
	return p, nil
}

// Encode returns the bytes of proof.json.
func (p *Proof) Encode() []byte { return written(p.walk) }

func (p *Proof) walk(e *exact) {
	e.lit(`{"checkpoint":`)
	e.str(&p.Checkpoint)
	e.lit(`,"format":`)
	e.format()
	e.lit(`,"id":`)
	e.str(&p.ID)
	e.lit(`,"key":`)
	e.key(&p.Key)
	e.lit(`,"leaf":{"at":`)
	e.num(&p.Leaf)
	e.lit(",")
	e.data(&p.Data, func() {
		e.lit(`"path":`)
		e.hashes(&p.LeafPath)
	})
	e.lit(`},"payloads":`)
	list(e, &p.Payloads, func(one *Payload) {
		e.lit("{")
		e.data(&one.Bytes, func() {
			e.lit(`"blake3":`)
			e.digest(&one.Digest)
		})
		e.lit("}")
	})
	e.lit(`,"stream":`)
	p.Stream.walk(e)
	e.lit(`,"streamAt":`)
	e.num(&p.StreamAt)
	e.lit(`,"streamPath":`)
	e.hashes(&p.StreamPath)
	e.lit("}")
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
