package masks_test

import (
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// TestMomentOf reads what programs write of one moment, and not of the next.
func TestMomentOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 5, 21, 22, 840_512_345, time.UTC)
	for _, tt := range []struct {
		mask, text string
		unit       time.Duration
	}{
		{"unix-time", "1795756882", time.Second},
		{"unix-time", "1795756882840", time.Millisecond},
		{"unix-time", "1795756882840512345", time.Nanosecond},
		{"unix-time", "1795756882.8405", 100 * time.Microsecond},
		{"timestamp", "2026-11-27T05:21:22.840Z", time.Millisecond},
		{"timestamp", "2026-11-27T10:51:22.840512+05:30", time.Microsecond},
		{"timestamp", "2026-11-27T05-21-22", time.Second},
		{"time", "23:21:22", time.Second},
		{"uuid", "01a21b73-7b98-7b1e-8000-00000000000f", time.Millisecond},
	} {
		m, ok := masks.MomentOf(tt.mask, tt.text)
		if !ok || m.Unit != tt.unit || !m.Has(at.UnixNano()) || m.Has(at.Add(tt.unit).UnixNano()) || m.Has(at.Add(-tt.unit).UnixNano()) {
			t.Errorf("%s %s: %+v, %v", tt.mask, tt.text, m, ok)
		}
	}
	for mask, text := range map[string]string{"unix-time": "1.5", "timestamp": "2026-11-27", "uuid": "01a21b73-7b98-4b1e-8000-00000000000f", "time": "05:21"} {
		if m, ok := masks.MomentOf(mask, text); ok {
			t.Errorf("%s %s: %+v", mask, text, m)
		}
	}
}
