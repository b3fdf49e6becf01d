package bandit

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReadCSV reads logged rewards with the header arm,reward and one row a reward. It returns the instance whose arms draw from
// their logged rewards, and the arms' names. If all names are integers the arms are in their order; else in the order in which they first
// appear.
//
// It is strict: an arm is a name of at most 200 bytes without spaces around it, a reward a finite decimal number, and there are at least
// two arms. An error names the line, the column and the value. The log is streamed: memory grows with the number of distinct rewards
// of each arm, not with the number of rows. A byte order mark, Windows line ends and empty lines are accepted.
func ReadCSV(r io.Reader) (Instance, []string, error) {
	in, names, err := readCSV(r)
	if err != nil {
		return Instance{}, nil, fmt.Errorf("rewards: %w", err)
	}
	return in, names, nil
}

const maxName = 200

func readCSV(r io.Reader) (Instance, []string, error) {
	var counts []map[float64]int
	names, order, err := scanCSV(r, func(a int, x float64) {
		if a == len(counts) {
			counts = append(counts, map[float64]int{})
		}
		counts[a][x]++
	})
	if err != nil {
		return Instance{}, nil, err
	}
	arms, sorted := make([]Law, len(order)), make([]string, len(order))
	for i, a := range order {
		l, err := NewEmpirical(counts[a])
		if err != nil {
			return Instance{}, nil, fmt.Errorf("arm %q: %w", names[a], err)
		}
		arms[i], sorted[i] = l, names[a]
	}
	in, err := NewInstance(arms...)
	return in, sorted, err
}

// ReadLog reads the same files as ReadCSV, as strictly, and keeps every reward: rewards[a] are those of arm names[a], in the order of
// the file. Memory grows with the number of rows, eight bytes each.
func ReadLog(r io.Reader) (names []string, rewards [][]float64, err error) {
	var found [][]float64
	all, order, err := scanCSV(r, func(a int, x float64) {
		if a == len(found) {
			found = append(found, nil)
		}
		found[a] = append(found[a], x)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("rewards: %w", err)
	}
	names, rewards = make([]string, len(order)), make([][]float64, len(order))
	for i, a := range order {
		names[i], rewards[i] = all[a], found[a]
	}
	return names, rewards, nil
}

// scanCSV calls add for every row; arms are numbered in the order in which they first appear, and order is the one to show them in.
func scanCSV(r io.Reader, add func(arm int, reward float64)) (names []string, order []int, err error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	rows.FieldsPerRecord = -1 // counted below: with a better message
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the file is empty: want the header arm,reward")
	}
	if err != nil {
		return nil, nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	if !slices.Equal(header, []string{"arm", "reward"}) {
		return nil, nil, fmt.Errorf("line 1: the header is %q: want arm,reward", strings.Join(header, ","))
	}

	index := map[string]int{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err // it names the line
		}
		line, _ := rows.FieldPos(0)
		if len(row) != 2 {
			return nil, nil, fmt.Errorf("line %d: the row %q has %d fields: want 2 (arm,reward)", line, strings.Join(row, ","), len(row))
		}
		a, known := index[row[0]]
		if !known {
			if err := checkName(row[0]); err != nil {
				return nil, nil, fmt.Errorf("line %d, column arm: the value %q %w", line, row[0], err)
			}
			a = len(names)
			name := strings.Clone(row[0]) // or it would keep the whole row
			index[name] = a
			names = append(names, name)
		}
		x, err := parseNumber(row[1])
		if err != nil || !(math.Abs(x) <= MaxAbs) {
			line, _ := rows.FieldPos(1)
			return nil, nil, fmt.Errorf("line %d, column reward: the value %q must be a finite decimal number, at most %v in absolute value",
				line, row[1], MaxAbs)
		}
		add(a, unsigned(x))
	}
	switch len(names) {
	case 0:
		return nil, nil, errors.New("there is a header but no rewards: want at least one for each of two arms")
	case 1:
		return nil, nil, fmt.Errorf("column arm: all rewards are of one arm, %q: want at least 2 arms", names[0])
	}
	order, err = armOrder(names)
	return names, order, err
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("must not be empty")
	case len(name) > maxName:
		return fmt.Errorf("must be at most %d bytes long", maxName)
	case !utf8.ValidString(name):
		return errors.New("must be UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("must have no spaces around it")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("must have no control characters")
	}
	return nil
}

// armOrder is the order of the arms: by number if every name is an integer, else as they came.
func armOrder(names []string) ([]int, error) {
	order := make([]int, len(names))
	number := make([]int64, len(names))
	integers := true
	for i, name := range names {
		order[i] = i
		x, err := strconv.ParseInt(name, 10, 64)
		number[i], integers = x, integers && err == nil
	}
	if !integers {
		return order, nil
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(number[a], number[b]) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; number[a] == number[b] {
			return nil, fmt.Errorf("column arm: %q and %q are the same number: write an arm in one way", names[a], names[b])
		}
	}
	return order, nil
}
