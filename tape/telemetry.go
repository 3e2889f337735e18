package tape

import "strings"

// TelemetryLane begins the lanes of requests that report what a program measured; the host follows. They never gate.
const TelemetryLane = "telemetry:"

// IsTelemetry reports whether x stands in such a lane.
func (x *Exchange) IsTelemetry() bool { return strings.HasPrefix(x.Lane, TelemetryLane) }
