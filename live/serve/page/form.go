package page

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"
)

// A FieldError says what is wrong with a field of a form, or with all of it if Field is empty. It
// repeats no value.
type FieldError struct {
	Status int
	Field  string
	Detail string
}

func (e *FieldError) Error() string { return e.Detail }

func wrong(field, format string, args ...any) error {
	return &FieldError{http.StatusBadRequest, field, fmt.Sprintf(format, args...)}
}

// readForm reads a form that has some of these fields, each once, and no other.
func readForm(w http.ResponseWriter, r *http.Request, limit int64, fields ...string) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, &FieldError{http.StatusUnsupportedMediaType, "",
			"the body must be a form: application/x-www-form-urlencoded"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	var large *http.MaxBytesError
	if err := r.ParseForm(); errors.As(err, &large) {
		return nil, &FieldError{http.StatusRequestEntityTooLarge, "",
			fmt.Sprintf("the form has more than %d bytes", limit)}
	} else if err != nil {
		return nil, wrong("", "the form cannot be read")
	}
	return checkForm(r.PostForm, fields)
}

func checkForm(in url.Values, fields []string) (url.Values, error) {
	for name, values := range in {
		switch {
		case !slices.Contains(fields, name):
			return nil, wrong("", "the form has a field that is none of it")
		case len(values) != 1:
			return nil, wrong(name, "%s is given %d times, must be given once", name, len(values))
		case !utf8.ValidString(values[0]):
			return nil, wrong(name, "%s must be Unicode, in UTF-8", name)
		}
	}
	return in, nil
}
