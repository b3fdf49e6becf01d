package policy

import (
	"fmt"
	"math"
)

func checkArms(arms int) error {
	if arms < 2 {
		return fmt.Errorf("arms is %d, must be at least 2: with one arm there is nothing to learn", arms)
	}
	return nil
}

// checkPositive allows +Inf where infinite says so.
func checkPositive(name string, x float64, infinite bool) error {
	if !(x > 0) || !infinite && math.IsInf(x, 1) {
		allowed := "finite and above 0"
		if infinite {
			allowed = "above 0"
		}
		return fmt.Errorf("%s is %v, must be %s", name, x, allowed)
	}
	return nil
}

func checkEpisodic(arms int, epsilon float64, name string, x float64) error {
	if err := checkArms(arms); err != nil {
		return err
	}
	if err := checkPositive("epsilon", epsilon, true); err != nil {
		return err
	}
	return checkPositive(name, x, false)
}

func checkHorizon(horizon, arms int) error {
	if horizon < arms {
		return fmt.Errorf("horizon is %d, must be at least the number of arms, %d", horizon, arms)
	}
	return nil
}

// checkRisk is for the probability of failure that a confidence radius is built for.
func checkRisk(name string, x float64) error {
	if !(x > 0 && x < 1) {
		return fmt.Errorf("%s is %v, must be above 0 and below 1", name, x)
	}
	return nil
}

// checkRatio is for the ratio by which batches grow.
func checkRatio(name string, x float64) error {
	if !(x > 1 && x <= math.MaxFloat64) {
		return fmt.Errorf("%s is %v, must be finite and above 1", name, x)
	}
	return nil
}

// checkFirst is for an arm's first batch.
func checkFirst(first int) error {
	if first < 1 {
		return fmt.Errorf("first is %d, must be at least 1", first)
	}
	return nil
}
