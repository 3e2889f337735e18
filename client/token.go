package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
)

// token gives what is to be sent, "" where there is none, and the file that it was looked for in. It is read at each connection:
// every start of a daemon makes another.
func (c *Client) token() (text, file string, err error) {
	switch {
	case c.o.Token != "":
		return c.o.Token, "", nil
	case c.o.TokenFile != "":
		b, err := os.ReadFile(c.o.TokenFile)
		if err != nil {
			return "", c.o.TokenFile, fmt.Errorf("token: %w", err)
		}
		return strings.TrimSpace(string(b)), c.o.TokenFile, nil
	}
	addr := c.url
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		addr = "unix:" + socketPath(path)
	}
	if file, err = token.File("", addr, c.o.Host); err != nil {
		return "", "", nil //nolint:nilerr // an address that no daemon of this machine has: it may want no token
	}
	text, err = token.Read("", addr, c.o.Host)
	if errors.Is(err, fs.ErrNotExist) {
		return "", file, nil
	}
	return text, file, err
}
