package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// token gives what is to be sent, "" where there is none, and the file that it was looked for in.
func (c *Client) token() (text, file string, err error) {
	if c.o.Token != "" {
		return c.o.Token, "", nil
	}
	file = c.o.TokenFile
	if file == "" {
		return "", "", nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && c.o.TokenFile == "" {
		return "", file, nil
	}
	if err != nil {
		return "", file, fmt.Errorf("token: %w", err)
	}
	return strings.TrimSpace(string(b)), file, nil
}
