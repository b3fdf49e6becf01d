(* BernoulliExp: a coin of exp(−num/den), of coins of rational numbers and of e^{-1}. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp Prob Bernoulli.
Local Open Scope R_scope.

Section Fraction.

Variable W : Z.
Hypothesis W_two : (2 <= W)%Z.

Notation E := (E W).
Notation eps := (eps W).
Notation near := (near W).

(* The coin of n/(dk); where dk leaves a word it is two coins. *)
Definition coin (m : nat) (n d k : Z) : prog bool :=
  if (d * k <? W)%Z then bernoulli W m n (d * k)
  else bind (bernoulli W m n d) (fun b => if b then bernoulli W m 1 k else Ret false).

(* Coins of n/(dk), n/(d(k+1)), … until one fails. *)
Fixpoint tosses (fuel m : nat) (n d k : Z) : prog bool :=
  match fuel with
  | O => Fail
  | S fuel => bind (coin m n d k) (fun more =>
      if more then tosses fuel m n d (k + 1)%Z else Ret (Z.odd k))
  end.

(* bernoulliExpFraction: true with probability exp(−n/d), for n ≤ d. *)
Definition fraction (m : nat) (n d : Z) : prog bool :=
  if (n =? 0)%Z then Ret true else tosses m m n d 1.

Lemma product_near : forall a b q r e f, Rabs (a - q) <= e -> Rabs (b - r) <= f ->
  0 <= b <= 1 -> 0 <= q <= 1 -> Rabs (a * b - q * r) <= e + f.
Proof.
  intros a b q r e f A B Hb Hq. apply Rabs_le_inv in A, B.
  assert (X : - e <= (a - q) * b <= e) by nra.
  assert (Y : - f <= q * (b - r) <= f) by nra.
  apply Rabs_le. replace (a * b - q * r) with ((a - q) * b + q * (b - r)) by ring. lra.
Qed.

Lemma ratio_range : forall n d, (0 <= n <= d)%Z -> (1 <= d)%Z -> 0 <= IZR n / IZR d <= 1.
Proof.
  intros n d Hn Hd. assert (D : 0 < IZR d) by (apply IZR_lt; lia).
  split; [apply Rmult_le_pos; [apply IZR_le; lia | left; now apply Rinv_0_lt_compat]|].
  apply Rmult_le_reg_r with (IZR d); [exact D|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  rewrite Rmult_1_l, Rmult_1_r. apply IZR_le. lia.
Qed.

Lemma coin_near : forall m n d k, (0 <= n <= d)%Z -> (1 <= d)%Z -> (1 <= k)%Z ->
  near (coin m n d k) (IZR n / IZR (d * k)) (3 * eps m).
Proof.
  intros m n d k Hn Hd Hk. unfold coin. pose proof (eps_pos W W_two m) as EP.
  destruct (Z.ltb_spec (d * k) W) as [L|L].
  - destruct (bernoulli_near W W_two m n (d * k) ltac:(nia) ltac:(nia)) as (A & B).
    split; lra.
  - destruct (bernoulli_near W W_two m n d Hn Hd) as (A1 & A2).
    destruct (bernoulli_near W W_two m 1 k ltac:(lia) Hk) as (B1 & B2).
    assert (Q : IZR n / IZR (d * k) = IZR n / IZR d * (1 / IZR k)).
    { rewrite mult_IZR. field. split; apply not_0_IZR; lia. }
    pose proof (ratio_range n d Hn Hd) as R1.
    pose proof (E_range W W_two _ (bernoulli W m 1 k) heads heads_range) as H1.
    pose proof (E_range W W_two _ (bernoulli W m 1 k) tails tails_range) as H2.
    unfold Prob.near. rewrite !E_bind, Q.
    rewrite (E_bool W _ (fun b => E (if b then bernoulli W m 1 k else Ret false) heads)).
    rewrite (E_bool W _ (fun b => E (if b then bernoulli W m 1 k else Ret false) tails)).
    cbn [Prob.E]. change (heads false) with 0. change (tails false) with 1.
    pose proof (product_near _ _ _ _ _ _ A1 B1 H1 R1) as P1.
    pose proof (product_near _ _ _ _ _ _ A1 B2 H2 R1) as P2.
    apply Rabs_le_inv in P1, P2, A2. split; apply Rabs_le; lra.
Qed.

(* The same with perfect coins, and what its masses are: the terms of the alternating series. *)
Fixpoint ideal (fuel : nat) (g : R) (f : bool -> R) (j : nat) : R :=
  match fuel with
  | O => 0
  | S fuel => g / INR (S j) * ideal fuel g f (S j) + (1 - g / INR (S j)) * f (Nat.even j)
  end.

Lemma even_of_nat : forall j, Nat.even j = Z.even (Z.of_nat j).
Proof.
  induction j as [|j IH]; [reflexivity|].
  rewrite Nat2Z.inj_succ, Z.even_succ, Nat.even_succ, <- Nat.negb_even, <- Z.negb_even. now rewrite IH.
Qed.

Lemma tosses_near : forall f n d, (forall b, 0 <= f b <= 1) -> (0 <= n <= d)%Z -> (1 <= d)%Z ->
  forall fuel m j,
  Rabs (E (tosses fuel m n d (Z.of_nat j + 1)) f - ideal fuel (IZR n / IZR d) f j)
    <= 6 * INR fuel * eps m.
Proof.
  intros f n d Hf Hn Hd. induction fuel as [|fuel IH]; intros m j.
  - cbn. rewrite Rminus_0_r, Rabs_R0. lra.
  - pose proof (eps_pos W W_two m) as EP. set (k := (Z.of_nat j + 1)%Z).
    destruct (coin_near m n d k Hn Hd ltac:(lia)) as (A & B).
    assert (Q : IZR n / IZR (d * k) = IZR n / IZR d / INR (S j)).
    { rewrite mult_IZR. unfold k. rewrite S_INR, INR_IZR_INZ, plus_IZR. field.
      repeat split; first [apply not_0_IZR; lia | rewrite <- plus_IZR; apply not_0_IZR; lia]. }
    pose proof (ratio_range n (d * k) ltac:(nia) ltac:(nia)) as R1. rewrite Q in A, B, R1.
    cbn [tosses ideal]. rewrite E_bind, (E_bool W).
    cbn [Prob.E]. replace (Z.odd k) with (Nat.even j).
    2:{ unfold k. rewrite Z.add_1_r, Z.odd_succ. apply even_of_nat. }
    specialize (IH m (S j)). rewrite Nat2Z.inj_succ, <- Z.add_1_r in IH. fold k in IH.
    pose proof (E_range W W_two _ (tosses fuel m n d (k + 1)) f Hf) as X.
    pose proof (product_near _ _ _ _ _ _ A IH X R1) as P1.
    pose proof (Hf (Nat.even j)) as Hv.
    assert (P2 : Rabs (E (coin m n d k) tails * f (Nat.even j) -
                       (1 - IZR n / IZR d / INR (S j)) * f (Nat.even j)) <= 3 * eps m).
    { apply Rabs_le_inv in B. apply Rabs_le. nra. }
    apply Rabs_le_inv in P1, P2. rewrite (S_INR fuel). apply Rabs_le. lra.
Qed.

Fixpoint nsum (n : nat) (g : nat -> R) : R :=
  match n with O => 0 | S n => nsum n g + g n end.

Lemma nsum_ext : forall n g h, (forall i, g i = h i) -> nsum n g = nsum n h.
Proof. induction n as [|n IH]; intros g h H; cbn; [reflexivity|]. now rewrite (IH g h H), H. Qed.

Lemma nsum_front : forall n g, nsum (S n) g = g O + nsum n (fun i => g (S i)).
Proof.
  induction n as [|n IH]; intros g; [cbn; lra|].
  change (nsum (S (S n)) g) with (nsum (S n) g + g (S n)). rewrite IH. cbn. lra.
Qed.

Lemma nsum_series : forall n g, nsum (S n) g = sum_f_R0 g n.
Proof.
  induction n as [|n IH]; intros g; [cbn; lra|].
  change (nsum (S (S n)) g) with (nsum (S n) g + g (S n)). rewrite IH. reflexivity.
Qed.

Section Series.

Variable g : R.
Hypothesis g_range : 0 <= g <= 1.

Definition p (j : nat) : R := g ^ j / INR (fact j).

Lemma p_S : forall j, p (S j) = p j * (g / INR (S j)).
Proof.
  intros j. unfold p. change (fact (S j)) with (S j * fact j)%nat. rewrite mult_INR. cbn [pow].
  field. repeat split; first [apply INR_fact_neq_0 | apply not_0_INR; lia].
Qed.

Lemma ideal_sum : forall f fuel j,
  p j * ideal fuel g f j = nsum fuel (fun i => f (Nat.even (j + i)) * (p (j + i) - p (S (j + i)))).
Proof.
  intros f. induction fuel as [|fuel IH]; intros j; [cbn; lra|].
  cbn [ideal]. rewrite nsum_front, Nat.add_0_r.
  rewrite (nsum_ext _ _ (fun i => f (Nat.even (S j + i)) * (p (S j + i) - p (S (S j + i))))).
  - rewrite <- IH, p_S. ring.
  - intros i. now rewrite Nat.add_succ_r.
Qed.

Lemma minus_one : forall n, (-1) ^ n = if Nat.even n then 1 else -1.
Proof.
  induction n as [|n IH]; [reflexivity|]. cbn [pow]. rewrite IH, Nat.even_succ, <- Nat.negb_even.
  destruct (Nat.even n); cbn; lra.
Qed.

Lemma heads_sum : forall n,
  nsum n (fun i => heads (Nat.even i) * (p i - p (S i))) =
  nsum n (fun i => / INR (fact i) * (- g) ^ i) - ind (Nat.odd n) * p n.
Proof.
  assert (T : forall i, / INR (fact i) * (- g) ^ i = (if Nat.even i then 1 else -1) * p i).
  { intros i. replace (- g) with (-1 * g) by ring. rewrite Rpow_mult_distr, minus_one.
    unfold p, Rdiv. ring. }
  induction n as [|n IH]; [cbn; lra|].
  cbn [nsum]. rewrite IH, T, Nat.odd_succ, <- Nat.negb_even.
  unfold heads. destruct (Nat.even n); cbn [negb ind]; lra.
Qed.

Lemma all_sum : forall n, nsum n (fun i => p i - p (S i)) = 1 - p n.
Proof.
  induction n as [|n IH]; [unfold p; cbn; lra|]. cbn [nsum]. rewrite IH. lra.
Qed.

Lemma p_cv : Un_cv p 0.
Proof. exact (cv_speed_pow_fact g). Qed.

Lemma p_pos : forall n, 0 <= p n.
Proof.
  intros n. unfold p. apply Rmult_le_pos; [apply pow_le; lra|].
  left. apply inv_fact_pos.
Qed.

Lemma ideal_heads : Un_cv (fun n => ideal n g heads 0) (exp (- g)).
Proof.
  replace (exp (- g)) with (exp (- g) - 0) by ring.
  apply cv_ext with (u := fun n => nsum n (fun i => / INR (fact i) * (- g) ^ i) - ind (Nat.odd n) * p n).
  - intros n. rewrite <- heads_sum. pose proof (ideal_sum heads n 0) as I.
    unfold p at 1 in I. cbn [pow fact INR Nat.add] in I. rewrite <- I. field.
  - apply CV_minus.
    + apply cv_shift. apply cv_ext with (u := sum_f_R0 (fun i => / INR (fact i) * (- g) ^ i)).
      * intros n. symmetry. apply nsum_series.
      * apply exp_series.
    + intros e He. destruct (p_cv e He) as (N & HN). exists N. intros n Hn. specialize (HN n Hn).
      unfold R_dist in *. rewrite Rminus_0_r in *. pose proof (p_pos n).
      destruct (Nat.odd n); cbn [ind]; [now rewrite Rmult_1_l|].
      rewrite Rmult_0_l, Rabs_R0. exact He.
Qed.

Lemma ideal_tails : Un_cv (fun n => ideal n g tails 0) (1 - exp (- g)).
Proof.
  apply cv_ext with (u := fun n => (1 - p n) - ideal n g heads 0).
  - intros n. pose proof (ideal_sum heads n 0) as I. pose proof (ideal_sum tails n 0) as J.
    unfold p at 1 in I. unfold p at 1 in J. cbn [pow fact INR Nat.add] in I, J.
    replace (1 / 1) with 1 in I, J by field. rewrite Rmult_1_l in I, J. rewrite I, J, <- all_sum.
    clear I J. induction n as [|n IH]; [cbn; lra|]. cbn [nsum]. rewrite <- IH.
    unfold heads, tails. destruct (Nat.even n); cbn [ind negb]; lra.
  - apply CV_minus; [|apply ideal_heads].
    replace 1 with (1 - 0) at 1 by ring. apply CV_minus; [apply constant_cv | apply p_cv].
Qed.

End Series.

Lemma near_limit : forall u v l c, Un_cv v l ->
  (forall m, Rabs (u m - v m) <= c * INR m * eps m) -> Un_cv u l.
Proof.
  intros u v l c V H. replace l with (0 + l) by ring.
  apply cv_ext with (u := fun m => (u m - v m) + v m); [intros; ring|].
  apply CV_plus; [|exact V]. apply (squeeze W W_two) with c. intros m _. rewrite Rminus_0_r. apply H.
Qed.

(* von Neumann's coin, CKS Algorithm 1. *)
Theorem fraction_law : forall n d, (0 <= n <= d)%Z -> (1 <= d)%Z ->
  Un_cv (fun m => E (fraction m n d) heads) (exp (- (IZR n / IZR d))) /\
  Un_cv (fun m => E (fraction m n d) tails) (1 - exp (- (IZR n / IZR d))).
Proof.
  intros n d Hn Hd. unfold fraction. destruct (Z.eqb_spec n 0) as [->|N].
  - unfold Rdiv. rewrite Rmult_0_l, Ropp_0, exp_0. cbn. split; [apply constant_cv|].
    replace (1 - 1) with 0 by ring. apply constant_cv.
  - pose proof (ratio_range n d Hn Hd) as G. split.
    + apply near_limit with (v := fun m => ideal m (IZR n / IZR d) heads 0) (c := 6).
      * now apply ideal_heads.
      * intros m. now apply (tosses_near heads n d heads_range Hn Hd m m 0).
    + apply near_limit with (v := fun m => ideal m (IZR n / IZR d) tails 0) (c := 6).
      * now apply ideal_tails.
      * intros m. now apply (tosses_near tails n d tails_range Hn Hd m m 0).
Qed.

End Fraction.

(* Digits of e^{-k}: a word has a bit more than the first comparison uses, which is of H = W/2. *)
Section Digits.

Variable H : Z.
Hypothesis H_pos : (1 <= H)%Z.
Notation W := (2 * H)%Z.

Notation E := (E W).
Notation words := (words W).
Notation eps := (eps W).
Notation near := (near W).

Lemma W_two : (2 <= W)%Z. Proof. lia. Qed.
Local Hint Resolve W_two : core.

(* dig k j is ⌊e^{-k}·H·W^j⌋, for k of 1, …, last: its first digits, and j words more. *)
Variable last : nat.
Variable dig : nat -> nat -> Z.
Definition scaled (k j : nat) : R := exp (- INR k) * (IZR H * IZR W ^ j).
Hypothesis dig_floor : forall k j, (1 <= k <= last)%nat ->
  IZR (dig k j) <= scaled k j < IZR (dig k j) + 1.

Definition rest (k j : nat) : R := scaled k j - IZR (dig k j).

(* belowExp: whether U < e^{-k}, of a U whose digits so far are those of e^{-k}. *)
Fixpoint below (m k j : nat) : prog bool :=
  match m with
  | O => Fail
  | S m => Word (fun w =>
      let want := (dig k (S j) mod W)%Z in
      if (w =? want)%Z then below m k (S j) else Ret (w <? want)%Z)
  end.

Lemma scaled_S : forall k j, scaled k (S j) = IZR W * scaled k j.
Proof. intros k j. unfold scaled. cbn [pow]. ring. Qed.

Lemma want_spec : forall k j, (1 <= k <= last)%nat ->
  let want := (dig k (S j) mod W)%Z in
  (0 <= want < W)%Z /\ rest k j = / IZR W * (IZR want + rest k (S j)).
Proof.
  intros k j Hk. pose proof (W_pos W W_two) as HW.
  pose proof (dig_floor k j Hk) as A. pose proof (dig_floor k (S j) Hk) as B.
  rewrite scaled_S in B.
  assert (L : (W * dig k j < dig k (S j) + 1)%Z).
  { apply lt_IZR. rewrite mult_IZR, plus_IZR. apply Rle_lt_trans with (IZR W * scaled k j); [|lra].
    apply Rmult_le_compat_l; lra. }
  assert (U : (dig k (S j) < W * dig k j + W)%Z).
  { apply lt_IZR. rewrite plus_IZR, mult_IZR. apply Rle_lt_trans with (IZR W * scaled k j); [lra|].
    replace (IZR W * IZR (dig k j) + IZR W) with (IZR W * (IZR (dig k j) + 1)) by ring.
    apply Rmult_lt_compat_l; lra. }
  assert (M : (dig k (S j) mod W = dig k (S j) - W * dig k j)%Z).
  { symmetry. apply Z.mod_unique with (q := dig k j); lia. }
  cbn zeta. rewrite M. split; [lia|].
  unfold rest. rewrite scaled_S, minus_IZR, (mult_IZR W). field. lra.
Qed.

(* What is summed over words w of a test that is X at a, 1 below it and 0 above, or the reverse. *)
Lemma step_sum : forall n a X, (0 <= a < Z.of_nat n)%Z ->
  sum n (fun w => if (w =? a)%Z then X else heads (w <? a)%Z) = IZR a + X.
Proof.
  intros n a X Ha.
  rewrite (sum_ext _ _ (fun w => ind (w =? a)%Z * X + ind ((0 <=? w) && (w <? a))%Z)).
  - rewrite sum_plus, (sum_one n a (fun _ => X)), sum_between by lia. rewrite Z.sub_0_r. lra.
  - intros w Hw. rewrite (proj2 (Z.leb_le _ _)) by lia. cbn [andb]. unfold heads.
    destruct (Z.eqb_spec w a) as [->|N]; [|cbn [ind]; lra].
    rewrite Z.ltb_irrefl. cbn. lra.
Qed.

Lemma step_sum_tails : forall n a X, (0 <= a < Z.of_nat n)%Z ->
  sum n (fun w => if (w =? a)%Z then X else tails (w <? a)%Z) = IZR (Z.of_nat n) - IZR a - 1 + X.
Proof.
  intros n a X Ha.
  rewrite (sum_ext _ _ (fun w => ind (w =? a)%Z * X + ind ((a + 1 <=? w) && (w <? Z.of_nat n))%Z)).
  - rewrite sum_plus, (sum_one n a (fun _ => X)), sum_between by lia. rewrite !minus_IZR, plus_IZR. lra.
  - intros w Hw. rewrite (proj2 (Z.ltb_lt w (Z.of_nat n))) by lia. rewrite andb_true_r. unfold tails.
    destruct (Z.eqb_spec w a) as [->|N].
    + rewrite (proj2 (Z.leb_gt _ _)) by lia. cbn. lra.
    + destruct (Z.ltb_spec w a).
      * rewrite (proj2 (Z.leb_gt _ _)) by lia. cbn. lra.
      * rewrite (proj2 (Z.leb_le _ _)) by lia. cbn. lra.
Qed.

Lemma rest_range : forall k j, (1 <= k <= last)%nat -> 0 <= rest k j <= 1.
Proof. intros k j Hk. unfold rest. pose proof (dig_floor k j Hk). lra. Qed.

Lemma below_near : forall m k j, (1 <= k <= last)%nat -> near (below m k j) (rest k j) (eps m).
Proof.
  pose proof (W_pos W W_two) as HW.
  induction m as [|m IH]; intros k j Hk.
  - pose proof (rest_range k j Hk). unfold Prob.near, Prob.eps. cbn. rewrite Rinv_1.
    split; apply Rabs_le; lra.
  - destruct (want_spec k j Hk) as (Hw & R0). cbn zeta in Hw, R0.
    unfold Prob.near. cbn [below Prob.E]. cbn zeta. set (want := (dig k (S j) mod W)%Z) in *.
    destruct (IH k (S j) Hk) as (A & B). rewrite eps_S.
    rewrite (sum_ext _ _ (fun w => if (w =? want)%Z then E (below m k (S j)) heads else heads (w <? want)%Z))
      by (intros w _; destruct (w =? want)%Z; reflexivity).
    rewrite (sum_ext _ (fun w => E (if (w =? want)%Z then _ else _) tails)
      (fun w => if (w =? want)%Z then E (below m k (S j)) tails else tails (w <? want)%Z))
      by (intros w _; destruct (w =? want)%Z; reflexivity).
    rewrite step_sum, step_sum_tails by (rewrite words_W; auto). rewrite words_W by auto.
    assert (I : 0 < / IZR W) by (apply Rinv_0_lt_compat; lra). split.
    + rewrite R0, <- Rmult_minus_distr_l, Rabs_mult, (Rabs_right (/ IZR W)) by lra.
      apply Rmult_le_compat_l; [lra|]. apply Rabs_le_inv in A. apply Rabs_le. lra.
    + replace (1 - rest k j) with (/ IZR W * (IZR W - IZR want - rest k (S j))).
      2:{ rewrite R0. field. lra. }
      rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_right (/ IZR W)) by lra.
      apply Rmult_le_compat_l; [lra|]. apply Rabs_le_inv in B. apply Rabs_le. lra.
Qed.

Lemma below_cv : forall k j, (1 <= k <= last)%nat ->
  Un_cv (fun m => E (below m k j) heads) (rest k j) /\
  Un_cv (fun m => E (below m k j) tails) (1 - rest k j).
Proof.
  intros k j Hk. apply near_cv with (c := 1); [auto| |lra].
  intros m. rewrite Rmult_1_l. now apply below_near.
Qed.

(* A word is a coin and the first digits. *)
Lemma pairs : forall g, sum words g =
  sum (Z.to_nat H) (fun w => g (2 * w)%Z + g (2 * w + 1)%Z).
Proof.
  intros g. unfold Prob.words. replace (Z.to_nat W) with (Z.to_nat H * 2)%nat by lia.
  rewrite sum_blocks. apply sum_ext. intros w _. cbn [sum].
  rewrite Rplus_0_l. f_equal; f_equal; lia.
Qed.

Lemma dig_range : forall k, (1 <= k <= last)%nat -> (0 <= dig k 0 < H)%Z.
Proof.
  intros k Hk. pose proof (dig_floor k 0 Hk) as A. unfold scaled in A. cbn [pow] in A.
  rewrite Rmult_1_r in A.
  assert (P : 0 < IZR H) by (apply IZR_lt; lia).
  pose proof (exp_pos (- INR k)) as X.
  assert (Y : exp (- INR k) < 1).
  { rewrite <- exp_0. apply exp_lt. assert (0 < INR k) by (apply lt_0_INR; lia). lra. }
  split.
  - assert (L : (-1 < dig k 0)%Z); [|lia]. apply lt_IZR. assert (0 < exp (- INR k) * IZR H) by nra. lra.
  - apply lt_IZR. nra.
Qed.

(* bernoulliInvE: true with probability e^{-1}. *)
Definition inv_e (m : nat) : prog bool := Word (fun word =>
  let w := (word / 2)%Z in
  if (w =? dig 1 0)%Z then below m 1 0 else Ret (w <? dig 1 0)%Z).

Lemma halves : forall w, (2 * w / 2 = w /\ (2 * w + 1) / 2 = w)%Z.
Proof.
  intros w. split.
  - rewrite Z.mul_comm. now apply Z.div_mul.
  - symmetry. apply Z.div_unique with (r := 1%Z); lia.
Qed.

Lemma inv_e_cv : (1 <= last)%nat ->
  Un_cv (fun m => E (inv_e m) heads) (exp (-1)) /\
  Un_cv (fun m => E (inv_e m) tails) (1 - exp (-1)).
Proof.
  intros L1. assert (L : (1 <= 1 <= last)%nat) by lia.
  pose proof (dig_range 1 L) as Hd. destruct (below_cv 1 0 L) as (A & B).
  assert (P : 0 < IZR H) by (apply IZR_lt; lia).
  assert (N : Z.of_nat (Z.to_nat H) = H) by (apply Z2Nat.id; lia).
  assert (V : exp (-1) = / IZR H * (IZR (dig 1 0) + rest 1 0)).
  { unfold rest, scaled. cbn [pow INR]. replace (- (1)) with (-1) by ring. field. lra. }
  assert (C : forall m, E (inv_e m) heads = / IZR H * (IZR (dig 1 0) + E (below m 1 0) heads) /\
                        E (inv_e m) tails = / IZR H * (IZR H - IZR (dig 1 0) - 1 + E (below m 1 0) tails)).
  { intros m. unfold inv_e. cbn [Prob.E]. rewrite !pairs. rewrite mult_IZR. split.
    - rewrite (sum_ext _ _ (fun w => 2 * (if (w =? dig 1 0)%Z then E (below m 1 0) heads
                                          else heads (w <? dig 1 0)%Z))).
      + rewrite sum_scal, step_sum by lia. field. lra.
      + intros w _. destruct (halves w) as (-> & ->). destruct (w =? dig 1 0)%Z; cbn [Prob.E]; lra.
    - rewrite (sum_ext _ _ (fun w => 2 * (if (w =? dig 1 0)%Z then E (below m 1 0) tails
                                          else tails (w <? dig 1 0)%Z))).
      + rewrite sum_scal, step_sum_tails by lia. rewrite N. field. lra.
      + intros w _. destruct (halves w) as (-> & ->). destruct (w =? dig 1 0)%Z; cbn [Prob.E]; lra. }
  split.
  - rewrite V. apply cv_ext with (1 := fun m => eq_sym (proj1 (C m))).
    apply CV_mult; [apply constant_cv|]. apply CV_plus; [apply constant_cv | exact A].
  - replace (1 - exp (-1)) with (/ IZR H * (IZR H - IZR (dig 1 0) - 1 + (1 - rest 1 0)))
      by (rewrite V; field; lra).
    apply cv_ext with (1 := fun m => eq_sym (proj2 (C m))).
    apply CV_mult; [apply constant_cv|]. apply CV_plus; [apply constant_cv | exact B].
Qed.

(* BernoulliExp: true with probability exp(−num/den). *)
Fixpoint factors (c m : nat) (n d : Z) : prog bool :=
  match c with
  | O => fraction W m n d
  | S c => bind (inv_e m) (fun b => if b then factors c m n d else Ret false)
  end.

Definition bernoulli_exp (m : nat) (num den : Z) : prog bool :=
  factors (Z.to_nat (num / den)) m (num mod den) den.

Lemma factors_law : forall c n d, (1 <= last)%nat -> (0 <= n <= d)%Z -> (1 <= d)%Z ->
  Un_cv (fun m => E (factors c m n d) heads) (exp (- (INR c + IZR n / IZR d))) /\
  Un_cv (fun m => E (factors c m n d) tails) (1 - exp (- (INR c + IZR n / IZR d))).
Proof.
  intros c n d L Hn Hd. induction c as [|c (IH1 & IH2)].
  - cbn [factors INR]. rewrite Rplus_0_l. now apply fraction_law.
  - destruct (inv_e_cv L) as (A & B).
    assert (X : exp (- (INR (S c) + IZR n / IZR d)) = exp (-1) * exp (- (INR c + IZR n / IZR d))).
    { rewrite <- exp_plus. f_equal. rewrite S_INR. ring. }
    rewrite X. split.
    + apply cv_ext with (u := fun m => E (inv_e m) heads * E (factors c m n d) heads).
      * intros m. cbn [factors]. rewrite E_bind.
        rewrite (E_bool W _ (fun b => E (if b then factors c m n d else Ret false) heads)).
        cbn [Prob.E]. change (heads false) with 0. ring.
      * now apply CV_mult.
    + replace (1 - exp (-1) * exp (- (INR c + IZR n / IZR d)))
        with (exp (-1) * (1 - exp (- (INR c + IZR n / IZR d))) + (1 - exp (-1))) by ring.
      apply cv_ext with (u := fun m => E (inv_e m) heads * E (factors c m n d) tails + E (inv_e m) tails).
      * intros m. cbn [factors]. rewrite E_bind.
        rewrite (E_bool W _ (fun b => E (if b then factors c m n d else Ret false) tails)).
        cbn [Prob.E]. change (tails false) with 1. ring.
      * apply CV_plus; [|exact B]. now apply CV_mult.
Qed.

Lemma bernoulli_exp_law : forall num den, (1 <= last)%nat -> (0 <= num)%Z -> (1 <= den)%Z ->
  Un_cv (fun m => E (bernoulli_exp m num den) heads) (exp (- (IZR num / IZR den))) /\
  Un_cv (fun m => E (bernoulli_exp m num den) tails) (1 - exp (- (IZR num / IZR den))).
Proof.
  intros num den L Hn Hd. unfold bernoulli_exp.
  pose proof (Z.div_mod num den ltac:(lia)) as D. pose proof (Z.mod_pos_bound num den ltac:(lia)) as M.
  pose proof (Z.div_pos num den Hn ltac:(lia)) as Q.
  replace (IZR num / IZR den) with (INR (Z.to_nat (num / den)) + IZR (num mod den) / IZR den).
  - apply factors_law; lia.
  - rewrite INR_IZR_INZ, Z2Nat.id by lia. rewrite D at 3. rewrite plus_IZR, mult_IZR.
    field. apply not_0_IZR. lia.
Qed.

End Digits.
