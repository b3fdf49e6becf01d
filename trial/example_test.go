package trial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/trial"
)

// A trial on logged data, its transcript, and the check that the transcript is all there is to it.
func ExampleRun() {
	var file strings.Builder
	file.WriteString("arm,reward\n")
	for i := range 2000 {
		fmt.Fprintf(&file, "placebo,%d\nverum,%d\n", i%10/8, (i%10+8)/9) // 2 of 10, and 9 of 10
	}
	data, err := logged.Format{}.Read(strings.NewReader(file.String()))
	if err != nil {
		log.Fatal(err)
	}
	rule, err := trial.NewRule("dp-tt", len(data.Names), 0.05, privacy.Pure{Epsilon: 1}, nil)
	if err != nil {
		log.Fatal(err)
	}
	var transcript bytes.Buffer
	result, err := trial.Run(context.Background(), trial.Config{Rule: rule, Log: data, Transcript: &transcript})
	switch {
	case errors.Is(err, trial.ErrUnfinished):
		log.Fatal("no answer: ", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("the best arm is", data.Names[result.Answer])
	fmt.Println("within the budget:", result.Loss.Within(privacy.Pure{Epsilon: 1}))

	again, err := trial.Replay(&transcript)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("replayed:", again.Names[again.Answer], again.Tau == result.Tau)
	// Output:
	// the best arm is verum
	// within the budget: true
	// replayed: verum true
}

// How often is AdaP-TT wrong, and how many plays does it take?
func ExampleSimulation_Run() {
	arms, err := bandit.BernoulliInstance(0.9, 0.5, 0.4)
	if err != nil {
		log.Fatal(err)
	}
	rule, err := trial.NewRule("adap-tt", 3, 0.05, privacy.Pure{Epsilon: 1}, nil)
	if err != nil {
		log.Fatal(err)
	}
	study, err := trial.Simulation{Rule: rule, Source: bandit.Fixed(arms), Runs: 100,
		Seed: 1}.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("wrong: %d of 100, at most %.3f with confidence\n", study.Wrong, study.WrongHi)
	fmt.Println("more plays than the lower bound:", study.TauMean > study.LowerMean)
	// Output:
	// wrong: 0 of 100, at most 0.036 with confidence
	// more plays than the lower bound: true
}

// How many participants will a trial of three doses need?
func ExamplePlanConfig_Plan() {
	plan, err := trial.PlanConfig{Arms: 3, Gap: 0.4, Risk: 0.05, Epsilons: []float64{0.1, 1},
		Runs: 50, Seed: 1}.Plan(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range plan.Rows {
		fmt.Printf("ε = %v: at least %.0f for any rule; %s takes up to %.0f in nine of ten trials\n",
			row.Epsilon, row.Lower, plan.Rule.Name(), row.Q90)
	}
	// Output:
	// ε = 0.1: at least 199 for any rule; dp-sed takes up to 1860 in nine of ten trials
	// ε = 1: at least 47 for any rule; dp-sed takes up to 366 in nine of ten trials
}
