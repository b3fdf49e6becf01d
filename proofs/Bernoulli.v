(* bernoulli: a coin of a rational number, which compares it with a uniform number digit by digit. *)

From Coq Require Import Reals ZArith Bool Lia Lra.
From Sotto Require Import Exp Prob.
Local Open Scope R_scope.

Section Bernoulli.

Variable W : Z.
Hypothesis W_two : (2 <= W)%Z.

Notation E := (E W).
Notation words := (words W).
Notation eps := (eps W).
Notation near := (near W).

(* True with probability n/d, for 0 ≤ n ≤ d, d ≥ 1. *)
Fixpoint bernoulli (m : nat) (n d : Z) : prog bool :=
  match m with
  | O => Fail
  | S m => Word (fun w =>
      let diff := n * W - w * d in
      if diff <=? 0 then Ret false
      else if d <=? diff then Ret true
      else bernoulli m diff d)%Z
  end.

(* The same as Go has it: hi and lo are the two words of w·d, and −lo is taken modulo W. *)
Fixpoint bernoulli_go (m : nat) (n d : Z) : prog bool :=
  match m with
  | O => Fail
  | S m => Word (fun w =>
      let hi := w * d / W in
      let lo := (w * d) mod W in
      if n <=? hi then Ret false
      else if (hi <? n - 1) || (lo =? 0) || (d <=? (- lo) mod W) then Ret true
      else bernoulli_go m ((- lo) mod W) d)%Z
  end.

(* The words of Go are those of the model: on the same words they return the same. *)
Fixpoint run {A} (p : prog A) (ws : nat -> Z) (i : nat) : option (A * nat) :=
  match p with
  | Ret a => Some (a, i)
  | Fail => None
  | Word k => run (k (ws i)) ws (S i)
  end.

Theorem bernoulli_go_is_bernoulli : forall m n d ws i,
  (forall i, 0 <= ws i < W)%Z -> (0 <= n <= d)%Z -> (1 <= d < W)%Z ->
  run (bernoulli_go m n d) ws i = run (bernoulli m n d) ws i.
Proof.
  induction m as [|m IH]; intros n d ws i Hw Hn Hd; [reflexivity|]. cbn [bernoulli bernoulli_go run].
  set (w := ws i). specialize (Hw i) as Hwi. fold w in Hwi.
  pose proof (Z.div_mod (w * d) W ltac:(lia)) as D. pose proof (Z.mod_pos_bound (w * d) W ltac:(lia)) as M.
  set (hi := (w * d / W)%Z) in *. set (lo := ((w * d) mod W)%Z) in *.
  destruct (Z.leb_spec n hi) as [L|L].
  - rewrite (proj2 (Z.leb_le _ _)) by nia. reflexivity.
  - rewrite (proj2 (Z.leb_gt (n * W - w * d) 0)) by nia.
    destruct (Z.ltb_spec hi (n - 1)) as [K|K]; cbn [orb].
    + rewrite (proj2 (Z.leb_le d _)) by nia. reflexivity.
    + destruct (Z.eqb_spec lo 0) as [Z0|Z0]; cbn [orb].
      * rewrite (proj2 (Z.leb_le d _)) by nia. reflexivity.
      * assert (G : ((- lo) mod W = n * W - w * d)%Z).
        { rewrite Z.mod_opp_l_nz; [rewrite Z.mod_small by lia; nia | lia | rewrite Z.mod_small; lia]. }
        rewrite G. destruct (Z.leb_spec d (n * W - w * d)) as [Q|Q]; [reflexivity|].
        apply IH; auto. nia.
Qed.

(* How much of [w·d, (w+1)·d) is below a, which is d·P(U < a/(W·d) | w). *)
Definition part (a d w : Z) : Z := Z.max 0 (Z.min d (a - w * d)).

Lemma part_full : forall n a d, (1 <= d)%Z -> (Z.of_nat n * d <= a)%Z ->
  sum n (fun w => IZR (part a d w)) = IZR (Z.of_nat n * d).
Proof.
  intros n a d Hd H. rewrite (sum_ext n _ (fun _ => IZR d)).
  - rewrite sum_const, INR_IZR_INZ, mult_IZR. reflexivity.
  - intros w Hw. f_equal. unfold part. nia.
Qed.

Lemma part_sum : forall n a d, (1 <= d)%Z -> (0 <= a <= Z.of_nat n * d)%Z ->
  sum n (fun w => IZR (part a d w)) = IZR a.
Proof.
  induction n as [|n IH]; intros a d Hd H.
  - cbn [sum]. f_equal. lia.
  - cbn [sum]. destruct (Z_le_gt_dec a (Z.of_nat n * d)) as [L|L].
    + rewrite IH by lia. unfold part. rewrite <- plus_IZR. f_equal. nia.
    + rewrite part_full by lia. rewrite <- plus_IZR. f_equal. unfold part. nia.
Qed.

(* The word that does not decide: there is one at most. *)
Definition open (a d w : Z) : bool := ((0 <? a - w * d) && (a - w * d <? d))%Z.

Lemma open_sum : forall n a d, (1 <= d)%Z -> sum n (fun w => ind (open a d w)) <= 1.
Proof.
  induction n as [|n IH]; intros a d Hd; cbn [sum]; [lra|].
  destruct (open a d (Z.of_nat n)) eqn:O; cbn [ind].
  - rewrite sum_zero; [lra|]. intros i Hi. unfold open in *.
    apply andb_true_iff in O as (O1 & O2). apply Z.ltb_lt in O1, O2.
    rewrite (proj2 (Z.ltb_ge (a - i * d) d)) by nia. now rewrite andb_false_r.
  - specialize (IH a d Hd). lra.
Qed.

