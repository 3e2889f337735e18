// Package client speaks to a daemon: runs, proposals, tools called back, traces.
package client
