(* Adaptive composition over records, and a cap as a filter: pure differential privacy of discrete
   mechanisms, whose outcomes have masses.

   A data set gives each record a value. An analyst looks at all outcomes so far and chooses the
   next event: which records it reads, through which mechanism, at which price. It may also stop. So
   slots are chosen adaptively, and so are mechanisms, prices and their number. *)

From Coq Require Import Reals List Arith Lia Lra.
From Sotto Require Import Exp.
Import ListNotations.
Local Open Scope R_scope.

Section Composition.

Variable V : Type. (* what a record is worth *)
Variable Y : Type. (* what is seen of an event *)

Definition data := nat -> V.

(* Neighbours differ in the record r and in no other. *)
Definition neighbours (r : nat) (x x' : data) := forall i, i <> r -> x i = x' i.

Record event := Event {
  reads : nat -> bool;          (* a slot: a set of records *)
  mass_of : data -> Y -> R;     (* the mechanism: the mass of an outcome *)
  price : R                     (* the ε of one record that is read *)
}.

(* What is asked of an event: masses are none below 0, the outcome depends on the records that it
   reads and on no other, and each of these is worth at most price to it. *)
Definition sound (e : event) :=
  (forall x y, 0 <= mass_of e x y) /\
  (forall x x', (forall i, reads e i = true -> x i = x' i) ->
     forall y, mass_of e x y = mass_of e x' y) /\
  (forall r x x', neighbours r x x' -> forall y, mass_of e x y <= exp (price e) * mass_of e x' y) /\
  0 <= price e.

(* What the event costs the record r. *)
Definition cost (r : nat) (e : event) : R := if reads e r then price e else 0.

Lemma cost_nonneg : forall r e, sound e -> 0 <= cost r e.
Proof.
  intros r e (_ & _ & _ & H). unfold cost. destruct (reads e r); lra.
Qed.

Lemma event_dp : forall r e x x', sound e -> neighbours r x x' ->
  forall y, mass_of e x y <= exp (cost r e) * mass_of e x' y.
Proof.
  intros r e x x' (_ & Hloc & Hdp & _) N y. unfold cost.
  destruct (reads e r) eqn:E.
  - now apply Hdp with r.
  - rewrite exp_0, Rmult_1_l. right. apply Hloc. intros i Hi. apply N.
    intros ->. congruence.
Qed.

(* An analyst knows the outcomes so far, the latest first. None: it has stopped. *)
Definition analyst := list Y -> option event.

(* The mass of a transcript. *)
Fixpoint mass (A : analyst) (x : data) (h : list Y) : R :=
  match h with
  | [] => 1
  | y :: h => mass A x h * match A h with Some e => mass_of e x y | None => 0 end
  end.

(* What the events of a transcript cost the record r altogether. *)
Fixpoint spent (A : analyst) (r : nat) (h : list Y) : R :=
  match h with
  | [] => 0
  | _ :: h => spent A r h + match A h with Some e => cost r e | None => 0 end
  end.

Definition sound_analyst (A : analyst) := forall h e, A h = Some e -> sound e.

Lemma mass_nonneg : forall A x h, sound_analyst A -> 0 <= mass A x h.
Proof.
  induction h as [|y h IH]; intros S; cbn; [lra|].
  destruct (A h) eqn:E; [|lra].
  apply Rmult_le_pos; [auto|]. destruct (S h e E) as (H & _). apply H.
Qed.

