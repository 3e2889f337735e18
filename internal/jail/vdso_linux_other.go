//go:build linux && !amd64

package jail

// vdsoCode is empty: the vDSO of this processor is hidden.
var vdsoCode map[string][]byte
