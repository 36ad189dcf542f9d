package templates

import "strings"

// Texts are the words around a problem. The problem's own title and detail are not among them.
type Texts struct {
	FirstDone    string // the first submission went through
	FirstRunning string // the first submission is still running
	SeeFirst     string // the link to its result
	RetryAfter   string // with one %d for the seconds
	Entries      string // heading of what was typed
	Secret       string // said of a field whose value was dropped
	File         string // said of a file that has to be chosen again
	Confirm      string // what a person agrees to who may not be the one who typed it
	Again        string // the button that sends the same submission again
	AsNew        string // the button that makes a new submission
	Busy         string // the button while it is sent
	Status       string // label of the HTTP status
	Code         string // label of the problem's code
	RequestID    string // label of the request id
}

// TextsFor returns the texts in the language of a BCP 47 tag: Chinese for "zh" and its variants, otherwise English.
func TextsFor(lang string) Texts {
	primary, _, _ := strings.Cut(strings.ToLower(lang), "-")
	if primary == "zh" {
		return Chinese()
	}
	return English()
}

// LanguageOf is the language of what TextsFor returns: the given one, or "en".
func LanguageOf(lang string) string {
	if TextsFor(lang) == English() && !strings.HasPrefix(strings.ToLower(lang), "en") {
		return "en"
	}
	return lang
}

// English returns the texts in English.
func English() Texts {
	return Texts{
		FirstDone:    "Your first submission went through.",
		FirstRunning: "Your first submission is still being worked on.",
		SeeFirst:     "See its result",
		RetryAfter:   "Please wait %d s before you try again.",
		Entries:      "What you entered",
		Secret:       "For your safety this was not kept. Please type it again.",
		File:         "A file cannot be kept. Please choose it again.",
		Confirm:      "I entered this myself and want to submit it with the account that I use now.",
		Again:        "Submit again",
		AsNew:        "Submit as something new",
		Busy:         "Submitting…",
		Status:       "Status",
		Code:         "Code",
		RequestID:    "Request",
	}
}

// Chinese returns the texts in simplified Chinese.
func Chinese() Texts {
	return Texts{
		FirstDone:    "您的第一次提交已经成功。",
		FirstRunning: "您的第一次提交仍在处理中。",
		SeeFirst:     "查看结果",
		RetryAfter:   "请等待 %d 秒后再试。",
		Entries:      "您填写的内容",
		Secret:       "为了您的安全，此项未保留，请重新输入。",
		File:         "文件无法保留，请重新选择。",
		Confirm:      "以上内容由我本人填写，我要用当前账号提交。",
		Again:        "重新提交",
		AsNew:        "作为新的请求提交",
		Busy:         "正在提交…",
		Status:       "状态",
		Code:         "代码",
		RequestID:    "请求编号",
	}
}
