package e2e_test

import "regexp"

// internals are words that an answer to a stranger has no business with: errors of Go and of libraries, statements, files, stacks, addresses.
var internals = regexp.MustCompile(`(?i)goroutine|\.go\b|runtime error|panic:|sqlite|sqlstate|pgx|postgres|redis|\bselect\b|insert into|` +
	`idempotent_record|shop_order|/tmp/|/work/|dial tcp|127\.0\.0\.1:\d|connection refused|invalid character|unexpected eof|strconv|unmarshal|` +
	`\bjson: cannot|net/http|multipart:|base64|signature is invalid|context deadline|context canceled`)

// discreet: the answer shows nothing of the inside.
func (v *visitor) discreet(a answer) {
	v.Helper()
	if found := internals.FindString(a.body); found != "" {
		v.Errorf("%s %s is answered with %q in it: %s", a.Request.Method, a.Request.URL.Path, found, a.body)
	}
}
