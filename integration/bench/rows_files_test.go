package bench

import "time"

// needGit is a need.
var needGit = installed("git", "apt-get install git")

// What files cost: the limits are those of whole commands, from their start to their end, recording and all.
var fileRows = []row{
	{
		name: "files/untar", unit: "x", target: atMost(1.5), timeout: 30 * time.Minute, needs: []need{installed("tar", "apt-get install tar")},
		what: "unpacking a tree of 20,000 files recorded, by the same not recorded",
		from: workRun{load: &untar{files: 20_000, few: 200, suffix: ".tar"}, runs: 7, peers: 2},
	},
	{
		name: "files/untar-gz", unit: "x", target: atMost(1.5), timeout: 30 * time.Minute, needs: []need{installed("tar", "apt-get install tar")},
		what: "the same of a compressed archive, the form in which people get them",
		from: workRun{load: &untar{files: 20_000, few: 200, suffix: ".tar.gz"}, runs: 7, peers: 2},
	},
	{
		name: "files/clone", unit: "x", target: atMost(1.2), timeout: 30 * time.Minute, needs: []need{needGit},
		what: "cloning a local repository of 4,000 files",
		from: workRun{load: &clone{files: 4_000, few: 100}, runs: 7, peers: 2},
	},
	{
		name: "files/npm", unit: "x", target: atMost(1.3), timeout: 30 * time.Minute, needs: []need{needGit, needPackages},
		what: "installing packages from npm's local cache",
		from: workRun{load: npmInstall{}, runs: 5, peers: 1},
	},
	{
		name: "files/go-build", unit: "x", target: atMost(1.15), timeout: 40 * time.Minute, needs: []need{needGit},
		what: "building this project",
		from: workRun{load: &goBuild{long: "./cmd/tapedeck", short: "./internal/visible"}, runs: 3, peers: 1},
	},
	{
		name: "files/open", unit: "x", target: atMost(1.05), needs: []need{needJail},
		what: "an open for reading in a program that is recorded, by one in the same jail without a recorder",
		from: openRun{times: 300_000, few: 20_000, runs: 11},
	},
	{
		name: "files/memory-one", unit: "MiB", target: below(64), timeout: 30 * time.Minute, needs: []need{needProc},
		what: "most memory that the recorder holds while a program writes 5 GB into one file",
		from: peakRun{files: 1, few: 1, bytes: 5 << 30, small: 500 << 20},
	},
	{
		name: "files/memory-many", unit: "MiB", target: below(64), timeout: 30 * time.Minute, needs: []need{needProc},
		what: "the same into 50,000 files",
		from: peakRun{files: 50_000, few: 5_000, bytes: 5 << 30, small: 500 << 20},
	},
	{
		name: "files/memory-long", unit: "MiB", target: below(64), timeout: 30 * time.Minute, needs: []need{needProc},
		what: "the same over 20 files of 60 MB that are there before: nearly the longest that are kept",
		from: peakRun{files: 20, few: 4, bytes: 1200 << 20, small: 240 << 20, over: true},
	},
}
