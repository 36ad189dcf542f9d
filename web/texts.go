package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Message is what people are told with a code.
type Message struct {
	Title  string // a few words
	Detail string // what happened, and what to do
}

// Messages are texts by code.
type Messages map[string]Message

// texts is what the kit says, by language.
type texts struct {
	tags    []language.Tag
	names   []string
	by      map[string]Messages
	matcher language.Matcher
}

// newTexts refuses a language that is none and a code that does not exist: both would go unnoticed.
func newTexts(added map[string]Messages) (*texts, error) {
	by := map[string]Messages{"en": maps.Clone(english()), "zh": maps.Clone(chinese())}
	for name, messages := range added {
		if _, err := language.Parse(name); err != nil {
			return nil, fmt.Errorf("web: Messages: %q is not a language tag", name)
		}
		if by[name] == nil {
			by[name] = Messages{}
		}
		for code, message := range messages {
			if _, known := by["en"][code]; !known {
				return nil, fmt.Errorf("web: Messages[%q]: there is no code %q", name, code)
			}
			if message.Title == "" || message.Detail == "" {
				return nil, fmt.Errorf("web: Messages[%q][%q] needs a title and a detail", name, code)
			}
			by[name][code] = message
		}
	}
	t := &texts{by: by, names: []string{"en"}}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if name != "en" {
			t.names = append(t.names, name)
		}
	}
	for _, name := range t.names {
		t.tags = append(t.tags, language.Make(name))
	}
	t.matcher = language.NewMatcher(t.tags)
	return t, nil
}

// language of a request: the best that the client accepts, English otherwise.
func (t *texts) language(r *http.Request) string {
	preferred, _, err := language.ParseAcceptLanguage(strings.Join(r.Header.Values("Accept-Language"), ","))
	if err != nil || len(preferred) == 0 {
		return "en"
	}
	_, index, _ := t.matcher.Match(preferred...)
	return t.names[index]
}

// say returns the text of a code in a language, in English where that has none, and which of them it is.
func (t *texts) say(lang, code string) (Message, string) {
	if message, ok := t.by[lang][code]; ok {
		return message, lang
	}
	return t.by["en"][code], "en"
}
