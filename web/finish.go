package web

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/idemkit/idem"
)

// extend renews a claim's lease.
func (c *serviceCall) extend() (any, *refusal) {
	t, failure := c.onlyClaim()
	if failure != nil {
		return nil, failure
	}
	asked := time.Now()
	if err := c.engine.Extend(c.r.Context(), t); err != nil {
		return nil, refused(idem.Reply{}, err)
	}
	return map[string]time.Time{"leaseUntil": leaseUntil(asked, t)}, nil
}

// fail releases a claim: the operation may be tried again.
func (c *serviceCall) fail() (any, *refusal) {
	t, failure := c.onlyClaim()
	if failure != nil {
		return nil, failure
	}
	return c.finish(t, idem.Ending{State: idem.Failed, Reason: "failed, says the service"})
}

// onlyClaim is the ticket of a call that has no other member.
func (c *serviceCall) onlyClaim() (idem.Ticket, *refusal) {
	var in struct {
		Claim *string `json:"claim"`
	}
	if err := decode(c.body, &in, "claim"); err != nil {
		return idem.Ticket{}, refuse(BadRequest).with(err.Error())
	}
	return c.ticket(in.Claim)
}

// completion is the body of complete.
type completion struct {
	Claim   *string     `json:"claim"`
	Status  *int        `json:"status"`
	Headers [][]*string `json:"headers"`
	Body    string      `json:"body"`
}

// complete records the result that every duplicate gets.
func (c *serviceCall) complete() (any, *refusal) {
	var in completion
	if err := decode(c.body, &in, "claim", "status", "headers", "body"); err != nil {
		return nil, refuse(BadRequest).with(err.Error())
	}
	t, failure := c.ticket(in.Claim)
	if failure != nil {
		return nil, failure
	}
	result, failure := c.result(in)
	if failure != nil {
		return nil, failure
	}
	return c.finish(t, idem.Ending{State: idem.Succeeded, Result: result})
}

// finish ends the claim. A success that could not be recorded is to be sent again, and not to be done again.
func (c *serviceCall) finish(t idem.Ticket, ending idem.Ending) (any, *refusal) {
	err := c.engine.Finish(c.r.Context(), t, ending)
	if err == nil {
		c.observe(c.r.Context(), idem.Event{Kind: idem.Answered, Type: t.Claim.Key.Type, State: ending.State, Attempt: t.Claim.Attempt})
		return struct{}{}, nil
	}
	f := refused(idem.Reply{}, err)
	if ending.State == idem.Succeeded && f.code == StoreUnavailable {
		f = refuse(OutcomeUnknown).because(err)
	}
	return nil, f
}

// result is what a handler's answer would be recorded as: a redirect without body, a large answer without content.
func (c *serviceCall) result(in completion) (idem.Result, *refusal) {
	if in.Status == nil {
		return idem.Result{}, missing("status")
	}
	if *in.Status < http.StatusOK || *in.Status >= http.StatusBadRequest {
		return idem.Result{}, refuse(BadRequest).with("status must be 200 to 399; a failure is for the call fail")
	}
	header, failure := c.headerLines(in.Headers)
	if failure != nil {
		return idem.Result{}, failure
	}
	body, err := base64.StdEncoding.Strict().DecodeString(in.Body)
	if err != nil || strings.ContainsAny(in.Body, "\r\n") { // which the decoder passes over
		return idem.Result{}, refuse(BadRequest).with("body must be base64, with padding")
	}
	result := idem.Result{Status: *in.Status, Header: header, Body: body, Kept: true, Keep: c.config.ResultRetention}
	if redirect(result.Status) {
		result.Keep = 0
	}
	if redirect(result.Status) || !bodyAllowed(result.Status) {
		result.Body = nil
	}
	size := len(result.Body)
	for _, line := range header {
		size += len(line[0]) + len(line[1])
	}
	if size > c.config.ResponseLimit {
		return idem.Result{Status: *in.Status}, nil
	}
	return result, nil
}

// headerLines leaves out what no replay repeats: cookies, the request id, which may be another's by then, and what Connection and Trailer list.
func (c *serviceCall) headerLines(given [][]*string) ([][2]string, *refusal) {
	once := map[string]bool{"Set-Cookie": true, c.config.RequestIDHeader: true}
	for _, line := range given {
		if len(line) != 2 || line[0] == nil || line[1] == nil || !fieldName(*line[0]) || !fieldValue(*line[1]) {
			return nil, refuse(BadRequest).with(`headers must be a list of ["Name","value"], as HTTP allows them`)
		}
		if name := http.CanonicalHeaderKey(*line[0]); name == "Connection" || name == "Trailer" {
			add(once, listed([]string{*line[1]}))
		}
	}
	var lines [][2]string
	for _, line := range given {
		if name := http.CanonicalHeaderKey(*line[0]); !unrepeatable(name) && !once[name] {
			lines = append(lines, [2]string{*line[0], *line[1]})
		}
	}
	return lines, nil
}

// fieldName is a token (RFC 9110, section 5.6.2).
func fieldName(s string) bool {
	return s != "" && visible(s) && !strings.ContainsAny(s, `"(),/:;<=>?@[\]{}`)
}

// fieldValue has no control characters but tabs (RFC 9110, section 5.5).
func fieldValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
