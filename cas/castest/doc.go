// Package castest is the conformance suite of cas.Store, and a store that fails on purpose.
//
// Every store runs Conformance in its own tests. What only a store on a disk can get wrong (symlinks, killed writers,
// durability) is tested beside that store.
package castest
