package tape

import (
	"net/url"
	"strings"
)

// ExchangeOf returns the exchange that a kind holds, which may be changed in place; nil for a kind that holds none.
func ExchangeOf(k Kind) *Exchange {
	switch k := k.(type) {
	case *LLMCall:
		return &k.Exchange
	case *HTTPExchange:
		return &k.Exchange
	}
	return nil
}

// HostOf returns the host of a URL as lanes name it: in lower case, with its port where the URL names one; "" for
// text that names none.
func HostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
