package foreign

import (
	"errors"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
)

// tapeURL returns a URL as a tape has it. The error is why no request to it can stand on one.
func tapeURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("its URL cannot be read")
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "":
		return "", errors.New("its URL is not absolute")
	case scheme == "ws" || scheme == "wss":
		return "", errWebSocket
	case scheme != "http" && scheme != "https":
		return "", errors.New("its URL begins with " + scheme + ": and nothing was asked over HTTP")
	case u.Host == "":
		return "", errors.New("its URL has no host")
	}
	return bare.URL(u), nil
}

var errWebSocket = errors.New("a WebSocket is no exchange of HTTP")
