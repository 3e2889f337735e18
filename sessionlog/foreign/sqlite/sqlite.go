// Package sqlite is the driver that the importer of opencode reads its database with:
//
//	import _ "github.com/tapedeck-dev/tapedeck/sessionlog/foreign/sqlite"
//
// It stands apart, for a program that imports no database then has no SQLite in it, some 8 MB. Any other driver for
// database/sql that is called foreign.DriverName and takes SQLite's URIs does as well.
package sqlite

import _ "modernc.org/sqlite" // registers itself as "sqlite"
