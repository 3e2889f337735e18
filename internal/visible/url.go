package visible

import "strings"

// WithoutUser returns the URL that somebody gave, however it is written, without a user and a password before its host: ***@ stands for
// them. What may be no URL at all loses all before its last @.
func WithoutUser(url string) string {
	at := strings.LastIndexByte(url, '@')
	if at < 0 {
		return url
	}
	from := 0
	if i := strings.Index(url[:at], "://"); i >= 0 {
		from = i + len("://")
	}
	return url[:from] + "***" + url[at:]
}
