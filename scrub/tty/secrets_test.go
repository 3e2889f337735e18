package tty_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// A secret is one in a text that says so, or has its shape.
type secret struct {
	name, before, value, after string
	lines                      bool // value has several
}

const knownValue = "correct-horse_battery9staple"

// secrets are of nine kinds, and addresses and accounts.
var secrets = []secret{
	{name: "anthropic", before: "key ", value: "sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7Gb3Yc6Jf0Ae", after: " set"},
	{name: "openai", before: "export K=", value: "sk-proj-a8Fk2Lm9Qx4Tz7Vb1Nc6Rd3We5Hy0Ug", after: " ok"},
	{name: "github", before: "token ", value: "ghp_1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX", after: "."},
	{name: "aws", before: "aws_secret_access_key = ", value: "wJalrXUtnFEMIK7MDENGbPxRfiCYq8Zr2LkTnA9b", after: ""},
	{name: "bearer", before: "Authorization: Bearer ", value: "q7Xv0Zt3Lm8Rk2Wp5Nd1Hs6", after: ""},
	{name: "url", before: "postgres://ann:", value: "Vt6Qm1Zx8Lp3Rk", after: "@db.internal/x"},
	{name: "pem", before: "", value: pem, after: "", lines: true},
	{name: "jwt", before: "id ", value: jwt, after: " end"},
	{name: "known", before: "value ", value: knownValue, after: " here"},
	{name: "email", before: "user <", value: "ann.lee+x@mail.example.net", after: "> logged in"},
	{name: "account", before: "account ", value: "acct-77310", after: " active"},
}

var jwt = "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"u-17"}`)) + ".Zk3Qx9Tm2Lr7Vp1Nd8Hs4"

var pem = func() string {
	rng := rand.New(rand.NewPCG(7, 7))
	b := make([]byte, 48*4+30)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	text := base64.StdEncoding.EncodeToString(b)
	lines := []string{"-----BEGIN PRIVATE KEY-----"}
	for ; len(text) > 64; text = text[64:] {
		lines = append(lines, text[:64])
	}
	return strings.Join(append(lines, text, "-----END PRIVATE KEY-----"), "\n")
}()

// hidden returns the parts of a secret that must not be readable: of a long one each line.
func (s secret) hidden() (parts []string) {
	for _, line := range strings.Split(s.value, "\n") {
		if !strings.HasPrefix(line, "-----") {
			parts = append(parts, line)
		}
	}
	return parts
}

const rows, cols = 24, 80

func options() *tty.Options {
	s := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"SERVICE_TOKEN=" + knownValue}})
	return &tty.Options{Scrub: s, Accounts: []string{"acct-77310"}, Rows: rows, Cols: cols}
}

// A disguise writes a text that has a secret in it to a terminal.
type disguise struct {
	name string
	of   func(rng *rand.Rand, s secret) string
}

