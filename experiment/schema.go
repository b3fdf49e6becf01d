package experiment

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
)

type object = map[string]any

// Schema is the JSON schema (draft 2020-12) of experiment files, for editors: of the same tables of
// keys that files are read by. Policies and their parameters come from the reader's catalog. It
// checks form: what depends on several fields, such as a budget that no policy can meet, only Resolve
// knows.
func (r Reader) Schema() ([]byte, error) {
	all := kinds()
	branch := schemaOf(all[0].keys(r.Catalog)) // of a file that does not say
	for i := len(all) - 1; i > 0; i-- {
		branch = object{
			"if": object{"properties": object{"kind": object{"const": all[i].name()}},
				"required": []any{"kind"}},
			"then": schemaOf(all[i].keys(r.Catalog)), "else": branch,
		}
	}
	branch["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	branch["title"], branch["type"] = "Sotto experiment", "object"
	branch["properties"] = object{"kind": object{"enum": Kinds()}}
	b, err := json.MarshalIndent(branch, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}

func paramSchema(p catalog.Param) object {
	doc := fmt.Sprintf("%s (%s)", p.Doc, p.Allowed())
	if p.DefaultDoc != "" {
		doc += "; default " + p.DefaultDoc
	}
	if proved := p.Proved(); proved != "" {
		doc += "; " + proved
	}
	s := object{"description": doc}
	if p.Flag {
		s["type"], s["default"] = "boolean", p.Default == 1
		return s
	}
	if p.Choices != nil {
		s["enum"], s["default"] = p.Choices, p.Text(p.Default)
		return s
	}
	s["type"] = "number"
	if p.Integer {
		s["type"] = "integer"
	}
	if !math.IsNaN(p.Default) {
		s["default"] = p.Default
	}
	if !math.IsInf(p.Lo, -1) {
		s[either(p.LoIn, "minimum", "exclusiveMinimum")] = p.Lo
	}
	if !math.IsInf(p.Hi, 1) {
		s[either(p.HiIn, "maximum", "exclusiveMaximum")] = p.Hi
	}
	return s
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
