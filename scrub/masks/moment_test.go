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
		unit, zone time.Duration
	}{
		{"unix-time", "1795756882", time.Second, 0},
		{"unix-time", "1795756882840", time.Millisecond, 0},
		{"unix-time", "1795756882840512345", time.Nanosecond, 0},
		{"unix-time", "1795756882.8405", 100 * time.Microsecond, 0},
		{"timestamp", "2026-11-27T05:21:22.840Z", time.Millisecond, 0},
		{"timestamp", "2026-11-27T10:51:22.840512+05:30", time.Microsecond, 5*time.Hour + 30*time.Minute},
		{"timestamp", "2026-11-27T05-21-22", time.Second, 0},
		{"time", "23:21:22", time.Second, 18 * time.Hour},
		{"uuid", "01a21b73-7b98-7b1e-8000-00000000000f", time.Millisecond, 0},
	} {
		m, ok := masks.MomentOf(tt.mask, tt.text)
		zone, is := m.Zone(at.UnixNano())
		_, before := m.Zone(at.Add(-tt.unit).UnixNano())
		_, after := m.Zone(at.Add(tt.unit).UnixNano())
		if !ok || m.Unit != tt.unit || !is || zone != tt.zone || before || after {
			t.Errorf("%s %s: %+v, %v; %v %v", tt.mask, tt.text, m, ok, zone, is)
		}
	}
	for mask, text := range map[string]string{"unix-time": "1.5", "timestamp": "2026-11-27", "uuid": "01a21b73-7b98-4b1e-8000-00000000000f", "time": "05:21"} {
		if m, ok := masks.MomentOf(mask, text); ok {
			t.Errorf("%s %s: %+v", mask, text, m)
		}
	}
}
