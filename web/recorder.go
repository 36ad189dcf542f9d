package web

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/idemkit/idem"
)

// recorder holds a handler's answer back until what it says is committed. An answer that is flushed, hijacked or larger than the limit goes
// through and is not kept. It has a header map of its own: lines of an outer middleware are shown to the handler, and not recorded.
type recorder struct {
	w        http.ResponseWriter
	limit    int
	before   func() error // called before bytes leave; may be nil
	header   http.Header
	outer    http.Header // as it was when the handler started
	status   int
	body     []byte
	left     bool // bytes have left
	hijacked bool
	failure  error // of before
}

func newRecorder(w http.ResponseWriter, limit int) *recorder {
	outer := w.Header().Clone()
	if outer == nil {
		outer = http.Header{}
	}
	return &recorder{w: w, limit: limit, header: outer.Clone(), outer: outer}
}

func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader passes informational answers on at once, and notes the first final one.
func (rec *recorder) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999: // as net/http does, but before anything is recorded
		panic("web: invalid WriteHeader code " + strconv.Itoa(status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		if !rec.left {
			rec.inform(status)
		}
	case rec.status == 0:
		rec.status = status
	}
}

// inform sends an informational answer. Its lines are not those of the final one, which may be a refusal.
func (rec *recorder) inform(status int) {
	rec.sendHeader()
	rec.w.WriteHeader(status)
	clear(rec.w.Header())
	maps.Copy(rec.w.Header(), rec.outer)
}

func (rec *recorder) Write(p []byte) (int, error) {
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
	if !bodyAllowed(rec.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if !rec.left && len(rec.body)+len(p) <= rec.limit {
		rec.body = append(rec.body, p...)
		return len(p), nil
	}
	if err := rec.leave(); err != nil {
		return 0, err
	}
	return rec.w.Write(p)
}

// FlushError lets the answer go from here on. Without it a ResponseController would flush an empty 200 behind our back.
func (rec *recorder) FlushError() error {
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
	if err := rec.leave(); err != nil {
		return err
	}
	return http.NewResponseController(rec.w).Flush()
}

// Flush is FlushError for those who ask for an http.Flusher.
func (rec *recorder) Flush() {
	if rec.left || !rendered() {
		_ = rec.FlushError()
	}
}

// Hijack hands the connection over; what is done with it is not recorded.
func (rec *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(rec.w).Hijack()
	if err == nil {
		rec.left, rec.hijacked = true, true
	}
	return conn, buffer, err
}

// Unwrap is for http.ResponseController: deadlines, full duplex.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.w }

// leave sends what was held back, and everything after it goes straight through.
func (rec *recorder) leave() error {
	if rec.left {
		return nil
	}
	if err := rec.prepare(); err != nil {
		return err
	}
	rec.left = true
	rec.sendHeader()
	if rec.status != 0 {
		rec.w.WriteHeader(rec.status)
	}
	body := rec.body
	rec.body = nil
	if len(body) == 0 {
		return nil
	}
	_, err := rec.w.Write(body)
	return err
}

// prepare runs what must have happened before bytes leave. Its first failure stays.
func (rec *recorder) prepare() error {
	if rec.failure == nil && rec.before != nil {
		rec.failure = rec.before()
	}
	return rec.failure
}

// sendHeader makes the outer header what the handler made of it.
func (rec *recorder) sendHeader() {
	real := rec.w.Header()
	for name := range real {
		if _, kept := rec.header[name]; !kept {
			if _, seen := rec.outer[name]; seen {
				delete(real, name)
			}
		}
	}
	maps.Copy(real, rec.header)
}

// finish sends the answer, if it has not left, and trailers that the handler set after it.
func (rec *recorder) finish() error {
	if rec.hijacked {
		return nil
	}
	if !rec.left && bodyAllowed(rec.answered()) && rec.header.Get("Content-Length") == "" && !rec.hasTrailers() {
		rec.header.Set("Content-Length", strconv.Itoa(len(rec.body)))
	}
	trailers := http.Header{}
	for name, values := range rec.header {
		declared := slices.Contains(listed(rec.header["Trailer"]), name)
		if declared {
			delete(rec.header, name)
		}
		if declared || strings.HasPrefix(name, http.TrailerPrefix) {
			trailers[name] = values
		}
	}
	err := rec.leave()
	maps.Copy(rec.w.Header(), trailers)
	return err
}

// hasTrailers: they need a body of unsaid length.
func (rec *recorder) hasTrailers() bool {
	for name := range rec.header {
		if name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// listed are the header names that comma-separated lines list.
func listed(lines []string) []string {
	var names []string
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// answered is the final status.
func (rec *recorder) answered() int {
	if rec.status == 0 {
		return http.StatusOK
	}
	return rec.status
}

// result is what a duplicate will get: header lines that the handler set, in the order of their names, and the bytes.
func (rec *recorder) result(cookies bool) idem.Result {
	result := idem.Result{Status: rec.answered(), Kept: !rec.left && rec.failure == nil} // a page whose tokens nobody knows is not to be shown again
	if !result.Kept {
		return result
	}
	rec.sniff()
	once := slices.Concat(listed(rec.header["Connection"]), listed(rec.header["Trailer"]))
	for _, name := range slices.Sorted(maps.Keys(rec.header)) {
		values := rec.header[name]
		if unrepeatable(name) || slices.Contains(once, name) || name == "Set-Cookie" || slices.Equal(values, rec.outer[name]) {
			continue
		}
		for _, value := range values {
			result.Header = append(result.Header, [2]string{name, value})
		}
	}
	if cookies {
		for _, cookie := range newLines(rec.header["Set-Cookie"], rec.outer["Set-Cookie"]) {
			result.Header = append(result.Header, [2]string{"Set-Cookie", cookie})
		}
	}
	if !redirect(result.Status) {
		result.Body = rec.body
	}
	return result
}

// sniff names the content's type as net/http would, so that the replay has it - and has none where the handler wanted none.
func (rec *recorder) sniff() {
	_, typed := rec.header["Content-Type"]
	if !typed && len(rec.body) > 0 && rec.header.Get("Content-Encoding") == "" {
		rec.header.Set("Content-Type", http.DetectContentType(rec.body))
	}
}

// newLines are those behind what was there before.
func newLines(lines, before []string) []string {
	if len(lines) >= len(before) && slices.Equal(lines[:len(before)], before) {
		return lines[len(before):]
	}
	return lines
}
