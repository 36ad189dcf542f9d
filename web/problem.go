package web

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is a refusal as the caller sees it (RFC 9457).
type Problem struct {
	Type           string `json:"type"` // where its code is explained
	Title          string `json:"title"`
	Status         int    `json:"status"`
	Detail         string `json:"detail,omitempty"`
	Code           string `json:"code"`
	RequestID      string `json:"requestId,omitempty"`
	RetryAfter     int    `json:"retryAfter,omitempty"` // seconds
	OriginalStatus int    `json:"originalStatus,omitempty"`
	Language       string `json:"-"`
}

func (g *Guard) problem(r *http.Request, f *refusal, own Messages, requestID string) Problem {
	lang := g.texts.language(r)
	message, ok := own[f.code]
	if !ok {
		message, lang = g.texts.say(lang, f.code)
	}
	p := Problem{
		Type: strings.TrimSuffix(g.config.Prefix, "/") + "/problems/" + f.code, Title: message.Title, Status: statusOf(f.code), Detail: message.Detail,
		Code: f.code, RequestID: requestID, OriginalStatus: f.originalStatus, Language: lang,
		RetryAfter: int((f.retryAfter + time.Second - 1) / time.Second),
	}
	if f.detail != "" {
		p.Detail += " (" + f.detail + ")"
	}
	return p
}

// head writes what every form of a refusal has in its header.
func (g *Guard) head(w http.ResponseWriter, r *http.Request, p Problem, contentType string) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Language", p.Language)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Add("Vary", "Accept, Accept-Language, HX-Request")
	for _, stale := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified"} {
		header.Del(stale)
	}
	if p.RequestID != "" {
		header.Set(g.config.RequestIDHeader, p.RequestID)
	}
	switch p.Code {
	case BodyTooLarge:
		header.Set("Connection", "close")
	case Unauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	}
	if p.RetryAfter > 0 && p.Code != DuplicateInWindow { // an obedient client would send the suppressed duplicate again
		header.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	g.expose(w, r)
}

// writeJSON writes the refusal as application/problem+json.
func (g *Guard) writeJSON(w http.ResponseWriter, r *http.Request, p Problem) {
	g.head(w, r, p, "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that left is nobody's error
}

// log tells the people who run this what the caller is not told.
func (g *Guard) log(r *http.Request, f *refusal) {
	switch {
	case f.cause == nil:
	case statusOf(f.code) >= http.StatusInternalServerError:
		g.config.Logger.ErrorContext(r.Context(), "idem: refused", "code", f.code, "error", f.cause)
	default:
		g.config.Logger.DebugContext(r.Context(), "idem: refused", "code", f.code, "error", f.cause)
	}
}

// Refuse answers a request with one of the kit's refusals, for middleware that stands beside the guard, such as a rate limit.
// retryAfter is rounded up to whole seconds; 0: none is given. An unknown code panics.
func (g *Guard) Refuse(w http.ResponseWriter, r *http.Request, code string, retryAfter time.Duration) {
	if statusOf(code) == 0 {
		panic("web: there is no code " + code)
	}
	g.refuse(w, r, refuse(code).after(retryAfter))
}

// refuse answers where there is no submission to give back.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, f *refusal) {
	g.log(r, f)
	p := g.problem(r, f, nil, "")
	if wanted(r) == asJSON {
		g.writeJSON(w, r, p)
		return
	}
	g.writeHTML(w, r, p, g.render(r, p, g.props(p)))
}

// expose lets an allowed origin's script read the kit's headers.
func (g *Guard) expose(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	for _, allowed := range g.config.Origins {
		if origin != allowed || w.Header().Get("Access-Control-Allow-Origin") != "" {
			continue
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Access-Control-Expose-Headers", replayedHeader+", Retry-After, "+g.config.RequestIDHeader)
		w.Header().Add("Vary", "Origin")
	}
}
