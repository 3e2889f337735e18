// Package seglog is an append-only log in segments with group commit.
package seglog
