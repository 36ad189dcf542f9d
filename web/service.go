package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"
)

// serviceCall is one call of another service.
type serviceCall struct {
	*Guard
	w         http.ResponseWriter
	r         *http.Request
	key       [sha256.Size]byte // digest of the service key that it came with
	body      []byte
	requestID string // once it is known
}

// serviceCall is what answers a service's call of this name; nil where there is none.
func (g *Guard) serviceCall(name string) func(*serviceCall) (any, *refusal) {
	if len(g.serviceKeys) == 0 || g.config.Tokens == nil {
		return nil
	}
	switch name {
	case "consume":
		return (*serviceCall).consume
	case "extend":
		return (*serviceCall).extend
	case "complete":
		return (*serviceCall).complete
	case "fail":
		return (*serviceCall).fail
	}
	return nil
}

// answerService checks the service key before it reads anything.
func (g *Guard) answerService(w http.ResponseWriter, r *http.Request, answer func(*serviceCall) (any, *refusal)) {
	c := &serviceCall{Guard: g, w: w, r: r}
	if !c.authorized() {
		c.refuse(refuse(Unauthorized))
		return
	}
	answered, failure := any(nil), c.read()
	if failure == nil {
		answered, failure = answer(c)
	}
	if failure != nil {
		c.refuse(failure)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, answered)
}

// authorized compares in constant time: with every key, and digests, which have one length.
func (c *serviceCall) authorized() bool {
	lines := c.r.Header.Values("Authorization")
	if len(lines) != 1 {
		return false
	}
	scheme, key, _ := strings.Cut(lines[0], " ")
	c.key = sha256.Sum256([]byte(strings.TrimLeft(key, " ")))
	found := 0
	for _, known := range c.serviceKeys {
		found |= subtle.ConstantTimeCompare(c.key[:], known[:])
	}
	return strings.EqualFold(scheme, "Bearer") && found == 1
}

func (c *serviceCall) read() *refusal {
	if c.r.Body == nil {
		return nil
	}
	if c.r.ContentLength > c.config.BodyLimit {
		return refuse(BodyTooLarge)
	}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.config.BodyLimit))
	return unreadable(err)
}

// refuse is always JSON: programs call.
func (c *serviceCall) refuse(f *refusal) {
	c.log(c.r, f)
	c.writeJSON(c.w, c.r, c.problem(c.r, f, nil, c.requestID))
}

// name makes the intention known that the call is about, in every answer from here on.
func (c *serviceCall) name(requestID string) {
	c.requestID = requestID
	c.w.Header().Set(c.config.RequestIDHeader, requestID)
}

// missing is the refusal of a call without one of its members.
func missing(member string) *refusal {
	return refuse(BadRequest).with("the member " + quote(member) + " is missing or empty")
}
