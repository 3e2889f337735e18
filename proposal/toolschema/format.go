package toolschema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

var (
	uuidText     = lazyregexp.New(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	hostnameText = lazyregexp.New(`^(?i)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
)

// isFormat reports whether text has a format, of those that the drafts name and that need no table of their own. What is not known passes.
func isFormat(format, text string) bool {
	switch format {
	case "email":
		a, err := mail.ParseAddress(text)
		return err == nil && a.Address == text
	case "ipv4":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4()
	case "ipv6":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is6() && a.Zone() == ""
	case "hostname":
		return len(text) <= 253 && hostnameText.MatchString(text)
	case "uri":
		u, err := url.Parse(text)
		return err == nil && u.IsAbs()
	case "uri-reference":
		_, err := url.Parse(text)
		return err == nil && !strings.Contains(text, `\`)
	case "date-time":
		return isTime("2006-01-02T15:04:05Z07:00", strings.ToUpper(text))
	case "date":
		return isTime("2006-01-02", text)
	case "time":
		return isTime("15:04:05Z07:00", strings.ToUpper(text))
	case "regex":
		_, err := syntax.Parse(text, syntax.Perl)
		return err == nil
	case "uuid":
		return uuidText.MatchString(text)
	case "json-pointer":
		return text == "" || strings.HasPrefix(text, "/")
	}
	return true
}

func isTime(layout, text string) bool {
	_, err := time.Parse(layout, text)
	return err == nil
}
