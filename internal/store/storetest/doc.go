// Package storetest holds every store to the same behaviour.
package storetest
