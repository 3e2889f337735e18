// Package rpcapi holds what the daemon's methods take and give, version by version.
package rpcapi
