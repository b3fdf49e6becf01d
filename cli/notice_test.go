package cli

import (
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/decl"
)

// What a declaration says is text in the notice, and no link, picture or heading of its own.
func TestNoticeIsText(t *testing.T) {
	var b strings.Builder
	n := decl.Notice{Title: "[x](https://x.example)", Sections: []decl.NoticeSection{{Title: "# <b>",
		Text: []string{"![x](https://x.example)"}, Items: []string{"[x]: https://x.example\n# y"}}}}
	if err := noticeMarkdown(&b, n); err != nil {
		t.Fatal(err)
	}
	want := `# \[x\](https://x.example)

## \# \<b\>

!\[x\](https://x.example)

- \[x\]: https://x.example \# y
`
	if b.String() != want {
		t.Errorf("%s\nmust be\n%s", b.String(), want)
	}
}