Lemma inv_W : 0 < / IZR W <= 1.
Proof.
  pose proof (W_pos W W_two). split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1 at 1. apply Rinv_le_contravar; lra.
Qed.

(* What each word says: a share of the test, but for an error where the word does not decide. *)
Lemma word_near : forall (g q : Z -> R) (a d : Z) e, (1 <= d)%Z -> 0 <= e ->
  (forall w, (0 <= w < W)%Z -> Rabs (g w - q w) <= e * ind (open a d w)) ->
  Rabs (/ IZR W * sum words g - / IZR W * sum words q) <= / IZR W * e.
Proof.
  intros g q a d e Hd He H. pose proof inv_W as IW.
  rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_right (/ IZR W)) by lra.
  apply Rmult_le_compat_l; [lra|].
  pose proof (open_sum words a d Hd) as O.
  assert (U : sum words g <= sum words q + e * sum words (fun w => ind (open a d w))).
  { rewrite <- sum_scal, <- sum_plus. apply sum_le. intros w Hw.
    rewrite words_W in Hw by assumption. specialize (H w Hw). apply Rabs_le_inv in H. lra. }
  assert (L : sum words q <= sum words g + e * sum words (fun w => ind (open a d w))).
  { rewrite <- sum_scal, <- sum_plus. apply sum_le. intros w Hw.
    rewrite words_W in Hw by assumption. specialize (H w Hw). apply Rabs_le_inv in H. lra. }
  apply Rabs_le. nra.
Qed.

Lemma bernoulli_near : forall m n d, (0 <= n <= d)%Z -> (1 <= d)%Z ->
  near (bernoulli m n d) (IZR n / IZR d) (eps m).
Proof.
  pose proof (W_pos W W_two) as HW. pose proof inv_W as IW.
  induction m as [|m IH]; intros n d Hn Hd.
  - assert (D : 0 < IZR d) by (apply IZR_lt; lia).
    assert (Q : 0 <= IZR n / IZR d <= 1).
    { split; [apply Rmult_le_pos; [apply IZR_le; lia | left; now apply Rinv_0_lt_compat]|].
      apply Rmult_le_reg_r with (IZR d); [exact D|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
      rewrite Rmult_1_l, Rmult_1_r. apply IZR_le. lia. }
    unfold Prob.near, Prob.eps. cbn [bernoulli Prob.E pow]. rewrite Rinv_1.
    split; apply Rabs_le; lra.
  - assert (D : 0 < IZR d) by (apply IZR_lt; lia).
    set (a := (n * W)%Z).
    assert (S1 : / IZR W * sum words (fun w => IZR (part a d w) / IZR d) = IZR n / IZR d).
    { rewrite (sum_ext _ _ (fun w => / IZR d * IZR (part a d w))) by (intros; unfold Rdiv; ring).
      rewrite sum_scal, part_sum; [|lia|rewrite words_W by assumption; unfold a; nia].
      unfold a. rewrite mult_IZR. field. lra. }
    assert (S2 : / IZR W * sum words (fun w => 1 - IZR (part a d w) / IZR d) = 1 - IZR n / IZR d).
    { rewrite <- S1. rewrite (sum_ext _ _ (fun w => 1 + (-1) * (IZR (part a d w) / IZR d))) by (intros; ring).
      rewrite sum_plus, sum_scal, sum_const, words_IZR by assumption. field. lra. }
    unfold Prob.near. rewrite <- S2. rewrite <- S1 at 1. rewrite eps_S.
    pose proof (eps_pos W W_two m) as EP.
    cbn [bernoulli Prob.E]. fold a.
    assert (C : forall w, (0 <= w < W)%Z ->
      near (if (a - w * d <=? 0)%Z then Ret false else if (d <=? a - w * d)%Z then Ret true
            else bernoulli m (a - w * d) d)
        (IZR (part a d w) / IZR d) (eps m * ind (open a d w))).
    { intros w Hw. unfold open. destruct (Z.leb_spec (a - w * d) 0) as [L|L].
      - rewrite (proj2 (Z.ltb_ge _ _)) by lia. unfold part.
        replace (Z.max 0 (Z.min d (a - w * d))) with 0%Z by lia.
        unfold Prob.near. cbn. unfold Rdiv. rewrite Rmult_0_l, Rmult_0_r. split; apply Rabs_le; lra.
      - rewrite (proj2 (Z.ltb_lt _ _)) by lia. destruct (Z.leb_spec d (a - w * d)) as [K|K].
        + rewrite (proj2 (Z.ltb_ge _ _)) by lia. unfold part.
          replace (Z.max 0 (Z.min d (a - w * d))) with d by lia.
          unfold Prob.near. cbn. unfold Rdiv. rewrite Rinv_r, Rmult_0_r by lra. split; apply Rabs_le; lra.
        + rewrite (proj2 (Z.ltb_lt _ _)) by lia. unfold part.
          replace (Z.max 0 (Z.min d (a - w * d))) with (a - w * d)%Z by lia.
          cbn [andb ind]. rewrite Rmult_1_r. apply IH; lia. }
    split; (apply word_near with (a := a) (d := d); [exact Hd | lra | intros w Hw; apply (C w Hw)]).
Qed.

(* The coin's law, in the limit, where it ends with probability 1. *)
Theorem bernoulli_law : forall n d, (0 <= n <= d)%Z -> (1 <= d)%Z ->
  Un_cv (fun m => E (bernoulli m n d) heads) (IZR n / IZR d) /\
  Un_cv (fun m => E (bernoulli m n d) tails) (1 - IZR n / IZR d).
Proof.
  intros n d Hn Hd. apply near_cv with (c := 1); [exact W_two| |lra].
  intros m. rewrite Rmult_1_l. now apply bernoulli_near.
Qed.

End Bernoulli.
