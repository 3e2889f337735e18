// Package remote gives people and CI a team's store (package team) over HTTP: a Server holds the keys of its database and blobs, a Client has a
// token of one project.
//
// Requests:
//
//	POST /v1/NAME   a JSON object, answered by {"result":…} or {"error":{"code":S,"text":S}}, or both: what was done until then
//	POST /v1/push   the bytes of a packed recording; ?again=1, and in Tapedeck-Verdict the verdict of its last replay (base64 of JSON)
//	GET  /v1/blob   ?run=ID&digest=D&from=F&n=N: N bytes of the packed recording from F on, all where N is -1, if it is still that one
//
// Each has Authorization: Bearer TOKEN. The project is the token's; ?project=P, from who means a certain one, is refused where it is another. methods
// and jobMethods say which role a NAME wants. A token that is unknown, was revoked or is over its time is 401, in the same words; a role that is missing 403.
//
// Isolation: every statement on runs has the token's project. What another project has is answered as what nobody has. Numbers of jobs, which
// count those of all projects, are given out encrypted. A sweep does not say what it took away. A search, which takes longer the more texts of the
// store have its words, is answered at SearchStep, or at twice, four times, … as long. What fails for a reason that is not the request's is logged
// here, and said without its reason. What is left: whoever pushes the very bytes that another project has can be answered a little earlier, for they
// are not written twice; and work for one project slows the machine for all.
//
// Audit: a line is in the database before an answer leaves: of what changes a run in its own transaction, of parts of a run
// that are read once a minute.
//
// Bounds: Options.MaxPush bytes of a packed recording and MaxUnpacked of what is in it, maxBody of another request; maxRuns of an answer;
// perProject requests of a project at once, Options.Connections; a header must be there in 10 s, a body and its answer's reading go at slowest
// or faster, behind a minute.
package remote
