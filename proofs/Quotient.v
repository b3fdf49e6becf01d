(* standardGeometric: G with P(G ≥ k) = e^{-k}, the number of k ≥ 1 with U < e^{-k}, and a fair coin. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp Prob Bernoulli BernoulliExp Geometric.
Local Open Scope R_scope.

Section Quotient.

Variable H : Z.
Hypothesis H_pos : (1 <= H)%Z.
Notation W := (2 * H)%Z.
Notation E := (E W).

Variable last : nat.
Hypothesis last_pos : (1 <= last)%nat.
Variable dig : nat -> nat -> Z.
Hypothesis dig_floor : forall k j, (1 <= k <= last)%nat ->
  IZR (dig k j) <= scaled H k j < IZR (dig k j) + 1.
(* The first digits differ from one k to the next: see Digits.v. *)
Hypothesis dig_falls : forall k, (1 <= k)%nat -> (k < last)%nat -> (dig (S k) 0 < dig k 0)%Z.

Notation below := (below H dig).
Lemma W2 : (2 <= W)%Z. Proof. lia. Qed.
Local Hint Resolve W2 : core.

(* The first k > i with not U < e^{-k}, of the next so many, by U's first digits and, where these are
   those of e^{-k}, by more. *)
Fixpoint scan (m : nat) (w : Z) (todo i : nat) : prog (option nat) :=
  match todo with
  | O => Ret None
  | S todo =>
      if (dig (S i) 0 <? w)%Z then Ret (Some i)
      else if (w =? dig (S i) 0)%Z
      then bind (below m (S i) 0) (fun b => if b then scan m w todo (S i) else Ret (Some i))
      else scan m w todo (S i)
  end.

(* Beyond the last k it begins again from there. *)
Fixpoint more (fuel m g : nat) (w : Z) : prog nat :=
  bind (scan m w last 0) (fun o =>
    match o with
    | Some i => Ret (g + i)%nat
    | None =>
        match fuel with
        | O => Fail
        | S fuel => Word (fun word => more fuel m (g + last) (word / 2)%Z)
        end
    end).

Definition standard (fuel m : nat) : prog (nat * bool) :=
  Word (fun word => bind (more fuel m 0 (word / 2)%Z) (fun g => Ret (g, Z.odd word))).

(* Whether w passes k, and whether it fails. *)
Definition T (m k : nat) (w : Z) : R :=
  if (w =? dig k 0)%Z then E (below m k 0) heads else heads (w <? dig k 0)%Z.
Definition F (m k : nat) (w : Z) : R :=
  if (w =? dig k 0)%Z then E (below m k 0) tails else tails (w <? dig k 0)%Z.

Lemma scan_S : forall m w todo i f,
  E (scan m w (S todo) i) f = T m (S i) w * E (scan m w todo (S i)) f + F m (S i) w * f (Some i).
Proof.
  intros m w todo i f. cbn [scan]. unfold T, F.
  destruct (Z.eqb_spec w (dig (S i) 0)) as [E0|N].
  - rewrite (proj2 (Z.ltb_ge _ _)) by lia. rewrite E_bind, (E_bool W). reflexivity.
  - destruct (Z.ltb_spec (dig (S i) 0) w) as [L|L].
    + rewrite (proj2 (Z.ltb_ge _ _)) by lia. cbn. lra.
    + rewrite (proj2 (Z.ltb_lt w _)) by lia. cbn. lra.
Qed.

Definition is (r : nat) (o : option nat) : R :=
  match o with Some i => ind (i =? r)%nat | None => 0 end.
Definition none (o : option nat) : R := match o with Some _ => 0 | None => 1 end.

Lemma scan_outside : forall m w todo i r, (r < i \/ i + todo <= r)%nat ->
  E (scan m w todo i) (is r) = 0.
Proof.
  intros m w. induction todo as [|todo IH]; intros i r Hr; [reflexivity|].
  rewrite scan_S, IH by lia. cbn [is]. rewrite (proj2 (Nat.eqb_neq _ _)) by lia. cbn. lra.
Qed.

Lemma dig_lt : forall l k, (1 <= k)%nat -> (k < l <= last)%nat -> (dig l 0 < dig k 0)%Z.
Proof.
  induction l as [|l IH]; intros k Hk Hl; [lia|].
  assert (D : (dig (S l) 0 < dig l 0)%Z) by (apply dig_falls; lia).
  destruct (Nat.eq_dec k l) as [->|N]; [exact D|]. specialize (IH k Hk ltac:(lia)). lia.
Qed.

(* Who passes l has passed all before it. *)
Lemma T_T : forall m k l w, (1 <= k)%nat -> (k < l <= last)%nat -> T m k w * T m l w = T m l w.
Proof.
  intros m k l w Hk Hl. pose proof (dig_lt l k Hk Hl) as D. unfold T.
  destruct (Z.eqb_spec w (dig k 0)) as [A|A].
  - rewrite (proj2 (Z.eqb_neq w (dig l 0))) by lia. rewrite (proj2 (Z.ltb_ge w (dig l 0))) by lia.
    cbn. lra.
  - destruct (Z.ltb_spec w (dig k 0)) as [B|B]; cbn [heads ind].
    + unfold heads. cbn. lra.
    + rewrite (proj2 (Z.eqb_neq w (dig l 0))) by lia. rewrite (proj2 (Z.ltb_ge w (dig l 0))) by lia.
      cbn. lra.
Qed.

Lemma scan_first : forall m w todo i, E (scan m w (S todo) i) (is i) = F m (S i) w.
Proof.
  intros m w todo i. rewrite scan_S, scan_outside by lia. cbn [is]. rewrite Nat.eqb_refl. cbn. lra.
Qed.

Lemma scan_later : forall m w todo i r, (i < r < i + todo)%nat -> (i + todo <= last)%nat ->
  E (scan m w todo i) (is r) = T m r w * F m (S r) w.
Proof.
  intros m w. induction todo as [|todo IH]; intros i r Hr Hl; [lia|].
  rewrite scan_S. cbn [is]. rewrite (proj2 (Nat.eqb_neq i r)) by lia. cbn [ind].
  rewrite Rmult_0_r, Rplus_0_r. destruct (Nat.eq_dec r (S i)) as [->|N].
  - destruct todo as [|todo]; [lia|]. now rewrite scan_first.
  - rewrite IH by lia. rewrite <- Rmult_assoc, T_T by lia. reflexivity.
Qed.

Lemma scan_none : forall m w todo i, (i + S todo <= last)%nat ->
  E (scan m w (S todo) i) none = T m (i + S todo) w.
Proof.
  intros m w. induction todo as [|todo IH]; intros i Hl.
  - rewrite scan_S. cbn. rewrite Nat.add_1_r. lra.
  - rewrite scan_S, IH by lia. cbn [none]. rewrite Nat.add_succ_comm.
    rewrite Rmult_0_r, Rplus_0_r, T_T by lia. reflexivity.
Qed.

(* How many first digits pass k, and how many do not fail it. *)
Definition up (m k : nat) : R :=
  match k with O => IZR H | _ => IZR (dig k 0) + E (below m k 0) heads end.
Definition down (m k : nat) : R := IZR (dig k 0) + 1 - E (below m k 0) tails.

Notation firsts := (Z.to_nat H).
Lemma firsts_H : Z.of_nat firsts = H. Proof. lia. Qed.

Lemma T_sum : forall m k, (1 <= k <= last)%nat -> sum firsts (T m k) = up m k.
Proof.
  intros m k Hk. pose proof (dig_range H H_pos last dig dig_floor k Hk).
  unfold T. rewrite step_sum by lia. destruct k; [lia|]. reflexivity.
Qed.

Lemma TF_sum : forall m k, (1 <= k)%nat -> (k < last)%nat ->
  sum firsts (fun w => T m k w * F m (S k) w) = up m k - down m (S k).
Proof.
  intros m k Hk Hl. pose proof (dig_range H H_pos last dig dig_floor k ltac:(lia)) as R1.
  pose proof (dig_range H H_pos last dig dig_floor (S k) ltac:(lia)) as R2.
  pose proof (dig_falls k Hk Hl) as D. unfold down.
  rewrite (sum_ext _ _ (fun w => ind (w =? dig k 0)%Z * E (below m k 0) heads +
    (ind (w =? dig (S k) 0)%Z * E (below m (S k) 0) tails +
     ind ((dig (S k) 0 + 1 <=? w) && (w <? dig k 0))%Z))).
  - rewrite !sum_plus, (sum_one _ (dig k 0) (fun _ => _)), (sum_one _ (dig (S k) 0) (fun _ => _)),
      sum_between by lia.
    rewrite minus_IZR, plus_IZR. destruct k; [lia|]. unfold up. lra.
  - intros w Hw. unfold T, F, heads, tails.
    destruct (Z.eqb_spec w (dig k 0)) as [A|A].
    + rewrite (proj2 (Z.eqb_neq w (dig (S k) 0))) by lia.
      rewrite (proj2 (Z.ltb_ge w (dig (S k) 0))), (proj2 (Z.ltb_ge w (dig k 0))) by lia.
      rewrite andb_false_r. cbn. lra.
    + destruct (Z.eqb_spec w (dig (S k) 0)) as [B|B].
      * rewrite (proj2 (Z.ltb_lt w (dig k 0))), (proj2 (Z.leb_gt _ w)) by lia. cbn. lra.
      * destruct (Z.ltb_spec w (dig k 0)); destruct (Z.ltb_spec w (dig (S k) 0));
          destruct (Z.leb_spec (dig (S k) 0 + 1) w); try lia; cbn; lra.
Qed.

Lemma F_sum : forall m, sum firsts (F m 1) = up m 0 - down m 1.
Proof.
  intros m. pose proof (dig_range H H_pos last dig dig_floor 1 ltac:(lia)) as R1.
  unfold F. rewrite step_sum_tails by lia. rewrite firsts_H. unfold up, down. lra.
Qed.

Lemma scan_sum : forall m r, (r < last)%nat ->
  sum firsts (fun w => E (scan m w last 0) (is r)) = up m r - down m (S r).
Proof.
  intros m r Hr. destruct r as [|r].
  - rewrite <- F_sum. apply sum_ext. intros w _. replace last with (S (pred last)) by lia.
    apply scan_first.
  - rewrite <- TF_sum by lia. apply sum_ext. intros. apply scan_later; lia.
Qed.

Lemma scan_sum_none : forall m, sum firsts (fun w => E (scan m w last 0) none) = up m last.
Proof.
  intros m. rewrite <- T_sum by lia. apply sum_ext. intros w _.
  replace (scan m w last 0) with (scan m w (S (pred last)) 0) by (f_equal; lia).
  rewrite scan_none by lia. f_equal. lia.
Qed.

(* The mass of v where it begins with g, first digits being drawn. *)
Definition eqn (v g : nat) : R := ind (g =? v)%nat.
Definition M (fuel m g v : nat) : R := / IZR H * sum firsts (fun w => E (more fuel m g w) (eqn v)).

Lemma H_IZR : 0 < IZR H. Proof. apply IZR_lt. lia. Qed.

Lemma words_of_firsts : forall g : Z -> R,
  / IZR W * sum (words W) (fun word => g (word / 2)%Z) = / IZR H * sum firsts g.
Proof.
  intros g. pose proof H_IZR. rewrite pairs by assumption.
  rewrite (sum_ext _ _ (fun w => 2 * g w)).
  - rewrite sum_scal, mult_IZR. field. lra.
  - intros w _. destruct (halves w) as (-> & ->). lra.
Qed.

Definition next (fuel m g v : nat) : R :=
  match fuel with O => 0 | S fuel => M fuel m (g + last) v end.

Lemma more_S : forall fuel m g v w,
  E (more fuel m g w) (eqn v) =
  (if (g <=? v)%nat then E (scan m w last 0) (is (v - g)) else 0) +
  E (scan m w last 0) none * next fuel m g v.
Proof.
  intros fuel m g v w.
  assert (X : E (more fuel m g w) (eqn v) = E (scan m w last 0) (fun o => match o with
    | Some i => eqn v (g + i) | None => next fuel m g v end)).
  { destruct fuel as [|fuel]; cbn [more]; rewrite E_bind; apply E_ext; intros [i|]; try reflexivity.
    cbn [Prob.E next]. unfold M.
    exact (words_of_firsts (fun w => E (more fuel m (g + last) w) (eqn v))). }
  rewrite X. clear X.
  rewrite (E_ext _ _ _ _ (fun o => (if (g <=? v)%nat then is (v - g) o else 0) + next fuel m g v * none o)).
  - rewrite E_plus, E_scal. f_equal; [|ring]. destruct (g <=? v)%nat; [reflexivity | apply E_zero].
  - intros [i|]; cbn [is none]; unfold eqn.
    + destruct (Nat.leb_spec g v).
      * destruct (Nat.eqb_spec (g + i) v); destruct (Nat.eqb_spec i (v - g)); try lia; cbn [ind]; lra.
      * rewrite (proj2 (Nat.eqb_neq _ _)) by lia. cbn [ind]. lra.
    + destruct (g <=? v)%nat; lra.
Qed.

Lemma M_below : forall fuel m g v, (v < g)%nat -> M fuel m g v = 0.
Proof.
  induction fuel as [|fuel IH]; intros m g v L; unfold M; rewrite sum_zero; try lra; intros w _;
    rewrite more_S, (proj2 (Nat.leb_gt _ _)) by lia; cbn [next]; rewrite ?IH by lia; lra.
Qed.

Lemma M_S : forall fuel m g v, (g <= v)%nat ->
  M fuel m g v = / IZR H * sum firsts (fun w => E (scan m w last 0) (is (v - g))) +
                 / IZR H * up m last * next fuel m g v.
Proof.
  intros fuel m g v L. unfold M at 1.
  rewrite (sum_ext _ _ (fun w => E (scan m w last 0) (is (v - g)) +
    next fuel m g v * E (scan m w last 0) none)).
  - rewrite sum_plus, sum_scal, scan_sum_none. ring.
  - intros w _. rewrite more_S, (proj2 (Nat.leb_le _ _)) by lia. ring.
Qed.

Lemma M_value : forall r m i fuel g, (r < last)%nat -> (i <= fuel)%nat ->
  M fuel m g (g + (last * i + r)) = (/ IZR H * up m last) ^ i * (/ IZR H * (up m r - down m (S r))).
Proof.
  intros r m. induction i as [|i IH]; intros fuel g Hr Hf.
  - rewrite M_S by lia. replace (g + (last * 0 + r) - g)%nat with r by lia.
    rewrite scan_sum by lia. cbn [pow].
    replace (next fuel m g (g + (last * 0 + r))) with 0; [ring|].
    destruct fuel; [reflexivity|]. cbn [next]. rewrite M_below; [reflexivity|lia].
  - destruct fuel as [|fuel]; [lia|]. rewrite M_S by lia. cbn [next pow].
    replace (M fuel m (g + last) (g + (last * S i + r)))
      with (M fuel m (g + last) (g + last + (last * i + r))) by (f_equal; lia).
    rewrite IH by lia. rewrite sum_zero; [ring|].
    intros w _. apply scan_outside. lia.
Qed.

(* The mass of a value and a coin: a coin's words are half of all. *)
Definition pair (v : nat) (c : bool) (a : nat * bool) : R :=
  eqn v (fst a) * ind (Bool.eqb (snd a) c).

Lemma standard_M : forall fuel m v c, E (standard fuel m) (pair v c) = M fuel m 0 v / 2.
Proof.
  intros fuel m v c. unfold standard. cbn [Prob.E]. pose proof H_IZR.
  rewrite pairs by assumption. unfold M.
  rewrite (sum_ext _ _ (fun w => E (more fuel m 0 w) (eqn v))).
  - rewrite mult_IZR. field. lra.
  - intros w _. destruct (halves w) as (-> & ->).
    rewrite !E_bind. cbn [Prob.E].
    assert (O1 : Z.odd (2 * w) = false) by (rewrite Z.odd_mul; reflexivity).
    assert (O2 : Z.odd (2 * w + 1) = true) by (rewrite Z.add_1_r, Z.odd_succ, Z.even_mul; reflexivity).
    rewrite O1, O2. unfold pair; cbn [fst snd].
    rewrite <- E_plus. apply E_ext. intros g. destruct c; cbn; lra.
Qed.

Lemma up_cv : forall k, (k <= last)%nat -> Un_cv (fun m => / IZR H * up m k) (exp (- INR k)).
Proof.
  intros k Hk. pose proof H_IZR. destruct k as [|k].
  - cbn [up INR]. rewrite Ropp_0, exp_0, Rinv_l by lra. apply constant_cv.
  - cbn [up]. replace (exp (- INR (S k))) with (/ IZR H * (IZR (dig (S k) 0) + rest H dig (S k) 0)).
    + apply CV_mult; [apply constant_cv|]. apply CV_plus; [apply constant_cv|].
      apply (below_cv H H_pos last dig dig_floor). lia.
    + unfold rest, scaled. cbn [pow]. field. lra.
Qed.

Lemma down_cv : forall k, (1 <= k <= last)%nat -> Un_cv (fun m => / IZR H * down m k) (exp (- INR k)).
Proof.
  intros k Hk. pose proof H_IZR. unfold down.
  replace (exp (- INR k)) with (/ IZR H * (IZR (dig k 0) + 1 - (1 - rest H dig k 0))).
  - apply CV_mult; [apply constant_cv|]. apply CV_minus; [apply constant_cv|].
    apply (below_cv H H_pos last dig dig_floor). lia.
  - unfold rest, scaled. cbn [pow]. field. lra.
Qed.

Lemma pow_cv : forall u l i, Un_cv u l -> Un_cv (fun m => u m ^ i) (l ^ i).
Proof.
  intros u l i C. induction i as [|i IH]; cbn [pow]; [apply constant_cv | now apply CV_mult].
Qed.

(* G is geometric and the coin is fair and independent: P(G = v, coin) = (e^{-v} − e^{-(v+1)})/2. *)
Theorem standard_law : forall v c,
  Un_cv (fun n => E (standard n n) (pair v c)) ((exp (- INR v) - exp (- INR (S v))) / 2).
Proof.
  intros v c. pose proof H_IZR.
  pose proof (Nat.div_mod v last ltac:(lia)) as D. pose proof (Nat.mod_upper_bound v last ltac:(lia)) as U.
  set (i := (v / last)%nat) in *. set (r := (v mod last)%nat) in *.
  apply cv_eventually with (N := i)
    (u := fun n => (/ IZR H * up n last) ^ i * (/ IZR H * up n r - / IZR H * down n (S r)) * / 2).
  - intros n Hn. rewrite standard_M. rewrite D at 1.
    replace (last * i + r)%nat with (0 + (last * i + r))%nat by lia.
    rewrite M_value by lia. unfold Rdiv. ring.
  - replace ((exp (- INR v) - exp (- INR (S v))) / 2)
      with (exp (- INR last) ^ i * (exp (- INR r) - exp (- INR (S r))) * / 2).
    + apply CV_mult; [|apply constant_cv]. apply CV_mult; [apply pow_cv, up_cv; lia|].
      apply CV_minus; [apply up_cv; lia | apply down_cv; lia].
    + rewrite exp_pow. unfold Rdiv. f_equal. rewrite Rmult_minus_distr_l, <- !exp_plus.
      f_equal; f_equal; rewrite D, ?S_INR, plus_INR, mult_INR; ring.
Qed.

End Quotient.
