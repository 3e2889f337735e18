// Package store keeps runs: acknowledged means on the disk.
package store