(* The transcript's loss is at most what the record was charged along it. *)
Theorem adaptive_composition : forall A r x x', sound_analyst A -> neighbours r x x' ->
  forall h, mass A x h <= exp (spent A r h) * mass A x' h.
Proof.
  intros A r x x' S N. induction h as [|y h IH]; cbn.
  - rewrite exp_0. lra.
  - destruct (A h) as [e|] eqn:E; [|lra].
    pose proof (S h e E) as Se.
    rewrite exp_plus.
    replace (exp (spent A r h) * exp (cost r e) * (mass A x' h * mass_of e x' y))
      with ((exp (spent A r h) * mass A x' h) * (exp (cost r e) * mass_of e x' y)) by ring.
    apply Rmult_le_compat; auto.
    + now apply mass_nonneg.
    + destruct Se as (H & _). apply H.
    + now apply event_dp.
Qed.

(* ε-DP of all that is seen, whatever analysts choose. *)
Definition dp (A : analyst) (epsilon : R) :=
  forall r x x', neighbours r x x' -> forall h, mass A x h <= exp epsilon * mass A x' h.

Lemma dp_of_spent : forall A epsilon, sound_analyst A ->
  (forall r h, spent A r h <= epsilon) -> dp A epsilon.
Proof.
  intros A epsilon S B r x x' N h.
  apply Rle_trans with (exp (spent A r h) * mass A x' h).
  - now apply adaptive_composition.
  - apply Rmult_le_compat_r; [now apply mass_nonneg|].
    apply exp_le, B.
Qed.

(* How many events of a transcript read the record r. *)
Fixpoint readings (A : analyst) (r : nat) (h : list Y) : nat :=
  match h with
  | [] => 0
  | _ :: h => readings A r h + match A h with Some e => if reads e r then 1 else 0 | None => 0 end
  end.

(* Sequential composition, of at most n events of at most epsilon that read a record. *)
Theorem repeated_readings : forall A epsilon n, sound_analyst A -> 0 <= epsilon ->
  (forall h e, A h = Some e -> price e <= epsilon) ->
  (forall r h, (readings A r h <= n)%nat) -> dp A (INR n * epsilon).
Proof.
  intros A epsilon n S P B C. apply dp_of_spent; [exact S|]. intros r h.
  apply Rle_trans with (INR (readings A r h) * epsilon).
  - clear C. induction h as [|y h IH]; cbn [spent readings]; [cbn; lra|].
    rewrite plus_INR. destruct (A h) as [e|] eqn:E; [|cbn; lra].
    unfold cost. pose proof (B h e E). destruct (reads e r); cbn; lra.
  - apply Rmult_le_compat_r; [exact P|]. apply le_INR, C.
Qed.

(* Parallel composition: where each record is read by one event at most, however slots, mechanisms
   and prices are chosen, the total is the price of one event and not the sum. *)
Theorem parallel_composition : forall A epsilon, sound_analyst A -> 0 <= epsilon ->
  (forall h e, A h = Some e -> price e <= epsilon) ->
  (forall r h, (readings A r h <= 1)%nat) -> dp A epsilon.
Proof.
  intros A epsilon S P B C. replace epsilon with (INR 1 * epsilon) by (cbn; ring).
  now apply repeated_readings.
Qed.

(* Sets of transcripts: what holds for each holds for any finite number of them, and for infinitely
   many whose masses have sums. *)
Fixpoint mass_set (A : analyst) (x : data) (hs : list (list Y)) : R :=
  match hs with [] => 0 | h :: hs => mass A x h + mass_set A x hs end.

Theorem dp_of_sets : forall A epsilon, dp A epsilon -> forall r x x', neighbours r x x' ->
  forall hs, mass_set A x hs <= exp epsilon * mass_set A x' hs.
Proof.
  intros A epsilon D r x x' N. induction hs as [|h hs IH]; cbn; [lra|].
  rewrite Rmult_plus_distr_l. apply Rplus_le_compat; [now apply D with r | exact IH].
Qed.

Theorem dp_of_infinite_sets : forall A epsilon, dp A epsilon -> forall r x x', neighbours r x x' ->
  forall (hs : nat -> list Y) p p',
    infinite_sum (fun i => mass A x (hs i)) p -> infinite_sum (fun i => mass A x' (hs i)) p' ->
    p <= exp epsilon * p'.
Proof.
  intros A epsilon D r x x' N hs p p' Hp Hp'.
  assert (L : Un_cv (fun n => exp epsilon * sum_f_R0 (fun i => mass A x' (hs i)) n)
                    (exp epsilon * p')).
  { apply (CV_mult (fun _ => exp epsilon)); [|exact Hp'].
    apply constant_cv. }
  assert (G : forall n, sum_f_R0 (fun i => mass A x (hs i)) n <=
              exp epsilon * sum_f_R0 (fun i => mass A x' (hs i)) n).
  { intros n. rewrite scal_sum. apply sum_Rle. intros i _. rewrite Rmult_comm. now apply D with r. }
  apply cv_le with (1 := G); assumption.
Qed.

End Composition.

Arguments Event {V Y}.

(* A cap as a filter. The analyst proposes whatever it likes; the filter looks at what every record
   has been charged so far, and admits the event or refuses it. A refusal is seen by all, and draws
   nothing. *)
Section Filter.

Variables V Y : Type.
Variable cap : R.
Hypothesis cap_nonneg : 0 <= cap.

(* The filter sees prices, never data: within decides whether all records of the event stay within
   the cap. Records are 0, …, n-1. *)
Variable n : nat.

Definition refusal : event V (option Y) :=
  Event (fun _ => false) (fun _ y => match y with None => 1 | Some _ => 0 end) 0.

(* An event as it is seen behind the filter. *)
Definition admitted (e : event V Y) : event V (option Y) :=
  Event (reads _ _ e) (fun x y => match y with Some y => mass_of _ _ e x y | None => 0 end)
    (price _ _ e).

Fixpoint within (spent : nat -> R) (e : event V Y) (k : nat) : bool :=
  match k with
  | O => true
  | S k => (if Rle_dec (spent k + cost _ _ k e) cap then true else false) && within spent e k
  end.

(* The analyst knows refusals as well. *)
Definition proposal := list (option Y) -> option (event V Y).

(* A filter with a memory of what was charged: a transcript's charges, and the event it admits. *)
Fixpoint charged (A : proposal) (h : list (option Y)) : nat -> R :=
  match h with
  | [] => fun _ => 0
  | _ :: h => fun r =>
      charged A h r +
      match A h with
      | Some e => if within (charged A h) e n then cost _ _ r e else 0
      | None => 0
      end
  end.

Definition filtered (A : proposal) : analyst V (option Y) := fun h =>
  match A h with
  | Some e => Some (if within (charged A h) e n then admitted e else refusal)
  | None => None
  end.

Lemma refusal_sound : sound _ _ refusal.
Proof.
  unfold sound; cbn. repeat split; intros; rewrite ?exp_0; try lra; destruct y; lra.
Qed.

Lemma admitted_sound : forall e, sound _ _ e -> sound _ _ (admitted e).
Proof.
  intros e (H1 & H2 & H3 & H4). unfold sound; cbn. repeat split; auto.
  - intros x [y|]; auto. lra.
  - intros x x' H [y|]; auto.
  - intros r x x' N [y|]; [now apply H3 with r | lra].
Qed.

Lemma within_spec : forall s e k, within s e k = true ->
  forall r, (r < k)%nat -> s r + cost _ _ r e <= cap.
Proof.
  intros s e. induction k as [|k IH]; intros H r Hr; [lia|].
  cbn in H. destruct (Rle_dec (s k + cost _ _ k e) cap) as [L|L]; [|discriminate].
  cbn in H. destruct (Nat.eq_dec r k) as [->|]; [exact L|]. apply IH; [exact H|lia].
Qed.

Lemma spent_is_charged : forall A h r, spent _ _ (filtered A) r h = charged A h r.
Proof.
  intros A h r. induction h as [|y h IH]; cbn; [reflexivity|].
  rewrite IH. unfold filtered. destruct (A h) as [e|]; [|reflexivity].
  destruct (within (charged A h) e n); reflexivity.
Qed.

Lemma charged_within : forall A h r, (r < n)%nat -> charged A h r <= cap.
Proof.
  intros A h r Hr. induction h as [|y h IH]; cbn; [exact cap_nonneg|].
  destruct (A h) as [e|]; [|lra].
  destruct (within (charged A h) e n) eqn:E; [|lra].
  now apply within_spec with (k := n) (r := r) in E.
Qed.

(* A cap is a filter: whatever is proposed in the light of all outcomes, refusals among them, and at
   whatever prices, all that is seen is cap-DP. *)
Theorem cap_is_a_filter : forall A : proposal,
  (forall h e, A h = Some e -> sound _ _ e) ->
  (forall h e r, A h = Some e -> reads _ _ e r = true -> (r < n)%nat) ->
  dp _ _ (filtered A) cap.
Proof.
  intros A S B. apply dp_of_spent.
  - intros h e. unfold filtered. destruct (A h) as [e0|] eqn:E; intros H; inversion H.
    destruct (within (charged A h) e0 n); [apply admitted_sound; eauto | apply refusal_sound].
  - intros r h. rewrite spent_is_charged.
    destruct (lt_dec r n) as [L|L]; [now apply charged_within|].
    induction h as [|y h IH]; cbn; [exact cap_nonneg|].
    destruct (A h) as [e|] eqn:E; [|lra].
    destruct (within (charged A h) e n); [|lra].
    unfold cost. destruct (reads _ _ e r) eqn:Er; [|lra].
    exfalso. apply L. eauto.
Qed.

End Filter.
