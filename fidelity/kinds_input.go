package fidelity

import (
	"bytes"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func (d *differ) dirList(a, b *tape.DirList) {
	d.text(DirListPath, a.Path, b.Path)
	d.names(a, b)
	d.extra(a.Extra, b.Extra)
}

// names compares what stood in a directory as one field: the digest, and by position the names themselves, whose digest it is.
func (d *differ) names(a, b *tape.DirList) {
	f := finding{category: DirListNames, was: a.Names, now: b.Names}
	if a.NamesDigest != b.NamesDigest {
		d.hashed(f, a.NamesDigest, b.NamesDigest)
	} else if !d.lanes && !a.Names.Same(b.Names) {
		d.hashed(f, hashOf(a.Names), hashOf(b.Names))
	}
}

func (d *differ) envRead(a, b *tape.EnvRead) {
	same(d, EnvReadName, a.VarName, b.VarName)
	d.payload(EnvReadValue, a.Value, b.Value)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) fileStat(a, b *tape.FileStat) {
	d.text(FileStatPath, a.Path, b.Path)
	same(d, FileStatType, a.Type, b.Type)
	sameExact(d, FileStatLen, a.LenBytes, b.LenBytes)
	same(d, FileStatMode, a.Mode, b.Mode)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) randomRead(a, b *tape.RandomRead) {
	same(d, RandomReadLength, a.Length, b.Length)
	d.payload(RandomReadHash, a.Payload, b.Payload)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) policyVerdict(a, b *tape.PolicyVerdict) {
	same(d, PolicySet, a.PolicySet, b.PolicySet)
	if !d.lanes || d.exact { // between lanes it is what a provider made up for the call
		same(d, PolicyActionID, a.ActionID, b.ActionID)
	}
	same(d, PolicyTool, a.Tool, b.Tool)
	same(d, PolicyParamsDigest, a.ParamsDigest, b.ParamsDigest)
	if !d.lanes {
		d.payload(PolicyParamsHash, a.ParamsPayload, b.ParamsPayload)
	}
	d.json(PolicyState, a.State, b.State)
	d.json(PolicyVerdict, d.said(a), d.said(b))
	d.extra(a.Extra, b.Extra)
}

// said is what a policy decided, between lanes without the id of the action, which each violation repeats.
func (d *differ) said(k *tape.PolicyVerdict) []byte {
	if !d.lanes || d.exact || k.ActionID == "" {
		return k.Verdict
	}
	return bytes.ReplaceAll(k.Verdict, []byte(strconv.Quote(k.ActionID)), []byte(`""`))
}
