package picture

import (
	"errors"
	"io"
)

func writeHTML(io.Writer, *session, *Options) error {
	return errors.New("the page with a player is not made yet")
}
