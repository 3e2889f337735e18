package ttyscrub

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// shapesAlone tells secrets by their shapes. No placeholder is made, so the key does not matter.
var shapesAlone = sync.OnceValue(func() *scrub.Scrubber { return scrub.New(scrub.Key{}, nil) })
