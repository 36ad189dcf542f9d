package web

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// fields is a form body: text fields in the order in which they were sent, and what is known of its files.
type fields struct {
	texts []field
	files []file
	whole bool // false: it breaks off, is not well-formed or has more than maxFields, and these are the fields in front of that
}

// maxFields is more than the 64 KiB can hold in which a token is looked for, and than net/url and mime/multipart take for a handler. A field costs
// two bytes on the wire, and fifty times as much in memory, or on a page that gives it back.
const maxFields = 32 << 10

type field struct {
	name, value string
	noFile      bool // a file input that was left empty: a browser sends a file without name and content
}

type file struct {
	field, name string
	digest      [sha256.Size]byte
}

func (f *fields) values(name string) []string {
	var values []string
	for _, text := range f.texts {
		if text.name == name {
			values = append(values, text.value)
		}
	}
	return values
}

func (f *fields) full() bool { return len(f.texts)+len(f.files) == maxFields }

// readFields never fails: the handler is the one to judge a form that is not well-formed.
func readFields(mediaType, boundary string, body io.Reader) *fields {
	switch {
	case mediaType == urlencoded:
		return readURLEncoded(body)
	case mediaType == multiparts && boundary != "":
		return readMultipart(multipart.NewReader(body, boundary))
	}
	return &fields{}
}

func readURLEncoded(body io.Reader) *fields {
	text, err := io.ReadAll(body)
	form := &fields{whole: err == nil}
	for pair := range strings.SplitSeq(string(text), "&") {
		if pair == "" {
			continue
		}
		if form.full() {
			form.whole = false
			break
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		if nameErr != nil || valueErr != nil {
			form.whole = false
			continue
		}
		form.texts = append(form.texts, field{name: name, value: value})
	}
	return form
}

// readMultipart takes parts as they come: NextPart would decode quoted-printable, and two different bodies could become one.
func readMultipart(reader *multipart.Reader) *fields {
	form := &fields{}
	for {
		part, err := reader.NextRawPart()
		if err != nil {
			form.whole = err == io.EOF // the reader returns io.EOF itself at the end, and wraps it where the body breaks off
			return form
		}
		if form.full() || !form.take(part) {
			return form
		}
	}
}

// take reports whether the part was read to its end.
func (f *fields) take(part *multipart.Part) bool {
	name := part.FormName()
	sent, isFile := fileName(part.Header)
	if sent != "" {
		hash := sha256.New()
		if _, err := io.Copy(hash, part); err != nil {
			return false
		}
		f.files = append(f.files, file{name, sent, [sha256.Size]byte(hash.Sum(nil))})
		return true
	}
	var value bytes.Buffer
	if _, err := io.Copy(&value, part); err != nil {
		return false
	}
	f.texts = append(f.texts, field{name: name, value: value.String(), noFile: isFile})
	return true
}

// parsedFields is a form that a middleware in front has parsed. The order of its names is lost.
func parsedFields(r *http.Request) (*fields, error) {
	form := &fields{whole: true}
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		for _, value := range r.PostForm[name] {
			form.texts = append(form.texts, field{name: name, value: value})
		}
	}
	if r.MultipartForm == nil {
		return form, nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.MultipartForm.File)) {
		for _, header := range r.MultipartForm.File[name] {
			digest, err := fileDigest(header)
			if err != nil {
				return nil, err
			}
			sent, _ := fileName(header.Header)
			form.files = append(form.files, file{name, sent, digest})
		}
	}
	return form, nil
}

// fileName is as the client sent it: Part.FileName cuts directories off.
func fileName(header textproto.MIMEHeader) (name string, isFile bool) {
	_, parameters, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
	name, isFile = parameters["filename"]
	return name, isFile
}

func fileDigest(header *multipart.FileHeader) (digest [sha256.Size]byte, err error) {
	content, err := header.Open()
	if err != nil {
		return digest, err
	}
	defer func() { _ = content.Close() }()
	hash := sha256.New()
	_, err = io.Copy(hash, content)
	return [sha256.Size]byte(hash.Sum(nil)), err
}
