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

// WithoutKeys is WithoutUser, without a query and a fragment too, where keys stand as well: ?*** stands for them. Where an @ after the
// first ? leaves open which of the two hides what, only the scheme stays.
func WithoutKeys(url string) string {
	query := strings.IndexAny(url, "?#")
	if query < 0 {
		return WithoutUser(url)
	}
	if strings.Contains(url[query:], "@") {
		scheme, _, ok := strings.Cut(url[:query], "://")
		if !ok {
			return "***"
		}
		return scheme + "://***"
	}
	return WithoutUser(url[:query]) + "?***"
}
