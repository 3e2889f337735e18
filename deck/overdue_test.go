package deck

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOverdue ends what takes too long, and what nothing happens in once a request was refused.
func TestOverdue(t *testing.T) {
	for name, tt := range map[string]struct {
		limit   time.Duration
		refused bool
		busy    time.Duration // for which there is a record a second
		want    overdueWhy
		at      time.Duration
	}{
		"at its limit":               {limit: 90 * time.Second, want: overdueLimit, at: 90 * time.Second},
		"still after a refusal":      {refused: true, busy: 20 * time.Second, want: overdueStill, at: 80 * time.Second},
		"busy after a refusal":       {refused: true, busy: time.Hour},
		"still without a refusal":    {},
		"still, with a longer limit": {limit: time.Hour, refused: true, want: overdueStill, at: 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var ended time.Duration
				o := &overdue{
					limit: tt.limit, still: time.Minute, refused: func() bool { return tt.refused },
					records: func() int { return int(min(time.Since(begun), tt.busy) / time.Second) },
				}
				stop := o.watch(func() { ended = time.Since(begun) })
				time.Sleep(30 * time.Minute)
				if why := stop(); why != tt.want || ended.Round(2*time.Second) != tt.at {
					t.Errorf("ended after %v: %d, want %d after %v", ended, why, tt.want, tt.at)
				}
			})
		})
	}
}
