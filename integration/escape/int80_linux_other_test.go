//go:build escape && linux && !amd64

package escape

import "errors"

const has32Bit = false

func int80() error { return errors.New("only amd64 has this door") }
