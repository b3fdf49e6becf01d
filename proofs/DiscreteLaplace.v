(* Geometric and DiscreteLaplace: their laws, and what the latter is worth as noise. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp Prob Bernoulli BernoulliExp Geometric Quotient.
Local Open Scope R_scope.

(* The law of scale num/den: (1−β)/(1+β)·β^|z| with β = exp(−den/num). *)
Definition beta (num den : Z) : R := exp (- (IZR den / IZR num)).
Definition laplace_mass (num den z : Z) : R :=
  (1 - beta num den) / (1 + beta num den) * exp (- (IZR (Z.abs z * den) / IZR num)).

Section DiscreteLaplace.

Variable H : Z.
Hypothesis H_pos : (1 <= H)%Z.
Notation W := (2 * H)%Z.
Notation E := (E W).

Variable last : nat.
Hypothesis last_pos : (1 <= last)%nat.
Variable dig : nat -> nat -> Z.
Hypothesis dig_floor : forall k j, (1 <= k <= last)%nat ->
  IZR (dig k j) <= scaled H k j < IZR (dig k j) + 1.
Hypothesis dig_falls : forall k, (1 <= k)%nat -> (k < last)%nat -> (dig (S k) 0 < dig k 0)%Z.

Variables num den : Z.
Hypothesis num_range : (1 <= num <= W)%Z.
Hypothesis den_pos : (1 <= den)%Z.

Lemma two : (2 <= W)%Z. Proof. lia. Qed.
Local Hint Resolve two : core.

Notation root := (root num).
Notation remainder := (remainder W num).
Notation standard := (standard H last dig).

(* U has the remainder of X and V the quotient; what is returned is X/den, and a fair coin. *)
Definition geometric (fuel m : nat) : prog (Z * bool) :=
  bind (remainder fuel m) (fun u =>
    bind (standard fuel m) (fun vc => Ret ((u + num * Z.of_nat (fst vc)) / den, snd vc)%Z)).

Definition both (y : Z) (c : bool) (a : Z * bool) : R := ind (fst a =? y)%Z * ind (Bool.eqb (snd a) c).

Lemma root_num_nat : forall v, root (num * v) = exp (- IZR v).
Proof. intros. apply (root_num W num num_range). Qed.

(* Given u, the values v that lead to y are among the first (y+1)·den. *)
Lemma inner_sum : forall n u y c, (0 <= u)%Z -> (0 <= y)%Z ->
  E (standard n n) (fun vc => both y c ((u + num * Z.of_nat (fst vc)) / den, snd vc)%Z) =
  sum (Z.to_nat ((y + 1) * den)) (fun v =>
    ind ((u + num * v) / den =? y)%Z * E (standard n n) (pair (Z.to_nat v) c)).
Proof.
  intros n u y c Hu Hy.
  rewrite (sum_ext _ _ (fun v => E (standard n n) (fun vc =>
    ind ((u + num * v) / den =? y)%Z * pair (Z.to_nat v) c vc))) by (intros; now rewrite E_scal).
  rewrite <- E_sum. apply E_ext. intros (v & b). unfold both, pair, eqn; cbn [fst snd].
  set (n0 := Z.to_nat ((y + 1) * den)).
  destruct (Z_lt_le_dec (Z.of_nat v) (Z.of_nat n0)) as [L|L].
  - rewrite (sum_ext _ _ (fun i => ind (i =? Z.of_nat v)%Z *
      (ind ((u + num * i) / den =? y)%Z * ind (Bool.eqb b c)))).
    + now rewrite sum_one by lia.
    + intros i Hi. destruct (Z.eqb_spec i (Z.of_nat v)) as [->|N].
      * rewrite Nat2Z.id, Nat.eqb_refl. cbn [ind]. ring.
      * rewrite (proj2 (Nat.eqb_neq _ _)) by lia. cbn [ind]. ring.
  - rewrite sum_zero.
    + assert (Q : (y + 1 <= (u + num * Z.of_nat v) / den)%Z).
      { apply Z.div_le_lower_bound; [lia|]. unfold n0 in L. nia. }
      rewrite (proj2 (Z.eqb_neq _ _)) by lia. cbn [ind]. ring.
    + intros i Hi. rewrite (proj2 (Nat.eqb_neq _ _)) by lia. cbn [ind]. ring.
Qed.

Lemma outer_sum : forall n y c,
  E (geometric n n) (both y c) =
  sum (Z.to_nat num) (fun u => E (remainder n n) (fun x => ind (x =? u)%Z) *
    E (standard n n) (fun vc => both y c ((u + num * Z.of_nat (fst vc)) / den, snd vc)%Z)).
Proof.
  intros n y c. unfold geometric. rewrite E_bind, remainder_sum by auto.
  apply sum_ext. intros u Hu. f_equal. rewrite E_bind. reflexivity.
Qed.

Lemma quotients : forall v, exp (- INR (Z.to_nat v)) - exp (- INR (S (Z.to_nat v))) =
  exp (- INR (Z.to_nat v)) * (1 - exp (-1)).
Proof.
  intros v. rewrite S_INR. rewrite Ropp_plus_distr, exp_plus.
  replace (- (1)) with (-1) by ring. ring.
Qed.

(* P(Y = y, coin) = (1−β)·β^y/2. *)
Lemma geometric_law : forall y c, (0 <= y)%Z ->
  Un_cv (fun n => E (geometric n n) (both y c))
    ((1 - beta num den) * exp (- (IZR (y * den) / IZR num)) / 2).
Proof.
  intros y c Hy. set (K := Z.to_nat ((y + 1) * den)).
  pose proof (norm_pos W num num_range) as NP. pose proof (norm_spec W num num_range) as NS.
  pose proof (num_pos W num num_range) as NM.
  apply cv_ext with (u := fun n => sum (Z.to_nat num) (fun u =>
    E (remainder n n) (fun x => ind (x =? u)%Z) *
    sum K (fun v => ind ((u + num * v) / den =? y)%Z * E (standard n n) (pair (Z.to_nat v) c)))).
  { intros n. rewrite outer_sum. apply sum_ext. intros u Hu. now rewrite inner_sum by lia. }
  replace ((1 - beta num den) * exp (- (IZR (y * den) / IZR num)) / 2) with
    (sum (Z.to_nat num) (fun u => root u / norm num *
      sum K (fun v => ind ((u + num * v) / den =? y)%Z *
        ((exp (- INR (Z.to_nat v)) - exp (- INR (S (Z.to_nat v)))) / 2)))).
  - apply sum_cv. intros u Hu. apply CV_mult; [apply remainder_law; auto; lia|].
    apply sum_cv. intros v Hv. apply CV_mult; [apply constant_cv|].
    now apply standard_law.
  - transitivity (sum (K * Z.to_nat num) (fun x =>
      ind ((y * den <=? x) && (x <? (y + 1) * den))%Z * (root x - root (x + 1)%Z)) / 2).
    + rewrite sum_blocks. rewrite sum_swap. unfold Rdiv. rewrite Rmult_comm, <- sum_scal.
      apply sum_ext. intros u Hu.
      rewrite <- !sum_scal. apply sum_ext. intros v Hv.
      rewrite Z2Nat.id by lia. rewrite quotients. rewrite INR_IZR_INZ, Z2Nat.id by lia.
      rewrite <- root_num_nat, <- NS, !(root_plus W num num_range).
      replace (ind ((u + num * v) / den =? y)%Z)
        with (ind ((y * den <=? u + num * v) && (u + num * v <? (y + 1) * den))%Z).
      * field. lra.
      * f_equal. pose proof (Z.div_mod (u + num * v) den ltac:(lia)) as D.
        pose proof (Z.mod_pos_bound (u + num * v) den ltac:(lia)) as B.
        set (q := ((u + num * v) / den)%Z) in *.
        destruct (Z.eqb_spec q y) as [->|N].
        -- rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by nia. reflexivity.
        -- destruct (Z_lt_le_dec q y).
           ++ rewrite (proj2 (Z.leb_gt _ _)) by nia. reflexivity.
           ++ rewrite (proj2 (Z.ltb_ge _ _)) by nia. apply andb_false_r.
    + rewrite telescope.
      * replace ((y + 1) * den)%Z with (y * den + den)%Z by lia.
        rewrite (root_plus W num num_range). unfold root, beta, Rdiv. ring.
      * nia.
      * unfold K. rewrite Nat2Z.inj_mul, !Z2Nat.id by nia. nia.
Qed.

Lemma geometric_nonneg : forall y c, (y < 0)%Z ->
  forall n, E (geometric n n) (both y c) = 0.
Proof.
  intros y c Hy n. rewrite outer_sum. apply sum_zero. intros u Hu.
  rewrite (E_ext _ _ (standard n n) _ (fun _ => 0)).
  - rewrite E_zero. ring.
  - intros (v & b). unfold both; cbn [fst snd].
    assert (Q : (0 <= (u + num * Z.of_nat v) / den)%Z) by (apply Z.div_pos; lia).
    rewrite (proj2 (Z.eqb_neq _ _)) by lia. cbn [ind]. ring.
Qed.

(* The coin is the sign; of 0 and minus the draw begins again. *)
Fixpoint laplace (fuel m : nat) : prog Z :=
  match fuel with
  | O => Fail
  | S fuel => bind (geometric m m) (fun xs =>
      if snd xs then (if (fst xs =? 0)%Z then laplace fuel m else Ret (- fst xs)%Z)
      else Ret (fst xs))
  end.

Definition mass_of_half (m : nat) (z : Z) : R :=
  if (z <? 0)%Z then E (geometric m m) (both (- z) true)
  else E (geometric m m) (both z false).

Lemma laplace_S : forall z fuel m,
  E (laplace (S fuel) m) (fun x => ind (x =? z)%Z) =
  mass_of_half m z + E (geometric m m) (both 0 true) * E (laplace fuel m) (fun x => ind (x =? z)%Z).
Proof.
  intros z fuel m. cbn [laplace]. rewrite E_bind.
  set (C := E (laplace fuel m) (fun x => ind (x =? z)%Z)).
  assert (D : E (geometric m m) (both z false) + E (geometric m m) (both (- z) true) *
    ind (negb (z =? 0)%Z) = mass_of_half m z).
  { unfold mass_of_half. destruct (Z.ltb_spec z 0) as [L|L].
    - rewrite geometric_nonneg by lia. rewrite (proj2 (Z.eqb_neq _ _)) by lia. cbn [negb ind]. ring.
    - destruct (Z.eqb_spec z 0) as [->|N]; cbn [negb ind]; [ring|].
      rewrite (geometric_nonneg (- z)) by lia. ring. }
  rewrite <- D. clear D.
  rewrite (E_ext _ _ _ _ (fun a => (both z false a + ind (negb (z =? 0)%Z) * both (- z) true a) +
    C * both 0 true a)).
  - rewrite !E_plus, !E_scal. ring.
  - intros (x & s). unfold both; cbn [fst snd]. destruct s; cbn [Bool.eqb ind].
    + destruct (Z.eqb_spec x 0) as [->|N].
      * fold C. cbn [ind]. destruct (Z.eqb_spec z 0) as [->|Nz]; cbn [negb ind]; [ring|].
        rewrite (proj2 (Z.eqb_neq 0 (- z))) by lia. cbn [ind]. ring.
      * cbn [Prob.E ind]. destruct (Z.eqb_spec (- x) z) as [Ez|Nz].
        -- rewrite (proj2 (Z.eqb_neq z 0)), (proj2 (Z.eqb_eq x (- z))) by lia. cbn. ring.
        -- rewrite (proj2 (Z.eqb_neq x (- z))) by lia. cbn. ring.
    + cbn [Prob.E]. ring.
Qed.

Lemma beta_range : 0 < beta num den < 1.
Proof.
  unfold beta. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_lt.
  assert (0 < IZR den / IZR num); [|lra].
  apply Rmult_lt_0_compat; [apply IZR_lt; lia | apply Rinv_0_lt_compat, IZR_lt; lia].
Qed.

(* CKS Algorithm 2. *)
Lemma laplace_law : forall z,
  Un_cv (fun n => E (laplace n n) (fun x => ind (x =? z)%Z)) (laplace_mass num den z).
Proof.
  intros z. pose proof beta_range as B. set (b := beta num den) in *.
  replace (laplace_mass num den z) with
    ((1 - b) * exp (- (IZR (Z.abs z * den) / IZR num)) / 2 / (1 - (1 - b) / 2)).
  - apply rejection_cv with (e := fun k m => E (laplace k m) (fun x => ind (x =? z)%Z))
      (a := fun m => mass_of_half m z) (r := fun m => E (geometric m m) (both 0 true)).
    + reflexivity.
    + intros k m. apply laplace_S.
    + intros k m. apply E_range; [auto|]. intros. apply ind_range.
    + intros m. apply E_range; [auto|]. intros (x & s). unfold both. cbn [fst snd].
      pose proof (ind_range (x =? 0)%Z). pose proof (ind_range (Bool.eqb s true)). nra.
    + unfold mass_of_half. destruct (Z.ltb_spec z 0) as [L|L].
      * rewrite Z.abs_neq by lia. apply geometric_law. lia.
      * rewrite Z.abs_eq by lia. apply geometric_law. lia.
    + pose proof (geometric_law 0 true ltac:(lia)) as G. fold b in G.
      rewrite Z.mul_0_l in G. unfold Rdiv at 2 in G. rewrite Rmult_0_l, Ropp_0, exp_0, Rmult_1_r in G.
      exact G.
    + lra.
  - unfold laplace_mass. fold b. field. lra.
Qed.

End DiscreteLaplace.

(* The masses add up to 1, so that a draw ends with probability 1: what is beyond n on either side
   is 2β^{n+1}/(1+β), as noise.DiscreteLaplaceTail has it. *)
Section Mass.

Variables num den : Z.
Hypothesis num_pos : (1 <= num)%Z.
Hypothesis den_pos : (1 <= den)%Z.

Lemma beta_01 : 0 < beta num den < 1.
Proof.
  unfold beta. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_lt.
  assert (0 < IZR den / IZR num); [|lra].
  apply Rmult_lt_0_compat; [apply IZR_lt; lia | apply Rinv_0_lt_compat, IZR_lt; lia].
Qed.

Lemma laplace_mass_nat : forall z, laplace_mass num den z =
  (1 - beta num den) / (1 + beta num den) * beta num den ^ Z.to_nat (Z.abs z).
Proof.
  intros z. unfold laplace_mass. f_equal. unfold beta. rewrite exp_pow. f_equal.
  rewrite INR_IZR_INZ, Z2Nat.id, mult_IZR by lia. field. apply not_0_IZR. lia.
Qed.

Theorem laplace_tail : forall n,
  laplace_mass num den 0 + sum n (fun z => laplace_mass num den (z + 1) + laplace_mass num den (- (z + 1))) =
  1 - 2 * beta num den ^ S n / (1 + beta num den).
Proof.
  pose proof beta_01 as B. induction n as [|n IH].
  - cbn [sum]. rewrite laplace_mass_nat. cbn. field. lra.
  - cbn [sum]. rewrite <- Rplus_assoc, IH, !laplace_mass_nat, Z.abs_opp.
    replace (Z.to_nat (Z.abs (Z.of_nat n + 1))) with (S n) by lia. cbn [pow]. field. lra.
Qed.

Theorem laplace_total :
  Un_cv (fun n => laplace_mass num den 0 +
    sum n (fun z => laplace_mass num den (z + 1) + laplace_mass num den (- (z + 1)))) 1.
Proof.
  pose proof beta_01 as B. set (b := beta num den) in *.
  apply cv_ext with (u := fun n => 1 - 2 * b / (1 + b) * b ^ n).
  - intros n. rewrite laplace_tail. fold b. cbn [pow]. field. lra.
  - replace 1 with (1 - 2 * b / (1 + b) * 0) at 1 by ring.
    apply CV_minus; [apply constant_cv|]. apply CV_mult; [apply constant_cv|].
    intros e He. destruct (pow_lt_1_zero b ltac:(rewrite Rabs_right; lra) e He) as (N & HN).
    exists N. intros n Hn. unfold R_dist. rewrite Rminus_0_r. now apply HN.
Qed.

(* As noise: sums that differ by s at most are s/t-DP, with t = num/den. *)
Theorem laplace_dp : forall s q q' y, (Z.abs (q - q') <= s)%Z ->
  laplace_mass num den (y - q) <= exp (IZR (s * den) / IZR num) * laplace_mass num den (y - q').
Proof.
  intros s q q' y D. pose proof beta_01 as B. unfold laplace_mass.
  rewrite (Rmult_comm (exp (IZR (s * den) / IZR num))), Rmult_assoc.
  apply Rmult_le_compat_l.
  - apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
  - rewrite <- exp_plus. apply exp_le.
    assert (N : 0 < IZR num) by (apply IZR_lt; lia).
    apply Rmult_le_reg_r with (IZR num); [exact N|].
    replace (- (IZR (Z.abs (y - q) * den) / IZR num) * IZR num) with (- IZR (Z.abs (y - q) * den)) by (field; lra).
    replace ((- (IZR (Z.abs (y - q') * den) / IZR num) + IZR (s * den) / IZR num) * IZR num)
      with (- IZR (Z.abs (y - q') * den) + IZR (s * den)) by (field; lra).
    rewrite <- !opp_IZR, <- plus_IZR. apply IZR_le. nia.
Qed.

End Mass.
