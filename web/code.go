package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/idemkit/idem"
)

// Codes of refusals, as a problem's member code names them.
const (
	TokenMissing      = "token_missing"
	TokenInURL        = "token_in_url"
	RequestIDInvalid  = "request_id_invalid"
	KeyMissing        = "key_missing"
	KeyInvalid        = "key_invalid"
	BadRequest        = "bad_request"
	Unauthorized      = "unauthorized"
	SubjectMissing    = "subject_missing"
	TokenInvalid      = "token_invalid"
	TokenWrongSubject = "token_wrong_subject"
	TokenWrongAction  = "token_wrong_action"
	CrossOrigin       = "cross_origin"
	TokenExpired      = "token_expired"
	RequestIDMismatch = "request_id_mismatch"
	TokenUsed         = "token_used"
	AlreadyDone       = "already_done"
	InProgress        = "in_progress"
	KeyTaken          = "key_taken"
	Cancelled         = "cancelled"
	ClaimLost         = "claim_lost"
	BodyTooLarge      = "body_too_large"
	PayloadMismatch   = "payload_mismatch"
	DuplicateInWindow = "duplicate_in_window"
	RateLimited       = "rate_limited"
	StoreUnavailable  = "store_unavailable"
	OutcomeUnknown    = "outcome_unknown"
)

// statusOf a code; 0 where there is no such code.
func statusOf(code string) int {
	switch code {
	case TokenMissing, TokenInURL, RequestIDInvalid, KeyMissing, KeyInvalid, BadRequest:
		return http.StatusBadRequest
	case Unauthorized, SubjectMissing:
		return http.StatusUnauthorized
	case TokenInvalid, TokenWrongSubject, TokenWrongAction, CrossOrigin:
		return http.StatusForbidden
	case TokenExpired, RequestIDMismatch, TokenUsed, AlreadyDone, InProgress, KeyTaken, Cancelled, ClaimLost:
		return http.StatusConflict
	case BodyTooLarge:
		return http.StatusRequestEntityTooLarge
	case PayloadMismatch:
		return http.StatusUnprocessableEntity
	case DuplicateInWindow, RateLimited:
		return http.StatusTooManyRequests
	case StoreUnavailable, OutcomeUnknown:
		return http.StatusServiceUnavailable
	}
	return 0
}

// meaning is an error of the engine and its code.
type meaning struct {
	err  error
	code string
}

// meanings is the one place where an error of the engine becomes a code.
func meanings() []meaning {
	return []meaning{
		{idem.ErrInProgress, InProgress},
		{idem.ErrPayloadMismatch, PayloadMismatch},
		{idem.ErrKeyTaken, KeyTaken},
		{idem.ErrCancelled, Cancelled},
		{idem.ErrAlreadyDone, AlreadyDone},
		{idem.ErrTokenUsed, TokenUsed},
		{idem.ErrTokenExpired, TokenExpired},
		{idem.ErrClaimLost, ClaimLost},
		{idem.ErrDuplicate, DuplicateInWindow},
		{idem.ErrOutcomeUnknown, OutcomeUnknown},
	}
}

// refusal is why a request is not answered by the handler.
type refusal struct {
	code           string
	detail         string // what of the request is wrong, for the caller
	cause          error  // for the log only
	retryAfter     time.Duration
	originalStatus int
	record         idem.Record
}

func refuse(code string) *refusal {
	f := &refusal{code: code}
	switch code {
	case InProgress, RateLimited, StoreUnavailable, OutcomeUnknown:
		f.retryAfter = retrySoon
	}
	return f
}

func (f *refusal) with(detail string) *refusal { f.detail = detail; return f }

func (f *refusal) because(cause error) *refusal { f.cause = cause; return f }

func (f *refusal) after(d time.Duration) *refusal { f.retryAfter = d; return f }

// retrySoon is what Retry-After says where nobody knows better.
const retrySoon = time.Second

// refused makes a refusal of an engine's error. What it does not know cannot be decided safely.
func refused(reply idem.Reply, err error) *refusal {
	code := StoreUnavailable
	for _, known := range meanings() {
		if errors.Is(err, known.err) {
			code = known.code
			break
		}
	}
	f := refuse(code).because(err)
	f.record = reply.Record
	switch code {
	case InProgress:
		f.retryAfter = max(min(reply.Record.LeaseLeft, time.Minute), retrySoon)
	case AlreadyDone:
		f.originalStatus = reply.Record.Result.Status
	}
	return f
}
