package tape

import (
	"net/http"
	"slices"
	"strings"
)

// UpgradeRefused reports whether x is a request for another protocol, as a WebSocket begins, that the recorder did not carry:
// it answered 426 by itself. No upstream is asked for one, so nobody else answered so.
func (x *Exchange) UpgradeRefused() bool {
	return x.Status == http.StatusUpgradeRequired && slices.ContainsFunc(x.RequestHeaders, func(f HeaderField) bool {
		return strings.EqualFold(f.Name, "Upgrade")
	})
}
