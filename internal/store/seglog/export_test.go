package seglog

import "context"

// AppendWait appends a record in any epoch and returns when it is on the disk. When ctx ends first, the record may still get there.
func (l *Log) AppendWait(ctx context.Context, record []byte) (Pos, error) {
	type result struct {
		pos Pos
		err error
	}
	answer := make(chan result, 1)
	if err := l.Append(ctx, 0, record, func(pos Pos, err error) { answer <- result{pos, err} }); err != nil {
		return 0, err
	}
	select {
	case r := <-answer:
		return r.pos, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
