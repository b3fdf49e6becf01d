(* The prefix rule of trees: which nodes the sum of the first t rewards is made of, how many nodes
   one reward is in, and what a tree costs. *)

From Coq Require Import Reals List Arith Lia Lra Bool.
From Sotto Require Import Composition.
Import ListNotations.

(* The node (i, j) has the rewards j·2^i, …, (j+1)·2^i − 1, counted from 0. *)
Definition node := (nat * nat)%type.

Definition contains (d : node) (p : nat) : bool := p / 2 ^ fst d =? snd d.

(* A tree over a horizon has a node once all its rewards are there. *)
Definition complete (horizon : nat) (d : node) : Prop := (snd d + 1) * 2 ^ fst d <= horizon.

(* The nodes of the first t blocks of 2^i rewards: one for every bit of t that is set. *)
Fixpoint prefix (bits i t : nat) : list node :=
  match bits with
  | O => []
  | S bits =>
      (if Nat.odd t then [(i, t - 1)] else []) ++ prefix bits (S i) (t / 2)
  end.

(* The levels of a tree: ⌊log₂ horizon⌋ + 1. *)
Definition levels (horizon : nat) : nat := Nat.log2 horizon + 1.

Definition nodes (t : nat) : list node := prefix (levels t) 0 t.

(* Σ x over n rewards from the first one. *)
Fixpoint sum (x : nat -> nat) (from n : nat) : nat :=
  match n with O => 0 | S n => sum x from n + x (from + n) end.

Definition node_sum (x : nat -> nat) (d : node) : nat :=
  sum x (snd d * 2 ^ fst d) (2 ^ fst d).

Fixpoint total (x : nat -> nat) (l : list node) : nat :=
  match l with [] => 0 | d :: l => node_sum x d + total x l end.

Lemma sum_app : forall x from n m, sum x from (n + m) = sum x from n + sum x (from + n) m.
Proof.
  intros x from n. induction m as [|m IH]; [cbn; rewrite Nat.add_0_r; lia|].
  rewrite Nat.add_succ_r. cbn. rewrite IH. replace (from + n + m) with (from + (n + m)) by lia. lia.
Qed.

Lemma total_app : forall x l m, total x (l ++ m) = total x l + total x m.
Proof. intros x. induction l as [|d l IH]; intros m; cbn; [reflexivity|]. rewrite IH. lia. Qed.

Lemma halves : forall t, t = 2 * (t / 2) + (if Nat.odd t then 1 else 0).
Proof.
  intros t. pose proof (Nat.div2_odd t) as H. rewrite Nat.div2_div in H.
  unfold Nat.b2n in H. exact H.
Qed.

Lemma prefix_sum : forall x bits i t, t < 2 ^ bits -> total x (prefix bits i t) = sum x 0 (t * 2 ^ i).
Proof.
  intros x. induction bits as [|bits IH]; intros i t H; cbn [prefix].
  - cbn in H. replace t with 0 by lia. reflexivity.
  - rewrite total_app, IH.
    + pose proof (halves t) as E. destruct (Nat.odd t); cbn [total].
      * rewrite Nat.add_0_r. unfold node_sum; cbn [fst snd].
        assert (Q : t - 1 = 2 * (t / 2)) by lia.
        rewrite E at 3. rewrite Nat.mul_add_distr_r, Nat.mul_1_l, sum_app, Q.
        rewrite Nat.pow_succ_r'. replace (t / 2 * (2 * 2 ^ i)) with (2 * (t / 2) * 2 ^ i) by lia.
        cbn [Nat.add]. lia.
      * rewrite E at 2. rewrite Nat.pow_succ_r'.
        replace (t / 2 * (2 * 2 ^ i)) with ((2 * (t / 2) + 0) * 2 ^ i) by lia. reflexivity.
    + rewrite Nat.pow_succ_r' in H. apply Nat.div_lt_upper_bound; lia.
Qed.

(* The sum of the first t rewards is that of its nodes. *)
Theorem prefix_rule : forall x t, total x (nodes t) = sum x 0 t.
Proof.
  intros x t. unfold nodes. rewrite prefix_sum; [now rewrite Nat.pow_0_r, Nat.mul_1_r|].
  unfold levels. destruct t as [|t]; [cbn; lia|].
  rewrite Nat.add_1_r. apply Nat.log2_spec. lia.
Qed.

Lemma prefix_length : forall bits i t, length (prefix bits i t) <= bits.
Proof.
  induction bits as [|bits IH]; intros i t; cbn [prefix]; [cbn; lia|].
  rewrite app_length. specialize (IH (S i) (t / 2)). unfold node in *. destruct (Nat.odd t); cbn [length]; lia.
Qed.

(* So the noise of a running sum is that of at most levels draws. *)
Theorem few_nodes_a_sum : forall t, length (nodes t) <= levels t.
Proof. intros t. apply prefix_length. Qed.

