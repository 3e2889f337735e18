package seal

import (
	"context"
)

// differs says where a stream is not what was sealed.
func (v *verifier) differs(_ context.Context, s *source, sealed, got *Stream) error {
	v.add(problem(CodeChanged, s.path, "it is not what was sealed: %d leaves and %d bytes, expected %d and %d", got.Leaves, got.Bytes,
		sealed.Leaves, sealed.Bytes))
	return nil
}
