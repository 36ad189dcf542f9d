package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxObject is the largest JSON body that the shop reads, in bytes.
const maxObject = 1 << 20

// object is a JSON object whose members are read one by one. Names count by case, as encoding/json would not have it.
type object struct {
	members map[string]json.RawMessage
	wrong   complaints
}

// readObject reads the body: one JSON object with these members and no others, none of them twice. The error is for the caller.
func readObject(w http.ResponseWriter, r *http.Request, known ...string) (*object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObject))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case err != nil:
		return nil, errors.New("the body could not be read to its end")
	case !utf8.Valid(body):
		return nil, errors.New("the body is not UTF-8")
	}
	o := &object{members: map[string]json.RawMessage{}}
	return o, o.decode(json.NewDecoder(bytes.NewReader(body)), known)
}

func (o *object) decode(decoder *json.Decoder, known []string) error {
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errors.New("the body must be one JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return malformed(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return malformed(err)
		}
		text, _ := name.(string)
		switch _, twice := o.members[text]; {
		case twice:
			return fmt.Errorf("the member %q is repeated", text)
		case !slices.Contains(known, text):
			return fmt.Errorf("the member %q is not known; the members are %s", text, strings.Join(known, ", "))
		}
		o.members[text] = value
	}
	if _, err := decoder.Token(); err != nil {
		return malformed(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON object")
	}
	return nil
}

func malformed(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the body is not JSON: it goes wrong at byte %d", syntax.Offset)
	}
	return errors.New("the body is not JSON: it ends in the middle")
}

// text reads a string of at most longest characters, exactly as it stands: it may be a key, which the guard has read too.
func (o *object) text(name string, longest int) string {
	raw, given := o.members[name]
	var text *string
	if err := json.Unmarshal(raw, &text); given && (err != nil || text == nil) {
		o.wrong.add(name, "must be a string")
		return ""
	}
	if text == nil {
		o.wrong.add(name, "is required")
		return ""
	}
	o.wrong.add(name, textWrong(*text, longest, false))
	return *text
}

// whole reads a whole number from low to high.
func (o *object) whole(name string, low, high int64) int64 {
	raw, given := o.members[name]
	var number *int64
	if err := json.Unmarshal(raw, &number); err == nil && number != nil && *number >= low && *number <= high {
		return *number
	}
	if !given {
		o.wrong.add(name, "is required")
	} else {
		o.wrong.add(name, fmt.Sprintf("must be a whole number from %d to %d", low, high))
	}
	return 0
}
