package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
)

// maxTokenOffset is how far into a body a token field is looked for: nothing is spooled before the token is authentic.
const maxTokenOffset = 64 << 10

// Media types of HTML forms.
const (
	urlencoded = "application/x-www-form-urlencoded"
	multiparts = "multipart/form-data"
)

// submission is one unsafe request on its way to the handler.
type submission struct {
	*route
	w         http.ResponseWriter
	r         *http.Request
	mediaType string
	boundary  string
	parsed    bool // a middleware in front has read the form: r.PostForm and r.MultipartForm are the body
	caller    caller
	token     permission
	prefix    []byte        // what was read of the body to find the token
	cut       bool          // there may be more behind it
	body      *spool        // the whole of it
	form      *fields       // of it, once asked for
	handed    *http.Request // what the handler got
	unstored  error         // why tokens of the handler's page could not be stored
}

func (rt *route) submission(w http.ResponseWriter, r *http.Request) *submission {
	s := &submission{route: rt, w: w, r: new(http.Request)}
	*s.r = *r // the server looks at its own request's body to know whether it may wait for the rest of it
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil || errors.Is(err, mime.ErrInvalidMediaParameter) { // as net/http reads it
		s.mediaType, s.boundary = mediaType, parameters["boundary"]
	}
	switch s.mediaType {
	case urlencoded: // of other methods net/http parses the query alone
		s.parsed = r.PostForm != nil && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch)
	case multiparts:
		s.parsed = r.MultipartForm != nil
	}
	if r.Body == nil {
		s.r.Body = http.NoBody
	}
	s.r.Body = http.MaxBytesReader(w, s.r.Body, rt.bodyLimit)
	return s
}

func (s *submission) isForm() bool { return s.mediaType == urlencoded || s.mediaType == multiparts }

// peek reads as much of a form as a token field may be in.
func (s *submission) peek() *refusal {
	var head bytes.Buffer
	_, err := io.CopyN(&head, s.r.Body, maxTokenOffset+1) // one more tells whether the field behind it ends there
	s.prefix, s.cut = head.Bytes(), err == nil
	return unreadable(err)
}

// read spools the whole body.
func (s *submission) read() *refusal {
	if s.parsed || s.body != nil {
		return nil
	}
	body, err := newSpool(io.MultiReader(bytes.NewReader(s.prefix), s.r.Body))
	if err != nil {
		return unreadable(err)
	}
	s.body, s.prefix = body, nil
	return nil
}

// unreadable is the refusal for a body that did not come whole; nil where it did.
func unreadable(err error) *refusal {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &tooLarge):
		return refuse(BodyTooLarge)
	}
	return refuse(BadRequest).with("the body could not be read to its end").because(err)
}

// bytes is the body as it came. A form that was parsed in front has none.
func (s *submission) bytes() ([]byte, *refusal) {
	if s.body == nil {
		return nil, nil
	}
	body, err := s.body.bytes()
	if err != nil {
		return nil, refuse(StoreUnavailable).because(err)
	}
	return body, nil
}

// fields is the form, in the order in which it was sent.
func (s *submission) fields() (*fields, *refusal) {
	if s.form != nil {
		return s.form, nil
	}
	var err error
	switch {
	case s.parsed:
		s.form, err = parsedFields(s.r)
	case s.body == nil:
		s.form = s.beginning()
	default:
		s.form = readFields(s.mediaType, s.boundary, s.body.reader())
	}
	if err != nil {
		return nil, refuse(StoreUnavailable).because(err)
	}
	return s.form, nil
}

// beginning is the form as far as it was read. A field that the cut goes through is not one of them.
func (s *submission) beginning() *fields {
	prefix := s.prefix
	if s.cut && s.mediaType == urlencoded {
		prefix = prefix[:bytes.LastIndexByte(prefix, '&')+1]
	}
	form := readFields(s.mediaType, s.boundary, bytes.NewReader(prefix))
	form.whole = form.whole && !s.cut
	return form
}

// hand prepares the request that the handler gets: body and forms as if untouched.
func (s *submission) hand(r *http.Request) *http.Request {
	if s.parsed || s.body == nil {
		return r
	}
	r.Body = io.NopCloser(s.body.reader())
	r.Form, r.PostForm, r.MultipartForm = nil, nil, nil
	return r
}

// close removes what the request left on disk. The server does that only for the request that it made itself.
func (s *submission) close() {
	s.body.close()
	if s.handed != nil && !s.parsed && s.handed.MultipartForm != nil {
		_ = s.handed.MultipartForm.RemoveAll()
	}
}
