package server

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5/middleware"
)

// Middleware is what stands in front of an application's routes, outermost first: client address, security headers, request log, recoverer.
func (c Config) Middleware(logger *slog.Logger) []func(http.Handler) http.Handler {
	return []func(http.Handler) http.Handler{c.ClientIP, Headers, Log(logger), Recover(logger)}
}

// Log writes one line a request: method, path without the query, status, bytes and duration. It logs no header, cookie, body or token. An aborted
// answer is logged with "aborted".
func Log(logger *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun, seen := time.Now(), middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			finished := false
			defer func() {
				status := seen.Status()
				if status == 0 && finished {
					status = http.StatusOK // net/http sends it where the handler wrote nothing
				}
				attributes := []slog.Attr{
					slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
					slog.Int("bytes", seen.BytesWritten()), slog.Duration("took", time.Since(begun)),
				}
				if !finished {
					attributes = append(attributes, slog.Bool("aborted", true))
				}
				logger.LogAttrs(r.Context(), slog.LevelInfo, "request", attributes...)
			}()
			next.ServeHTTP(seen, r)
			finished = true
		})
	}
}

// Recover logs a panic and answers 500 where nothing was sent yet; where bytes have left, it aborts the connection, so that half an answer is not taken for
// a whole one. http.ErrAbortHandler is raised again.
func Recover(logger *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			defer func() {
				raised := recover()
				if raised == nil {
					return
				}
				if raised == http.ErrAbortHandler { //nolint:errorlint // net/http compares so, too
					panic(raised)
				}
				logger.ErrorContext(r.Context(), "panic", "method", r.Method, "path", r.URL.Path, "panic", raised, "stack", string(debug.Stack()))
				if seen.Status() != 0 {
					panic(http.ErrAbortHandler)
				}
				http.Error(seen, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			}()
			next.ServeHTTP(seen, r)
		})
	}
}
