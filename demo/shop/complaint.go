package shop

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// complaint says what is wrong with one member of a JSON body or one field of a form.
type complaint struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

type complaints []complaint

// add ignores an empty detail.
func (c *complaints) add(field, detail string) {
	if detail != "" {
		*c = append(*c, complaint{field, detail})
	}
}

// about is what is wrong with a field; empty: nothing.
func (c complaints) about(field string) string {
	for _, one := range c {
		if one.Field == field {
			return one.Detail
		}
	}
	return ""
}

func (c complaints) String() string {
	sentences := make([]string, len(c))
	for i, one := range c {
		sentences[i] = one.Field + " " + one.Detail
	}
	return strings.Join(sentences, "; ")
}

// textWrong is what is wrong with a text that must not be empty; empty: nothing. Postgres takes no NUL, and nobody needs the other control characters.
func textWrong(text string, longest int, lines bool) string {
	control := func(r rune) bool { return unicode.IsControl(r) && (!lines || !strings.ContainsRune("\r\n\t", r)) }
	switch {
	case strings.TrimSpace(text) == "":
		return "is required"
	case utf8.RuneCountInString(text) > longest:
		return fmt.Sprintf("must be at most %d characters long", longest)
	case !utf8.ValidString(text):
		return "must be UTF-8"
	case strings.ContainsFunc(text, control):
		return "must not contain control characters"
	}
	return ""
}
