package experiment

import (
	"encoding/json"
	"fmt"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// Schema is the JSON schema (draft 2020-12) of experiment files, for editors: of the same tables of
// keys that files are read by. Policies and their parameters come from the reader's catalog. It
// checks form: what depends on several fields, such as a budget that no policy can meet, only Resolve
// knows.
func (r Reader) Schema() ([]byte, error) {
	all := kinds()
	branch := keyed.SchemaOf(all[0].keys(r.Catalog)) // of a file that does not say
	for i := len(all) - 1; i > 0; i-- {
		branch = keyed.Object{
			"if": keyed.Object{"properties": keyed.Object{"kind": keyed.Object{"const": all[i].name()}},
				"required": []any{"kind"}},
			"then": keyed.SchemaOf(all[i].keys(r.Catalog)), "else": branch,
		}
	}
	branch["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	branch["title"], branch["type"] = "Sotto experiment", "object"
	branch["properties"] = keyed.Object{"kind": keyed.Object{"enum": Kinds()}}
	b, err := json.MarshalIndent(branch, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}
