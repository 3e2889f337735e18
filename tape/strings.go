package tape

import "encoding/json"

// Strings lists the strings that a record of the kind k holds, in the order of its keys: pointers, through which they may be
// changed in place. Left out are what Payloads lists, the digests, the phase of the record, its Raw and its Extra, and all of
// an unknown kind.
func Strings(k Kind) []*string {
	switch k := k.(type) {
	case *LLMCall:
		return append(append([]*string{&k.Provider, &k.Endpoint, &k.Model}, k.strings()...), &k.Opcode)
	case *HTTPExchange:
		return k.strings()
	case *FileRead:
		return k.strings()
	case *FileWrite:
		return k.strings()
	case *FileDelete:
		return k.strings()
	case *ProcessSpawn:
		return k.strings()
	case *MCPJSONRPC:
		return []*string{&k.Server, &k.Method, &k.From, &k.Transport, &k.Error}
	case *MCPOpen:
		return k.strings()
	case *MCPText:
		return []*string{&k.Server, &k.From}
	case *MCPClose:
		return []*string{&k.Server, &k.Signal, &k.Error, &k.By}
	case *WSOpen:
		return headerStrings(headerStrings([]*string{&k.URL, &k.Lane}, k.RequestHeaders), k.ResponseHeaders)
	case *WSMessage:
		return []*string{&k.Direction, &k.Opcode}
	case *WSClose:
		return []*string{&k.Reason}
	}
	return plainStrings(k)
}

// plainStrings is Strings of the kinds that are nothing but a few values.
func plainStrings(k Kind) []*string {
	switch k := k.(type) {
	case *ClockRead:
		return []*string{&k.Source}
	case *TLSRefused:
		return []*string{&k.Host, &k.Reason}
	case *NetRefused:
		return []*string{&k.Addr, &k.Reason}
	case *NameLookup:
		return []*string{&k.Host, &k.Type, &k.Result}
	case *DirList:
		return []*string{&k.Path}
	case *EnvRead:
		return []*string{&k.VarName}
	case *FileStat:
		return []*string{&k.Path, &k.Type, &k.Mode}
	case *PolicyVerdict:
		return []*string{&k.PolicySet, &k.ActionID, &k.Tool}
	}
	return nil
}

func (x *Exchange) strings() []*string {
	out := headerStrings([]*string{&x.Method, &x.URL}, x.RequestHeaders)
	return append(headerStrings(out, x.ResponseHeaders), &x.Lane, &x.Error)
}

func (f *File) strings() []*string { return []*string{&f.Path, &f.Mode} }

func (k *ProcessSpawn) strings() []*string {
	out := []*string{&k.Program}
	for i := range k.Args {
		out = append(out, &k.Args[i])
	}
	if k.Cwd != nil {
		out = append(out, k.Cwd)
	}
	return append(out, &k.Signal)
}

func (k *MCPOpen) strings() []*string {
	out := []*string{&k.Server, &k.Transport, &k.Program}
	for i := range k.Args {
		out = append(out, &k.Args[i])
	}
	for i := range k.Env {
		out = append(out, &k.Env[i])
	}
	return append(out, &k.Cwd, &k.URL, &k.Protocol)
}

func headerStrings(out []*string, fields []HeaderField) []*string {
	for i := range fields {
		out = append(out, &fields[i].Name, &fields[i].Value)
	}
	return out
}

// Extras returns the further keys of the kind k, which may be changed in place; nil of an unknown kind, which has none.
func Extras(k Kind) *[]Field {
	if k, ok := k.(known); ok {
		return k.extra()
	}
	return nil
}

// FieldValue returns the value of the first field called name; nil for none.
func FieldValue(fields []Field, name string) json.RawMessage {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}
