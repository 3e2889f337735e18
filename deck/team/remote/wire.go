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
// count those of all projects, are given out encrypted. A sweep does not say what it took away, nor why it could not. A search, which takes longer the more texts of the
// store have its words, is answered at SearchStep, or at twice, four times, … as long. What fails for a reason that is not the request's is logged
// here, and said without its reason. What is left: whoever pushes the very bytes that another project has can be answered a little earlier, for they
// are not written twice; and work for one project slows the machine for all.
//
// Audit: a line is in the database before an answer leaves: of what changes a run in its own transaction, of the same that a token reads again
// once a minute.
//
// Bounds: Options.MaxPush bytes of a packed recording and MaxUnpacked of what is in it, maxBody of another request; maxRuns and
// maxRows bytes of them in an answer; perProject requests of a project at once, perUpload and uploads times MaxPush bytes of pushes, Options.Connections;
// a header must be there in 10 s, a body and its answer's reading go at slowest or faster behind a minute, and are never silent for one.
package remote

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// What a server refuses beyond package team.
var (
	// ErrRole is wrapped where the token does not have the role that the request wants.
	ErrRole = errors.New("the token does not have the role")
	// ErrProject is returned where another project is meant than the token's.
	ErrProject = errors.New("the token is for another project than --project or tapedeck.yaml says")
	// ErrBusy is returned where so much is under way for the project, or the store, that this has to be done again later.
	ErrBusy = errors.New("the store's server is busy: run the command again")
	// ErrTooMuch is wrapped where more is asked for or pushed than the server takes at once.
	ErrTooMuch = errors.New("more than the store's server takes at once")
	// ErrRequest is wrapped by what else is wrong with a request.
	ErrRequest = errors.New("the store's server does not understand this: is it of another version?")
	// ErrDamaged is wrapped where the bytes of a run are missing in the store.
	ErrDamaged = errors.New("its bytes are missing in the store, or damaged: push --again brings them anew")
	// ErrInternal is returned for what a server says no more about.
	ErrInternal = errors.New("the store cannot do this now: the log of its server says why")
)

// kinds are the errors that have a code, by which a client knows them again.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{team.ErrNoToken, http.StatusUnauthorized, "no_token"}, {ErrRole, http.StatusForbidden, "no_role"}, {ErrProject, http.StatusForbidden, "other_project"},
	{team.ErrNoRun, http.StatusNotFound, "no_run"}, {team.ErrRemoved, http.StatusGone, "removed"}, {team.ErrAmbiguous, http.StatusBadRequest, "ambiguous"},
	{queue.ErrNoJob, http.StatusNotFound, "no_job"}, {team.ErrNoWords, http.StatusBadRequest, "no_words"}, {team.ErrUnfit, http.StatusUnprocessableEntity, "unfit"}, {ErrTooMuch, http.StatusRequestEntityTooLarge, "too_much"},
	{ErrRequest, http.StatusBadRequest, "bad_request"}, {ErrBusy, http.StatusTooManyRequests, "busy"}, {team.ErrRead, http.StatusServiceUnavailable, "being_read"},
	{team.ErrHeld, http.StatusConflict, "on_hold"}, {team.ErrChanged, http.StatusConflict, "changed"}, {team.ErrTags, http.StatusBadRequest, "bad_tags"}, {team.ErrReason, http.StatusBadRequest, "bad_reason"}, {ErrDamaged, http.StatusInternalServerError, "damaged"},
}

// A refusal is an error as a client was told of it.
type refusal struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Error implements error.
func (r *refusal) Error() string { return r.Text }

// Unwrap is the error that the code stands for.
func (r *refusal) Unwrap() error {
	for _, k := range kinds {
		if k.code == r.Code {
			return k.err
		}
	}
	return ErrInternal
}

// refuse is what a client is told of an error, and with which status; ours says that it is no fault of the request.
func refuse(err error) (r *refusal, status int, ours bool) {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &refusal{k.code, told(err, k.err).Error()}, k.status, k.status >= http.StatusInternalServerError
		}
	}
	return &refusal{"internal", ErrInternal.Error()}, http.StatusInternalServerError, true
}

// told is the part of an error that is of a kind: what it is joined with may be about this machine, or another project.
func told(err, kind error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		joined, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		for _, part := range joined.Unwrap() {
			if errors.Is(part, kind) {
				return told(part, kind)
			}
		}
		return kind
	}
	return err
}

// An answer is that of a request but for a blob's.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *refusal        `json:"error,omitempty"`
}

// What is asked for, and answered, by the name of the request; team.Query and others speak for themselves.
type (
	runAsked    struct{ ID string }
	searchAsked struct {
		Text  string
		Query team.Query
	}
	verdictsAsked struct{ IDs []string }
	verdictAsked  struct{ ID, Tapedeck, Program string }
	verdictFound  struct {
		Verdict *team.Verdict
		Detail  json.RawMessage // which a Verdict's JSON leaves out
	}
	removeAsked struct{ ID, Why string }
	tagAsked    struct {
		ID          string
		Add, Remove []string
	}
	pushed struct {
		Run   *team.Run
		There bool
	}
	nothing struct{}
)
