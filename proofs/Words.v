(* The samplers with the words of Go, of 64 bits, and with the table of prefixes of noise. *)

From Coq Require Import Reals ZArith Bool Lia Lra List.
From Sotto Require Import Exp Prob Bernoulli BernoulliExp Geometric Quotient DiscreteLaplace.
Import ListNotations.
Local Open Scope R_scope.

(* Bounds of e^{-1}: partial sums of its series are alternately above and below. Their numerators: *)
Fixpoint numerator (n : nat) : Z :=
  match n with
  | O => 1
  | S m => numerator m * Z.of_nat n + (if Nat.even n then 1 else -1)
  end%Z.

Fixpoint factorial (n : nat) : Z :=
  match n with O => 1 | S m => factorial m * Z.of_nat n end%Z.

Lemma factorial_fact : forall n, IZR (factorial n) = INR (fact n).
Proof.
  induction n as [|n IH]; [reflexivity|].
  change (fact (S n)) with (S n * fact n)%nat. cbn [factorial].
  rewrite mult_IZR, mult_INR, IH, <- INR_IZR_INZ. ring.
Qed.

Lemma factorial_pos : forall n, (0 < factorial n)%Z.
Proof. intros n. apply lt_IZR. rewrite factorial_fact. apply INR_fact_lt_0. Qed.

Definition partial (n : nat) : R := sum_f_R0 (fun i => / INR (fact i) * (-1) ^ i) n.

Lemma partial_numerator : forall n, partial n = IZR (numerator n) / IZR (factorial n).
Proof.
  induction n as [|n IH]; [unfold partial; cbn; field|].
  unfold partial in *. rewrite tech5, IH. cbn [numerator factorial].
  rewrite plus_IZR, !mult_IZR, minus_one.
  replace (INR (fact (S n))) with (IZR (factorial (S n))) by apply factorial_fact.
  cbn [factorial]. rewrite mult_IZR.
  assert (A : IZR (factorial n) <> 0) by (pose proof (factorial_pos n); apply not_0_IZR; lia).
  assert (B : IZR (Z.of_nat (S n)) <> 0) by (apply not_0_IZR; lia).
  destruct (Nat.even (S n)); cbn [IZR]; field; now split.
Qed.

Lemma partial_two : forall n, partial (n + 2) - partial n =
  (if Nat.even n then -1 else 1) * (/ INR (fact (S n)) - / INR (fact (S (S n)))).
Proof.
  intros n. replace (n + 2)%nat with (S (S n)) by lia. unfold partial.
  rewrite !tech5, !minus_one. change (Nat.even (S (S n))) with (Nat.even n).
  rewrite Nat.even_succ, <- Nat.negb_even. destruct (Nat.even n); cbn [negb]; ring.
Qed.

Lemma fact_falls : forall n, 0 <= / INR (fact n) - / INR (fact (S n)).
Proof.
  intros n. assert (/ INR (fact (S n)) <= / INR (fact n)); [|lra].
  apply Rinv_le_contravar; [apply INR_fact_lt_0|]. apply le_INR. apply fact_le. lia.
Qed.

Lemma partial_cv : Un_cv partial (exp (-1)).
Proof. exact (exp_series (-1)). Qed.

Lemma cv_sub : forall n, Un_cv (fun i => partial (n + 2 * i)) (exp (-1)).
Proof.
  intros n e He. destruct (partial_cv e He) as (N & HN). exists N. intros i Hi. apply HN. lia.
Qed.

Lemma partial_above : forall n, Nat.even n = true -> exp (-1) <= partial n.
Proof.
  intros n En. apply cv_le with (u := fun i => partial (n + 2 * i)) (v := fun _ => partial n);
    [|apply cv_sub | apply constant_cv].
  intros i. induction i as [|i IH]; [rewrite Nat.mul_0_r, Nat.add_0_r; lra|].
  pose proof (partial_two (n + 2 * i)) as T. replace (n + 2 * S i)%nat with (n + 2 * i + 2)%nat by lia.
  rewrite Nat.even_add_mul_2, En in T. pose proof (fact_falls (S (n + 2 * i))). lra.
Qed.

