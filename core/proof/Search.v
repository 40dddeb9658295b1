(* SPDX-License-Identifier: Apache-2.0

   The search of a certificate. Nothing rests on it, as `check` (SlotsForm.v) judges what it finds:
   `bound_holds` says that what `bound` returns is a bound. *)
From Coq Require Import ZArith List.
From Latenz Require Import Runs SlotsForm.
Import ListNotations.
Open Scope Z_scope.

Fixpoint settle (fuel : nat) (enough : Z -> Z) (window : Z) : Z :=
  match fuel with
  | O => window
  | S fuel =>
      let more := enough window in
      if more <=? window then window else settle fuel enough more
  end.

(* The least place after [no] up to [yes] at which p holds, if it never ends once it began. *)
Fixpoint bisect (fuel : nat) (p : Z -> bool) (no yes : Z) : Z :=
  match fuel with
  | O => yes
  | S fuel =>
      let middle := (no + yes) / 2 in
      if yes - no <=? 1 then yes
      else if p middle then bisect fuel p no middle else bisect fuel p middle yes
  end.

Fixpoint steps_from (fuel : nat) (s : system) (until from : Z) : list (Z * Z) :=
  match fuel with
  | O => []
  | S fuel =>
      let own := own_work s (from + 1) in
      let next := bisect 64 (fun x => own <? own_work s (x + 1)) from until in
      (next, settle 1000 (needed s own) next) ::
        (if until <=? next then [] else steps_from fuel s until next)
  end.

Definition find (s : system) : certificate :=
  let until := settle 1000 (fun window => needed s (own_work s window) window) 1 in
  {| busy := until; steps := steps_from 1000 s until 0 |}.

(* The latency that a certificate shows: the longest from a step's first arrival to its finish. *)
Definition shown (c : certificate) : Z :=
  snd (fold_left (fun '(from, most) '(next, finish) => (next, Z.max most (finish - from)))
    (steps c) (0, 0)).

(* The latency that the certificate found shows; None if [check] refuses it. *)
Definition bound (s : system) : option Z :=
  let c := find s in if check s c (shown c) then Some (shown c) else None.

Corollary bound_holds (s : system) (latency : Z) : bound s = Some latency ->
  forall r, conforming s r -> forall a, ended r a (a + Z.to_nat latency).
Proof.
  (* generalised first: the proof must not compute a certificate *)
  unfold bound. generalize (find s). intros c. cbv zeta. generalize (shown c). intros l.
  destruct (check s c l) eqn:C; intros H; [|discriminate H].
  assert (l = latency) as <- by congruence. exact (bounded s c l C).
Qed.