Lemma prefix_complete : forall bits i t d, In d (prefix bits i t) -> complete (t * 2 ^ i) d.
Proof.
  induction bits as [|bits IH]; intros i t d H; cbn [prefix] in H; [contradiction|].
  pose proof (halves t) as E. apply in_app_or in H as [H|H].
  - destruct (Nat.odd t); [|contradiction]. destruct H as [<-|[]].
    unfold complete; cbn [fst snd]. apply Nat.mul_le_mono_r. lia.
  - apply IH in H. unfold complete in *. rewrite Nat.pow_succ_r' in H.
    apply Nat.le_trans with (1 := H).
    replace (t / 2 * (2 * 2 ^ i)) with (2 * (t / 2) * 2 ^ i) by lia.
    apply Nat.mul_le_mono_r. lia.
Qed.

(* A running sum of t rewards, within the horizon, is made of nodes that the tree has. *)
Lemma nodes_are_complete : forall horizon t d, t <= horizon -> In d (nodes t) -> complete horizon d.
Proof.
  intros horizon t d H I. apply prefix_complete in I. unfold complete in *.
  rewrite Nat.pow_0_r in I. lia.
Qed.

(* One reward is in one node a level, so in at most ⌊log₂ horizon⌋ + 1 nodes. *)
Theorem few_nodes_a_reward : forall horizon p l,
  NoDup l -> (forall d, In d l -> complete horizon d /\ contains d p = true) ->
  length l <= levels horizon.
Proof.
  intros horizon p l N H.
  assert (M : NoDup (map fst l)).
  { clear - N H. induction l as [|d l IH]; cbn; [constructor|].
    inversion N as [|? ? Nd Nl]; subst. constructor.
    - rewrite in_map_iff. intros (d' & E & I). apply Nd.
      replace d with d'; [exact I|].
      destruct (H d (or_introl eq_refl)) as (_ & C). destruct (H d' (or_intror I)) as (_ & C').
      unfold contains in *. apply Nat.eqb_eq in C, C'.
      destruct d, d'; cbn in *; subst. reflexivity.
    - apply IH; [exact Nl|]. intros d' I. apply H. now right. }
  replace (length l) with (length (map fst l)) by apply map_length.
  replace (levels horizon) with (length (seq 0 (levels horizon))) by apply seq_length.
  apply NoDup_incl_length; [exact M|].
  intros i I. apply in_map_iff in I as (d & <- & I). destruct (H d I) as (C & _).
  apply in_seq. split; [lia|]. cbn. unfold levels, complete in *. rewrite Nat.add_1_r.
  apply Nat.lt_succ_r. destruct horizon as [|h].
  - pose proof (Nat.pow_nonzero 2 (fst d)). lia.
  - apply Nat.log2_le_pow2; [lia|]. nia.
Qed.

(* What a tree costs. An analyst whose events are nodes, each released once through a mechanism of
   at most ε, is (levels · ε)-DP, and so is every running sum, which is made of nodes. Which node
   comes next, and through which mechanism, may depend on what was released. *)
Section Price.

Variables V Y : Type.
Variable A : analyst V Y.
Variable name : list Y -> node. (* the node that is released after these outcomes *)
Variable horizon : nat.
Variable epsilon : R.

Fixpoint released (h : list Y) : list node :=
  match h with
  | [] => []
  | _ :: h => match A h with Some _ => name h :: released h | None => released h end
  end.

Hypothesis A_sound : sound_analyst _ _ A.
Hypothesis epsilon_nonneg : (0 <= epsilon)%R.
Hypothesis A_price : forall h e, A h = Some e -> (price _ _ e <= epsilon)%R.
Hypothesis A_reads : forall h e, A h = Some e ->
  complete horizon (name h) /\ forall p, reads _ _ e p = contains (name h) p.
Hypothesis A_once : forall h, NoDup (released h).

Lemma released_complete : forall h d, In d (released h) -> complete horizon d.
Proof.
  induction h as [|y h IH]; intros d I; cbn in I; [contradiction|].
  destruct (A h) as [e|] eqn:E; [|now apply IH].
  destruct I as [<-|I]; [now apply (A_reads h e) | now apply IH].
Qed.

Lemma readings_are_nodes : forall p h,
  readings _ _ A p h = length (filter (fun d => contains d p) (released h)).
Proof.
  intros p. induction h as [|y h IH]; cbn [readings released]; [reflexivity|]. rewrite IH.
  destruct (A h) as [e|] eqn:E; [|lia]. cbn [filter].
  destruct (A_reads h e E) as (_ & ->). destruct (contains (name h) p); cbn; lia.
Qed.

Theorem tree_price : dp _ _ A (INR (levels horizon) * epsilon).
Proof.
  apply repeated_readings; auto. intros p h. rewrite readings_are_nodes.
  apply few_nodes_a_reward with (p := p).
  - apply NoDup_filter, A_once.
  - intros d I. apply filter_In in I as (I & C). split; [now apply released_complete with h | exact C].
Qed.

End Price.
