package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

// Names on the wire.
const (
	tokenHeader    = "Idempotent-Token"
	tokenField     = "idempotent_token"
	requestIDField = "idempotent_request_id"
	replayedHeader = "Idempotent-Replayed"
)

// permission is an authentic token.
type permission struct {
	claims tokens.Claims
	text   string
}

// authenticate finds the token and judges it without a store: first in the header, so that nothing of the body is read for a forged one.
func (s *submission) authenticate() *refusal {
	given := s.r.Header.Values(tokenHeader)
	for _, other := range given {
		if other != given[0] {
			return refuse(BadRequest).with("the header " + tokenHeader + " is given twice, with different tokens")
		}
	}
	if len(given) > 0 && strings.TrimSpace(given[0]) != "" {
		if failure := s.admitToken(strings.TrimSpace(given[0])); failure != nil {
			return failure
		}
	}
	return s.authenticateForm()
}

// authenticateForm looks for the token, and for the request id, in the first part of a form.
func (s *submission) authenticateForm() *refusal {
	form := &fields{}
	if s.isForm() {
		if !s.parsed {
			if failure := s.peek(); failure != nil {
				return failure
			}
		}
		var failure *refusal
		if form, failure = s.fields(); failure != nil {
			return failure
		}
		if !s.parsed {
			s.form = nil // these are the fields of its beginning
		}
	}
	for _, text := range form.values(tokenField) {
		switch text = strings.TrimSpace(text); {
		case text == "", text == s.token.text:
		case s.token.text != "":
			return refuse(BadRequest).with("the token is given twice, and different")
		default:
			if failure := s.admitToken(text); failure != nil {
				return failure
			}
		}
	}
	if s.token.text == "" {
		return refuse(TokenMissing)
	}
	return s.token.admitRequestIDs(form.values(requestIDField))
}

// admitToken: authentic, for this action and this subject, and not contradicted by the header with the request id.
func (s *submission) admitToken(text string) *refusal {
	token, failure := s.authentic(s.w, text, s.businessType, s.caller.subject)
	if token.text != "" {
		s.token = token
	}
	if failure != nil {
		return failure
	}
	return s.token.admitRequestIDs(s.r.Header.Values(s.config.RequestIDHeader))
}

// authentic verifies a token. One that is authentic is returned with the refusal, if it is for another action or subject, and its request id named in the answer.
func (g *Guard) authentic(w http.ResponseWriter, text, action, subject string) (permission, *refusal) {
	claims, err := g.config.Tokens.Verify(text)
	if err != nil {
		return permission{}, refuse(TokenInvalid).because(err)
	}
	w.Header().Set(g.config.RequestIDHeader, claims.RequestID)
	token := permission{claims: claims, text: text}
	switch {
	case claims.Action != action:
		return token, refuse(TokenWrongAction)
	case claims.Subject != subject:
		return token, refuse(TokenWrongSubject)
	}
	return token, nil
}

func (p permission) admitRequestIDs(given []string) *refusal {
	for _, requestID := range given {
		switch {
		case requestID == "":
		case !tokens.ValidRequestID(requestID):
			return refuse(RequestIDInvalid)
		case requestID != p.claims.RequestID:
			return refuse(RequestIDMismatch)
		}
	}
	return nil
}

// inURL: a token in a query string ends up in histories, Referer headers and logs.
func inURL(r *http.Request) bool {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		raw, _, _ := strings.Cut(pair, "=") // a value that is not well-formed lies open all the same
		name, err := url.QueryUnescape(raw)
		if err == nil && (strings.EqualFold(name, tokenField) || strings.EqualFold(name, tokenHeader)) {
			return true
		}
	}
	return false
}

// identity is the key of the entrance record.
func (s *submission) identity() idem.Key { return s.token.claims.Key(s.caller.tenant) }
