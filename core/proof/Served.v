(* SPDX-License-Identifier: Apache-2.0

   The conditions on runs (Runs.v) are not void: the run [served] fulfils them. Its one IRQ arrives
   at tick 3, in p's slot; its top handler takes that tick, its bottom handler the next. *)
From Coq Require Import ZArith List Lia Bool.
From Latenz Require Import Runs SlotsForm Search.
Import ListNotations.
Open Scope Z_scope.

Definition once (tick x : nat) : Z := if Nat.eqb x tick then 1 else 0.

(* A cycle of 10 ns that begins with a switch of 2 ns; one source, every 10 ns at most. *)
Definition small : system :=
  {| cycle := 10; start := 2; stop := 10; sources := [
       {| own := true; arrival := periodic 10 0 0; monitor := None;
          top := 1; bottom := 1; job := 0 |}] |}.

Definition served : run :=
  {| streams := [{| arrived := once 3; accepted := fun _ => 0 |}];
     work k x := match k with Top | Bottom => once 3 x | Switch => blocked small x | Job => 0 end;
     act x := if Nat.eqb x 3 then Some Top else if Nat.eqb x 4 then Some Bottom
              else if supplied small x then None else Some Switch |}.

Lemma upto_once (tick x : nat) : upto (once tick) x = if Nat.ltb tick x then 1 else 0.
Proof.
  induction x as [|x IH]; [reflexivity|]. cbn [upto]. rewrite IH. unfold once.
  destruct (Nat.eqb_spec x tick), (Nat.ltb_spec tick x), (Nat.ltb_spec tick (S x)); lia.
Qed.

Lemma upto_ext (f g : nat -> Z) (x : nat) : (forall x, f x = g x) -> upto f x = upto g x.
Proof. intros E. induction x as [|x IH]; cbn [upto]; [|rewrite IH, E]; reflexivity. Qed.

(* All is executed when it comes, but the bottom handler one tick later. *)
Lemma served_executes (k : kind) (x : nat) :
  executed served k x = match k with Bottom => once 4 x | _ => work served k x end.
Proof.
  unfold executed, served, once, blocked. cbn [act work].
  destruct (Nat.eqb_spec x 3) as [->|]; [destruct k; reflexivity|].
  destruct (Nat.eqb_spec x 4) as [->|]; [destruct k; reflexivity|].
  destruct (supplied small x), k; reflexivity.
Qed.

Lemma executed_upto (k : kind) (x : nat) :
  upto (executed served k) x =
    match k with Bottom => upto (once 4) x | _ => upto (work served k) x end.
Proof. destruct k; apply upto_ext; intros; rewrite served_executes; reflexivity. Qed.

Lemma once_keeps : keeps (periodic 10 0 0) (once 3).
Proof.
  intros a n. unfold within, eta, covering. rewrite !upto_once.
  assert (1 <= Z.of_nat n -> 1 <= (Z.of_nat n + 0 + 10 - 1) / 10)
    by (intros; apply Z.div_le_lower_bound; lia).
  destruct (Nat.ltb_spec 3 a), (Nat.ltb_spec 3 (a + n)), (Z.leb_spec (Z.of_nat n) 0); cbn; lia.
Qed.

Theorem served_conforms : conforming small served.
Proof.
  constructor.
  - constructor; [|constructor]. split; [|split].
    + intros x. cbn. unfold once. destruct (Nat.eqb x 3); lia.
    + exact once_keeps.
    + intros x. reflexivity.
  - intros k x. cbn. unfold once, blocked.
    destruct k, (Nat.eqb x 3), (supplied small x); lia.
  - intros x. cbn [brought sources streams small served work arrived top]. lia.
  - intros x. cbn [brought sources streams small served work accepted job]. lia.
  - intros x. cbn [brought sources streams small served work arrived own_bottom own bottom]. lia.
  - intros k x. rewrite executed_upto. destruct k; cbn [work served]; try lia.
    rewrite !upto_once. destruct (Nat.ltb_spec 4 x), (Nat.ltb_spec 3 x); lia.
  - intros x. cbn [work served act]. unfold blocked.
    destruct (Nat.eqb_spec x 3) as [->|]; [left; reflexivity|].
    destruct (Nat.eqb_spec x 4) as [->|]; [left; reflexivity|].
    destruct (supplied small x); [left; reflexivity|]. right. repeat split. left. reflexivity.
  - intros x k U. rewrite executed_upto. cbn [act served]. rewrite U.
    destruct (Nat.eqb_spec x 3); [discriminate|]. destruct (Nat.eqb_spec x 4); [discriminate|].
    intros W _. assert (B : blocked small x = 0) by (unfold blocked; rewrite U; reflexivity).
    revert W. cbn [upto]. destruct k; cbn [work served]; rewrite ?B, ?upto_once; unfold once;
      destruct (Nat.eqb_spec x 3), (Nat.ltb_spec 4 x), (Nat.ltb_spec 3 x); lia.
Qed.

(* The theorem applies to it. *)
Lemma small_is_bounded : bound small = Some 4.
Proof. vm_compute. reflexivity. Qed.

(* Its bottom handler has ended before tick 5, and not before tick 4. *)
Lemma served_ends : ended served 3 5 /\ ~ ended served 3 4.
Proof. unfold ended. rewrite !executed_upto. split; vm_compute; congruence. Qed.
