package web

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// KeyFunc reads the key of an operation from a request. JSONKey, FormKey, PathKey, HeaderKey and KeyFrom make one, and Join puts
// several together. The zero value reads nothing.
type KeyFunc struct {
	read   func(in *submission) ([]string, *refusal)
	scoped bool // the key is the caller's own, not the tenant's
}

// parts are what the key is made of; none for the zero value.
func (k KeyFunc) parts(in *submission) ([]string, *refusal) {
	if k.read == nil {
		return nil, nil
	}
	return k.read(in)
}

// JSONKey reads one or more scalars from a JSON body, by name or by dotted path. A string "1" and a number 1 are different keys, 1 and 1.0 are one;
// objects, arrays, null, and a member that stands there twice (in whatever case: decoders differ in which one they take) are key_invalid.
// It panics without a path, as do FormKey and PathKey without a name.
func JSONKey(paths ...string) KeyFunc {
	named("JSONKey", paths)
	return KeyFunc{read: func(in *submission) ([]string, *refusal) {
		body, failure := in.bytes()
		if failure != nil {
			return nil, failure
		}
		if !utf8.Valid(body) || !json.Valid(body) { // decoders make one key of different broken bytes; Valid also bounds the depth, as gjson does not
			if len(body) == 0 {
				return nil, refuse(KeyMissing).with("the body is empty, and has no member " + quote(paths[0]))
			}
			return nil, refuse(KeyInvalid).with("the body is not one JSON value")
		}
		return each(paths, func(path string) (string, *refusal) { return jsonPart(gjson.ParseBytes(body), path) })
	}}
}

func jsonPart(value gjson.Result, path string) (string, *refusal) {
	for name := range strings.SplitSeq(path, ".") {
		found := 0
		var next gjson.Result
		if value.IsObject() {
			value.ForEach(func(key, member gjson.Result) bool {
				if strings.EqualFold(key.Str, name) {
					found++
				}
				if key.Str == name {
					next = member
				}
				return true
			})
		}
		switch {
		case found > 1:
			return "", refuse(KeyInvalid).with("the member " + quote(path) + " is repeated")
		case !next.Exists():
			return "", refuse(KeyMissing).with("the member " + quote(path) + " of the JSON body is missing")
		}
		value = next
	}
	switch value.Type {
	case gjson.String:
		return plain(value.Str, path)
	case gjson.Number:
		return number(value.Raw, path)
	case gjson.True, gjson.False:
		return value.Raw, nil
	case gjson.Null, gjson.JSON:
	}
	return "", refuse(KeyInvalid).with("the member " + quote(path) + " must be a string, a number or a boolean")
}

// number is the one way of writing its exact value: 1, 1.0 and 10e-1 are one number to whoever decodes them, and so one key. A fraction
// finer than a float64 is refused, for decoders would make one number of two keys.
func number(raw, path string) (string, *refusal) {
	value, ok := exactly(raw)
	if ok && !value.IsInt() {
		near, _ := strconv.ParseFloat(raw, 64)
		shortest, fits := exactly(strconv.FormatFloat(near, 'g', -1, 64))
		ok = fits && shortest.Cmp(value) == 0
	}
	if !ok {
		return "", refuse(KeyInvalid).with("the number in the member " + quote(path) + " has too many digits")
	}
	digits, _ := value.FloatPrec()
	return value.FloatString(digits), nil
}

// What a number may have: in characters, and in its exponent, which is a float64's. 1e999999999 would have a billion digits.
const (
	maxNumber   = 64
	maxExponent = 308
)

func exactly(raw string) (*big.Rat, bool) {
	if _, exponent, scaled := strings.Cut(strings.ToLower(raw), "e"); scaled {
		n, err := strconv.Atoi(exponent)
		if err != nil || n < -maxExponent || n > maxExponent {
			return nil, false
		}
	}
	if len(raw) > maxNumber {
		return nil, false
	}
	return new(big.Rat).SetString(raw)
}

// plain keeps a string readable, unless it could be taken for another type's JSON.
func plain(s, path string) (string, *refusal) {
	if strings.TrimSpace(s) == "" {
		return "", refuse(KeyMissing).with("the member " + quote(path) + " of the JSON body is blank")
	}
	if strings.ContainsRune(s, utf8.RuneError) { // what the decoder made of escapes that are no text, one of them all
		return "", refuse(KeyInvalid).with("the member " + quote(path) + " is not well-formed text")
	}
	if s[0] == '"' || json.Valid([]byte(s)) {
		return strconv.Quote(s), nil
	}
	return s, nil
}

