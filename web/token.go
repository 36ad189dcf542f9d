package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

// maxTokenBody is more than the token service's call can need.
const maxTokenBody = 64 << 10

// maxCount is how many tokens one call may ask for.
const maxCount = 32

// defaultAction is what a token permits where the call names nothing.
const defaultAction = "default"

// asked is the body of the token service's call. Pointers tell an absent member from a zero one.
type asked struct {
	Action    *string `json:"action"`
	RequestID *string `json:"requestId"`
	Count     *int    `json:"count"`
}

// handed is one token in the token service's answer.
type handed struct {
	Token     string    `json:"token"`
	RequestID string    `json:"requestId"`
	Action    string    `json:"action"`
	ExpiresAt time.Time `json:"expiresAt"`
	ExpiresIn int       `json:"expiresIn"` // seconds
}

// hand is the token service.
func (g *Guard) hand(w http.ResponseWriter, r *http.Request) {
	if err := g.origins.Check(r); err != nil {
		g.refuse(w, r, refuse(CrossOrigin).because(err))
		return
	}
	grants, failure := readAsked(w, r)
	if failure != nil {
		g.refuse(w, r, failure)
		return
	}
	if g.config.TokenLimit != nil {
		if wait := g.config.TokenLimit(r, g.caller(r).subject, len(grants.all)); wait > 0 {
			g.refuse(w, r, refuse(RateLimited).after(wait))
			return
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	issued, err := g.sign(r.Context(), grants.all, g.introduce(w, r))
	if err != nil {
		g.refuse(w, r, refuse(StoreUnavailable).because(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var answer any = map[string]any{"tokens": issued}
	if !grants.many {
		w.Header().Set(g.config.RequestIDHeader, issued[0].RequestID)
		answer = issued[0]
	}
	w.WriteHeader(http.StatusCreated)
	writeJSON(w, answer)
}

type grants struct {
	all  []tokens.Grant
	many bool // count was given
}

// readAsked reads the call: no body, or one JSON object with known members only.
func readAsked(w http.ResponseWriter, r *http.Request) (grants, *refusal) {
	if r.Body == nil {
		return grants{all: []tokens.Grant{{Action: defaultAction}}}, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTokenBody))
	if failure := unreadable(err); failure != nil {
		return grants{}, failure
	}
	var call asked
	if err := decode(body, &call, "action", "requestId", "count"); err != nil {
		return grants{}, refuse(BadRequest).with(err.Error())
	}
	grant := tokens.Grant{Action: defaultAction}
	if call.Action != nil {
		grant.Action = *call.Action
	}
	if call.RequestID != nil {
		grant.RequestID = *call.RequestID
	}
	switch {
	case !tokens.ValidAction(grant.Action):
		return grants{}, refuse(BadRequest).with("action must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
	case call.RequestID != nil && !tokens.ValidRequestID(grant.RequestID):
		return grants{}, refuse(RequestIDInvalid)
	case call.Count == nil:
		return grants{all: []tokens.Grant{grant}}, nil
	case *call.Count < 1 || *call.Count > maxCount:
		return grants{}, refuse(BadRequest).with(fmt.Sprintf("count must be 1 to %d", maxCount))
	case call.RequestID != nil:
		return grants{}, refuse(BadRequest).with("count and requestId exclude each other: one request id is one intention")
	}
	many := grants{many: true}
	for range *call.Count {
		many.all = append(many.all, grant)
	}
	return many, nil
}

// decode is strict: one object, with these members and no others. The error is for the caller.
func decode(body []byte, into any, members ...string) error {
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return nil
	case body[0] != '{', !utf8.Valid(body): // the decoder would make one text of different broken bytes
		return errors.New("the body must be one JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) && wrongType.Field != "" {
			return fmt.Errorf("the member %q has the wrong type", wrongType.Field)
		}
		return errors.New("the body must be one JSON object with known members only")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON object")
	}
	return exact(body, members)
}

// exact refuses what the decoder lets pass: null, a member twice, a name in another case, which all mean something else to somebody else.
func exact(body []byte, members []string) (err error) {
	seen := map[string]bool{}
	gjson.ParseBytes(body).ForEach(func(name, value gjson.Result) bool {
		switch {
		case value.Type == gjson.Null:
			err = fmt.Errorf("the member %q has the wrong type", name.Str)
		case strings.ContainsRune(value.Str, utf8.RuneError): // likewise of escapes that are no text
			err = fmt.Errorf("the member %q is not well-formed text", name.Str)
		case seen[name.Str]:
			err = fmt.Errorf("the member %q is repeated", name.Str)
		case !slices.Contains(members, name.Str):
			err = fmt.Errorf("there is no member %q", name.Str)
		}
		seen[name.Str] = true
		return err == nil
	})
	return err
}

// sign signs the grants for the caller and stores the tokens in one round trip.
func (g *Guard) sign(ctx context.Context, all []tokens.Grant, c caller) ([]handed, error) {
	for i := range all {
		all[i].Subject = c.subject
	}
	issued, err := g.config.Tokens.IssueAll(all)
	if err != nil {
		return nil, err
	}
	answer := make([]handed, len(issued))
	queue := make([]idem.Token, len(issued))
	for i, one := range issued {
		queue[i] = g.stored(one, c.tenant)
		answer[i] = handed{one.Token, one.RequestID, one.Action, one.ExpiresAt, int(one.Life / time.Second)}
	}
	return answer, g.issue(ctx, queue)
}

func writeJSON(w io.Writer, value any) {
	_ = json.NewEncoder(w).Encode(value) // a client that left is nobody's error
}