Lemma partial_below : forall n, Nat.even n = false -> partial n <= exp (-1).
Proof.
  intros n En. apply cv_le with (v := fun i => partial (n + 2 * i)) (u := fun _ => partial n);
    [|apply constant_cv | apply cv_sub].
  intros i. induction i as [|i IH]; [rewrite Nat.mul_0_r, Nat.add_0_r; lra|].
  pose proof (partial_two (n + 2 * i)) as T. replace (n + 2 * S i)%nat with (n + 2 * i + 2)%nat by lia.
  rewrite Nat.even_add_mul_2, En in T. pose proof (fact_falls (S (n + 2 * i))). lra.
Qed.

(* ⌊e^{-k}·2^bits⌋, where the bounds of 2·terms terms decide it. *)
Definition digits (terms k : nat) (bits : Z) : option Z :=
  let n := (2 * terms)%nat in
  let at_ m := (numerator m ^ Z.of_nat k * 2 ^ bits / factorial m ^ Z.of_nat k)%Z in
  if (0 <=? numerator (S n))%Z && (at_ (S n) =? at_ n)%Z then Some (at_ n) else None.

Lemma pow_le_compat : forall x y k, 0 <= x <= y -> x ^ k <= y ^ k.
Proof. intros x y k Hxy. now apply pow_incr. Qed.

Lemma digits_right : forall terms k bits z, (0 <= bits)%Z -> digits terms k bits = Some z ->
  IZR z <= exp (- INR k) * IZR (2 ^ bits) < IZR z + 1.
