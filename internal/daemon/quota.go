package daemon

import "sync/atomic"

// quota counts bytes that are held, up to a bound, and within those of another.
type quota struct {
	most int64
	used atomic.Int64
	up   *quota // nil for the outermost
}

// take counts n bytes more, or none and reports false where there is no room. Less than 0 gives back, and always succeeds.
func (q *quota) take(n int) bool {
	if q == nil {
		return true
	}
	if used := q.used.Add(int64(n)); n > 0 && used > q.most {
		q.used.Add(int64(-n))
		return false
	}
	if !q.up.take(n) {
		q.used.Add(int64(-n))
		return false
	}
	return true
}

// drop gives back all that is counted; nothing is taken after it.
func (q *quota) drop() { q.take(-int(q.used.Load())) }
