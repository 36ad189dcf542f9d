package web_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/idemkit/idem/web"
)

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType string
		size        int64
		chunked     bool
		options     []web.Option
		status      int
	}{
		"at the default":              {size: 10 << 20, status: 201},
		"over the default":            {size: 10<<20 + 1, status: 413},
		"over the default, chunked":   {size: 10<<20 + 1, chunked: true, status: 413},
		"at the default, chunked":     {size: 10 << 20, chunked: true, status: 201},
		"at the route's":              {size: 100, options: []web.Option{web.BodyLimit(100)}, status: 201},
		"over the route's":            {size: 101, options: []web.Option{web.BodyLimit(100)}, status: 413},
		"over the route's, chunked":   {size: 101, chunked: true, options: []web.Option{web.BodyLimit(100)}, status: 413},
		"form over it, chunked":       {contentType: urlencoded, size: 101, chunked: true, options: []web.Option{web.BodyLimit(100)}, status: 413},
		"larger than the default":     {size: 11 << 20, options: []web.Option{web.BodyLimit(12 << 20)}, status: 201},
		"exactly what memory holds":   {size: 1 << 20, status: 201},
		"one more than memory holds":  {size: 1<<20 + 1, chunked: true, status: 201},
		"none where none is allowed":  {size: 0, options: []web.Option{web.BodyLimit(0)}, status: 201},
		"some where none is allowed":  {size: 1, options: []web.Option{web.BodyLimit(0)}, status: 413},
		"some, chunked, none allowed": {size: 1, chunked: true, options: []web.Option{web.BodyLimit(0)}, status: 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{then: func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				if n != c.size || err != nil {
					t.Errorf("the handler read %d bytes, %v", n, err)
				}
				w.WriteHeader(http.StatusCreated)
			}}
			guarded := f.guard.Token("order.create", c.options...)(h)
			send := func() *httptest.ResponseRecorder {
				r := f.order(token)
				r.Header.Set("Content-Type", c.contentType)
				r.Body = io.NopCloser(io.LimitReader(zeros{}, c.size))
				r.ContentLength = c.size
				if c.chunked {
					r.ContentLength = -1
				}
				return f.do(guarded, r)
			}
			rec := send()
			if c.status == 201 {
				executed(t, rec, 201)
				repeats(t, send(), rec)
				return
			}
			refused(t, rec, 413, web.BodyTooLarge)
			if rec.Header().Get("Connection") != "close" {
				t.Errorf("header %v", rec.Header())
			}
			h.ran(t, 0)
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType string
		length      int
	}{
		"at once":         {contentType: "application/json"},
		"later":           {contentType: "application/json", length: 100},
		"in the file":     {contentType: "application/json", length: 2 << 20},
		"in a form":       {contentType: urlencoded, length: 10},
		"far into a form": {contentType: urlencoded, length: 100 << 10},
		"in a multipart":  {contentType: "multipart/form-data; boundary=b", length: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{}
			guarded := f.guard.Token("order.create")(h)
			r := f.order(token)
			r.Header.Set("Content-Type", c.contentType)
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(zeros{}, int64(c.length)), iotest.ErrReader(errors.New("10.0.0.7: reset"))))
			r.ContentLength = -1
			if p := refused(t, f.do(guarded, r), 400, web.BadRequest); strings.Contains(p.Detail, "10.0.0.7") {
				t.Errorf("an internal error is shown: %q", p.Detail)
			}
			h.ran(t, 0)
			executed(t, f.do(guarded, f.order(token)), 201)
		})
	}
}

// The handler may do with the body and the forms what it likes.
func TestHandlerAndBody(t *testing.T) {
	t.Parallel()
	contentType, text := multiparts(part{name: "a", content: "1"}, part{name: "f", file: "x.txt", content: "content"})
	var kept io.Reader
	for name, c := range map[string]struct {
		contentType, body string
		then              func(r *http.Request) string
		want              string
	}{
		"reads the body":  {contentType: urlencoded, body: "a=1&b=2", then: readAll, want: "a=1&b=2"},
		"reads it twice":  {contentType: urlencoded, body: "a=1", then: func(r *http.Request) string { return readAll(r) + readAll(r) }, want: "a=1"},
		"parses the form": {contentType: urlencoded, body: "a=1", then: func(r *http.Request) string { return r.FormValue("a") }, want: "1"},
		"changes the form": {contentType: urlencoded, body: "a=1", then: func(r *http.Request) string {
			_ = r.ParseForm()
			r.Form.Set("a", "2")
			r.PostForm = nil
			return r.Form.Get("a")
		}, want: "2"},
		"parses a multipart": {contentType: contentType, body: text, then: func(r *http.Request) string { return r.FormValue("a") }, want: "1"},
		"reads a multipart": {contentType: contentType, body: text, then: func(r *http.Request) string {
			reader, err := r.MultipartReader()
			if err != nil {
				return err.Error()
			}
			first, err := reader.NextPart()
			if err != nil {
				return err.Error()
			}
			return first.FormName()
		}, want: "a"},
		"leaves it":     {contentType: "application/json", body: "{}", then: func(*http.Request) string { return "" }},
		"closes it":     {contentType: "application/json", body: "{}", then: func(r *http.Request) string { return fmt.Sprint(r.Body.Close()) }, want: "<nil>"},
		"keeps it":      {contentType: "application/json", body: "{}", then: func(r *http.Request) string { kept = r.Body; return "" }},
		"wants lengths": {contentType: "application/json", body: "{}", then: func(r *http.Request) string { return fmt.Sprint(r.ContentLength) }, want: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			token := f.token("order.create").Token
			h := &work{then: func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, c.then(r)) }}
			guarded := f.guard.Token("order.create")(h)
			send := func() *httptest.ResponseRecorder {
				r := f.request("/orders", c.contentType, c.body)
				r.Header.Set(tokenHeader, token)
				return f.do(guarded, r)
			}
			first := send()
			if first.Code != 200 || first.Body.String() != c.want {
				t.Errorf("answered %d %q", first.Code, first.Body)
			}
			repeats(t, send(), first)
			if name == "keeps it" {
				_, _ = io.ReadAll(kept)
			}
		})
	}
}

func readAll(r *http.Request) string {
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// Neither a spooled body nor what the handler parsed of it stays on disk. Not parallel: it looks at a folder of its own.
func TestNothingStaysOnDisk(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	f := newFixture(t)
	during := 0
	contentType, text := multiparts(part{name: "f", file: "x", content: strings.Repeat("x", 3<<20)})
	for name, then := range map[string]func(w http.ResponseWriter, r *http.Request){
		"parsed by the handler": func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1 << 10); err != nil {
				t.Error(err)
			}
			during = len(files(t, folder))
		},
		"parsed, then a panic": func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseMultipartForm(1 << 10); panic("boom") },
		"not parsed":           func(http.ResponseWriter, *http.Request) {},
		"refused":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) },
	} {
		token := f.token("order.create").Token
		r := f.request("/orders", contentType, text)
		r.Header.Set(tokenHeader, token)
		_, _ = panics(f.guard.Token("order.create")(&work{then: then}), r)
		if left := files(t, folder); len(left) > 0 {
			t.Errorf("%s: %q are left", name, left)
		}
	}
	if during != 1 {
		t.Errorf("%d files while the handler ran", during)
	}
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return names
}
