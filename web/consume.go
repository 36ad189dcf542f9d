package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

// maxBusinessKey is the longest business key that a service may name, in bytes.
const maxBusinessKey = 1024

// consumption is the body of consume. Pointers tell an absent member from an empty one.
type consumption struct {
	Token       *string `json:"token"`
	RequestID   *string `json:"requestId"`
	Action      *string `json:"action"`
	Subject     *string `json:"subject"` // raw, as Config.Subject, or the cookie, would have it
	Fingerprint *string `json:"fingerprint"`
	BusinessKey *string `json:"businessKey"`
}

// accepted is the answer to a service that is the first.
type accepted struct {
	Outcome    string    `json:"outcome"`
	Claim      string    `json:"claim"`
	Attempt    int       `json:"attempt"`
	LeaseUntil time.Time `json:"leaseUntil"`
}

// replayed is the answer to a service that is not.
type replayed struct {
	Outcome  string   `json:"outcome"`
	Response response `json:"response"`
}

// response is a result as services give and get it.
type response struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"` // base64 (RFC 4648, section 4)
}

// consume spends a token and claims its operation for the caller.
func (c *serviceCall) consume() (any, *refusal) {
	var in consumption
	if err := decode(c.body, &in, "token", "requestId", "action", "subject", "fingerprint", "businessKey"); err != nil {
		return nil, refuse(BadRequest).with(err.Error())
	}
	if failure := in.judge(c.config.Ledger != nil); failure != nil {
		return nil, failure
	}
	who := caller{tenant: c.tenant(c.r)}
	who.subject = tokens.SubjectDigest(who.tenant, *in.Subject)
	token, failure := c.authentic(c.w, strings.TrimSpace(*in.Token), *in.Action, who.subject)
	if token.text != "" {
		c.name(token.claims.RequestID)
	}
	if failure == nil && in.RequestID != nil {
		failure = token.admitRequestIDs([]string{*in.RequestID})
	}
	if failure != nil {
		return nil, failure
	}
	return c.enter(c.call(in, who, token.claims))
}

// judge decides what can be decided without the token. The error names the member.
func (in consumption) judge(ledger bool) *refusal {
	switch {
	case in.Token == nil, strings.TrimSpace(*in.Token) == "":
		return refuse(TokenMissing)
	case in.Action == nil:
		return missing("action")
	case !tokens.ValidAction(*in.Action):
		return refuse(BadRequest).with("action must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
	case in.Subject == nil, *in.Subject == "":
		return missing("subject")
	case in.RequestID != nil && !tokens.ValidRequestID(*in.RequestID):
		return refuse(RequestIDInvalid)
	case in.Fingerprint != nil && *in.Fingerprint == "":
		return refuse(BadRequest).with("fingerprint must not be empty; leave it out to match any payload")
	case in.BusinessKey == nil:
		return nil
	case !ledger:
		return refuse(BadRequest).with("businessKey needs a ledger, and this server has none")
	case strings.TrimSpace(*in.BusinessKey) == "", len(*in.BusinessKey) > maxBusinessKey:
		return refuse(BadRequest).with(fmt.Sprintf("businessKey must be 1 to %d bytes, and not blank", maxBusinessKey))
	}
	return nil
}

// call never waits: the service has a connection of its own to hold.
func (c *serviceCall) call(in consumption, who caller, claims tokens.Claims) idem.Call {
	call := idem.Call{
		Request: idem.Request{
			Key: claims.Key(who.tenant), Subject: who.subject, RequestID: claims.RequestID,
			Lease: c.config.Lease, Retention: c.config.Retention,
		},
		TokenID: claims.ID, Entrance: claims.Key(who.tenant), LookOnly: claims.Expired, Limit: c.config.Limit,
		EntranceFor: c.entranceFor(c.config.Retention, c.config.ResultRetention), Resolve: c.upkeep.resolver(*in.Action),
	}
	if in.Fingerprint != nil {
		digest := lengthPrefixed{sha256.New()}
		digest.add(*in.Fingerprint)
		if in.BusinessKey != nil {
			digest.add(*in.BusinessKey)
		}
		call.Fingerprint = digest.Sum([]byte{idem.Format})
	}
	if in.BusinessKey != nil {
		call.Key = idem.Key{Tenant: who.tenant, Type: *in.Action, ID: *in.BusinessKey}
		if in.Fingerprint == nil { // by the token alone the entrance would replay what was done under another business key
			call.TokenID = ""
		}
	}
	return call
}

func (c *serviceCall) enter(call idem.Call) (any, *refusal) {
	asked := time.Now()
	ticket, reply, err := c.engine.Enter(c.r.Context(), call)
	if err != nil || reply.Replayed {
		c.observe(c.r.Context(), idem.Event{
			Kind: idem.Answered, Type: call.Key.Type, State: reply.State, Replayed: reply.Replayed, Err: err, Took: time.Since(asked),
		})
	}
	if err != nil {
		return nil, refused(reply, err)
	}
	if reply.Replayed {
		return replayed{Outcome: "replayed", Response: told(reply.Result)}, nil
	}
	c.upkeep.serves(call.Key.Type)
	claim, err := c.seal(ticket)
	if err != nil {
		return nil, refuse(StoreUnavailable).because(err)
	}
	return accepted{"accepted", claim, ticket.Claim.Attempt, leaseUntil(asked, ticket)}, nil
}

// leaseUntil counts from when the lease was asked for: it is no shorter than that.
func leaseUntil(asked time.Time, t idem.Ticket) time.Time {
	return asked.Add(t.Claim.Lease).UTC().Truncate(time.Millisecond)
}

func told(r idem.Result) response {
	headers := r.Header
	if headers == nil {
		headers = [][2]string{}
	}
	return response{cmp.Or(r.Status, http.StatusOK), headers, base64.StdEncoding.EncodeToString(r.Body)}
}