var disguises = []disguise{
	{"plain", func(_ *rand.Rand, s secret) string { return "$ show\r\n" + crlf(s.text()) + "\r\n$ " }},
	{"coloured in the middle", func(rng *rand.Rand, s secret) string {
		between := []string{"\x1b[1;31m", "\x1b[0m", "\x1b[38;2;1;2;3m", "\x1b[?25l", "\x1b(B", "\x1b[4 q", "\x0f", "\x1b]0;title\x07", "\x1b]8;;http://x.example\x1b\\"}
		return perChar(s.text(), func(c string) string {
			if rng.IntN(4) == 0 {
				return between[rng.IntN(len(between))] + c
			}
			return c
		})
	}},
	{"coloured on a drawn screen", func(rng *rand.Rand, s secret) string {
		return "\x1b[?1049h\x1b[2J\x1b[5;1H" + perChar(s.text(), func(c string) string { return fmt.Sprintf("\x1b[%dm%s", 31+rng.IntN(7), c) })
	}},
	{"cursor-addressed", func(rng *rand.Rand, s secret) string {
		return "\x1b[2J" + addressed(rng, s.text(), rng.IntN(8), rng.IntN(10), false)
	}},
	{"wrapped at the margin", func(rng *rand.Rand, s secret) string {
		first := strings.Split(s.value, "\n")[0]
		pad := cols - len(s.before) - 1 - rng.IntN(max(len(first)-1, 1))
		if s.lines {
			pad = 40
		}
		return "\x1b[H\x1b[2J$ \r\n" + strings.Repeat(" ", max(pad, 0)) + crlf(s.text())
	}},
	{"cut at the margin", func(rng *rand.Rand, s secret) string {
		if s.lines {
			return crlf(s.text())
		}
		line := strings.Repeat(".", cols-len(s.before)-1-rng.IntN(min(len(s.value)-1, cols-len(s.before)-1))) + s.text()
		line = strings.Replace(line, "."+s.before, " "+s.before, 1)
		var b strings.Builder
		for ; len(line) > cols; line = line[cols:] {
			b.WriteString(line[:cols] + "\r\n")
		}
		return "$ \r\n" + b.String() + line + "\r\n"
	}},
	{"in a box", func(rng *rand.Rand, s secret) string { return box(rng, s.text(), "\r\n", "\x1b[2m") }},
	{"in a drawn box", func(rng *rand.Rand, s secret) string {
		return "\x1b[2J\x1b[3;1H" + box(rng, s.text(), "\x1b[E", "")
	}},
	{"corrected with backspace", func(rng *rand.Rand, s secret) string {
		return "$ " + perChar(s.text(), func(c string) string {
			if rng.IntN(3) == 0 && c != "\r\n" {
				return string(rune('a'+rng.IntN(26))) + "\b" + []string{"", " \b", "\x1b[K"}[rng.IntN(3)] + c
			}
			return c
		})
	}},
	{"redrawn piecewise", func(rng *rand.Rand, s secret) string {
		at, x := rng.IntN(8), rng.IntN(8)
		wrong := perChar(s.text(), func(c string) string {
			if c == "\r\n" {
				return "\n"
			}
			return "#"
		})
		return "\x1b[2J" + addressed(rng, wrong, at, x, false) + addressed(rng, s.text(), at, x, true)
	}},
}

func (s secret) text() string { return s.before + s.value + s.after }

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// perChar writes each character of a text as f says; an end of a line is "\r\n".
func perChar(text string, f func(string) string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' {
			b.WriteString(f("\r\n"))
			continue
		}
		b.WriteString(f(string(r)))
	}
	return b.String()
}

// addressed writes pieces of the lines of a text to their places, in any order with shuffled.
func addressed(rng *rand.Rand, text string, row, col int, shuffled bool) string {
	var pieces []string
	for y, line := range strings.Split(text, "\n") {
		for x := 0; x < len(line); {
			n := min(len(line)-x, 1+rng.IntN(9))
			at := col + x
			pieces = append(pieces, fmt.Sprintf("\x1b[%d;%dH%s", row+y+1+at/cols, at%cols+1, line[x:x+n]))
			if over := at%cols + n - cols; over > 0 { // a piece ends at the margin
				pieces[len(pieces)-1] = fmt.Sprintf("\x1b[%d;%dH%s", row+y+1+at/cols, at%cols+1, line[x:x+n-over])
				n -= over
			}
			x += n
		}
	}
	if shuffled {
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	}
	return strings.Join(pieces, "")
}

// box draws a box around a text, wrapped at its width, as many programs do.
func box(rng *rand.Rand, text, next, colour string) string {
	width := 66 + rng.IntN(8)
	if !strings.Contains(text, "\n") {
		width = 16 + rng.IntN(20)
	}
	border, blank := []string{"│", "|", "║"}[rng.IntN(3)], strings.Repeat(" ", rng.IntN(2))
	lines := []string{blank + "+" + strings.Repeat("-", width+2) + "+"}
	for _, line := range strings.Split(text, "\n") {
		for first := true; first || line != ""; first = false {
			n := min(width, len(line))
			lines = append(lines, fmt.Sprintf("%s%s%s %-*s %s\x1b[m", blank, colour, border, width, line[:n], border))
			line = line[n:]
		}
	}
	return strings.Join(append(lines, lines[0], ""), next)
}
