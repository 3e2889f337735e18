// Package store keeps runs: acknowledged means on the disk.
//
// Goals: a turn that was acknowledged is there after any crash, once, in order, in its own run; thousands of runs share one fsync;
// the files that people read are plain lines; a slow reader holds nobody up; a PostgreSQL store can stand in its place, held to the
// same behaviour by storetest.
//
// Non-goals: who may read or write which run (the daemon decides), what a turn says (package runtrace).
package store
