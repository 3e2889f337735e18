package network

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	dnsHeader = 12 // bytes of a DNS message's header
	dnsTTL    = 60 // seconds; an address never changes, this only bounds what a cache keeps after the run
)

// answerDNS returns the reply to one DNS message, nil where there is none to give (too short to have an id, or itself a
// reply). A questions get a synthetic address, PTR questions the name of one, every other type an answer without
// records: programs then fall back to IPv4, and to HTTP without service records. Malformed messages get FORMERR.
//
// looked is the question, and what came of it; nil of a malformed message.
func answerDNS(names *Names, query []byte) (reply []byte, looked *tape.NameLookup) {
	if len(query) < dnsHeader || query[2]&0x80 != 0 {
		return nil, nil
	}
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return formErr(query), nil
	}
	q, err := p.Question()
	if err != nil {
		return formErr(query), nil
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return formErr(query), nil
	}
	body, code := resolve(h, q, names)
	if reply, err = packReply(h, q, body, code); err != nil {
		return formErr(query), nil
	}
	return reply, lookupOf(q, body, code)
}

// lookupOf is the record of a question.
func lookupOf(q dnsmessage.Question, body dnsmessage.ResourceBody, code dnsmessage.RCode) *tape.NameLookup {
	l := &tape.NameLookup{Host: cleanName(q.Name.String()), Type: strings.TrimPrefix(q.Type.String(), "Type"), Result: "answered"}
	switch {
	case code != dnsmessage.RCodeSuccess:
		l.Result = "refused"
	case body == nil:
		l.Result = "empty"
	}
	return l
}

// formErr is the header alone, with the query's id.
func formErr(query []byte) []byte {
	out := make([]byte, dnsHeader)
	copy(out, query[:2])
	binary.BigEndian.PutUint16(out[2:], 0x8000|uint16(query[2]&0x79)<<8|uint16(dnsmessage.RCodeFormatError))
	return out
}

func packReply(h dnsmessage.Header, q dnsmessage.Question, body dnsmessage.ResourceBody, code dnsmessage.RCode) ([]byte, error) {
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: h.ID, Response: true, OpCode: h.OpCode, RCode: code,
			RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	if body != nil {
		rh := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL}
		reply.Answers = []dnsmessage.Resource{{Header: rh, Body: body}}
	}
	return reply.Pack()
}

// resolve answers one question; a nil body is an answer without records.
func resolve(h dnsmessage.Header, q dnsmessage.Question, names *Names) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	switch {
	case h.OpCode != 0:
		return nil, dnsmessage.RCodeNotImplemented
	case q.Class != dnsmessage.ClassINET && q.Class != dnsmessage.ClassANY:
		return nil, dnsmessage.RCodeSuccess
	case q.Type == dnsmessage.TypePTR:
		return resolvePTR(q, names)
	}
	name := cleanName(q.Name.String())
	if !validName(name) {
		return nil, dnsmessage.RCodeNameError
	}
	if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
		return nil, dnsmessage.RCodeSuccess
	}
	addr, err := names.Addr(name)
	if err != nil {
		return nil, dnsmessage.RCodeServerFailure
	}
	return &dnsmessage.AResource{A: addr.As4()}, dnsmessage.RCodeSuccess
}

func resolvePTR(q dnsmessage.Question, names *Names) (dnsmessage.ResourceBody, dnsmessage.RCode) {
	addr, ok := reverseAddr(cleanName(q.Name.String()))
	if !ok {
		return nil, dnsmessage.RCodeNameError
	}
	name, ok := names.Name(addr)
	if addr.IsLoopback() {
		name, ok = "localhost", true
	}
	if !ok {
		return nil, dnsmessage.RCodeNameError
	}
	ptr, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, dnsmessage.RCodeServerFailure
	}
	return &dnsmessage.PTRResource{PTR: ptr}, dnsmessage.RCodeSuccess
}

// reverseAddr reads the IPv4 address out of a name below in-addr.arpa.
func reverseAddr(name string) (netip.Addr, bool) {
	digits, ok := strings.CutSuffix(name, ".in-addr.arpa")
	parts := strings.Split(digits, ".")
	if !ok || len(parts) != 4 {
		return netip.Addr{}, false
	}
	var b [4]byte
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		b[3-i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}
