package shop

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// formMemory is how much of an uploaded file stays in memory, in bytes. The shop keeps its name and size only.
const formMemory = 1 << 20

// orderForm is the form as it is shown: what was typed, and what is wrong with it.
type orderForm struct {
	URL      string // where it is sent
	Item     string
	Quantity string
	Note     string
	Wrong    complaints
	Failure  string // of the whole; empty: none
	Ordered  string // the order that was placed just before; empty: none
}

func (s *shop) showForm(w http.ResponseWriter, r *http.Request) {
	form := orderForm{URL: withDelay(r, "/form", failing(r)), Quantity: "1"}
	if id := r.URL.Query().Get("ordered"); id != "" {
		if o, err := s.storage.order(r.Context(), id); err == nil { // what is not there was not ordered
			form.Ordered = o.ID
		}
	}
	s.page(w, r, http.StatusOK, formPage(s.site, form))
}

// failing passes the parameter fail on.
func failing(r *http.Request) url.Values {
	parameters := url.Values{}
	if fail := r.URL.Query().Get("fail"); fail != "" {
		parameters.Set("fail", fail)
	}
	return parameters
}

// submitForm answers with the form itself for whatever is not an order: it keeps what was typed, and its request id.
func (s *shop) submitForm(w http.ResponseWriter, r *http.Request) {
	o, form, err := readForm(r)
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, "The form could not be read.")
		return
	}
	if len(form.Wrong) > 0 {
		s.page(w, r, http.StatusUnprocessableEntity, formPage(s.site, form))
		return
	}
	status, err := s.place(r.Context(), &o)
	form.Failure = struck
	if err != nil {
		s.log.ErrorContext(r.Context(), "shop: a form failed", "error", err)
		status, form.Failure = http.StatusServiceUnavailable, away
	}
	if status != 0 {
		s.page(w, r, status, formPage(s.site, form))
		return
	}
	next := o.URL()
	if r.PostForm.Get("then") == "another" {
		next = withDelay(r, "/form", url.Values{"ordered": {o.ID}})
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// submitUnguarded is where the unguarded button of /double-click leads without JavaScript.
func (s *shop) submitUnguarded(w http.ResponseWriter, r *http.Request) {
	o, form, err := readForm(r)
	switch {
	case err != nil:
		s.refuse(w, r, http.StatusBadRequest, "The form could not be read.")
		return
	case len(form.Wrong) > 0:
		s.refuse(w, r, http.StatusUnprocessableEntity, form.Wrong.String())
		return
	}
	if err := s.placeUnguarded(r.Context(), &o); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, o.URL(), http.StatusSeeOther)
}

func readForm(r *http.Request) (order, orderForm, error) {
	err := r.ParseForm() // first: ParseMultipartForm forgets its error where the body is not multipart
	if err == nil {
		err = r.ParseMultipartForm(formMemory)
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return order{}, orderForm{}, err
	}
	typed := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	form := orderForm{URL: r.URL.RequestURI(), Item: typed("item"), Quantity: typed("quantity"), Note: typed("note")}
	o := order{Item: form.Item, Note: form.Note}
	o.Quantity, _ = strconv.ParseInt(form.Quantity, 10, 64) // what is no number is out of range
	o.Attachment, o.AttachmentSize = attachment(r)
	form.Wrong = o.check()
	return o, form, nil
}

// attachment is the name and size of the chosen file. A browser sends an empty part where none was chosen.
func attachment(r *http.Request) (string, int64) {
	if r.MultipartForm == nil || len(r.MultipartForm.File["attachment"]) == 0 {
		return "", 0
	}
	file := r.MultipartForm.File["attachment"][0]
	return path.Base(file.Filename), file.Size
}
