// Package daemon governs agents' proposals and traces their runs.
package daemon
