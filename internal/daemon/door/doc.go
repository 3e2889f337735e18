// Package door lets clients in: listeners, the checks of an upgrade, peers' credentials.
package door
