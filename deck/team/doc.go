// Package team keeps recordings where many machines find them: what is known of each in a database, its bytes as a blob.
//
// A database is SQLite (sqlite:///PATH) or PostgreSQL (postgres://…), blobs lie in a directory (file:///PATH) or in a bucket
// (s3://BUCKET/PREFIX?endpoint=URL&region=NAME, with the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or of ~/.aws/credentials). Each goes
// with each. Who has their keys uses a Store; package remote gives it to others, by tokens.
//
// A run is pushed as package library packs it: one file, named by the BLAKE3-256 of its bytes. Its row says what a list shows; beside it stand its
// texts, as they were scrubbed: prompts, answers, arguments and results of tools, names of files, output, the command line.
//
// Order of a push: the blob is claimed and put, then row and texts are added and the claim goes, in one transaction. So a run is there whole or
// not at all, and one that was acknowledged is there. Who is killed leaves a claim and perhaps a blob, which Sweep takes away.
//
// The database has a row of each blob that it brought, and deletes no other: two databases may have one place of blobs, if they have no run in
// common. Who holds the claim of a blob is alone with it, be it a push or a sweep: it is deleted only by who has its claim, and has seen since that
// no run has it. A claim that nobody has renewed for ClaimAge is dead; its holder stops before, and who takes it over makes the old holder's
// transaction fail. Times of claims are the database's alone, for clocks of machines differ.
//
// A search asks for words: of a text that has all of them, in either case. A word is a run of letters and digits.
//
// Remove takes every byte of a run: its row, its texts, its words in the index, its verdicts, its blob where no other run has the same. SQLite
// overwrites what it deletes and empties its journal; PostgreSQL rewrites the tables (VACUUM FULL), but keeps its own log of writes as long as it is
// set to. What stays is a tombstone: the id, when and why, signed by the machine's key.
//
// Verdicts are what workers found (package queue, which has tables of its own beside these): one for each run, version of tapedeck and version of
// the program. One of other bytes than the run has now is not given.
//
// A token is for one project, and says which of the roles its holder has. The database has its digest alone. The audit has who pushed, purged, made and
// revoked, in the transaction that did; whoever gives a Store to others adds who read (Audit). Its lines are neither changed nor removed, and hold
// nothing of a run but its id.
//
// Tables are made and changed by migrations, in order; a database of a newer version is refused.
//
// Goals: no acknowledged run is lost, nothing is half there, what failed is done by doing it again. Not goals: replaying, keeping out who has the keys, secrets: what
// is pushed was scrubbed when it was recorded.
package team
