(* Programs that draw words, and the mass of what they return.

   A word is one of 0, …, W−1, each with probability 1/W; a sampler in Go draws it with Uint64, and
   W is 2^64. A loop has fuel: one that runs out returns nothing, so that a program has finitely many
   runs and its masses add up to at most 1. The law of a sampler is the limit of its masses as the
   fuel grows; where these limits add up to 1, it ends with probability 1. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp.
Local Open Scope R_scope.

Inductive prog (A : Type) : Type :=
| Ret (a : A)
| Fail
| Word (k : Z -> prog A).
Arguments Ret {A}. Arguments Fail {A}. Arguments Word {A}.

Fixpoint bind {A B} (p : prog A) (k : A -> prog B) : prog B :=
  match p with
  | Ret a => k a
  | Fail => Fail
  | Word f => Word (fun w => bind (f w) k)
  end.

(* Σ g over 0, …, n−1. *)
Fixpoint sum (n : nat) (g : Z -> R) : R :=
  match n with O => 0 | S n => sum n g + g (Z.of_nat n) end.

Definition ind (b : bool) : R := if b then 1 else 0.

Lemma sum_ext : forall n g h, (forall i, (0 <= i < Z.of_nat n)%Z -> g i = h i) -> sum n g = sum n h.
Proof.
  induction n as [|n IH]; intros g h H; cbn [sum]; [reflexivity|].
  rewrite (IH g h), H; [reflexivity | lia | intros; apply H; lia].
Qed.

Lemma sum_le : forall n g h, (forall i, (0 <= i < Z.of_nat n)%Z -> g i <= h i) -> sum n g <= sum n h.
Proof.
  induction n as [|n IH]; intros g h H; cbn [sum]; [lra|].
  apply Rplus_le_compat; [apply IH; intros; apply H; lia | apply H; lia].
Qed.

Lemma sum_plus : forall n g h, sum n (fun i => g i + h i) = sum n g + sum n h.
Proof. induction n as [|n IH]; intros; cbn [sum]; [lra|]. rewrite IH. lra. Qed.

Lemma sum_scal : forall n c g, sum n (fun i => c * g i) = c * sum n g.
Proof. induction n as [|n IH]; intros; cbn [sum]; [lra|]. rewrite IH. lra. Qed.

Lemma sum_const : forall n c, sum n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; intros; [cbn; lra|]. cbn [sum]. rewrite IH, S_INR. lra. Qed.

Lemma sum_zero : forall n g, (forall i, (0 <= i < Z.of_nat n)%Z -> g i = 0) -> sum n g = 0.
Proof. intros n g H. rewrite (sum_ext n g (fun _ => 0)); [rewrite sum_const; lra | exact H]. Qed.

Lemma sum_nonneg : forall n g, (forall i, 0 <= g i) -> 0 <= sum n g.
Proof. induction n as [|n IH]; intros g H; cbn [sum]; [lra|]. specialize (IH g H). specialize (H (Z.of_nat n)). lra. Qed.

Lemma sum_swap : forall n m g, sum n (fun i => sum m (fun j => g i j)) = sum m (fun j => sum n (fun i => g i j)).
Proof.
  induction n as [|n IH]; intros m g; cbn [sum].
  - symmetry. now apply sum_zero.
  - rewrite IH, <- sum_plus. reflexivity.
Qed.

Lemma sum_cv : forall n (u : nat -> Z -> R) v,
  (forall i, (0 <= i < Z.of_nat n)%Z -> Un_cv (fun m => u m i) (v i)) ->
  Un_cv (fun m => sum n (u m)) (sum n v).
Proof.
  induction n as [|n IH]; intros u v H; cbn [sum].
  - apply constant_cv.
  - apply CV_plus; [apply IH; intros; apply H; lia | apply H; lia].
Qed.

(* One index counts. *)
Lemma sum_one : forall n a g, (0 <= a < Z.of_nat n)%Z ->
  sum n (fun i => ind (i =? a)%Z * g i) = g a.
Proof.
  induction n as [|n IH]; intros a g H; [lia|]. cbn [sum].
  destruct (Z.eqb_spec (Z.of_nat n) a) as [E|E].
  - rewrite sum_zero; [subst; cbn; lra|].
    intros i Hi. destruct (Z.eqb_spec i a); [lia|]. cbn. lra.
  - rewrite IH by lia. cbn. lra.
Qed.

(* The indices from a until before b count. *)
Lemma sum_between : forall n a b, (0 <= a <= b)%Z -> (b <= Z.of_nat n)%Z ->
  sum n (fun i => ind ((a <=? i) && (i <? b))%Z) = IZR (b - a).
Proof.
  induction n as [|n IH]; intros a b H L.
  - replace (b - a)%Z with 0%Z by lia. reflexivity.
  - cbn [sum]. destruct (Z.eq_dec b (Z.of_nat n + 1)) as [->|E].
    + destruct (Z.eq_dec a (Z.of_nat n + 1)) as [->|F].
      * rewrite sum_zero; [|intros i Hi; rewrite (proj2 (Z.leb_gt _ _)); [reflexivity|lia]].
        rewrite (proj2 (Z.leb_gt _ _)) by lia. cbn. rewrite Z.sub_diag. cbn. lra.
      * rewrite (sum_ext n _ (fun i => ind ((a <=? i) && (i <? Z.of_nat n))%Z)).
        -- rewrite IH by lia. rewrite (proj2 (Z.leb_le _ _)), (proj2 (Z.ltb_lt _ _)) by lia. cbn.
           rewrite <- plus_IZR. f_equal. lia.
        -- intros i Hi. now rewrite !(proj2 (Z.ltb_lt _ _)) by lia.
    + rewrite IH by lia. rewrite (proj2 (Z.ltb_ge (Z.of_nat n) b)) by lia.
      rewrite andb_false_r. cbn. lra.
Qed.

(* Sums in blocks: n·d indices are those of d blocks of n. *)
Lemma sum_app : forall n m g, sum (n + m) g = sum n g + sum m (fun i => g (Z.of_nat n + i)%Z).
Proof.
  intros n. induction m as [|m IH]; intros g.
  - rewrite Nat.add_0_r. cbn. lra.
  - rewrite Nat.add_succ_r. cbn [sum]. rewrite IH, Nat2Z.inj_add. lra.
Qed.

Lemma sum_blocks : forall n d g,
  sum (d * n) g = sum d (fun j => sum n (fun i => g (i + Z.of_nat n * j)%Z)).
Proof.
  intros n. induction d as [|d IH]; intros g; [reflexivity|].
  replace (S d * n)%nat with (d * n + n)%nat by lia. rewrite sum_app, IH. cbn [sum]. f_equal.
  apply sum_ext. intros i _. f_equal. lia.
Qed.

Section Mass.

Variable W : Z.
Hypothesis W_two : (2 <= W)%Z.

Definition words : nat := Z.to_nat W.

Lemma words_W : Z.of_nat words = W.
Proof. unfold words. rewrite Z2Nat.id; lia. Qed.

Lemma words_IZR : INR words = IZR W.
Proof. rewrite INR_IZR_INZ, words_W. reflexivity. Qed.

Lemma W_pos : 2 <= IZR W.
Proof. now apply IZR_le in W_two. Qed.

(* What the test f expects of what the program returns; with an indicator, a mass. *)
Fixpoint E {A} (p : prog A) (f : A -> R) : R :=
  match p with
  | Ret a => f a
  | Fail => 0
  | Word k => / IZR W * sum words (fun w => E (k w) f)
  end.

Lemma E_bind : forall A B (p : prog A) (k : A -> prog B) f,
  E (bind p k) f = E p (fun a => E (k a) f).
Proof.
  induction p as [a| |g IH]; intros k f; cbn [bind E]; [reflexivity|reflexivity|].
  f_equal. apply sum_ext. intros w _. apply IH.
Qed.

Lemma E_ext : forall A (p : prog A) f g, (forall a, f a = g a) -> E p f = E p g.
Proof.
  induction p as [a| |k IH]; intros f g H; cbn [E]; auto.
  f_equal. apply sum_ext. intros w _. now apply IH.
Qed.

Lemma E_plus : forall A (p : prog A) f g, E p (fun a => f a + g a) = E p f + E p g.
Proof.
  induction p as [a| |k IH]; intros f g; cbn [E]; [lra|lra|].
  rewrite <- Rmult_plus_distr_l, <- sum_plus. f_equal. apply sum_ext. intros. apply IH.
Qed.

Lemma E_scal : forall A (p : prog A) c f, E p (fun a => c * f a) = c * E p f.
Proof.
  induction p as [a| |k IH]; intros c f; cbn [E]; [lra|lra|].
  rewrite (sum_ext _ _ (fun w => c * E (k w) f)) by (intros; apply IH). rewrite sum_scal. lra.
Qed.

Lemma E_zero : forall A (p : prog A), E p (fun _ => 0) = 0.
Proof.
  intros A p. rewrite (E_ext _ p _ (fun a => 0 * 0)) by (intros; lra). rewrite E_scal. lra.
Qed.

Lemma E_sum : forall A (p : prog A) n (f : Z -> A -> R),
  E p (fun a => sum n (fun i => f i a)) = sum n (fun i => E p (f i)).
Proof.
  intros A p. induction n as [|n IH]; intros f; cbn [sum]; [apply E_zero|].
  rewrite E_plus, IH. reflexivity.
Qed.

Lemma E_range : forall A (p : prog A) f, (forall a, 0 <= f a <= 1) -> 0 <= E p f <= 1.
Proof.
  pose proof W_pos as HW. intros A p f H. induction p as [a| |k IH]; cbn [E]; [auto|lra|].
  assert (P : 0 < / IZR W) by (apply Rinv_0_lt_compat; lra).
  split.
  - apply Rmult_le_pos; [lra|]. apply sum_nonneg. intros. apply IH.
  - apply Rle_trans with (/ IZR W * sum words (fun _ => 1)).
    + apply Rmult_le_compat_l; [lra|]. apply sum_le. intros. apply IH.
    + rewrite sum_const, words_IZR. right. field. lra.
Qed.

(* A coin returns true or false. *)
Definition heads (b : bool) : R := ind b.
Definition tails (b : bool) : R := ind (negb b).

Lemma E_bool : forall (p : prog bool) f,
  E p f = E p heads * f true + E p tails * f false.
Proof.
  intros p f. rewrite (E_ext _ p f (fun b => f true * heads b + f false * tails b)).
  - rewrite E_plus, !E_scal. lra.
  - intros []; cbn; lra.
Qed.

Lemma heads_range : forall b, 0 <= heads b <= 1. Proof. intros []; cbn; lra. Qed.
Lemma tails_range : forall b, 0 <= tails b <= 1. Proof. intros []; cbn; lra. Qed.

(* The coin p has probability q, but for an error of e. *)
Definition near (p : prog bool) (q e : R) : Prop :=
  Rabs (E p heads - q) <= e /\ Rabs (E p tails - (1 - q)) <= e.

Definition eps (m : nat) : R := / IZR W ^ m.

Lemma eps_pos : forall m, 0 < eps m.
Proof. intros m. pose proof W_pos. apply Rinv_0_lt_compat, pow_lt. lra. Qed.

Lemma eps_S : forall m, eps (S m) = / IZR W * eps m.
Proof. intros m. unfold eps. cbn [pow]. now rewrite Rinv_mult. Qed.

(* m·W^{-m} → 0 *)
Lemma eps_cv : forall c, Un_cv (fun m => c * INR m * eps m) 0.
Proof.
  pose proof W_pos as HW.
  assert (B : forall m, INR m * eps m <= 4 / INR (S m)).
  { (* m(m+1) ≤ 4·2^m ≤ 4·W^m *)
    assert (P : forall m, INR m * INR (S m) <= 4 * 2 ^ m).
    { induction m as [|m IH]; [cbn; lra|]. cbn [pow]. rewrite !S_INR in *.
      destruct (le_lt_dec m 1) as [L|L].
      - destruct m as [|[|m]]; cbn in *; try lra; lia.
      - assert (2 <= INR m) by (apply (le_INR 2); lia). nra. }
    intros m. apply Rmult_le_reg_r with (IZR W ^ m); [apply pow_lt; lra|].
    unfold eps. rewrite Rmult_assoc, Rinv_l by (apply pow_nonzero; lra).
    pose proof (P m) as Pm. pose proof (pow_incr 2 (IZR W) m ltac:(lra)) as I.
    assert (S0 : 0 < INR (S m)) by (apply lt_0_INR; lia).
    apply Rmult_le_reg_r with (INR (S m)); [exact S0|].
    unfold Rdiv. replace (4 * / INR (S m) * IZR W ^ m * INR (S m)) with (4 * IZR W ^ m) by (field; lra).
    lra. }
  assert (C : Un_cv (fun m => INR m * eps m) 0).
  { intros e He. destruct (archimed (4 / e)) as (A1 & _).
    assert (A0 : 0 < 4 / e) by (apply Rdiv_lt_0_compat; lra).
    exists (Z.to_nat (up (4 / e))). intros n Hn. unfold R_dist. rewrite Rminus_0_r, Rabs_right.
    - apply Rle_lt_trans with (1 := B n).
      assert (L : 4 / e < INR (S n)).
      { rewrite S_INR. apply Rlt_le_trans with (1 := A1). apply Rle_trans with (INR n); [|lra].
        rewrite INR_IZR_INZ. apply IZR_le. lia. }
      assert (S0 : 0 < INR (S n)) by lra.
      apply Rmult_lt_reg_r with (INR (S n)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      apply Rmult_lt_compat_r with (r := e) in L; [|lra]. unfold Rdiv in L.
      rewrite Rmult_assoc, Rinv_l in L by lra. lra.
    - apply Rle_ge, Rmult_le_pos; [apply pos_INR | left; apply eps_pos]. }
  intros c. replace 0 with (c * 0) by ring.
  assert (D := CV_mult (fun _ => c) _ _ _ (constant_cv c) C).
  intros e He. destruct (D e He) as (N & HN). exists N. intros n Hn. specialize (HN n Hn).
  now rewrite Rmult_assoc.
Qed.

(* What is near, with an error that vanishes, is a limit. *)
Lemma squeeze : forall u l c,
  (forall m, (1 <= m)%nat -> Rabs (u m - l) <= c * INR m * eps m) -> Un_cv u l.
Proof.
  intros u l c H e He. destruct (eps_cv c e He) as (N & HN). exists (S N). intros n Hn.
  specialize (HN n ltac:(lia)). unfold R_dist in *. rewrite Rminus_0_r in HN.
  apply Rle_lt_trans with (1 := H n ltac:(lia)). apply Rle_lt_trans with (2 := HN). apply RRle_abs.
Qed.

Lemma near_cv : forall p q c, (forall m, near (p m) q (c * eps m)) -> 0 <= c ->
  Un_cv (fun m => E (p m) heads) q /\ Un_cv (fun m => E (p m) tails) (1 - q).
Proof.
  intros p q c H C.
  assert (L : forall m, (1 <= m)%nat -> c * eps m <= c * INR m * eps m).
  { intros m Hm. rewrite Rmult_assoc. apply Rmult_le_compat_l; [exact C|].
    pose proof (eps_pos m). apply (le_INR 1) in Hm. cbn in Hm. nra. }
  split; apply squeeze with c; intros m Hm; specialize (L m Hm); destruct (H m); lra.
Qed.

Lemma cv_shift : forall u l, Un_cv (fun n => u (S n)) l -> Un_cv u l.
Proof.
  intros u l H e He. destruct (H e He) as (N & HN). exists (S N). intros n Hn.
  destruct n as [|n]; [lia|]. apply HN. lia.
Qed.

Lemma cv_ext : forall u v l, (forall n, u n = v n) -> Un_cv u l -> Un_cv v l.
Proof. intros u v l H C e He. destruct (C e He) as (N & HN). exists N. intros n Hn. rewrite <- H. auto. Qed.

End Mass.
