package picture

import (
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed player.css
	playerCSS string
	//go:embed player.js
	playerJS string
)

// writeHTML writes the page. Its data comes first, as it is made: the page's own parts come behind it, with the last screen as
// text for who runs no scripts.
func writeHTML(w io.Writer, s *session, o *Options) error {
	set := o.settings()
	theme := "auto"
	if o != nil && o.Theme != nil {
		theme = themeSlot(o.Theme)
	}
	style := styleSheet(set.Theme) + playerCSS
	values := map[string]string{
		"Theme": theme, "Title": escape(set.title(s, "")), "Style": style, "Script": playerJS, "Policy": escape(policy(style, playerJS)),
	}
	head, rest, _ := strings.Cut(pageHTML, "{{.Tape}}")
	if err := writeTemplate(w, head, values); err != nil {
		return err
	}
	last, err := writePacked(w, s, set)
	if err != nil {
		return err
	}
	var still []string
	for _, l := range last.Lines {
		still = append(still, escape(l.Text()))
	}
	values["Still"] = strings.TrimRight(strings.Join(still, "\n"), "\n")
	return writeTemplate(w, rest, values)
}

// writeTemplate writes a text with its values put in; a value is not looked through again.
func writeTemplate(w io.Writer, text string, values map[string]string) error {
	for text != "" {
		before, after, found := strings.Cut(text, "{{.")
		name, rest, _ := strings.Cut(after, "}}")
		if !found {
			rest = ""
		}
		if _, err := io.WriteString(w, before+values[name]); err != nil {
			return err
		}
		text = rest
	}
	return nil
}

// writePacked writes the tape: gzip, then base64, which no markup can end.
func writePacked(w io.Writer, s *session, set settings) (*Picture, error) {
	text := base64.NewEncoder(base64.StdEncoding, w)
	z, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	last, err := writeTape(z, s, set)
	if err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return last, text.Close()
}

// policy allows the page what it holds, known by its digest, and nothing else: no request can leave it.
func policy(style, script string) string {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + digest(script) + "; style-src " + digest(style) + "; base-uri 'none'; form-action 'none'"
}

// themeSlot says which of the page's two themes a theme takes the place of.
func themeSlot(t *Theme) string {
	if t.BG>>16&255+t.BG>>8&255+t.BG&255 > 3*128 {
		return "light"
	}
	return "dark"
}

// styleSheet is the colours of both themes; one that the caller brings stands in the place of the one like it.
func styleSheet(t *Theme) string {
	themes := map[string]*Theme{"dark": Dark, "light": Light}
	themes[themeSlot(t)] = t
	return ":root" + variables(themes["dark"]) + ":root[data-theme=light]" + variables(themes["light"])
}

func variables(t *Theme) string {
	var b strings.Builder
	edge := mix(t.Bar, t.FG, 1, 6)
	fmt.Fprintf(&b, "{--fg:%s;--bg:%s;--bar:%s;--text:%s;--page:%s;--edge:%s;--accent:%s;--found:%s", t.FG, t.BG, t.Bar, t.FG, mix(t.BG, t.Bar, 1, 2), edge, t.Palette[12], t.Palette[11])
	for i, c := range t.Palette {
		fmt.Fprintf(&b, ";--c%d:%s", i, c)
	}
	return b.String() + "}\n"
}
