package shop

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	htmlType    = "text/html; charset=utf-8"
)

// problem is an error of the shop itself (RFC 9457); its status says what kind it is, so that the type is about:blank, which is the default.
type problem struct {
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Detail string     `json:"detail,omitempty"`
	Errors complaints `json:"errors,omitempty"` // member by member
}

func (s *shop) writeProblem(w http.ResponseWriter, status int, detail string, wrong complaints) {
	w.Header().Set("Cache-Control", "no-store")
	s.write(w, problemType, status, problem{Title: http.StatusText(status), Status: status, Detail: detail, Errors: wrong})
}

func (s *shop) writeJSON(w http.ResponseWriter, status int, value any) {
	s.write(w, jsonType, status, value)
}

func (s *shop) write(w http.ResponseWriter, contentType string, status int, value any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a client that left is nobody's error
}

// refuse answers in the form that the path is for: a problem below /api, a page elsewhere.
func (s *shop) refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		s.writeProblem(w, status, detail, nil)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	s.page(w, r, status, messagePage(s.site, http.StatusText(status), detail))
}

// invalid answers a body that is not what the route asks for.
func (s *shop) invalid(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		s.writeProblem(w, http.StatusRequestEntityTooLarge, "The body is too large for a JSON object of this shop.", nil)
		return
	}
	s.writeProblem(w, http.StatusBadRequest, err.Error(), nil)
}

// unprocessable answers what is JSON and not what the route takes.
func (s *shop) unprocessable(w http.ResponseWriter, wrong complaints) {
	s.writeProblem(w, http.StatusUnprocessableEntity, wrong.String(), wrong)
}

// away is said where the database did not answer, or the work ran out of time. What happened is for the log.
const away = "The shop cannot do this now. Nothing was written; please send the same again."

func (s *shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "shop: a request failed", "path", r.URL.Path, "error", err)
	w.Header().Set("Retry-After", "1")
	s.refuse(w, r, http.StatusServiceUnavailable, away)
}

// errUnsure says that a write that commits on its own got no answer.
var errUnsure = errors.New("shop: it is not known whether it was written")

// unsure is fail where "nothing was written" would be more than anybody knows. No time to come again is given: nobody may repeat it unseen.
func (s *shop) unsure(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "shop: a request failed", "path", r.URL.Path, "error", err)
	s.refuse(w, r, http.StatusServiceUnavailable, "The database did not answer, so it is not known whether this was written. Please look before you send it again.")
}
