package cli

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/cli/flags"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/logged"
)

// personFlags say whose rows are whose.
type personFlags struct {
	UserColumn  string `help:"${personUserColumn}" placeholder:"NAME" group:"Columns of --csv:"`
	SkipMissing bool   `help:"${personSkipMissing}" group:"Columns of --csv:"`

	Separator    flags.Separator `help:"${personSeparator}" placeholder:"CHAR" group:"Columns of --csv:"`
	DecimalComma bool            `help:"${personDecimalComma}" group:"Columns of --csv:"`
}

// dialect is how the file is written.
func (c personFlags) dialect() logged.Dialect {
	return logged.Dialect{Separator: string(c.Separator), DecimalComma: c.DecimalComma}
}

// columnFlags say what the columns of a log mean. Further columns are ignored.
type columnFlags struct {
	ArmColumn    string `help:"${columnArmColumn}" placeholder:"NAME" group:"Columns of --csv:"`
	RewardColumn string `help:"${columnRewardColumn}" placeholder:"NAME" group:"Columns of --csv:"`
	personFlags
}

// given says whether there is any.
func (c personFlags) given() bool { return c != personFlags{} }

func (c columnFlags) given() bool { return c != columnFlags{} }

// check refuses columns of no file.
func (c columnFlags) check(csv string) error {
	if csv == "" && c.given() {
		return usagef("--arm-column, --reward-column, --user-column and --skip-missing " +
			"are for --csv, and so are --separator and --decimal-comma")
	}
	return nil
}

// format is that of a log whose persons' rows are clipped to [lo,hi].
func (c columnFlags) format(lo, hi float64) logged.Format {
	return logged.Format{Arm: c.ArmColumn, Reward: c.RewardColumn, User: c.UserColumn, Lo: lo,
		Hi: hi, SkipMissing: c.SkipMissing, Dialect: c.dialect()}
}

// columns are what an experiment says of them.
func (c columnFlags) columns() experiment.Columns {
	return experiment.Columns{Arm: c.ArmColumn, Reward: c.RewardColumn, User: c.UserColumn,
		SkipMissing: c.SkipMissing, Dialect: c.dialect()}
}

// orderFlag says in which order real data are read.
type orderFlag struct {
	InOrder bool `help:"${orderInOrder}" group:"Columns of --csv:"`
}

// seeded is a format with the seed of a flag, the operating system's coins if there is none.
func seeded(f logged.Format, seed flags.Seed) logged.Format {
	if seed.Set {
		f.Seed = &seed.X
	}
	return f
}

// tellOf warns of what a log has that one may not expect: rows that were left out, and what their
// number is, and arms that may be one.
func tellOf(s streams, path string, log logged.Summary) {
	if log.Alike != [2]int{} {
		fmt.Fprintf(s.err, "warning: %s: the arms of lines %d and %d differ in capitals alone, and are two "+
			"arms: if they are one, write it in one way\n", path, log.Alike[0], log.Alike[1])
	}
	if log.Skipped > 0 {
		fmt.Fprintf(s.err, "warning: %s: %s of %d without a reward left out: this number is not "+
			"private, nor is whose reward is missing\n",
			path, words.Counted(log.Skipped, "row", "rows"), log.Rows)
	}
}

// dataLine says what real data were, and what one contribution to them is.
func dataLine(log logged.Summary, f logged.Format, mean string) string {
	order := "shuffled"
	if f.InOrder {
		order = "in the file's order"
	}
	if f.User == "" {
		return fmt.Sprintf("%s, %s; the guarantee is for each row: it takes every row for "+
			"another person's", words.Counted(log.Rows-log.Skipped, "row", "rows"), order)
	}
	return fmt.Sprintf("%s, %s; the guarantee is for each person, who contributes %s",
		words.Counted(log.People, "person", "people"), order, mean)
}

// logTexts are help texts that are too long for their flags.
var logTexts = kong.Vars{
	"personUserColumn": "Column of --csv that says whose a row is: all rows of a person become one " +
		"contribution, so that the guarantee is per person. Without it every row must be of " +
		"another person.",
	"personSkipMissing": "Leave out rows whose reward is missing (blank, NA, N/A, NaN, null, None), and say " +
		"how many. That number is not private, nor is whose is missing.",
	"personSeparator":    "What divides the cells of --csv: , or ; or | or tab; , if not given.",
	"personDecimalComma": "Numbers of --csv have a decimal comma: 0,5 is a half.",
	"columnArmColumn":    "Column of --csv that names the arms; arm if not given.",
	"columnRewardColumn": "Column of --csv with the rewards; reward if not given.",
	"orderInOrder": "Take the rows of --csv in their order, for data that come in order: the guarantee " +
		"then needs rows that are independent draws in that order. Else they are shuffled " +
		"within each arm.",
}
