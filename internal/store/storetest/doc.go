// Package storetest holds every store to the same behaviour: what store.Store promises to whoever uses it, whatever keeps the runs.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// What a store does when its machine fails is its own tests' business.
package storetest
