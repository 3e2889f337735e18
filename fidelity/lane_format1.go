package fidelity

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// asFormat1 makes of the records of both sides what a recording of format 1 tells.
func (c *laneCompare) asFormat1() {
	for s := range c.sides {
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
			switch k := e.rec.Kind.(type) {
			case *tape.FileWrite:
				if k.IsPlace() {
					e.rec = nil
					continue
				}
				rec := *e.rec
				rec.Kind = &tape.FileWrite{File: fileOfFormat1(k.File)}
				e.rec = &rec
			case *tape.FileDelete:
				if k.IsPlace() {
					e.rec = nil
				}
			case *tape.MCPOpen:
				open := *k
				open.Env = nil
				rec := *e.rec
				rec.Kind = &open
				e.rec = &rec
			case *tape.NameLookup:
				e.rec = nil
			case *tape.NetRefused:
				if strings.HasPrefix(k.Addr, "/") {
					e.rec = nil
				}
			}
		}
	}
}

// fileOfFormat1 is a file with the mode as Git has it, and without attributes.
func fileOfFormat1(f tape.File) tape.File {
	if len(f.Mode) == 6 && f.Mode[:2] == "10" {
		executable := (f.Mode[3]-'0')&1 != 0
		if f.Mode = "100644"; executable {
			f.Mode = "100755"
		}
	}
	f.Extra = slices.DeleteFunc(slices.Clone(f.Extra), func(x tape.Field) bool { return x.Name == attrsKey })
	return f
}
