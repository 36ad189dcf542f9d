package web

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"golang.org/x/text/language"

	"github.com/idemkit/idem/templates"
)

// wholeLabels are the labels with English where they say nothing.
func wholeLabels(added map[string]templates.Texts) (map[string]templates.Texts, error) {
	whole := maps.Clone(added)
	for name, labels := range added {
		if _, err := language.Parse(name); err != nil {
			return nil, fmt.Errorf("web: Labels: %q is not a language tag", name)
		}
		fill(&labels, templates.English())
		if err := checkSeconds(labels.RetryAfter); err != nil {
			return nil, fmt.Errorf("web: Labels[%q]: %w", name, err)
		}
		whole[name] = labels
	}
	return whole, nil
}

// fill knows no field by name: one that is added later is not forgotten here.
func fill(labels *templates.Texts, english templates.Texts) {
	to, from := reflect.ValueOf(labels).Elem(), reflect.ValueOf(english)
	for i := range to.NumField() {
		if to.Field(i).String() == "" {
			to.Field(i).Set(from.Field(i))
		}
	}
}

// checkSeconds: another verb, or none, would be shown to people as it is.
func checkSeconds(text string) error {
	verbs := strings.ReplaceAll(text, "%%", "")
	if strings.Count(verbs, "%") != 1 || strings.Count(verbs, "%d") != 1 {
		return errors.New("RetryAfter must have exactly one %d, for the seconds")
	}
	return nil
}

// isToken is RFC 9110's for the name of a field, section 5.6.2.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// named panics where a KeyFunc has no name to read by: all requests would have one key.
func named(key string, names []string) {
	if len(names) == 0 {
		panic("web: " + key + " needs a name")
	}
	for _, name := range names {
		if name == "" {
			panic("web: a name of " + key + " is empty")
		}
	}
}
