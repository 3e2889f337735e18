package fidelity

import "github.com/tapedeck-dev/tapedeck/tape"

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
	same(d, PolicyActionID, a.ActionID, b.ActionID)
	same(d, PolicyTool, a.Tool, b.Tool)
	same(d, PolicyParamsDigest, a.ParamsDigest, b.ParamsDigest)
	if !d.lanes {
		d.payload(PolicyParamsHash, a.ParamsPayload, b.ParamsPayload)
	}
	d.json(PolicyState, a.State, b.State)
	d.json(PolicyVerdict, a.Verdict, b.Verdict)
	d.extra(a.Extra, b.Extra)
}
