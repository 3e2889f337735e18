package scrub

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// jwtRule finds JSON Web Tokens: two parts of base64url that decode to objects, and a signature.
var jwtRule = &rule{starts: []string{"eyJ"}, names: []string{"jwt"}, match: (&expression{
	source: `(eyJ[\w-]{7,}\.eyJ[\w-]{7,}\.[\w-]*)`, word: true, limit: maxShape - 256,
}).finds(span{rule: "jwt", rank: shaped}, nil)}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemLabel = "PRIVATE KEY"
)

// What a block of a private key is made of, as it stands, in JSON and in a form.
const (
	pemSpace  = `(?: |\+|%20)`
	pemBlanks = `(?:[ \t\r\n]|\\[nrt\\]|%0[AaDd])*`
	pemWords  = `(?:[A-Za-z0-9]|` + pemSpace + `){0,40}`
	pemEnds   = pemSpace + pemWords + `PRIVATE` + pemSpace + `KEY` + pemWords + `-----`
	pemHeader = `[A-Za-z0-9-]{0,64}:[^\n\r\\]{0,128}(?:[\n\r]|\\[nr\\])` + pemBlanks
	pemDigit  = `(?:[A-Za-z0-9+/=]|%2[BbFf]|%3[Dd])`
	pemLine   = `(?:` + pemDigit + `{20,}|` + pemDigit + `*(?:=|%3[Dd]))`
)

// pemRule finds blocks of private keys, whole or cut off: headers (Proc-Type: 4,ENCRYPTED), lines of 20 digits of base64 or more, but for
// the last one, and the line of the end. A block that ends in dots is one of which a document shows no more than the beginning: it is
// about how the key was made.
var pemRule = &rule{starts: []string{"---"}, names: []string{"pem"}, match: (&expression{
	source: `(-----BEGIN` + pemEnds + pemBlanks + `(?:` + pemHeader + `)*(?:` +
		`(?:` + pemLine + pemBlanks + `)*` + pemDigit + `*` + pemBlanks + `-----END` + pemEnds + `|` +
		pemLine + `(?:` + pemBlanks + pemLine + `)*))(?:` + pemBlanks + `(?:\.\.\.|\x{e2}\x{80}\x{a6}))?`,
	least: "-----BEGIN", limit: maxShape - 256, cuts: true,
}).finds(span{rule: "pem", rank: shaped}, func(_, all, secret []byte) bool {
	const mostShown = 100 // bytes of a block that ends in dots
	_, body, _ := bytes.Cut(secret[len(pemBegin):], []byte("-----"))
	return len(all) == len(secret) || len(body) > mostShown
})}

var userinfoChars = chars.NewSet("-._~!$&*+=:%@")

// urlRule finds the password of scheme://user:password@host, or a token in the place of the user.
func urlRule(slashes string) *rule {
	const maxUserinfo = 512
	return &rule{[]string{slashes[:3]}, []string{urlPassword}, func(t text, i int) (span, outcome) {
		if i == 0 || !chars.Alnum[t.b[i-1]] {
			return span{}, miss
		}
		if o := t.literal(i, slashes); o != hit {
			return span{}, o
		}
		start := i + len(slashes)
		end, o := t.run(start, userinfoChars, maxUserinfo)
		if o != hit {
			return span{}, o
		}
		from, to, ok := names.InUserinfo(string(t.b[start:end]))
		if !ok {
			return span{}, miss
		}
		return span{start: start + from, end: start + to, rule: urlPassword}, hit
	}}
}
