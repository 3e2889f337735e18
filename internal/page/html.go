package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// A Bundle is the built page (package ui): one script, which is no module, and one style sheet.
type Bundle struct{ Script, Style string }

// check refuses a bundle that would end its own element.
func (b *Bundle) check() error {
	for what, text := range map[string]string{"script": b.Script, "style": b.Style} {
		low := strings.ToLower(text)
		if strings.Contains(low, "</"+what) || strings.Contains(low, "<!--") {
			return fmt.Errorf("the page's %s holds what would end it: build it again", what)
		}
	}
	return nil
}

// policy is the Content-Security-Policy of the page: it may load what it holds, known by its digest, images that stand in its data, and what
// connect allows beside; nothing else, and no request can leave it.
func (b *Bundle) policy(connect string) string {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + digest(b.Script) + "; style-src " + digest(b.Style) + "; img-src data:; " + connect +
		"base-uri 'none'; form-action 'none'"
}

// head is the page up to its data. Nothing of a recording stands in it, its title neither: the script gives it one.
func (b *Bundle) head(connect string) string {
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="` + b.policy(connect) + `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Tapedeck</title>
<style>` + b.Style + `</style>
</head>
<body>
<noscript>This page shows recordings by a script that it holds itself. It asks nobody for anything.</noscript>
`
}

func (b *Bundle) foot() string { return "<script>" + b.Script + "</script>\n</body>\n</html>\n" }
