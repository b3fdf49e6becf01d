(* The samplers as programs in OCaml: what noise/model_test.go runs beside those in Go. Numbers are
   those of Coq, made of bits, and nothing is replaced by OCaml's own. *)

From Coq Require Import ZArith Extraction.
From Sotto Require Import Prob Bernoulli BernoulliExp Geometric Quotient DiscreteLaplace Words.

Definition word : Z := (2 * half)%Z.
Definition run_bernoulli_exp : nat -> Z -> Z -> prog bool := bernoulli_exp half found.
Definition run_geometric (fuel : nat) (num den : Z) : prog (Z * bool) :=
  geometric half last found num den fuel fuel.
Definition run_laplace (fuel : nat) (num den : Z) : prog Z :=
  laplace half last found num den fuel fuel.

Extraction Language OCaml.
Extraction "model.ml" run_bernoulli_exp run_geometric run_laplace found.
