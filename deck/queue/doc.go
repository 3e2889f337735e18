// Package queue has many machines replay the runs of a team's store (package team): whoever wants verdicts puts jobs, workers take them.
//
// Jobs are River's (github.com/riverqueue/river), in the database of the store. A job is about one run: replay, test (a replay that is held to
// what tapedeck.yaml says of tests) or verify; or about all runs of a project: retention. It has a priority of 1 to 4, a time that it may take,
// and a number of attempts. One that is cancelled ends within seconds, also where it is under way. One whose last attempt failed is discarded:
// a dead letter, which stays for a week and can be tried again.
//
// Which worker: a queue is for one project, one version of the program where that was asked for, and one Version of this package. A worker takes
// the jobs of its own version and of those before: one of a newer version is left to another worker.
//
// What a worker runs is what the recording says, over the recorded work tree or over a directory of its own (Options.Tree), in which the
// program has changed since. The version of the program is that of the tree's content, or what Options.Program says.
//
// A verdict is written in the transaction that ends its job, by the run, the version of tapedeck and the version of the program, so it does not
// matter that a job may run twice: it does where a worker was taken for dead that was not. What could not be tried for reasons of the
// machine is tried again, perhaps by another worker, and is a verdict when the attempts are used up. A store that does not answer and a full
// disk use up no attempt: the worker pauses, and gives the job back.
//
// A worker says every Options.Beat that it lives. What a worker had taken that has said nothing for four beats is given back by any other, and
// counts as an attempt: a run that kills its worker is a dead letter too.
//
// Times are those of the database's clock, on every machine.
//
// Goals: no job is lost and no verdict doubled whoever is killed, everything goes on by itself when the database, the blobs or the disk are
// there again. Not goals: who may put jobs: whoever writes to the store has programs of their choice run in the jails of its workers.
package queue
