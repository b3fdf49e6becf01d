package catalog

import "github.com/sotto-dp/sotto/bound"

// Variant is the policy with these parameters as its bounds know it. What is proved of them is for
// Unproved to say.
func (e Entry) Variant(params Params) bound.Variant {
	v := bound.Variant{Policy: e.Name, Label: e.Name}
	take := func(name string, to *float64) {
		if x, given := params[name]; given {
			*to = x
		}
	}
	switch e.Name {
	case "adap-ucb", "adap-klucb":
		take("alpha", &v.Beta)
	case "adac-ucb":
		take("beta", &v.Beta)
	case "dp-klucb", "dp-imed", "zcdp-imed":
		take("alpha", &v.Alpha)
		take("caution", &v.Caution)
	case "dp-ucb-anytime":
		take("alpha", &v.Confidence)
		v.First = int(params["first"])
	case "dp-se", "dp-se-2":
		take("beta", &v.Risk)
	case "batch-se":
		take("eta", &v.Eta)
		take("p", &v.Risk)
	case "gope", "adac-gope":
		take("risk", &v.Risk)
	case "rs-oful", "adac-oful":
		take("risk", &v.Risk)
		take("lambda", &v.Lambda)
		take("c", &v.C)
		v.Whole = params["split"] == 0
	}
	return v
}
