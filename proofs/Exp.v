(* exp grows. The standard library proves it by the mean value theorem, and so from excluded middle;
   here it follows from the series, and needs the axioms of real numbers alone. *)

From Coq Require Import Reals Lra Lia.
Local Open Scope R_scope.

Lemma exp_series : forall x, Un_cv (sum_f_R0 (fun i => / INR (fact i) * x ^ i)) (exp x).
Proof. intros x. unfold exp. destruct (exist_exp x) as (l & H). exact H. Qed.

Lemma inv_fact_pos : forall i, 0 < / INR (fact i).
Proof. intros i. apply Rinv_0_lt_compat, lt_0_INR, lt_O_fact. Qed.

Lemma constant_cv : forall c, Un_cv (fun _ => c) c.
Proof. intros c e He. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0; auto. Qed.

Lemma cv_le : forall u v a b, (forall n, u n <= v n) -> Un_cv u a -> Un_cv v b -> a <= b.
Proof.
  intros u v a b H U W. destruct (Rle_dec a b) as [L|L]; [exact L|]. exfalso.
  assert (P : 0 < (a - b) / 2) by lra.
  destruct (U _ P) as (n & Hn). destruct (W _ P) as (m & Hm).
  specialize (Hn (n + m)%nat ltac:(lia)). specialize (Hm (n + m)%nat ltac:(lia)).
  specialize (H (n + m)%nat). unfold R_dist in *.
  apply Rabs_def2 in Hn, Hm. lra.
Qed.

Lemma exp_above : forall x, 0 <= x -> 1 + x <= exp x.
Proof.
  intros x H. apply cv_le with (u := fun _ => 1 + x)
    (v := fun n => sum_f_R0 (fun i => / INR (fact i) * x ^ i) (S n)).
  - induction n as [|n IH].
    + cbn. lra.
    + rewrite tech5. pose proof (inv_fact_pos (S (S n))). pose proof (pow_le x (S (S n)) H). nra.
  - apply constant_cv.
  - intros e He. destruct (exp_series x e He) as (N & HN). exists N. intros n Hn. apply HN. lia.
Qed.

Lemma exp_le : forall x y, x <= y -> exp x <= exp y.
Proof.
  intros x y H. replace y with (x + (y - x)) by ring. rewrite exp_plus.
  pose proof (exp_pos x). pose proof (exp_above (y - x) ltac:(lra)). nra.
Qed.

Lemma exp_lt : forall x y, x < y -> exp x < exp y.
Proof.
  intros x y H. replace y with (x + (y - x)) by ring. rewrite exp_plus.
  pose proof (exp_pos x). pose proof (exp_above (y - x) ltac:(lra)). nra.
Qed.

Lemma Rabs_le_inv : forall a b, Rabs a <= b -> - b <= a <= b.
Proof. intros a b H. unfold Rabs in H. destruct (Rcase_abs a); lra. Qed.
