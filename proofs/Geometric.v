(* The geometric law, from a remainder that is rejected and a quotient that counts k with U < e^{-k}. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp Prob Bernoulli BernoulliExp.
Local Open Scope R_scope.

(* A loop that rejects begins again as it was. *)
Lemma rejection_cv : forall (e : nat -> nat -> R) (a r : nat -> R) la lr,
  (forall m, e O m = 0) -> (forall k m, e (S k) m = a m + r m * e k m) ->
  (forall k m, 0 <= e k m <= 1) -> (forall m, 0 <= r m) ->
  Un_cv a la -> Un_cv r lr -> lr < 1 ->
  Un_cv (fun n => e n n) (la / (1 - lr)).
Proof.
  intros e a r la lr E0 ES Er Rp A R L.
  assert (C : forall k m, e k m * (1 - r m) = a m - a m * r m ^ k).
  { induction k as [|k IH]; intros m; [rewrite E0; cbn; ring|].
    rewrite ES. cbn [pow]. replace ((a m + r m * e k m) * (1 - r m))
      with (a m * (1 - r m) + r m * (e k m * (1 - r m))) by ring.
    rewrite IH. ring. }
  assert (P : Un_cv (fun n => r n ^ n) 0).
  { set (q := (1 + Rmax 0 lr) / 2).
    assert (Q : 0 <= q < 1 /\ lr < q).
    { unfold q, Rmax. destruct (Rle_dec 0 lr); lra. }
    intros eps He. destruct (R (q - lr)) as (N1 & H1); [lra|].
    destruct (pow_lt_1_zero q ltac:(rewrite Rabs_right; lra) eps He) as (N2 & H2).
    exists (N1 + N2)%nat. intros n Hn. unfold R_dist in *. rewrite Rminus_0_r.
    specialize (H1 n ltac:(lia)). specialize (H2 n ltac:(lia)).
    apply Rabs_def2 in H1.
    apply Rle_lt_trans with (2 := H2). rewrite !Rabs_right.
    - apply pow_incr. split; [apply Rp | lra].
    - apply Rle_ge, pow_le. lra.
    - apply Rle_ge, pow_le, Rp. }
  assert (X : Un_cv (fun n => e n n * (1 - r n)) la).
  { apply cv_ext with (u := fun n => a n - a n * r n ^ n); [intros; now rewrite C|].
    replace la with (la - la * 0) at 1 by ring. apply CV_minus; [exact A|]. now apply CV_mult. }
  assert (Z0 : Un_cv (fun n => (r n - lr) * e n n) 0).
  { intros eps He. destruct (R eps He) as (N & HN). exists N. intros n Hn. specialize (HN n Hn).
    unfold R_dist in *. rewrite Rminus_0_r, Rabs_mult. destruct (Er n n) as (E1 & E2).
    rewrite (Rabs_right (e n n)) by lra. pose proof (Rabs_pos (r n - lr)). nra. }
  apply cv_ext with (u := fun n => / (1 - lr) * (e n n * (1 - r n) + (r n - lr) * e n n)).
  { intros n. field. lra. }
  replace (la / (1 - lr)) with (/ (1 - lr) * (la + 0)) by (unfold Rdiv; ring).
  apply CV_mult; [apply constant_cv|]. now apply CV_plus.
Qed.

Lemma cv_eventually : forall u v l N, (forall n, (N <= n)%nat -> u n = v n) -> Un_cv u l -> Un_cv v l.
Proof.
  intros u v l N H C e He. destruct (C e He) as (M & HM). exists (N + M)%nat. intros n Hn.
  rewrite <- H by lia. apply HM. lia.
Qed.

Lemma exp_pow : forall x i, exp x ^ i = exp (INR i * x).
Proof.
  intros x. induction i as [|i IH]; [cbn; rewrite Rmult_0_l, exp_0; reflexivity|].
  cbn [pow]. rewrite IH, <- exp_plus, S_INR. f_equal. ring.
Qed.

Lemma ind_range : forall b, 0 <= ind b <= 1. Proof. intros []; cbn; lra. Qed.

(* What telescopes between a and b. *)
Lemma telescope : forall n (h : Z -> R) a b, (0 <= a <= b)%Z -> (b <= Z.of_nat n)%Z ->
  sum n (fun x => ind ((a <=? x) && (x <? b))%Z * (h x - h (x + 1)%Z)) = h a - h b.
Proof.
  induction n as [|n IH]; intros h a b H L.
  - replace b with a by lia. cbn. lra.
  - cbn [sum]. destruct (Z.eq_dec b (Z.of_nat n + 1)) as [->|N].
    + destruct (Z.eq_dec a (Z.of_nat n + 1)) as [->|F].
      * rewrite sum_zero.
        -- rewrite (proj2 (Z.leb_gt _ _)) by lia. cbn. lra.
        -- intros i Hi. rewrite (proj2 (Z.leb_gt _ _)) by lia. cbn. lra.
      * rewrite (sum_ext n _ (fun x => ind ((a <=? x) && (x <? Z.of_nat n))%Z * (h x - h (x + 1)%Z))).
        -- rewrite IH by lia. rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by lia. cbn. lra.
        -- intros i Hi. now rewrite !(proj2 (Z.ltb_lt _ _)) by lia.
    + rewrite IH by lia. rewrite (proj2 (Z.ltb_ge (Z.of_nat n) b)) by lia.
      rewrite andb_false_r. cbn. lra.
Qed.

(* Lemire's method: of the words with the high part u, equally many are kept for every u. *)
Section Lemire.

Variable W num : Z.
Hypothesis W_two : (2 <= W)%Z.
Hypothesis num_range : (1 <= num <= W)%Z.

Definition kept (w : Z) : bool := (W mod num <=? (w * num) mod W)%Z.
Definition high (w : Z) : Z := (w * num / W)%Z.

Lemma high_range : forall w, (0 <= w < W)%Z -> (0 <= high w < num)%Z.
Proof.
  intros w Hw. unfold high. split; [apply Z.div_pos; nia|]. apply Z.div_lt_upper_bound; nia.
Qed.

Lemma kept_count : forall u, (0 <= u < num)%Z ->
  sum (words W) (fun w => ind (kept w) * ind (high w =? u)%Z) = IZR (W / num).
Proof.
  intros u Hu.
  pose proof (Z.div_mod W num ltac:(lia)) as D. pose proof (Z.mod_pos_bound W num ltac:(lia)) as M.
  set (r := (W mod num)%Z) in *. set (q := (W / num)%Z) in *.
  set (ceil := fun a => ((a + num - 1) / num)%Z).
  assert (CL : forall a w, (w * num < a <-> w < ceil a)%Z).
  { intros a w. unfold ceil.
    pose proof (Z.div_mod (a + num - 1) num ltac:(lia)). pose proof (Z.mod_pos_bound (a + num - 1) num ltac:(lia)).
    nia. }
  set (a := ceil (u * W + r)%Z). set (b := ceil ((u + 1) * W)%Z).
  assert (B : (b = a + q)%Z).
  { unfold a, b, ceil. replace ((u + 1) * W + num - 1)%Z with (u * W + r + num - 1 + q * num)%Z by nia.
    now rewrite Z.div_add by lia. }
  assert (Q0 : (0 <= q)%Z) by (unfold q; apply Z.div_pos; lia).
  assert (A0 : (0 <= a)%Z) by (unfold a, ceil; apply Z.div_pos; nia).
  assert (BW : (b <= W)%Z).
  { destruct (Z_le_gt_dec b W) as [L|L]; [exact L|].
    assert (X : (W < b)%Z) by lia. unfold b in X. apply CL in X. nia. }
  rewrite (sum_ext _ _ (fun w => ind ((a <=? w) && (w <? b))%Z)).
  - rewrite sum_between by (rewrite ?words_W; lia). f_equal. lia.
  - intros w Hw. rewrite words_W in Hw by assumption. unfold kept, high. fold r.
    pose proof (Z.div_mod (w * num) W ltac:(lia)) as D2.
    pose proof (Z.mod_pos_bound (w * num) W ltac:(lia)) as M2.
    set (hi := (w * num / W)%Z) in *. set (lo := ((w * num) mod W)%Z) in *.
    pose proof (CL (u * W + r)%Z w) as C1. pose proof (CL ((u + 1) * W)%Z w) as C2. fold a in C1. fold b in C2.
    destruct (Z.eqb_spec hi u) as [Eh|Nh].
    + destruct (Z.leb_spec r lo) as [K|K].
      * rewrite (proj2 (Z.leb_le a w)), (proj2 (Z.ltb_lt w b)).
        -- cbn. lra.
        -- apply C2. nia.
        -- destruct (Z_le_gt_dec a w); [assumption|]. assert (w < a)%Z by lia. apply C1 in H. nia.
      * rewrite (proj2 (Z.leb_gt a w)); [cbn; lra|]. apply C1. nia.
    + replace (ind ((a <=? w) && (w <? b))%Z) with 0; [cbn; lra|].
      destruct (Z_le_gt_dec (u + 1) hi) as [G|G].
      * rewrite (proj2 (Z.ltb_ge w b)); [rewrite andb_false_r; reflexivity|].
        destruct (Z_lt_le_dec w b); [|assumption]. apply C2 in l. nia.
      * rewrite (proj2 (Z.leb_gt a w)); [reflexivity|]. apply C1. nia.
Qed.

Theorem lemire : forall g,
  sum (words W) (fun w => ind (kept w) * g (high w)) =
  IZR (W / num) * sum (Z.to_nat num) g.
Proof.
  intros g.
  rewrite (sum_ext _ _ (fun w => sum (Z.to_nat num) (fun u => ind (kept w) * ind (high w =? u)%Z * g u))).
  - rewrite sum_swap, <- sum_scal. apply sum_ext. intros u Hu.
    rewrite (sum_ext _ _ (fun w => g u * (ind (kept w) * ind (high w =? u)%Z))) by (intros; ring).
    rewrite sum_scal, kept_count by lia. ring.
  - intros w Hw. rewrite words_W in Hw by assumption. pose proof (high_range w Hw) as HR.
    rewrite (sum_ext _ _ (fun u => ind (u =? high w)%Z * (ind (kept w) * g u))).
    + now rewrite sum_one by lia.
    + intros u _. rewrite Z.eqb_sym. ring.
Qed.

Notation E := (E W).

(* U has a mass proportional to exp(−U/num), on 0, …, num−1. *)
Fixpoint draws (fuel m : nat) : prog Z :=
  match fuel with
  | O => Fail
  | S fuel => Word (fun w =>
      if kept w
      then bind (fraction W m (high w) num) (fun b => if b then Ret (high w) else draws fuel m)
      else draws fuel m)
  end.

Definition remainder (fuel m : nat) : prog Z := if (num =? 1)%Z then Ret 0%Z else draws fuel m.

Definition yes (m : nat) (u : Z) : R := E (fraction W m u num) heads.
Definition no (m : nat) (u : Z) : R := E (fraction W m u num) tails.
Definition share : R := / IZR W * IZR (W / num).
Definition again (m : nat) : R :=
  share * sum (Z.to_nat num) (no m) + (1 - share * INR (Z.to_nat num)).

Lemma draws_S : forall fuel m f,
  E (draws (S fuel) m) f =
  share * sum (Z.to_nat num) (fun u => yes m u * f u) + again m * E (draws fuel m) f.
Proof.
  pose proof (W_pos W W_two) as HW. intros fuel m f. cbn [draws Prob.E].
  set (C := E (draws fuel m) f).
  rewrite (sum_ext _ _ (fun w => ind (kept w) * (yes m (high w) * f (high w)) +
    C * (ind (kept w) * no m (high w)) + (C + (- C) * (ind (kept w) * 1)))).
  - rewrite !sum_plus, !sum_scal, sum_const.
    rewrite (lemire (fun u => yes m u * f u)), (lemire (no m)), (lemire (fun _ => 1)).
    rewrite sum_const, words_IZR by assumption. unfold again, share. field. lra.
  - intros w _. destruct (kept w); cbn [ind]; [|unfold C; ring].
    rewrite E_bind, (E_bool W). cbn [Prob.E]. unfold yes, no, C. ring.
Qed.

Lemma share_range : 0 < share /\ share * INR (Z.to_nat num) <= 1.
Proof.
  pose proof (W_pos W W_two) as HW. unfold share.
  assert (I : 0 < / IZR W) by (apply Rinv_0_lt_compat; lra). split.
  - apply Rmult_lt_0_compat; [exact I|]. apply IZR_lt. apply Z.div_str_pos. lia.
  - rewrite INR_IZR_INZ, Z2Nat.id by lia. rewrite Rmult_assoc, <- mult_IZR.
    apply Rmult_le_reg_l with (IZR W); [lra|]. rewrite <- Rmult_assoc, Rinv_r by lra.
    rewrite Rmult_1_l, Rmult_1_r. apply IZR_le. rewrite Z.mul_comm. apply Z.mul_div_le. lia.
Qed.

Definition root (x : Z) : R := exp (- (IZR x / IZR num)).

Lemma num_pos : 0 < IZR num. Proof. apply IZR_lt. lia. Qed.

Lemma root_plus : forall x y, root (x + y) = root x * root y.
Proof.
  intros x y. unfold root. rewrite <- exp_plus, plus_IZR. f_equal. pose proof num_pos. field. lra.
Qed.

Lemma root_num : forall v, root (num * v) = exp (- IZR v).
Proof. intros v. unfold root. rewrite mult_IZR. f_equal. pose proof num_pos. field. lra. Qed.

Lemma root_0 : root 0 = 1.
Proof. unfold root, Rdiv. rewrite Rmult_0_l, Ropp_0. apply exp_0. Qed.

Lemma root_lt : forall x y, (x < y)%Z -> root y < root x.
Proof.
  intros x y H. unfold root. apply exp_lt, Ropp_lt_contravar. pose proof num_pos.
  apply Rmult_lt_compat_r; [now apply Rinv_0_lt_compat | now apply IZR_lt].
Qed.

Definition norm : R := sum (Z.to_nat num) root.

Lemma norm_spec : norm * (1 - root 1) = 1 - exp (-1).
Proof.
  unfold norm. rewrite Rmult_comm, <- sum_scal.
  rewrite (sum_ext _ _ (fun x => ind ((0 <=? x) && (x <? num))%Z * (root x - root (x + 1)))).
  - rewrite telescope by lia. rewrite root_0. f_equal.
    unfold root. f_equal. pose proof num_pos. field. lra.
  - intros x Hx. rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by lia. cbn [ind andb].
    rewrite root_plus. ring.
Qed.

Lemma norm_pos : 0 < norm.
Proof.
  pose proof norm_spec as S. pose proof (root_lt 0 1 ltac:(lia)) as L. rewrite root_0 in L.
  assert (X : exp (-1) < 1) by (rewrite <- exp_0; apply exp_lt; lra).
  destruct (Rle_lt_dec norm 0); [|assumption]. nra.
Qed.

Lemma yes_no_cv : forall u, (0 <= u < num)%Z ->
  Un_cv (fun m => yes m u) (root u) /\ Un_cv (fun m => no m u) (1 - root u).
Proof. intros u Hu. unfold yes, no, root. apply fraction_law; lia. Qed.

Lemma draws_cv : forall u, (0 <= u < num)%Z ->
  Un_cv (fun n => E (draws n n) (fun x => ind (x =? u)%Z)) (root u / norm).
Proof.
  intros u Hu. pose proof share_range as (S0 & S1). pose proof norm_pos as N0.
  set (lr := share * (INR (Z.to_nat num) - norm) + (1 - share * INR (Z.to_nat num))).
  assert (LR : 1 - lr = share * norm) by (unfold lr; ring).
  replace (root u / norm) with (share * root u / (1 - lr)) by (rewrite LR; field; lra).
  apply rejection_cv with (e := fun k m => E (draws k m) (fun x => ind (x =? u)%Z))
    (a := fun m => share * yes m u) (r := again).
  - reflexivity.
  - intros k m. rewrite draws_S. f_equal. f_equal.
    rewrite (sum_ext _ _ (fun x => ind (x =? u)%Z * yes m x)) by (intros; ring).
    apply sum_one. lia.
  - intros k m. apply E_range; [assumption|]. intros. apply ind_range.
  - intros m. unfold again.
    assert (0 <= sum (Z.to_nat num) (no m)); [|nra].
    apply sum_nonneg. intros x. apply E_range; [assumption|]. intros []; cbn; lra.
  - apply CV_mult; [apply constant_cv | now apply yes_no_cv].
  - unfold again, lr. apply CV_plus; [|apply constant_cv]. apply CV_mult; [apply constant_cv|].
    replace (INR (Z.to_nat num) - norm) with (sum (Z.to_nat num) (fun x => 1 - root x)).
    + apply sum_cv. intros x Hx. apply yes_no_cv. lia.
    + unfold norm. rewrite (sum_ext _ _ (fun x => 1 + (-1) * root x)) by (intros; ring).
      rewrite sum_plus, sum_scal, sum_const. ring.
  - assert (0 < share * norm) by now apply Rmult_lt_0_compat. lra.
Qed.

Lemma draws_sum : forall fuel m f,
  E (draws fuel m) f =
  sum (Z.to_nat num) (fun u => E (draws fuel m) (fun x => ind (x =? u)%Z) * f u).
Proof.
  induction fuel as [|fuel IH]; intros m f.
  - cbn [draws Prob.E]. symmetry. apply sum_zero. intros; ring.
  - rewrite draws_S, IH.
    rewrite (sum_ext _ (fun u => E (draws (S fuel) m) _ * f u)
      (fun u => share * (yes m u * f u) + again m * (E (draws fuel m) (fun x => ind (x =? u)%Z) * f u))).
    + rewrite sum_plus, !sum_scal. reflexivity.
    + intros u Hu. rewrite draws_S.
      rewrite (sum_ext _ _ (fun x => ind (x =? u)%Z * yes m x)) by (intros; ring).
      rewrite sum_one by lia. ring.
Qed.

Theorem remainder_law : forall u, (0 <= u < num)%Z ->
  Un_cv (fun n => E (remainder n n) (fun x => ind (x =? u)%Z)) (root u / norm).
Proof.
  intros u Hu. unfold remainder. destruct (Z.eqb_spec num 1) as [E1|N]; [|now apply draws_cv].
  replace u with 0%Z by lia. replace (root 0 / norm) with 1.
  - cbn. apply constant_cv.
  - unfold norm. rewrite E1. change (Z.to_nat 1) with 1%nat. cbn [sum]. change (Z.of_nat 0) with 0%Z.
    rewrite root_0. field.
Qed.

Lemma remainder_sum : forall n m f,
  E (remainder n m) f =
  sum (Z.to_nat num) (fun u => E (remainder n m) (fun x => ind (x =? u)%Z) * f u).
Proof.
  intros n m f. unfold remainder. destruct (Z.eqb_spec num 1) as [E1|N]; [|apply draws_sum].
  rewrite E1. change (Z.to_nat 1) with 1%nat. cbn. ring.
Qed.

End Lemire.
