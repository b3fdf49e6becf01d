(* The samplers as programs in OCaml: what noise/model_test.go runs beside those in Go. Their numbers
   are zarith's, by the mapping of Coq's standard library. *)

From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Sotto Require Import Prob Bernoulli BernoulliExp Geometric Quotient DiscreteLaplace Words.

Definition run_bernoulli_exp : nat -> Z -> Z -> prog bool := bernoulli_exp half found.
Definition run_geometric (fuel : nat) (num den : Z) : prog (Z * bool) :=
  geometric half last found num den fuel fuel.
Definition run_laplace (fuel : nat) (num den : Z) : prog Z :=
  laplace half last found num den fuel fuel.

Extraction Language OCaml.
Extraction "model.ml" run_bernoulli_exp run_geometric run_laplace found.