// FormKey reads one or more fields of a form body.
func FormKey(names ...string) KeyFunc {
	named("FormKey", names)
	return KeyFunc{read: func(in *submission) ([]string, *refusal) {
		fields, failure := in.fields()
		if failure != nil {
			return nil, failure
		}
		return each(names, func(name string) (string, *refusal) {
			return single(fields.values(name), "the form field "+quote(name))
		})
	}}
}

// PathKey reads one or more parameters of the route's pattern, as net/http's and chi's routers set them.
func PathKey(names ...string) KeyFunc {
	named("PathKey", names)
	return KeyFunc{read: func(in *submission) ([]string, *refusal) {
		return each(names, func(name string) (string, *refusal) {
			return single([]string{in.r.PathValue(name)}, "the path parameter "+quote(name))
		})
	}}
}

// KeyFrom reads a key in the application's own way. An error is told to the caller as key_invalid; an empty key is key_missing.
// The request's body must not be read. Nil panics.
func KeyFrom(read func(*http.Request) (string, error)) KeyFunc {
	if read == nil {
		panic("web: KeyFrom needs a function")
	}
	return KeyFunc{read: func(in *submission) ([]string, *refusal) {
		key, err := read(in.r)
		if err != nil {
			return nil, refuse(KeyInvalid).with(err.Error())
		}
		part, failure := single([]string{key}, "the key")
		return []string{part}, failure
	}}
}

// HeaderKey reads a client-chosen key from a header, such as Idempotency-Key: 1 to 255 visible ASCII characters, as a quoted string
// or bare; parameters are ignored. The key is the caller's own: equal keys of two subjects are two operations.
// It panics where the name is none of a header.
func HeaderKey(name string) KeyFunc {
	if !isToken(name) {
		panic("web: HeaderKey: " + quote(name) + " is not the name of a header")
	}
	return KeyFunc{scoped: true, read: func(in *submission) ([]string, *refusal) {
		lines := in.r.Header.Values(name)
		if len(lines) > 1 {
			return nil, refuse(KeyInvalid).with("the header " + name + " is repeated")
		}
		line := strings.Trim(strings.Join(lines, ""), " \t") // other blanks are not HTTP's, and no part of a key
		if line == "" {
			return nil, refuse(KeyMissing).with("the header " + name + " is missing")
		}
		key, ok := headerItem(line)
		if !ok || len(key) > 255 {
			return nil, refuse(KeyInvalid).with("the header " + name + " must be 1 to 255 visible ASCII characters, quoted or bare")
		}
		return []string{key}, nil
	}}
}

// headerItem reads a structured-field string (RFC 9651, section 3.3.3), or a bare run of visible characters, up to parameters.
func headerItem(line string) (string, bool) {
	if line[0] != '"' {
		key, _, _ := strings.Cut(line, ";")
		key = strings.TrimRight(key, " \t")
		return key, key != "" && visible(key) && !strings.Contains(key, `"`)
	}
	var key strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; c {
		case '"':
			rest := strings.TrimLeft(line[i+1:], " \t")
			return key.String(), key.Len() > 0 && visible(key.String()) && (rest == "" || rest[0] == ';')
		case '\\':
			if i++; i == len(line) || (line[i] != '"' && line[i] != '\\') {
				return "", false
			}
			key.WriteByte(line[i])
		default:
			key.WriteByte(c)
		}
	}
	return "", false
}

func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Join makes one key of several: Join(JSONKey("orderNo"), PathKey("shop")). It is the caller's own where one of them is. It panics where there are none, or one
// is the zero KeyFunc.
func Join(keys ...KeyFunc) KeyFunc {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(key KeyFunc) bool { return key.read == nil }) {
		panic("web: Join needs a KeyFunc, and no zero one")
	}
	joined := KeyFunc{read: func(in *submission) ([]string, *refusal) {
		var all []string
		for _, key := range keys {
			parts, failure := key.read(in)
			if failure != nil {
				return nil, failure
			}
			all = append(all, parts...)
		}
		return all, nil
	}}
	for _, key := range keys {
		joined.scoped = joined.scoped || key.scoped
	}
	return joined
}

// id is the parts as one string: alone as it is, several as a list of quoted strings, so that ("a:b","c") and ("a","b:c") differ.
func id(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = strconv.Quote(part) // JSON would make one key of different broken bytes
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

func each(names []string, read func(string) (string, *refusal)) ([]string, *refusal) {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		part, failure := read(name)
		if failure != nil {
			return nil, failure
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func single(values []string, what string) (string, *refusal) {
	switch {
	case len(values) > 1:
		return "", refuse(KeyInvalid).with(what + " is repeated")
	case len(values) == 0 || strings.TrimSpace(values[0]) == "":
		return "", refuse(KeyMissing).with(what + " is missing")
	}
	return values[0], nil
}

func quote(s string) string { return fmt.Sprintf("%q", s) }
