package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// unmarshal is json.Unmarshal with errors in the words of the wire: a client knows nothing of our types.
func unmarshal(raw []byte, to any) error {
	err := json.Unmarshal(raw, to)
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return err
	}
	text := fmt.Sprintf("want %s, got %s", wanted(other.Type), got(other.Value))
	if other.Field != "" {
		text = other.Field + ": " + text
	}
	return errors.New(text)
}

// lists are what their elements are called.
var lists = map[reflect.Type]string{
	reflect.TypeFor[rpcapi.Tool](): "tools", reflect.TypeFor[rpcapi.PolicyRegisterParams](): "policies",
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if name, ok := lists[t.Elem()]; ok {
			return "an array of " + name
		}
		return "an array"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "an object"
}

// got is a value as encoding/json calls it: array, bool, object, string, number, or number and its text.
func got(value string) string {
	switch text, isNumber := strings.CutPrefix(value, "number "); {
	case isNumber:
		return text
	case value == "bool":
		return "true or false"
	case value == "array" || value == "object":
		return "an " + value
	}
	return "a " + value
}
