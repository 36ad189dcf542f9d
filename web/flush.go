package web

import (
	"reflect"
	"runtime"

	templruntime "github.com/a-h/templ/runtime"
)

// rendered reports whether it is templ that flushes, as it does at the end of every component that is rendered into a response. That is no wish to
// stream: an answer of one page would never be kept. templ.Flush, which is one, calls by another way. Nothing but the call stack tells.
func rendered() bool {
	release := runtime.FuncForPC(reflect.ValueOf(templruntime.ReleaseBuffer).Pointer()).Name()
	callers := make([]uintptr, 12) // with room for writers that a middleware puts in between
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == release {
			return true
		}
		if !more {
			return false
		}
	}
}