Proof.
  intros terms k bits z Hb D. unfold digits in D. set (n := (2 * terms)%nat) in *.
  destruct (Z.leb_spec 0 (numerator (S n))) as [P|P]; [|discriminate].
  cbn [andb] in D.
  set (lo := (numerator (S n) ^ Z.of_nat k * 2 ^ bits / factorial (S n) ^ Z.of_nat k)%Z) in *.
  set (hi := (numerator n ^ Z.of_nat k * 2 ^ bits / factorial n ^ Z.of_nat k)%Z) in *.
  destruct (Z.eqb_spec lo hi) as [Q|Q]; [|discriminate]. inversion D as [Dz]. clear D. subst z.
  assert (En : Nat.even n = true) by (unfold n; now rewrite Nat.even_mul).
  assert (Es : Nat.even (S n) = false) by (rewrite Nat.even_succ, <- Nat.negb_even, En; reflexivity).
  pose proof (partial_above n En) as U. pose proof (partial_below (S n) Es) as L.
  rewrite partial_numerator in U, L.
  pose proof (factorial_pos n) as Fn. pose proof (factorial_pos (S n)) as Fs.
  assert (X : exp (- INR k) = exp (-1) ^ k).
  { rewrite exp_pow. f_equal. ring. }
  assert (T : 0 < IZR (2 ^ bits)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  assert (V : forall m, (0 < factorial m)%Z -> (IZR (numerator m) / IZR (factorial m)) ^ k =
    IZR (numerator m ^ Z.of_nat k) / IZR (factorial m ^ Z.of_nat k)).
  { intros m Fm. unfold Rdiv. rewrite Rpow_mult_distr, <- !pow_IZR, pow_inv. reflexivity. }
  pose proof (exp_pos (-1)) as E0.
  assert (A : 0 <= IZR (numerator (S n)) / IZR (factorial (S n))).
  { apply Rmult_le_pos; [now apply IZR_le | left; apply Rinv_0_lt_compat; now apply IZR_lt]. }
  rewrite X. split.
  - rewrite <- Q.
    apply Rle_trans with ((IZR (numerator (S n)) / IZR (factorial (S n))) ^ k * IZR (2 ^ bits)).
    + rewrite V by assumption.
      assert (G : 0 < IZR (factorial (S n) ^ Z.of_nat k)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
      apply Rmult_le_reg_r with (IZR (factorial (S n) ^ Z.of_nat k)); [exact G|].
      replace (IZR (numerator (S n) ^ Z.of_nat k) / IZR (factorial (S n) ^ Z.of_nat k) * IZR (2 ^ bits) *
        IZR (factorial (S n) ^ Z.of_nat k)) with (IZR (numerator (S n) ^ Z.of_nat k * 2 ^ bits)).
      2:{ rewrite mult_IZR. field. lra. }
      rewrite <- mult_IZR. apply IZR_le. rewrite Z.mul_comm. apply Z.mul_div_le.
      apply Z.pow_pos_nonneg; lia.
    + apply Rmult_le_compat_r; [lra|]. apply pow_le_compat. lra.
  - apply Rle_lt_trans with ((IZR (numerator n) / IZR (factorial n)) ^ k * IZR (2 ^ bits)).
    + apply Rmult_le_compat_r; [lra|]. apply pow_le_compat. lra.
    + rewrite V by assumption.
      assert (G : 0 < IZR (factorial n ^ Z.of_nat k)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
      apply Rmult_lt_reg_r with (IZR (factorial n ^ Z.of_nat k)); [exact G|].
      replace (IZR (numerator n ^ Z.of_nat k) / IZR (factorial n ^ Z.of_nat k) * IZR (2 ^ bits) *
        IZR (factorial n ^ Z.of_nat k)) with (IZR (numerator n ^ Z.of_nat k * 2 ^ bits)).
      2:{ rewrite mult_IZR. field. lra. }
      rewrite <- plus_IZR, <- mult_IZR. apply IZR_lt.
      pose proof (Z.mul_succ_div_gt (numerator n ^ Z.of_nat k * 2 ^ bits) (factorial n ^ Z.of_nat k)) as S.
      rewrite (Z.mul_comm (hi + 1)). unfold hi. rewrite Z.add_1_r. apply S. apply Z.pow_pos_nonneg; lia.
Qed.

(* The table of noise/bernoulli_exp.go. *)
Definition prefixes : list Z := [
  0x2f16ac6c59de6f8d;
  0x1152aaa3bf81cb9f;
  0x65f6c3333ac2bb2;
  0x2582ab704279e8e;
  0xdcc9ff006a9bb0;
  0x513947c44f5357;
  0x1de16b9c24a98e;
  0x0afe10820813d6;
  0x040b3c89499516;
  0x017cd79b5647c9;
  0x008c1aa11c7b3b;
  0x00338a98768779;
  0x0012f6053b981d;
  0x0006f9b1bf6c05;
  0x000290eb9444fd;
  0x0000f1aaddd774;
  0x000058e78c5d69;
  0x000020b4c518d3;
  0x00000c082b7f96;
  0x0000046d21957c;
  0x000001a0db0d0d;
  0x000000995a45f8;
  0x000000386a4fc8;
  0x00000014c1078f;
  0x00000007a28de9;
  0x00000002cf0a54;
  0x00000001088529;
  0x00000000614fc0;
  0x0000000023cc85;
  0x000000000d2b70]%Z.

Definition last : nat := 30.
Definition prefix (k : nat) : Z := nth (k - 1) prefixes 0%Z.
Definition half : Z := (2 ^ 63)%Z.

(* The digits as they are. *)
Definition floor (k j : nat) : Z := Int_part (scaled half k j).

Lemma floor_spec : forall k j, IZR (floor k j) <= scaled half k j < IZR (floor k j) + 1.
Proof. intros k j. unfold floor. pose proof (base_Int_part (scaled half k j)). lra. Qed.

Lemma floor_unique : forall a b x, IZR a <= x < IZR a + 1 -> IZR b <= x < IZR b + 1 -> a = b.
Proof.
  intros a b x A B. assert (a < b + 1)%Z by (apply lt_IZR; rewrite plus_IZR; lra).
  assert (b < a + 1)%Z by (apply lt_IZR; rewrite plus_IZR; lra). lia.
Qed.

Lemma scaled_bits : forall k j,
  scaled half k j = exp (- INR k) * IZR (2 ^ (63 + 64 * Z.of_nat j)).
Proof.
  intros k j. unfold scaled. rewrite Z.pow_add_r, Z.pow_mul_r, (mult_IZR (2 ^ 63)) by lia.
  rewrite <- (pow_IZR (2 ^ 64)). reflexivity.
Qed.

Lemma digits_are_floor : forall terms k j z,
  digits terms k (63 + 64 * Z.of_nat j) = Some z -> floor k j = z.
Proof.
  intros terms k j z D. apply digits_right in D; [|lia]. rewrite <- scaled_bits in D.
  apply floor_unique with (1 := floor_spec k j) (2 := D).
Qed.

Lemma table_checked : forallb (fun k => match digits 20 k 63 with
  | Some z => (z =? prefix k)%Z | None => false end) (seq 1 last) = true.
Proof. vm_compute. reflexivity. Qed.

Theorem prefixes_right : forall k, (1 <= k <= last)%nat -> floor k 0 = prefix k.
Proof.
  intros k Hk. pose proof (proj1 (forallb_forall _ _) table_checked k) as C.
  specialize (C ltac:(apply in_seq; lia)). cbv beta in C.
  destruct (digits 20 k 63) as [z|] eqn:D; [|discriminate]. apply Z.eqb_eq in C. subst z.
  now apply digits_are_floor with (terms := 20%nat).
Qed.

(* The digits as a program finds them: those of the table, and others where it must. *)
Definition found (k j : nat) : Z :=
  match j with
  | O => prefix k
  | _ => match digits (30 + 16 * j) k (63 + 64 * Z.of_nat j) with Some z => z | None => 0%Z end
  end.

Theorem found_is_floor : forall k j, (1 <= k <= last)%nat ->
  j = O \/ digits (30 + 16 * j) k (63 + 64 * Z.of_nat j) <> None -> found k j = floor k j.
Proof.
  intros k j Hk [->|D]; symmetry; [now apply prefixes_right|].
  destruct j as [|j]; [now apply prefixes_right|]. unfold found.
  destruct (digits (30 + 16 * S j) k (63 + 64 * Z.of_nat (S j))) as [z|] eqn:G; [|congruence].
  now apply digits_are_floor in G.
Qed.

Lemma falls_checked : forallb (fun k => (prefix (S k) <? prefix k)%Z) (seq 1 (last - 1)) = true.
Proof. vm_compute. reflexivity. Qed.

Lemma floor_falls : forall k, (1 <= k)%nat -> (k < last)%nat -> (floor (S k) 0 < floor k 0)%Z.
Proof.
  intros k Hk Hl. rewrite !prefixes_right by lia.
  pose proof (proj1 (forallb_forall _ _) falls_checked k ltac:(apply in_seq; lia)) as C.
  now apply Z.ltb_lt.
Qed.

Lemma half_pos : (1 <= half)%Z. Proof. unfold half. lia. Qed.
Lemma word_64 : (2 * half = 2 ^ 64)%Z. Proof. reflexivity. Qed.

(* The laws, with nothing left to assume. *)
Theorem bernoulli_exp_64 : forall num den, (0 <= num)%Z -> (1 <= den)%Z ->
  Un_cv (fun m => E (2 * half) (bernoulli_exp half floor m num den) heads) (exp (- (IZR num / IZR den))) /\
  Un_cv (fun m => E (2 * half) (bernoulli_exp half floor m num den) tails) (1 - exp (- (IZR num / IZR den))).
Proof.
  intros num den Hn Hd. apply bernoulli_exp_law with (last := last);
    auto using half_pos, floor_spec. unfold last. lia.
Qed.

Theorem geometric_64 : forall num den y c, (1 <= num <= 2 * half)%Z -> (1 <= den)%Z -> (0 <= y)%Z ->
  Un_cv (fun n => E (2 * half) (geometric half last floor num den n n) (both y c))
    ((1 - beta num den) * exp (- (IZR (y * den) / IZR num)) / 2).
Proof.
  intros num den y c Hn Hd Hy. apply geometric_law; auto using half_pos, floor_spec, floor_falls.
  unfold last. lia.
Qed.

Theorem laplace_64 : forall num den z, (1 <= num <= 2 * half)%Z -> (1 <= den)%Z ->
  Un_cv (fun n => E (2 * half) (laplace half last floor num den n n) (fun x => ind (x =? z)%Z))
    (laplace_mass num den z).
Proof.
  intros num den z Hn Hd. apply laplace_law; auto using half_pos, floor_spec, floor_falls.
  unfold last. lia.
Qed.
