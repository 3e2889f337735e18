package fidelity

import (
	"bytes"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func (d *differ) dirList(a, b *tape.DirList) {
	d.text(DirListPath, a.Path, b.Path)
	same(d, DirListNames, a.NamesDigest, b.NamesDigest)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) envRead(a, b *tape.EnvRead) {
	same(d, EnvReadName, a.VarName, b.VarName)
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
